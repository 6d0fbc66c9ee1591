"""The number of TLS connections to targets: each costs a handshake and reading the roots."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from common.cache import FairCache
from common.planning.packs import Wake
from common.storage import aws
from executor.targets import clients
from tests.executor.contexts import US, call_function, event
from tests.executor.servers import Server, certificate_file, serving

MAX_EVENTS_AT_ONCE = 64
NEW_HOLD_S = 1.4
WAKE_CONNECTIONS = 4
WAKE_HOLD_S = 0.1

TARGET = {"kind": "lambda", "arn": f"arn:aws:lambda:{US}:function:report", "invocation": "Event"}
ROOT = Path(__file__).resolve().parents[2]
HANDLES_WAKES = f"""
from executor import handler
slept = []
handler.SystemClock.sleep = lambda clock, seconds: slept.append(seconds)
wake = {{"messageId": "a", "body": {Wake(0).encode()!r}}}
for _ in range(3):
    assert handler.handle({{"Records": [wake] * 10}}, None) == {{"batchItemFailures": []}}
assert slept == [{NEW_HOLD_S}, {WAKE_HOLD_S}, {WAKE_HOLD_S}]
"""


@pytest.fixture(params=["direct", "botocore"])
def service(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Server]:
    """In a Lambda the calls are direct."""
    if request.param == "direct":
        monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "f")
    with serving(protocol="HTTP/1.1") as server:
        server.reply = lambda handler: (202, {"x-amzn-RequestId": "r"}, b"")
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"https://localhost:{server.port}")
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate_file(tmp_path)))
        monkeypatch.setattr(clients, "_clients", FairCache[Any](8))
        yield server
        for client in clients._clients:
            client.close()


@pytest.mark.parametrize("invocation", ["Event", "RequestResponse"])
def test_calls_one_after_the_other_share_a_connection(service: Server, invocation: str) -> None:
    for timeout_s in (5, 5, 60, 61, 5):
        assert call_function(TARGET | {"invocation": invocation}, event(), timeout_s).ok
    assert (len(service.requests), service.connections) == (5, 1)


def test_a_connection_that_was_opened_before_is_used(service: Server) -> None:
    aws.connect(clients.before_any_call("lambda", "us-east-1", 5))
    assert call_function(TARGET, event(), 5).ok
    assert service.connections == 1


def test_batches_share_as_many_connections_as_they_have_calls(service: Server) -> None:
    def call(number: int) -> bool:
        return call_function(TARGET, event(), 5).ok

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(call, range(40)))
    assert len(service.requests) == 40
    assert service.connections <= 4


def test_each_call_waits_as_long_as_its_own_time_limit(service: Server) -> None:
    is_over = threading.Event()

    def late(handler: Any) -> tuple[int, dict[str, str], bytes]:
        is_over.wait(60)
        return 200, {}, b"null"

    awaited = TARGET | {"invocation": "RequestResponse"}
    assert call_function(awaited, event(), 60).ok
    service.reply = late
    assert call_function(awaited, event(), 0.2).error_type == "TimedOut"
    is_over.set()
    assert call_function(awaited, event(), 60).ok


def test_an_accepted_event_is_no_failure_if_its_answer_breaks_off(service: Server) -> None:
    service.reply = lambda handler: (202, {"Content-Length": "5", "Connection": "close"}, b"")
    assert call_function(TARGET, event(), 5).ok


def in_a_function(code: str) -> None:
    environment = os.environ | {
        "AWS_LAMBDA_FUNCTION_NAME": "minute8-test-executor",
        **{name: name.lower() for name in ("JOBS_TABLE", "DUE_TABLE", "TENANTS_TABLE", "RUNS_TABLE")},
        "EXECUTIONS_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/executions",
    }
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)


def test_the_init_phase_opens_the_first_connections(service: Server) -> None:
    in_a_function("import executor.handler")
    assert service.connections == 2  # of DynamoDB, and of Lambda


def test_wakes_open_the_connections_of_a_crowded_batch_once_and_send_nothing(service: Server) -> None:
    in_a_function(HANDLES_WAKES)
    assert service.connections == WAKE_CONNECTIONS + MAX_EVENTS_AT_ONCE
    assert not service.requests


def test_a_wake_is_taken_also_where_nothing_can_be_reached(
    service: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://localhost:1")
    in_a_function(HANDLES_WAKES)


def test_importing_the_handler_outside_lambda_opens_no_connection(
    service: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_LAMBDA_FUNCTION_NAME", raising=False)
    subprocess.run([sys.executable, "-c", "import executor.handler"], cwd=ROOT, env=os.environ, check=True)
    assert service.connections == 0
