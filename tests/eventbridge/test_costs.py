"""A request to EventBridge Scheduler's API costs no more requests of DynamoDB than the same one to Minute8's own API.

Both make the same job. `python -m tests.eventbridge.test_costs` also measures the processor time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import pytest

from minute8.eventbridge.mapping import definition_of
from tests.api import calls, scheduler_client
from tests.api.calls import Office
from tests.api.conftest import open_office
from tests.eventbridge.test_second_opinion import FIRST
from tests.worlds import World, open_world

SCHEDULE = {**FIRST, "ScheduleExpression": "cron(0 3 * * ? *)"}
ARN = "arn:aws:scheduler:us-east-1:123456789012:schedule/default/a"
Steps = dict[str, tuple[Callable[[str], Any], Callable[[str], Any]]]


def steps(office: Office, client: Any) -> Steps:
    """The same request of both APIs, ours first, for a job's name."""
    own, body = office.alice, definition_of(SCHEDULE, ARN)

    def native(method: str, url: str = "/v1/jobs/own-{}", sent: Any = None) -> Callable[[str], Any]:
        def call(name: str) -> Any:
            named = {**sent, "job_id": f"own-{name}"} if method == "POST" else sent
            answer = own(method, url.format(name), named)
            assert answer.status < 300, answer
            return answer

        return call

    return {
        "create": (
            native("POST", "/v1/jobs", body),
            lambda name: client.create_schedule(**{**SCHEDULE, "Name": name}),
        ),
        "update": (
            native("PUT", sent={**body, "name": "new"}),
            lambda name: client.update_schedule(**{**SCHEDULE, "Name": name, "Description": "new"}),
        ),
        "get": (native("GET"), lambda name: client.get_schedule(Name=name)),
        "list": (native("GET", "/v1/jobs?limit=100"), lambda name: client.list_schedules()),
        "delete": (native("DELETE"), lambda name: client.delete_schedule(Name=name)),
    }


def test_no_request_costs_more_requests_of_dynamodb(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    office = open_office(world, monkeypatch)
    scheduler_client.sign_at(world.clock, monkeypatch)
    client = scheduler_client.scheduler_client(
        *scheduler_client.new_pair("alice", "write", world.clock.now())
    )
    for call in steps(office, client)["create"]:  # keys and rules are cached, and no job is its group's last
        call("zero")
    sent_requests: list[str] = []
    world.dynamodb.before = sent_requests.append
    for step, calls_of in steps(office, client).items():
        counts = []
        for call in calls_of:
            sent_requests.clear()
            call("one")
            counts.append(sorted(sent_requests))
        assert len(counts[1]) <= len(counts[0]), (step, counts)


def measure(rounds: int = 1_000) -> None:
    """Print the processor time of a request in the function: the median of requests that alternate."""
    handle = calls.handler.handle
    with open_world() as world, pytest.MonkeyPatch.context() as patch:
        office = open_office(world, patch)
        office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"requests_per_minute": 1_000_000}})
        world.clock.sleep(60)
        scheduler_client.sign_at(world.clock, patch)
        pair = scheduler_client.new_pair("alice", "write", world.clock.now())
        for step, calls_of in steps(office, scheduler_client.scheduler_client(*pair)).items():
            names = [str(n) for n in range(rounds if step != "list" else 20)]
            sent = [_sent(call, names, patch) for call in calls_of]
            times: tuple[list[float], list[float]] = ([], [])
            for pair_of_events in zip(*sent, strict=True):
                for kept, event in zip(times, pair_of_events, strict=True):
                    began = time.process_time()
                    answer = handle(event, None)
                    kept.append((time.process_time() - began) * 1000)
                    assert answer["statusCode"] < 300, answer
            own, awss = map(median, times)
            print(f"{step}: own {own:.2f} ms, AWS's {awss:.2f} ms, {awss / own:.2f} of it")


def _sent(call: Callable[[str], Any], names: list[str], patch: pytest.MonkeyPatch) -> list[Any]:
    """The events of the requests, so that no client runs between two of them."""
    events: list[Any] = []

    def take(event: Any, context: Any) -> Any:
        events.append(event)
        return {"statusCode": 200, "headers": {}, "body": "{}"}

    with patch.context() as inner:
        inner.setattr(calls.handler, "handle", take)
        for name in names:
            call(name)
    return events


if __name__ == "__main__":
    measure()
