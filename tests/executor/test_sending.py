"""The events of a batch over kept connections: all go out before an answer comes, and each ends by itself."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from common import limits
from common.cache import FairCache
from common.planning.execution import Execution
from common.planning.packs import Pack
from common.storage import connections, outgoing
from executor import pipeline, threads
from executor.batch import execute_batch
from executor.pipeline import Message
from executor.recorder import Report
from executor.targets import Kind, clients, lambda_function
from executor.threads import AnswerPoll
from tests.executor.contexts import US, call_function, event
from tests.executor.servers import ReceivedRequest, Server, certificate_file, serving
from tests.waiting import wait_until
from tests.worlds import World, at, job

MAX_IN_A_PACK = 10

DUE = at("2026-11-21T03:15:00Z")
ACCEPTED = 202, {"x-amzn-RequestId": "r"}, b""
WAITS_S = 20


@pytest.fixture(params=[True, False], ids=["TLS", "plain"])
def service(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Server]:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "f")
    monkeypatch.setattr(clients, "_clients", FairCache[Any](8))
    with serving(tls=request.param, protocol="HTTP/1.1") as server:
        server.reply = lambda handler: ACCEPTED
        scheme = "https" if request.param else "http"
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"{scheme}://localhost:{server.port}")
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate_file(tmp_path)))
        yield server
        for client in clients._clients:
            client.close()


def name(handler: BaseHTTPRequestHandler | ReceivedRequest) -> str:
    """The function that a request invokes."""
    return handler.path.split("%3A")[-1].split("/")[0]


def target(job_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "kind": "lambda",
        "arn": f"arn:aws:lambda:{US}:function:{job_id}",
        "invocation": "Event",
        **fields,
    }


def events(world: World, *names: str, **fields: Any) -> list[Message]:
    """A message for each of these jobs, due now."""
    kind = Kind(call_function, lambda_function.call)
    world.executor = replace(world.executor, kinds={"lambda": kind})
    for job_id in names:
        world.registry.create("alice", job_id, job(cron="0 9 * * *", **fields) | {"target": target(job_id)})
    return [Message(f"m-{job_id}", Execution("alice", job_id, DUE, DUE, 1).encode()) for job_id in names]


def kept(service: Server, count: int) -> None:
    """Have so many connections open."""
    meet, reply = threading.Barrier(count), service.reply

    def together(handler: BaseHTTPRequestHandler) -> Any:
        meet.wait(WAITS_S)
        return ACCEPTED

    service.reply = together
    with ThreadPoolExecutor(count) as pool:
        assert all(pool.map(lambda _: call_function(target("warm"), event(), WAITS_S).ok, range(count)))
    service.reply = reply
    service.requests.clear()
    assert service.connections == count


def run(world: World, messages: list[Message]) -> tuple[list[Report], list[str]]:
    world.clock.move_to(DUE)
    return execute_batch(world.executor, messages)


@pytest.fixture
def senders(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The thread of each call that goes out, without its number."""
    names: list[str] = []
    note_sent = outgoing.note_sent

    def noting() -> None:
        names.append(threading.current_thread().name.rstrip("_0123456789"))
        note_sent()

    monkeypatch.setattr(outgoing, "note_sent", noting)
    return names


def results(reports: list[Report]) -> dict[str, str]:
    return {report.execution.job_id: report.result for report in reports}


def test_all_go_out_from_one_thread_before_an_answer_comes(
    world: World, service: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    meet = threading.Barrier(10)

    def reply(handler: BaseHTTPRequestHandler) -> Any:
        meet.wait(WAITS_S)
        return ACCEPTED

    service.reply = reply
    kept(service, 10)
    monkeypatch.setattr(threads, "event_threads", None)
    reports, failed = run(world, events(world, *"abcdefghij"))
    assert (results(reports), failed) == (dict.fromkeys("abcdefghij", "dispatched"), [])
    assert (len(service.requests), service.connections) == (10, 10)


def test_without_a_kept_connection_each_event_has_a_thread_that_connects(
    world: World, service: Server, senders: list[str]
) -> None:
    kept(service, 1)
    senders.clear()
    meet = threading.Barrier(3)

    def reply(handler: BaseHTTPRequestHandler) -> Any:
        meet.wait(WAITS_S)
        return ACCEPTED

    service.reply = reply
    reports, failed = run(world, events(world, *"abc"))
    assert (Counter(results(reports).values()), failed) == ({"dispatched": 3}, [])
    assert (len(service.requests), service.connections) == (3, 3)
    assert sorted(senders) == ["MainThread", "send", "send"]


def test_a_long_event_has_a_thread(world: World, service: Server, senders: list[str]) -> None:
    kept(service, 2)
    senders.clear()
    short, long = events(world, "short"), events(world, "long", payload="x" * connections.SEND_BUFFER_BYTES)
    assert run(world, short + long)[1] == []
    assert sorted(senders) == ["MainThread", "execute"]


def test_a_refused_or_broken_call_fails_one_event(
    world: World, service: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def reply(handler: BaseHTTPRequestHandler) -> Any:
        if name(handler) == "refused":
            return 429, {"x-amzn-ErrorType": "TooManyRequestsException"}, b"{}"
        if name(handler) == "broken":
            handler.close_connection = True
            return None
        return ACCEPTED

    service.reply = reply
    kept(service, 4)
    # The broken call is made once more only if it broke at once, and a busy machine is slow.
    monkeypatch.setattr(connections, "_RESET_S", WAITS_S)
    names = "refused", "a", "broken", "b"
    reports, failed = run(world, events(world, *names, retry={"max_attempts": 2}))
    ends = {"refused": "retrying", "a": "dispatched", "broken": "retrying", "b": "dispatched"}
    assert (results(reports), failed) == (ends, [])
    assert Counter(map(name, service.requests)) == {"refused": 1, "a": 1, "b": 1, "broken": 2}
    errors = {
        job_id: world.run_items("alice", job_id)[0]["attempts"][0]["error_type"]
        for job_id in ("refused", "broken")
    }
    assert errors == {"refused": "TooManyRequestsException", "broken": "ConnectionClosedError"}


def test_a_connection_that_the_service_has_closed_is_not_used(world: World, service: Server) -> None:
    kept(service, 2)
    meet = threading.Barrier(
        2
    )  # so that neither call uses the connection that the other one is about to lose

    def reply(handler: BaseHTTPRequestHandler) -> Any:
        meet.wait(WAITS_S)
        handler.close_connection = True
        return ACCEPTED

    service.reply = reply
    first, second = events(world, *"ab"), events(world, *"cd")
    assert run(world, first)[1] == []
    (client,) = (client for client in clients._clients)
    idle = list(client.requests.connections._idle)
    assert len(idle) == 2
    wait_until(
        lambda: not any(connection.is_usable() for connection in idle),
        "a connection stays usable",
        every_s=0.01,
    )
    reports, failed = run(world, second)
    assert (Counter(results(reports).values()), failed) == ({"dispatched": 2}, [])
    assert service.connections == 4


@pytest.mark.parametrize("on_crash", ["retry", "fail"])
def test_a_call_whose_kept_connection_is_dead_is_made_once_more_unless_the_job_forbids_it(
    world: World, service: Server, monkeypatch: pytest.MonkeyPatch, on_crash: str
) -> None:
    kept(service, 2)
    (client,) = (client for client in clients._clients)
    client.requests.connections._idle[-1].socket.shutdown(socket.SHUT_WR)
    monkeypatch.setattr(connections._Connection, "is_usable", lambda connection: True)
    monkeypatch.setattr(connections, "_RESET_S", WAITS_S)
    reports, failed = run(world, events(world, *"ab", retry={"max_attempts": 2}, on_crash=on_crash))
    ends = {"a": "dispatched" if on_crash == "retry" else "retrying", "b": "dispatched"}
    assert (results(reports), failed) == (ends, [])
    assert len(service.requests) == (2 if on_crash == "retry" else 1)


def test_a_late_answer_keeps_no_other_from_its_retry(world: World, service: Server) -> None:
    def reply(handler: BaseHTTPRequestHandler) -> Any:
        if name(handler) == "refused":
            return 429, {}, b"{}"
        if name(handler) == "late":
            wait_until(lambda: len(world.sqs) == 1, "the retry was not sent meanwhile", every_s=0.01)
        return ACCEPTED

    service.reply = reply
    kept(service, 3)
    reports, _ = run(
        world, events(world, "late", "refused", "quick", retry={"max_attempts": 2, "base_s": 10})
    )
    assert results(reports) == {"late": "dispatched", "refused": "retrying", "quick": "dispatched"}


@pytest.mark.long
def test_answers_that_never_come_end_at_their_own_time(
    world: World, service: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over = threading.Event()

    def reply(handler: BaseHTTPRequestHandler) -> Any:
        if name(handler).startswith("never"):
            is_over.wait(WAITS_S)
        return ACCEPTED

    service.reply = reply
    kept(service, 4)
    monkeypatch.setattr(pipeline, "EVENT_TIMEOUT_S", 3)
    monkeypatch.setattr(threads, "MAX_EVENT_WAIT_S", 0.05)
    began = time.monotonic()
    reports, _ = run(world, events(world, "never-1", "a", "never-2", "never-3", retry={"max_attempts": 2}))
    took_s = time.monotonic() - began
    is_over.set()
    assert Counter(results(reports).values()) == {"dispatched": 1, "retrying": 3}
    for job_id in ("never-1", "never-2", "never-3"):
        assert world.run_items("alice", job_id)[0]["attempts"][0]["error_type"] == "TimedOut"
    assert took_s < WAITS_S / 2


@pytest.mark.parametrize("service", [False], ids=["plain"], indirect=True)
def test_a_hundred_events_share_as_many_connections_as_are_kept(world: World, service: Server) -> None:
    names = [f"e-{n}" for n in range(10 * MAX_IN_A_PACK)]
    executions = [Execution.decode(message.body) for message in events(world, *names)]
    tens = [executions[first : first + MAX_IN_A_PACK] for first in range(0, 100, MAX_IN_A_PACK)]
    for round_ in range(3):
        later = [
            tuple(structs.replace(execution, fire_at=execution.fire_at - round_) for execution in ten)
            for ten in tens
        ]
        packs = [Message(f"m-{round_}-{n}", Pack(ten).encode()) for n, ten in enumerate(later)]
        reports, failed = run(world, packs)
        assert (Counter(report.result for report in reports), failed) == ({"dispatched": 100}, [])
    assert len(service.requests) == 300
    assert service.connections <= 2 * limits.MAX_EVENT_THREADS


MORE = limits.MAX_EVENT_THREADS + 8


@pytest.mark.parametrize("service", [False], ids=["plain"], indirect=True)
def test_an_answered_connection_sends_the_next_event(
    world: World, service: Server, senders: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "MAX_PAUSE_S", 0)
    names = [f"e-{n}" for n in range(MORE)]
    messages = events(world, *names)
    kept(service, limits.MAX_EVENT_THREADS)
    senders.clear()
    reports, failed = run(world, messages)
    assert (results(reports), failed) == (dict.fromkeys(names, "dispatched"), [])
    assert Counter(senders) == {"MainThread": limits.MAX_EVENT_THREADS, "execute": 8}
    assert service.connections == limits.MAX_EVENT_THREADS


@pytest.mark.long
@pytest.mark.parametrize("service", [False], ids=["plain"], indirect=True)
@pytest.mark.parametrize("gives_threads", [True, False], ids=["receiver", "batch"])
def test_events_behind_answers_that_never_come_get_threads(
    world: World, service: Server, monkeypatch: pytest.MonkeyPatch, gives_threads: bool
) -> None:
    """The thread that reads the answers gives them their threads; if it is stuck, the batch does."""
    names = [f"e-{n}" for n in range(MORE)]
    messages = events(world, *names)
    kept(service, limits.MAX_EVENT_THREADS)
    service.requests.clear()
    are_sent = threading.Event()
    silent = set(names[: limits.MAX_EVENT_THREADS])

    def reply(handler: BaseHTTPRequestHandler) -> Any:
        if name(handler) in silent:
            are_sent.wait(WAITS_S)
        elif len(service.requests) == MORE:
            are_sent.set()
        return ACCEPTED

    service.reply = reply
    monkeypatch.setattr(threads, "MAX_EVENT_WAIT_S", 0.1)
    if not gives_threads:
        answered_until = AnswerPoll.answered_until
        stuck = lambda answers, ends_at: answered_until(answers, ends_at + WAITS_S)  # noqa: E731
        monkeypatch.setattr(AnswerPoll, "answered_until", stuck)
    reports, failed = run(world, messages)
    assert (results(reports), failed) == (dict.fromkeys(names, "dispatched"), [])
    assert len(service.requests) == len({request.path for request in service.requests}) == MORE
