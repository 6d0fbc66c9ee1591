"""Outcomes of `Event` invocations, sent by a function's destination. The records are from AWS's documentation.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from common.events import JOB_NOT_RUNNING, JOB_NOT_RUNNING_OVER
from common.jobs.not_running import NotRunning
from common.runs.outcome import Outcome
from executor.completion import Outcomes, UnreadableOutcome, complete_batch
from tests.worlds import World, at, job

SUCCESS, EXHAUSTED, EXPIRED = (
    json.loads(line) for line in (Path(__file__).parent / "destinations.jsonl").read_text().splitlines()
)
KEY = ("alice", "job")


class Destination:
    """Records the events that a function got, and builds the outcome records that Lambda would send."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.events: list[dict[str, Any]] = []
        self.outcomes = Outcomes(
            world.table("jobs"), world.runs, world.executor.recorder.run_end.failure_streak, world.clock
        )
        world.target.answer = self._take

    def _take(self, event: Mapping[str, Any]) -> Outcome:
        self.events.append(json.loads(json.dumps(event)))
        return Outcome(ok=True)

    def record(self, shape: dict[str, Any], nth: int = -1, **changes: Any) -> str:
        return json.dumps(shape | {"requestPayload": self.events[nth]} | changes)


@pytest.fixture
def destination(world: World) -> Destination:
    return Destination(world)


def dispatched(world: World, **fields: Any) -> None:
    world.registry.create(*KEY, job(**({"at": "2026-11-21T03:15:00Z"} | fields), invocation="Event"))
    world.run_until("2026-11-21T03:15:00Z")
    world.clock.move_to(at("2026-11-21T03:20:00Z"))


def test_a_success_completes_the_run(world: World, destination: Destination) -> None:
    dispatched(world)
    assert world.statuses(*KEY) == ["dispatched"]
    assert destination.outcomes.complete(destination.record(SUCCESS)) == "succeeded"
    (run,) = world.run_items(*KEY)
    assert (run["status"], run["duration_s"], run["attempts"][0]["outcome"]) == (
        "succeeded",
        7.568,
        "succeeded",
    )
    assert run["attempts"][0]["request_id"] == "e4b46cbf-b738-xmpl-8880-a18cdf61200e"


def test_a_failure_completes_the_run_and_is_published(world: World, destination: Destination) -> None:
    dispatched(world)
    assert destination.outcomes.complete(destination.record(EXHAUSTED)) == "failed"
    (run,) = world.run_items(*KEY)
    assert (run["status"], run["failed_tenant"]) == ("failed", "alice")
    assert run["attempts"][0]["error_type"] == "Runtime.ExitError"
    assert [kind for kind, _ in world.events] == ["Run Failed"]


def test_an_event_that_was_never_handled_is_recorded_as_such(world: World, destination: Destination) -> None:
    dispatched(world)
    destination.outcomes.complete(destination.record(EXPIRED))
    assert world.run_items(*KEY)[0]["attempts"][0]["error_type"] == "EventAgeExceeded"


@pytest.mark.parametrize(("shape", "status"), [(SUCCESS, "succeeded"), (EXHAUSTED, "failed")])
def test_a_repeated_or_different_outcome_changes_nothing(
    world: World, destination: Destination, shape: dict[str, Any], status: str
) -> None:
    dispatched(world)
    destination.outcomes.complete(destination.record(shape))
    before = world.run_items(*KEY)
    for again in (SUCCESS, EXHAUSTED, EXPIRED):
        assert destination.outcomes.complete(destination.record(again)) == "known"
    assert world.run_items(*KEY) == before
    assert world.statuses(*KEY) == [status]


def without_token(context: dict[str, Any]) -> None:
    del context["outcome_token"]


FORGERIES: list[Callable[[dict[str, Any]], object]] = [
    without_token,
    lambda context: context.update(outcome_token=""),
    lambda context: context.update(outcome_token="0" * 32),
    lambda context: context.update(outcome_token=None),
    lambda context: context.update(outcome_token=["x"]),
    lambda context: context.update(tenant="bob"),
    lambda context: context.update(tenant="bob", execution_id="bob:job:20261121T031500Z"),
    lambda context: context.update(execution_id="alice:other:20261121T031500Z"),
    lambda context: context.update(execution_id="\ud800"),
    lambda context: context.update(attempt=2),
    lambda context: context.update(attempt="1"),
]


@pytest.mark.parametrize("forge", FORGERIES)
def test_without_its_token_no_run_is_completed(
    world: World, destination: Destination, forge: Callable[[dict[str, Any]], object]
) -> None:
    dispatched(world)
    world.registry.create("bob", "job", job(at="2026-11-21T03:21:00Z", invocation="Event"))
    forge(destination.events[0]["minute8"])
    assert destination.outcomes.complete(destination.record(SUCCESS)) == "refused"
    assert world.statuses(*KEY) == ["dispatched"]


@pytest.mark.parametrize("payload", [None, "text", [], {}, {"minute8": None}, {"minute8": "x"}])
def test_invocations_that_are_none_of_minute8s_are_ignored(
    world: World, destination: Destination, payload: object
) -> None:
    assert destination.outcomes.complete(json.dumps(SUCCESS | {"requestPayload": payload})) == "ignored"


@pytest.mark.parametrize(
    "body", ["", "{", "[]", "null", '{"version":"2.0"}', '{"version":"1.0"}', "[" * 99_999]
)
def test_only_a_message_that_is_no_record_goes_to_the_dead_letters(
    world: World, destination: Destination, body: str
) -> None:
    dispatched(world)
    with pytest.raises(UnreadableOutcome):
        destination.outcomes.complete(body)
    messages = [
        {"messageId": "bad", "body": body},
        {"messageId": "good", "body": destination.record(SUCCESS)},
    ]
    results, failed = complete_batch(destination.outcomes, messages)
    assert (dict(results), failed) == ({"succeeded": 1}, ["bad"])


def test_failures_in_a_row_that_are_reported_later_also_pause_the_job(
    world: World, destination: Destination
) -> None:
    world.registry.create(*KEY, job(cron="* * * * *", pause_after_failures=2, invocation="Event"))
    world.run_until("2026-11-21T03:14:30Z")
    for nth in (0, 1):
        destination.outcomes.complete(destination.record(EXHAUSTED, nth))
    assert world.store.get(*KEY).state == "paused"
    assert [kind for kind, _ in world.events] == ["Run Failed", "Run Failed", "Job Not Running", "Job Paused"]


def test_an_event_lost_in_a_crash_is_published_by_the_next_delivery(
    world: World, destination: Destination, monkeypatch: pytest.MonkeyPatch
) -> None:
    dispatched(world)

    def dies(*arguments: object) -> None:
        raise SystemError("killed")

    with monkeypatch.context() as patched, pytest.raises(SystemError):
        patched.setattr("executor.failure_streak.FailureStreak.failed", dies)
        destination.outcomes.complete(destination.record(EXHAUSTED))
    assert (world.statuses(*KEY), world.events) == (["failed"], [])
    assert destination.outcomes.complete(destination.record(EXHAUSTED)) == "known"
    assert [kind for kind, _ in world.events] == ["Run Failed"]


def test_opened_again_by_hand_the_first_attempts_outcome_is_no_longer_wanted(
    world: World, destination: Destination
) -> None:
    dispatched(world)
    destination.outcomes.complete(destination.record(EXHAUSTED, 0))
    world.manual.retry("alice", "alice:job:20261121T031500Z")
    world.deliver()
    assert destination.outcomes.complete(destination.record(SUCCESS, 0)) == "refused"
    assert destination.outcomes.complete(destination.record(SUCCESS, 1)) == "succeeded"
    assert world.run_items(*KEY)[0]["attempt"] == 2


def test_a_function_that_is_waited_for_gets_no_token(world: World, destination: Destination) -> None:
    world.registry.create(*KEY, job(at="2026-11-21T03:15:00Z"))
    world.run_until("2026-11-21T03:15:00Z")
    assert "outcome_token" not in destination.events[0]["minute8"]


def test_a_result_that_comes_later_ends_a_share_of_skips(world: World, destination: Destination) -> None:
    dispatched(world, at=None, cron="15 3 * * *")
    share = NotRunning("overlap", at("2026-11-21T03:10:00Z"), "3 of the newest 20 runs", is_share=True)
    assert world.store.not_running.begin(*KEY, share)
    assert destination.outcomes.complete(destination.record(SUCCESS)) == "succeeded"
    assert world.store.get(*KEY).not_running == ""
    assert [kind for kind, _ in world.events] == [JOB_NOT_RUNNING, JOB_NOT_RUNNING_OVER]
