"""A refused request leaves nothing behind: no item, and nothing in the process's memory."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from common.storage import aws, aws_operations
from minute8.api.http import refusals
from tests.api.calls import Caller, Office
from tests.api.walk import Call, calls_of_document
from tests.worlds import ARN, job

WITH_BODY = [call for call in calls_of_document() if call.body is not None]
# The first ones fill what is kept of the routes, of types and of the modules that a refusal loads.
FIRST = 40
# Faster ones are refused before anybody looks at their bodies.
PAUSE_S = 1
ROLE = "arn:aws:iam::123456789012:role/r"


def refused_bodies(example: Any, first: int, most: int) -> Iterator[bytes]:
    """Bodies that no two of are the same: each has a fault in one place, or an unknown field, or is no JSON."""
    lines = isinstance(example, tuple)
    fields: dict[str, Any] = dict(example[0] if lines else example)
    names = [name for name in fields if name != "payload"]  # which may be anything
    for n in range(first, first + most):
        name = names[n % len(names)]
        faults: list[Any] = [
            {**fields, f"unknown-{n}": n},
            {**fields, name: {f"wrong-{n}": [n]}},
            {**fields, name: f"\ud800{n}"},
            {**fields, name: [[f"{n}"] * 20]},
            [f"{n}"],
            f'{{"{name}": {n}',
        ]
        fault = faults[n // len(names) % len(faults)]
        yield (fault if isinstance(fault, str) else json.dumps(fault)).encode()


def caller_of(office: Office, call: Call) -> Caller:
    return office.operator if call.role == "operator" else office.alice_admin


def kept_after(office: Office, call: Call, most: int) -> tuple[int, set[int]]:
    """The bytes that refusals leave in the process, after the first ones; and the answers' statuses."""
    caller, statuses = caller_of(office, call), set()
    bodies = list(refused_bodies(call.body, 0, FIRST + most))

    def refused(body: bytes) -> int:
        office.world.clock.sleep(PAUSE_S)
        return caller(call.method, call.url, body).status

    for body in bodies[:FIRST]:
        statuses.add(refused(body))
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for body in bodies[FIRST:]:
            statuses.add(refused(body))
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before, statuses
    finally:
        tracemalloc.stop()


class NoLog:
    """The runner of the tests keeps each line of a log."""

    def info(self, message: str, **fields: Any) -> None: ...


@pytest.fixture(autouse=True)
def _no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals.telemetry, "logger", NoLog)


@pytest.mark.parametrize("call", WITH_BODY, ids=str)
@pytest.mark.parametrize(
    ("most", "most_bytes"), [(200, 50_000), pytest.param(10_000, 100_000, marks=pytest.mark.release)]
)
def test_refused_bodies_leave_nothing(settled: Office, call: Call, most: int, most_bytes: int) -> None:
    """The parser keeps a thousand short names, and tables grow once."""
    before = settled.stored()
    kept, statuses = kept_after(settled, call, most)
    assert settled.stored() == before
    assert kept < most_bytes, f"{kept} bytes are left"
    refused_lines = {200} if isinstance(call.body, tuple) else set()
    assert statuses - refused_lines < {*range(400, 500)} - {429}, statuses


@pytest.fixture
def models_read(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The services whose models were read."""
    aws_operations._models.clear()
    read: list[str] = []
    session = aws.session_of_all_services()
    known = session.get_service_model
    monkeypatch.setattr(session, "get_service_model", lambda name: read.append(name) or known(name))
    yield read
    aws_operations._models.clear()


def operation(service: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    target = {"kind": "aws_operation", "arn": f"arn:aws:scheduler:::aws-sdk:{service}", "role_arn": ROLE}
    return {**job(cron="0 3 * * *"), "target": target, "payload": payload}


def test_no_model_is_read_for_a_target_that_is_not_allowed(office: Office, models_read: list[str]) -> None:
    """100 of these took 281 MB, for ever."""
    office.operator("PATCH", "/v1/tenants/alice", {"allowed_targets": [ARN]})
    office.world.clock.sleep(60)
    for number, service in enumerate(("ecs:runTask", "ec2:runInstances", "glue:startJobRun")):
        refused = office.alice("PUT", f"/v1/jobs/a-{number}", operation(service, {}))
        assert (refused.status, refused.json["errors"][0]["field"]) == (400, "target.arn")
    assert models_read == []


def test_models_are_bounded_by_bytes(office: Office, models_read: list[str]) -> None:
    used = aws.session_of_all_services().get_component("data_loader").used
    used_before = set(used)  # by what other tests hold
    for service in (
        "ecs:runTask",
        "ec2:runInstances",
        "glue:startJobRun",
        "sagemaker:startPipelineExecution",
    ):
        for _ in range(2):
            assert office.alice("PUT", "/v1/jobs/a", operation(service, {"x": 1})).status == 400
            assert sum(map(aws.model_bytes, aws_operations._models)) <= 40_000_000
    assert models_read == ["ecs", "ec2", "glue", "sagemaker"]
    assert len(set(used) - used_before) <= 8


def test_the_loader_keeps_no_model_that_is_forgotten(office: Office, models_read: list[str]) -> None:
    """It kept each that a client or a check ever read: 90 services took 240 MB, for ever."""
    loader = aws.session_of_all_services().get_component("data_loader")
    gc.collect()
    used_before = set(loader.used)
    assert office.alice("PUT", "/v1/jobs/a", operation("codebuild:startBuild", {"x": 1})).status == 400
    client = aws.target_client("codedeploy", "us-east-1", 1)
    assert {key[0] for key in set(loader.used) - used_before} == {"codebuild", "codedeploy"}
    del client
    aws_operations._models.clear()
    gc.collect()
    assert set(loader.used) <= used_before
    assert loader.load_data("endpoints") is loader.load_data("endpoints")
