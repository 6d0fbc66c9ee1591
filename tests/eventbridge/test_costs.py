"""A request to EventBridge Scheduler's API costs no more requests of DynamoDB than the same one to Minute8's own API.

`python -m tests.eventbridge.test_costs` also measures the processor time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.api import calls, scheduler_client
from tests.api.calls import Office
from tests.api.conftest import open_office
from tests.eventbridge.test_second_opinion import FIRST
from tests.worlds import World, job, world

Steps = dict[str, tuple[Callable[[str], Any], Callable[[str], Any]]]


def steps(office: Office, client: Any) -> Steps:
    """The same request of both APIs, ours first, for a job's name."""
    own, body = office.alice, job(every=300, invocation="Event")

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
            lambda name: client.create_schedule(**{**FIRST, "Name": name}),
        ),
        "update": (
            native("PUT", sent={**body, "payload": 7}),
            lambda name: client.update_schedule(**{**FIRST, "Name": name, "Description": "new"}),
        ),
        "get": (native("GET"), lambda name: client.get_schedule(Name=name)),
        "list": (native("GET", "/v1/jobs?limit=100"), lambda name: client.list_schedules()),
        "delete": (native("DELETE"), lambda name: client.delete_schedule(Name=name)),
    }


def test_no_request_costs_more_requests_of_dynamodb(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    office = open_office(w, monkeypatch)
    scheduler_client.sign_at(w.clock, monkeypatch)
    client = scheduler_client.scheduler_client(*scheduler_client.new_pair("alice", "write", w.clock.now()))
    for call in steps(office, client)["create"]:  # keys and rules are cached, and no job is its group's last
        call("zero")
    made: list[str] = []
    w.dynamodb.before = made.append
    for step, calls_of in steps(office, client).items():
        counts = []
        for call in calls_of:
            made.clear()
            call("one")
            counts.append(sorted(made))
        assert len(counts[1]) <= len(counts[0]), (step, counts)


def measure(rounds: int = 200) -> None:
    """Print the processor time of a request in the function, the best of three rounds."""
    spent = [0.0]
    handle = calls.handler.handle

    def timed(event: Any, context: Any) -> Any:
        began = time.process_time()
        answer = handle(event, context)
        spent[0] += time.process_time() - began
        return answer

    with world() as w, pytest.MonkeyPatch.context() as patch:
        office = open_office(w, patch)
        office.operator("PATCH", "/v1/tenants/alice", {"quotas": {"requests_per_minute": 1_000_000}})
        w.clock.sleep(60)
        scheduler_client.sign_at(w.clock, patch)
        client = scheduler_client.scheduler_client(
            *scheduler_client.new_pair("alice", "write", w.clock.now())
        )
        patch.setattr(calls.handler, "handle", timed)
        figures: dict[str, list[float]] = {}
        for turn in range(3):
            for step, calls_of in steps(office, client).items():
                for number, call in enumerate(calls_of):
                    spent[0] = 0.0
                    for n in range(rounds if step != "list" else 10):
                        call(f"{turn}-{n}")
                    each = spent[0] / (rounds if step != "list" else 10) * 1000
                    figures.setdefault(f"{step} {('own', 'aws')[number]}", []).append(each)
        for name, times in figures.items():
            print(f"{name}: {min(times):.2f} ms")


if __name__ == "__main__":
    measure()
