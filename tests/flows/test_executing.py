"""Executing: retries, duplicates, takeovers; every run ends in a final state or with a reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from common.planning.execution import UnreadableMessage
from common.runs.outcome import Outcome
from common.runs.records import Runs
from executor.batch import execute_batch
from executor.pipeline import Message
from executor.recorder import StillRunning
from tests.worlds import Killed, World, at, job

FAILS = Outcome(ok=False, error_type="Boom", error="it went wrong", log_tail="last words")


def fails_until(attempt: int) -> Any:
    def answer(event: Mapping[str, Any]) -> Outcome:
        return Outcome(ok=True) if event["minute8"]["attempt"] >= attempt else FAILS

    return answer


def test_a_throttled_execution_runs_seconds_later(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    claim, refusals = Runs.claim, iter([RuntimeError("throttled")] * 3)

    def turned_away(runs: Runs, *arguments: Any) -> Any:
        if refusal := next(refusals, None):
            raise refusal
        return claim(runs, *arguments)

    monkeypatch.setattr(Runs, "claim", turned_away)
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z"))
    world.run_until("2026-11-21T03:15:15Z")
    assert world.statuses("alice", "once") == ["succeeded"]
    ((called_at, _),) = world.target.calls
    assert at("2026-11-21T03:15:08Z") <= called_at  # after 2, 4 and 8 s, or up to a quarter less


def test_a_failed_attempt_is_tried_again_later_and_recorded(world: World) -> None:
    world.target.answer = fails_until(3)
    world.registry.create(
        "alice", "once", job(at="2026-11-21T03:15:00Z", retry={"max_attempts": 3, "base_s": 10})
    )
    world.run_until("2026-11-21T03:19:00Z")
    (run,) = world.run_items("alice", "once")
    assert (run["status"], run["attempt"]) == ("succeeded", 3)
    assert [(a["attempt"], a["outcome"]) for a in run["attempts"]] == [
        (1, "failed"),
        (2, "failed"),
        (3, "succeeded"),
    ]
    assert run["attempts"][0]["error"] == "it went wrong"
    waits = [
        second - first
        for (first, _), (second, _) in zip(world.target.calls, world.target.calls[1:], strict=False)
    ]
    assert 5 <= waits[0] <= 12
    assert 10 <= waits[1] <= 22


def test_when_its_attempts_are_used_up_the_run_has_failed(world: World) -> None:
    world.target.answer = fails_until(99)
    world.registry.create(
        "alice", "once", job(at="2026-11-21T03:15:00Z", retry={"max_attempts": 2, "base_s": 1})
    )
    world.run_until("2026-11-21T03:19:00Z")
    (run,) = world.run_items("alice", "once")
    assert (run["status"], run["failed_tenant"], len(run["attempts"])) == ("failed", "alice", 2)


def test_a_permanent_error_is_not_tried_again(world: World) -> None:
    world.target.answer = lambda event: Outcome(
        ok=False, permanent=True, error_type="ResourceNotFoundException"
    )
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z"))
    world.run_until("2026-11-21T04:00:00Z")
    assert world.statuses("alice", "once") == ["failed"]
    assert len(world.target.calls) == 1


@pytest.mark.parametrize("invocation", ["RequestResponse", "Event"])
def test_a_duplicate_message_calls_nothing(world: World, invocation: str) -> None:
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", invocation=invocation))
    (body,) = world.sqs.bodies
    world.run_until("2026-11-21T03:16:00Z")
    assert world.execute(Message("another", body)).result == "duplicate"
    world.clock.move_to(at("2026-11-21T06:16:00Z"))  # three hours late
    assert world.execute(Message("yet-another", body)).result == "duplicate"
    assert len(world.target.calls) == 1
    assert world.statuses("alice", "once") == [
        "succeeded" if invocation == "RequestResponse" else "dispatched"
    ]


def test_an_executor_killed_between_claim_and_record_is_taken_over_after_its_lease(world: World) -> None:
    def die(event: Mapping[str, Any]) -> Outcome:
        raise Killed

    world.target.answer = die
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", timeout_s=30))
    world.run_until("2026-11-21T03:15:00Z")
    assert world.statuses("alice", "once") == ["running"]
    world.target.answer = lambda event: Outcome(ok=True)
    world.run_until("2026-11-21T03:25:00Z")  # the queue delivers it again after its visibility timeout
    (run,) = world.run_items("alice", "once")
    assert (run["status"], run["attempt"], len(world.target.calls)) == ("succeeded", 1, 2)


def test_a_message_redelivered_while_its_run_is_under_way_waits(world: World) -> None:
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", timeout_s=200))
    (body,) = world.sqs.bodies

    def redelivered_meanwhile(event: Mapping[str, Any]) -> Outcome:
        with pytest.raises(StillRunning):
            world.execute(Message("message-1", body))
        assert world.execute(Message("other", body)).result == "duplicate"
        return Outcome(ok=True)

    world.target.answer = redelivered_meanwhile
    world.run_until("2026-11-21T03:16:00Z")
    assert len(world.target.calls) == 1
    assert world.statuses("alice", "once") == ["succeeded"]


def test_killed_between_recording_and_enqueuing_the_retry_the_retry_still_comes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.target.answer = fails_until(2)
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", retry={"base_s": 10}))

    def killed(*args: object, **kwargs: object) -> dict[str, object]:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(world.sqs, "send_message_batch", killed)
        world.run_until("2026-11-21T03:15:00Z")
    assert world.statuses("alice", "once") == ["retrying"]
    world.run_until("2026-11-21T03:30:00Z")
    assert world.statuses("alice", "once") == ["succeeded"]
    assert len(world.target.calls) == 2


def test_paused_for_good_while_it_waits_for_a_retry_the_run_ends_explained(world: World) -> None:
    world.target.answer = fails_until(2)
    retry = {"base_s": 60, "max_age_s": 600}
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", retry=retry))
    world.run_until("2026-11-21T03:15:10Z")
    world.store.pause("alice", "once", "stop it")
    world.run_until("2026-11-21T03:25:00Z")
    assert world.statuses("alice", "once") == ["retrying"]
    world.run_until("2026-11-21T04:30:00Z", ticks=True)
    (run,) = world.run_items("alice", "once")
    assert (run["status"], run["error_type"]) == ("failed", "misfire")
    assert "max_age_s of 600 s" in run["error"]
    assert len(world.target.calls) == 1


def test_killed_and_then_deleted_the_run_still_ends(world: World) -> None:
    def die(event: Mapping[str, Any]) -> Outcome:
        raise Killed

    world.target.answer = die
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", timeout_s=30))
    world.run_until("2026-11-21T03:15:00Z")
    world.store.delete("alice", "once")
    world.run_until("2026-11-21T03:30:00Z")
    (run,) = world.run_items("alice", "once")
    assert (run["status"], run["attempts"][0]["error_type"]) == ("failed", "ExecutorDied")


def test_too_late_for_its_deadline_a_run_is_skipped(world: World) -> None:
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", start_deadline_s=60))
    world.clock.move_to(at("2026-11-21T03:17:00Z"))
    world.deliver()
    assert world.statuses("alice", "once") == ["skipped(misfire)"]


def test_one_bad_message_does_not_stop_the_batch(world: World) -> None:
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z"))
    (body,) = world.sqs.bodies
    world.clock.move_to(at("2026-11-21T03:15:00Z"))
    garbage = ["", "{}", "null", "[1]", '{"v":99}', '{"v":1,"tenant":5}', body.replace("alice", "")]
    messages = [Message(f"bad-{n}", text) for n, text in enumerate(garbage)] + [Message("good", body)]
    reports, failed = execute_batch(world.executor, messages)
    assert [report.result for report in reports] == ["succeeded"]
    assert failed == [f"bad-{n}" for n in range(len(garbage))]
    with pytest.raises(UnreadableMessage, match="99"):
        world.execute(Message("bad", '{"v":99}'))


def test_the_target_gets_payload_and_context(world: World) -> None:
    seen: list[Mapping[str, Any]] = []

    def look(event: Mapping[str, Any]) -> Outcome:
        seen.append(event)
        return Outcome(ok=True)

    world.target.answer = look
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", payload={"a": [1, 2.5, None, "ü"]}))
    world.run_until("2026-11-21T03:16:00Z")
    assert seen == [
        {
            "payload": '{"a":[1,2.5,null,"ü"]}',
            "minute8": {
                "tenant": "alice",
                "job_id": "once",
                "execution_id": "alice:once:20261121T031500Z",
                "fire_at": "2026-11-21T03:15:00Z",
                "due_at": "2026-11-21T03:15:00Z",
                "attempt": 1,
                "schedule_revision": 1,
                "trigger": "schedule",
                "traceparent": "00-5030971b7a07953f29534b26e710ba44-fcb6b6ab77795b04-01",
            },
        }
    ]


def test_placeholders_in_the_payload_are_replaced_for_each_attempt(world: World) -> None:
    seen: list[Any] = []

    def look(event: Mapping[str, Any]) -> Outcome:
        seen.append(json.loads(event["payload"]))
        return Outcome(ok=event["minute8"]["attempt"] > 1)

    world.target.answer = look
    payload = {"day": "{{fire_date}}", "at": ["{{fire_time}}"], "key": "{{execution_id}}#{{attempt}}", "n": 7}
    timing = {"at": "2026-11-20T22:15:00", "timezone": "America/New_York"}
    world.registry.create("alice", "once", job(**timing, payload=payload, retry={"base_s": 1}))
    world.run_until("2026-11-21T03:20:00Z")
    first = {
        "day": "2026-11-20",
        "at": ["2026-11-21T03:15:00Z"],
        "key": "alice:once:20261121T031500Z#1",
        "n": 7,
    }
    assert seen == [first, first | {"key": "alice:once:20261121T031500Z#2"}]


@pytest.mark.parametrize("deleted", [False, True])
def test_a_message_redriven_from_the_dead_letters_ends_a_run_that_died(world: World, deleted: bool) -> None:
    """It has a new id; only the lease shows that the run has ended."""

    def die(event: Mapping[str, Any]) -> Outcome:
        raise Killed

    world.target.answer = die
    world.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", timeout_s=30))
    world.run_until("2026-11-21T03:15:00Z")
    body = world.sqs.bodies[0]
    world.sqs._waiting.clear()
    if deleted:
        world.store.delete("alice", "once")
    world.target.answer = lambda event: Outcome(ok=True)
    early = world.execute(Message("redriven too early", body)).result
    world.clock.sleep(3_600)
    late = world.execute(Message("redriven", body)).result
    assert (early, late) == (("failed", "duplicate") if deleted else ("duplicate", "succeeded"))
    assert world.statuses("alice", "once") == ["failed" if deleted else "succeeded"]


def test_a_redriven_message_enqueues_the_retry_that_its_dead_executor_did_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message of a dead letter has a new id, so only the overdue attempt shows that nothing else will make it."""

    def killed(*args: object, **kwargs: object) -> dict[str, object]:
        raise Killed

    world.target.answer = fails_until(2)
    definition = job(at="2026-11-21T03:15:00Z", retry={"base_s": 10}, overlap="skip")
    world.registry.create("alice", "once", definition)
    body = world.sqs.bodies[0]
    with monkeypatch.context() as patched:
        patched.setattr(world.sqs, "send_message_batch", killed)
        world.run_until("2026-11-21T03:15:00Z")
    world.sqs._waiting.clear()
    (run,) = world.run_items("alice", "once")
    world.clock.move_to(run["next_attempt_at"] + 120)
    assert world.execute(Message("redriven too early", body)).result == "duplicate"
    assert world.sqs.bodies == [body]
    world.clock.sleep(1)
    assert world.execute(Message("redriven", body)).result == "retrying"
    world.run_until("2026-11-21T03:30:00Z")
    assert world.statuses("alice", "once") == ["succeeded"]
    assert len(world.target.calls) == 2
