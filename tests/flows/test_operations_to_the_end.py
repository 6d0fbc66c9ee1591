"""An operation of AWS that starts long work: a callback ends the run, and a second operation stops the work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.stub import ANY, Stubber

from common.errors import InvalidInput
from common.runs.outcome import Outcome
from common.storage import aws_operations
from common.tenants.allowed_targets import is_allowed
from executor.targets import aws_services, kinds
from tests.worlds import API_URL, World, job

KEY = ("alice", "job")
DUE = "2026-11-21T03:15:00Z"
RUN = "alice:job:20261121T031500Z"
SDK = "arn:aws:scheduler:::aws-sdk:batch"
TARGET: dict[str, Any] = {
    "kind": "aws_operation",
    "arn": f"{SDK}:submitJob",
    "role_arn": "arn:aws:iam::123456789012:role/batch",
    "started": "jobId",
    "stop": {
        "arn": f"{SDK}:terminateJob",
        "parameters": {"jobId": "{{started}}", "reason": "stopped"},
    },
}
ENVIRONMENT = [
    {"name": "URL", "value": "{{callback_url}}"},
    {"name": "TOKEN", "value": "{{callback_token}}"},
]
PAYLOAD = {
    "jobName": "report",
    "jobQueue": "q",
    "jobDefinition": "d",
    "containerOverrides": {"environment": ENVIRONMENT},
}


@pytest.fixture
def batch(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    """AWS Batch, which takes the job, and is asked nothing else than the test says."""
    client = aws_operations.session_of_all_services().create_client(
        "batch", region_name="eu-west-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    monkeypatch.setattr(aws_services, "client", lambda *_: client)
    object.__setattr__(world.executor, "kinds", kinds(lambda *_: pytest.fail("no endpoint")))
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def submitted(world: World, batch: Stubber, **fields: Any) -> list[dict[str, Any]]:
    """The run has begun. Returns the requests that Batch got."""
    requests: list[dict[str, Any]] = []
    batch.client.meta.events.register(
        "before-parameter-build.batch.SubmitJob", lambda params, **_: requests.append(params)
    )
    expected = {"jobName": "report", "jobQueue": "q", "jobDefinition": "d", "containerOverrides": ANY}
    batch.add_response("submit_job", {"jobName": "report", "jobId": "job-7"}, expected)
    definition = {"completion": "callback", "payload": PAYLOAD, "overlap": "skip"} | fields
    world.registry.create(*KEY, job(at=DUE) | {"target": TARGET} | definition)
    world.run_until(DUE)
    return requests


def test_the_work_tells_its_end_by_what_the_parameters_held(world: World, batch: Stubber) -> None:
    (request,) = submitted(world, batch)
    url, token = (each["value"] for each in request["containerOverrides"]["environment"])
    assert url == f"{API_URL}/v1/runs/{RUN}/callback"
    assert world.statuses(*KEY) == ["running"]
    world.callbacks.ends(world.callbacks.proven(RUN, token), Outcome(ok=True), world.clock.now())
    world.deliver()
    assert world.statuses(*KEY) == ["succeeded"]


def test_cancel_stops_what_was_started(world: World, batch: Stubber) -> None:
    submitted(world, batch)
    batch.add_response("terminate_job", {}, {"jobId": "job-7", "reason": "stopped"})
    world.manual.cancel("alice", RUN, "wrong month")
    world.deliver()
    (run,) = world.run_items(*KEY)
    assert (run["status"], run["started_arns"]) == ("failed", ["job-7"])
    assert run["attempts"][0]["error"] == "stopped by hand: wrong month"


def test_the_run_has_ended_and_says_why_its_work_could_not_be_stopped(world: World, batch: Stubber) -> None:
    submitted(world, batch)
    batch.add_client_error("terminate_job", "ClientException", "no such job", 400)
    world.manual.cancel("alice", RUN, "")
    world.deliver()
    (run,) = world.run_items(*KEY)
    assert (run["status"], run["stop_problem"]) == ("failed", "ClientException: no such job")
    assert len(world.sqs) == 0


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"payload": {**PAYLOAD, "containerOverrides": {}}}, "completion"),
        ({"completion": "answer", "overlap": "allow"}, "payload"),
        ({"target": TARGET | {"started": None}}, "target.started"),
        (
            {"target": TARGET | {"stop": {"arn": f"{SDK}:terminateJob", "parameters": {"jobId": "x"}}}},
            "target.stop",
        ),
        (
            {
                "target": TARGET
                | {"stop": {"arn": f"{SDK}:terminateJob", "parameters": {"id": "{{started}}"}}}
            },
            "target.stop",
        ),
        ({"target": TARGET | {"started": "job id"}}, "target.started"),
    ],
)
def test_what_is_missing_is_said_before_anything_is_stored(
    world: World, change: dict[str, Any], field: str
) -> None:
    definition = job(at=DUE) | {"target": TARGET, "completion": "callback", "payload": PAYLOAD} | change
    with pytest.raises(InvalidInput) as raised:
        world.registry.create(*KEY, definition)
    assert raised.value.field.startswith(field)


def test_the_platform_allows_the_operation_that_stops_too() -> None:
    role, submit = TARGET["role_arn"], TARGET["arn"]
    assert not is_allowed(TARGET, [role, submit])
    assert is_allowed(TARGET, [role, submit, TARGET["stop"]["arn"]])
