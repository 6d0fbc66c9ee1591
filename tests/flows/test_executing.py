"""Executing: retries, duplicates, takeovers; every run ends in a final state or with a reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from common.planning.execution import UnreadableMessage
from common.runs.records import Outcome, Runs
from executor.batch import execute_batch
from executor.pipeline import Message
from executor.recorder import StillRunning
from tests.worlds import Killed, World, at, job

FAILS = Outcome(ok=False, error_type="Boom", error="it went wrong", log_tail="last words")


def fails_until(attempt: int) -> Any:
    def answer(event: Mapping[str, Any]) -> Outcome:
        return Outcome(ok=True) if event["minute8"]["attempt"] >= attempt else FAILS

    return answer


def test_what_dynamodb_turns_away_is_made_seconds_later(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    claim, refusals = Runs.claim, iter([RuntimeError("throttled")] * 3)

    def turned_away(runs: Runs, *arguments: Any) -> Any:
        if refusal := next(refusals, None):
            raise refusal
        return claim(runs, *arguments)

    monkeypatch.setattr(Runs, "claim", turned_away)
    w.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z"))
    w.run_until("2026-11-21T03:15:15Z")
    assert w.statuses("alice", "once") == ["succeeded"]
    ((called_at, _),) = w.target.calls
    assert at("2026-11-21T03:15:08Z") <= called_at  # after 2, 4 and 8 s, or up to a quarter less


def test_a_failed_attempt_is_tried_again_later_and_recorded(w: World) -> None:
    w.target.answer = fails_until(3)
    w.registry.create(
        "alice", "once", job(at="2026-11-21T03:15:00Z", retry={"max_attempts": 3, "base_s": 10})
    )
    w.run_until("2026-11-21T03:19:00Z")
    (run,) = w.run_items("alice", "once")
    assert (run["status"], run["attempt"]) == ("succeeded", 3)
    assert [(a["attempt"], a["outcome"]) for a in run["attempts"]] == [
        (1, "failed"),
        (2, "failed"),
        (3, "succeeded"),
    ]
    assert run["attempts"][0]["error"] == "it went wrong"
    waits = [
        second - first for (first, _), (second, _) in zip(w.target.calls, w.target.calls[1:], strict=False)
    ]
    assert 5 <= waits[0] <= 12
    assert 10 <= waits[1] <= 22


def test_when_its_attempts_are_used_up_the_run_has_failed(w: World) -> None:
    w.target.answer = fails_until(99)
    w.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", retry={"max_attempts": 2, "base_s": 1}))
    w.run_until("2026-11-21T03:19:00Z")
    (run,) = w.run_items("alice", "once")
    assert (run["status"], run["failed_tenant"], len(run["attempts"])) == ("failed", "alice", 2)


def test_a_permanent_error_is_not_tried_again(w: World) -> None:
    w.target.answer = lambda event: Outcome(ok=False, permanent=True, error_type="ResourceNotFoundException")
    w.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z"))
    w.run_until("2026-11-21T04:00:00Z")
    assert w.statuses("alice", "once") == ["failed"]
    assert len(w.target.calls) == 1


@pytest.mark.parametrize("invocation", ["RequestResponse", "Event"])
def test_a_duplicate_message_calls_nothing(w: World, invocation: str) -> None:
    w.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", invocation=invocation))
    (body,) = w.sqs.bodies
    w.run_until("2026-11-21T03:16:00Z")
    assert w.executor.execute(Message("another", body)).result == "duplicate"
    w.clock.move_to(at("2026-11-21T06:16:00Z"))  # three hours late
    assert w.executor.execute(Message("yet-another", body)).result == "duplicate"
    assert len(w.target.calls) == 1
    assert w.statuses("alice", "once") == ["succeeded" if invocation == "RequestResponse" else "dispatched"]


def test_an_executor_killed_between_claim_and_record_is_taken_over_after_its_lease(w: World) -> None:
    def die(event: Mapping[str, Any]) -> Outcome:
        raise Killed

    w.target.answer = die
    w.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", timeout_s=30))
    w.run_until("2026-11-21T03:15:00Z")
    assert w.statuses("alice", "once") == ["running"]
    w.target.answer = lambda event: Outcome(ok=True)
    w.run_until("2026-11-21T03:25:00Z")  # the queue delivers it again after its visibility timeout
    (run,) = w.run_items("alice", "once")
    assert (run["status"], run["attempt"], len(w.target.calls)) == ("succeeded", 1, 2)


def test_a_message_redelivered_while_its_run_is_under_way_waits(w: World) -> None:
    w.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", timeout_s=200))
    (body,) = w.sqs.bodies

    def redelivered_meanwhile(event: Mapping[str, Any]) -> Outcome:
        with pytest.raises(StillRunning):
            w.executor.execute(Message("message-1", body))
        assert w.executor.execute(Message("other", body)).result == "duplicate"
        return Outcome(ok=True)

    w.target.answer = redelivered_meanwhile
    w.run_until("2026-11-21T03:16:00Z")
    assert len(w.target.calls) == 1
    assert w.statuses("alice", "once") == ["succeeded"]


def test_killed_between_recording_and_enqueuing_the_retry_the_retry_still_comes(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    w.target.answer = fails_until(2)
    w.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", retry={"base_s": 10}))

    def killed(*args: object, **kwargs: object) -> dict[str, object]:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(w.sqs, "send_message_batch", killed)
        w.run_until("2026-11-21T03:15:00Z")
    assert w.statuses("alice", "once") == ["retrying"]
    w.run_until("2026-11-21T03:30:00Z")
    assert w.statuses("alice", "once") == ["succeeded"]
    assert len(w.target.calls) == 2


def test_paused_while_it_waits_for_a_retry_the_run_ends_explained(w: World) -> None:
    w.target.answer = fails_until(2)
    w.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", retry={"base_s": 60}))
    w.run_until("2026-11-21T03:15:10Z")
    w.store.pause("alice", "once", "stop it")
    w.run_until("2026-11-21T03:30:00Z")
    (run,) = w.run_items("alice", "once")
    assert run["status"] == "failed"
    assert "stop it" in run["error"]


def test_killed_and_then_deleted_the_run_still_ends(w: World) -> None:
    def die(event: Mapping[str, Any]) -> Outcome:
        raise Killed

    w.target.answer = die
    w.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", timeout_s=30))
    w.run_until("2026-11-21T03:15:00Z")
    w.store.delete("alice", "once")
    w.run_until("2026-11-21T03:30:00Z")
    (run,) = w.run_items("alice", "once")
    assert (run["status"], run["attempts"][0]["error_type"]) == ("failed", "ExecutorDied")


def test_too_late_for_its_deadline_a_run_is_skipped(w: World) -> None:
    w.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", start_deadline_s=60))
    w.clock.move_to(at("2026-11-21T03:17:00Z"))
    w.deliver()
    assert w.statuses("alice", "once") == ["skipped(misfire)"]


def test_one_bad_message_does_not_stop_the_batch(w: World) -> None:
    w.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z"))
    (body,) = w.sqs.bodies
    w.clock.move_to(at("2026-11-21T03:15:00Z"))
    garbage = ["", "{}", "null", "[1]", '{"v":99}', '{"v":1,"tenant":5}', body.replace("alice", "")]
    messages = [Message(f"bad-{n}", text) for n, text in enumerate(garbage)] + [Message("good", body)]
    reports, failed = execute_batch(w.executor, messages)
    assert [report.result for report in reports] == ["succeeded"]
    assert failed == [f"bad-{n}" for n in range(len(garbage))]
    with pytest.raises(UnreadableMessage, match="99"):
        w.executor.execute(Message("bad", '{"v":99}'))


def test_the_target_gets_payload_and_context(w: World) -> None:
    seen: list[Mapping[str, Any]] = []

    def look(event: Mapping[str, Any]) -> Outcome:
        seen.append(event)
        return Outcome(ok=True)

    w.target.answer = look
    w.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", payload={"a": [1, 2.5, None, "ü"]}))
    w.run_until("2026-11-21T03:16:00Z")
    assert seen == [
        {
            "payload": {"a": [1, 2.5, None, "ü"]},
            "minute8": {
                "tenant": "alice",
                "job_id": "once",
                "execution_id": "alice:once:20261121T031500Z:1",
                "fire_at": "2026-11-21T03:15:00Z",
                "due_at": "2026-11-21T03:15:00Z",
                "attempt": 1,
                "schedule_revision": 1,
                "trigger": "schedule",
                "traceparent": "00-d39def67ea93ca592cb11ea095f54898-d51c443c10422cfe-01",
            },
        }
    ]


def test_placeholders_in_the_payload_are_replaced_for_each_attempt(w: World) -> None:
    seen: list[Any] = []

    def look(event: Mapping[str, Any]) -> Outcome:
        seen.append(event["payload"])
        return Outcome(ok=event["minute8"]["attempt"] > 1)

    w.target.answer = look
    payload = {"day": "{{fire_date}}", "at": ["{{fire_time}}"], "key": "{{execution_id}}#{{attempt}}", "n": 7}
    timing = {"at": "2026-11-20T22:15:00", "timezone": "America/New_York"}
    w.registry.create("alice", "once", job(**timing, payload=payload, retry={"base_s": 1}))
    w.run_until("2026-11-21T03:20:00Z")
    first = {
        "day": "2026-11-20",
        "at": ["2026-11-21T03:15:00Z"],
        "key": "alice:once:20261121T031500Z:1#1",
        "n": 7,
    }
    assert seen == [first, first | {"key": "alice:once:20261121T031500Z:1#2"}]


@pytest.mark.parametrize("deleted", [False, True])
def test_a_message_redriven_from_the_dead_letters_ends_a_run_that_died(w: World, deleted: bool) -> None:
    """It has a new id; only the lease shows that the run has ended."""

    def die(event: Mapping[str, Any]) -> Outcome:
        raise Killed

    w.target.answer = die
    w.registry.create("alice", "once", job(at="2026-11-21T03:15:00Z", timeout_s=30))
    w.run_until("2026-11-21T03:15:00Z")
    body = w.sqs.bodies[0]
    w.sqs._waiting.clear()
    if deleted:
        w.store.delete("alice", "once")
    w.target.answer = lambda event: Outcome(ok=True)
    assert w.executor.execute(Message("redriven too early", body)).result == "duplicate"
    w.clock.sleep(3_600)
    result = w.executor.execute(Message("redriven", body)).result
    assert result == ("failed" if deleted else "succeeded")
    assert w.statuses("alice", "once") == [result]
