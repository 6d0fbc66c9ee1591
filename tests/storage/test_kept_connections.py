"""Connections that were kept across a freeze: they are replaced, and what fails on one is sent once more at most."""

from __future__ import annotations

import errno
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

from common.storage import aws, connections, outgoing
from common.storage.signed_calls import DirectLambda
from tests.storage.endpoint import OK, Endpoint, Reply, answer

KEY: Any = {"TableName": "t", "Key": {"pk": {"S": "a"}}}
ACCEPTED = answer(202, b"")


def reset(connection: socket.socket) -> bytes:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    return b""


def ended(connection: socket.socket) -> bytes:
    return b""


def a_byte(connection: socket.socket) -> bytes:
    connection.sendall(b"H")
    return b""


@pytest.fixture
def silent() -> Iterator[Callable[[socket.socket], bytes]]:
    is_over = threading.Event()

    def reply(connection: socket.socket) -> bytes:
        is_over.wait(20)
        return b""

    yield reply
    is_over.set()


@pytest.fixture
def functions(endpoint: Endpoint) -> DirectLambda:
    client = aws.target_client("lambda", "us-east-1", 5)
    assert isinstance(client, DirectLambda)
    endpoint.replies = [ACCEPTED]
    return client


def invoke(client: DirectLambda, invocation: str = "Event") -> bytes:
    answered = client.invoke(
        FunctionName="arn:aws:lambda:us-east-1:123456789012:function:report",
        InvocationType=invocation,
        Payload=b"{}",
        LogType="None",
    )
    return bytes(answered["Payload"].read())


def keep(client: Any, count: int) -> None:
    client.requests.connections.warm_up(count)
    assert len(client.requests.connections._idle) == count


class Clocks:
    """The wall clock and the monotonic one, each ahead of the real one by so many seconds."""

    def __init__(self) -> None:
        self.wall_s = self.monotonic_s = 0.0

    def time(self) -> float:
        return time.time() + self.wall_s

    def monotonic(self) -> float:
        return time.monotonic() + self.monotonic_s


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    clocks = Clocks()
    monkeypatch.setattr(connections, "time", clocks)
    return clocks


@pytest.mark.parametrize(
    ("wall_s", "monotonic_s", "is_replaced"),
    [
        (0, 0, False),
        (29, 29, False),
        (31, 0, True),  # the monotonic clock stopped in the freeze
        (-3600, 31, True),  # the wall clock was set back
        (-3600, 29, False),
    ],
)
@pytest.mark.parametrize("service", ["dynamodb", "lambda", "events"])
def test_a_connection_that_was_idle_for_long_by_either_clock_is_replaced(
    endpoint: Endpoint, clocks: Clocks, service: str, wall_s: float, monotonic_s: float, is_replaced: bool
) -> None:
    if service == "lambda":
        endpoint.replies = [ACCEPTED]
        client = aws.target_client("lambda", "us-east-1", 5)
        call: Callable[[], object] = lambda: invoke(client)  # noqa: E731
    elif service == "dynamodb":
        call = lambda: aws.dynamodb().get_item(**KEY)  # noqa: E731
    else:  # through botocore
        bus = aws.target_client("events", "us-east-1", 5)
        call = lambda: bus.list_event_buses()  # noqa: E731
    call()
    clocks.wall_s, clocks.monotonic_s = wall_s, monotonic_s
    call()
    assert endpoint.connections == (2 if is_replaced else 1)


def test_a_wake_replaces_what_would_be_too_old_soon(functions: DirectLambda, clocks: Clocks) -> None:
    keep(functions, 2)
    old = list(functions.requests.connections._idle)
    clocks.wall_s = connections.MAX_IDLE_S / 2 + 1
    keep(functions, 2)
    assert not set(old) & set(functions.requests.connections._idle)
    new = list(functions.requests.connections._idle)
    keep(functions, 2)
    assert set(new) == set(functions.requests.connections._idle)


def test_unacknowledged_bytes_end_a_connection(endpoint: Endpoint) -> None:
    def limit_ms(connected: socket.socket) -> int:
        return connected.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT)

    aws.dynamodb().get_item(**KEY)
    client: Any = aws.dynamodb()
    (direct,) = client.requests.connections._idle
    bus = aws.target_client("events", "us-east-1", 5)
    bus.list_event_buses()
    (pool,) = bus._endpoint.http_session._manager.pools._container.values()
    by_botocore = pool.pool.get_nowait()
    assert (limit_ms(direct.socket), limit_ms(by_botocore.sock)) == (3000, 3000)
    by_botocore.close()


@pytest.mark.parametrize("failure", [reset, ended, "silent"])
def test_a_read_is_sent_once_more_on_a_new_connection(
    endpoint: Endpoint, silent: Reply, monkeypatch: pytest.MonkeyPatch, failure: Any
) -> None:
    monkeypatch.setattr(connections, "_SILENT_S", 0.05)
    monkeypatch.setattr(
        "botocore.endpoint.time.sleep", lambda s: pytest.fail("botocore waited for a repetition")
    )
    client: Any = aws.dynamodb()
    keep(client, 3)
    endpoint.replies = [silent if failure == "silent" else failure, OK]
    client.get_item(**KEY)
    assert len(endpoint.requests) == 2
    # The other kept ones were idle as long.
    assert (endpoint.connections, len(client.requests.connections._idle)) == (4, 1)


@pytest.mark.parametrize("failure", [reset, ended])
@pytest.mark.parametrize("invocation", ["Event", "RequestResponse"])
def test_a_call_is_sent_once_more_if_its_kept_connection_breaks_at_once(
    endpoint: Endpoint, functions: DirectLambda, invocation: str, failure: Reply
) -> None:
    keep(functions, 2)
    endpoint.replies = [failure, ACCEPTED]
    assert invoke(functions, invocation) == b""
    assert (len(endpoint.requests), endpoint.connections) == (2, 3)


@pytest.mark.parametrize("failure", [reset, ended])
def test_a_call_is_sent_twice_at_most(endpoint: Endpoint, functions: DirectLambda, failure: Reply) -> None:
    keep(functions, 2)
    endpoint.replies = [failure]
    with pytest.raises(ConnectionClosedError):
        invoke(functions)
    assert len(endpoint.requests) == 2


@pytest.mark.parametrize("case", ["new", "late", "a byte", "silent", "once"])
def test_a_call_that_a_function_may_have_seen_is_not_sent_again(
    endpoint: Endpoint, silent: Reply, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    client = aws.target_client("lambda", "us-east-1", 0.2)
    if case != "new":
        keep(client, 1)
    if case == "late":
        monkeypatch.setattr(connections, "_RESET_S", 0)
    outgoing.reset(may_be_repeated=case != "once")
    failure = {"silent": silent, "a byte": a_byte}.get(case, reset)
    endpoint.replies = [failure, ACCEPTED]
    with pytest.raises(ReadTimeoutError if case == "silent" else ConnectionClosedError):
        invoke(client)
    outgoing.reset()
    assert len(endpoint.requests) == 1


def test_a_call_that_nobody_acknowledged_is_sent_again(
    endpoint: Endpoint, functions: DirectLambda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_RESET_S", 0)
    keep(functions, 1)
    (kept,) = functions.requests.connections._idle

    class Unacknowledged:
        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

        def recv(self, count: int) -> bytes:
            if count == 1:
                raise BlockingIOError
            raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")

    real: Any = kept.socket
    kept.socket = Unacknowledged()  # type: ignore[assignment]
    assert invoke(functions) == b""
    assert endpoint.connections == 2
