"""The traceparent: derived from the execution id, and passed on by each kind of target."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

import pytest

from common.planning.execution import Execution, trace_id, traceparent
from common.runs.run import Run
from executor.targets import events, http_endpoint, lambda_function
from minute8.api.views import run_view
from tests.executor.contexts import call_function, event
from tests.worlds import World, at, job

ID = "alice:report:20261121T030000Z"


def test_each_attempt_has_its_own_span_in_one_trace() -> None:
    parents = [traceparent(ID, attempt) for attempt in (1, 2, 100)]
    assert parents[0] == "00-be7b85098c8dcdf7b5b14b026a1c66af-4143fb807c5702e1-01"  # as stored traces have it
    assert all(re.fullmatch(r"00-[0-9a-f]{32}-[0-9a-f]{16}-01", parent) for parent in parents)
    assert {parent[3:35] for parent in parents} == {trace_id(ID)}
    assert len({parent[36:52] for parent in parents}) == 3
    assert trace_id(ID) != trace_id("alice:report:20261121T030100Z")


def test_a_target_gets_its_attempts_traceparent_and_the_run_shows_the_trace(world: World) -> None:
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z"))
    world.run_until("2026-11-21T03:16:00Z")
    (_, context), (run,) = world.target.calls[0], world.run_items("alice", "once")
    assert context["traceparent"] == traceparent(context["execution_id"], 1)
    assert run_view(Run.from_item(run), world.clock.now())["trace_id"] == context["traceparent"][3:35]


class Answers:
    """A Lambda client that keeps what it is asked."""

    def invoke(self, **request: Any) -> Any:
        self.request = request
        return {"Payload": self, "StatusCode": 200}

    def read(self, most: int = 0) -> bytes:
        return b"{}"

    def close(self) -> None: ...


@pytest.mark.parametrize("invocation", ["RequestResponse", "Event"])
def test_an_awaited_function_has_it_in_its_client_context(
    invocation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Answers()
    monkeypatch.setattr(lambda_function, "client", lambda *_: client)
    arn = "arn:aws:lambda:us-east-1:123456789012:function:report"
    call_function({"arn": arn, "invocation": invocation}, event(attempt=2), 3)
    if invocation == "Event":  # Lambda would not pass it on
        assert "ClientContext" not in client.request
        return
    assert len(client.request["ClientContext"]) < 3_583
    assert json.loads(base64.b64decode(client.request["ClientContext"])) == {
        "custom": {"traceparent": traceparent(ID, 2)}
    }


def test_messages_and_requests_carry_the_traceparent_and_a_jobs_own_header_stays() -> None:
    attributes = events.message_attributes(event())
    assert attributes["traceparent"] == {"DataType": "String", "StringValue": traceparent(ID, 1)}
    assert len(attributes) <= 10  # SQS takes no more
    target: dict[str, Any] = {"method": "POST"}
    headers = http_endpoint._headers(target, event())
    assert headers["traceparent"] == traceparent(ID, 1)
    own = target | {"headers": {"Traceparent": "00-own"}}
    assert http_endpoint._headers(own, event())["traceparent"] == "00-own"


def test_log_lines_name_the_execution() -> None:
    fire_at = at("2026-11-21T03:00:00Z")
    assert Execution("alice", "report", fire_at, fire_at, 4, attempt=2).log_fields == {
        "tenant": "alice",
        "job_id": "report",
        "execution_id": ID,
        "attempt": 2,
        "trace_id": trace_id(ID),
    }
