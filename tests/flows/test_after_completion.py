"""`after_completion: delete`: the job is deleted after its last run has ended. Nothing that is to run is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from common.errors import Busy, InvalidInput, NotFound
from common.jobs.store import JobStore
from common.planning.execution import Execution
from common.platform.tenants import Tenants
from common.runs.records import Outcome
from executor.pipeline import Message
from scheduler import ended
from tests.worlds import World, at, job

DUE, AFTER = "2026-11-21T03:15:00Z", "2026-11-21T03:19:00Z"
ONCE = ("alice", "once")


def once(w: World, job_id: str = "once", **fields: Any) -> None:
    timing = {} if fields.keys() & {"cron", "every"} else {"at": DUE}
    w.registry.create("alice", job_id, job(**{"after_completion": "delete", **timing, **fields}))


def is_left(w: World, job_id: str = "once") -> bool:
    try:
        w.store.get("alice", job_id)
    except NotFound:
        return False
    return True


def notes(w: World) -> int:
    return len(list(w.completion.ended.noted()))


@pytest.mark.parametrize("invocation", ["RequestResponse", "Event"])
def test_a_one_off_is_deleted_by_the_tick_after_its_run(w: World, invocation: str) -> None:
    Tenants(w.table("tenants")).create("alice", "", w.clock.now(), {"allowed_targets": ["*"]})
    once(w, invocation=invocation)
    once(w, "kept", after_completion="keep")
    w.run_until("2026-11-21T03:17:00Z", ticks=True)
    assert is_left(w)
    w.run_until(AFTER, ticks=True)
    assert (is_left(w), is_left(w, "kept"), notes(w)) == (False, True, 0)
    assert len(w.run_items("alice", "once")) == 1  # its runs stay
    counts = Tenants(w.table("tenants")).get("alice")
    assert (counts.jobs, counts.executions_per_day) == (1, 1)
    (entry,) = w.store.audited.audit.newest("alice", 1)
    assert (entry.action, entry.subject, entry.by) == ("job.deleted", "once", "minute8")


def test_a_job_without_it_costs_no_request(w: World) -> None:
    requests: list[str] = []
    once(w, after_completion="keep")
    w.run_until("2026-11-21T03:14:59Z")
    w.dynamodb.before = requests.append
    w.run_until("2026-11-21T03:16:00Z")
    assert requests == ["get_item", "update_item", "update_item"]


def test_a_schedule_ends_with_its_last_fire_time_and_not_before(w: World) -> None:
    once(w, cron="*/10 * * * *", end_at="2026-11-21T03:40:00Z")
    once(w, "endless", cron="*/10 * * * *")
    w.run_until("2026-11-21T03:29:00Z", ticks=True)
    assert (is_left(w), notes(w)) == (True, 0)
    w.run_until("2026-11-21T03:39:00Z", ticks=True)
    assert (is_left(w), is_left(w, "endless")) == (False, True)
    assert w.statuses("alice", "once") == ["succeeded"] * 2


def test_the_last_fire_time_may_be_one_that_a_calendar_leaves(w: World) -> None:
    w.table("jobs").put({"pk": "alice", "sk": "CALENDAR#c", "dates": "2026-11-22"})
    exclude = {"calendars": ["c"]}
    once(w, cron="15 3 * * *", end_at="2026-11-22T12:00:00Z", exclude=exclude)
    w.run_until(AFTER, ticks=True)
    assert not is_left(w)


def test_a_one_off_of_the_next_century_may_be_run_by_hand(w: World) -> None:
    once(w, at="2150-01-01T00:00:00Z")
    once(w, "daily", cron="0 3 * * *", start_at="2150-01-01T00:00:00Z", end_at="2151-01-01T00:00:00Z")
    for job_id in ("once", "daily"):
        w.manual.run_now("alice", job_id, "n")
    w.run_until(AFTER, ticks=True)
    assert (is_left(w), is_left(w, "daily")) == (True, True)


def test_a_failed_run_ends_with_its_last_retry(w: World) -> None:
    w.target.answer = lambda event: Outcome(ok=False, error_type="Boom")
    once(w, retry={"max_attempts": 2, "base_s": 600})
    w.run_until(AFTER, ticks=True)
    assert (is_left(w), w.statuses(*ONCE)) == (True, ["retrying"])
    w.run_until("2026-11-21T03:29:00Z", ticks=True)
    assert (is_left(w), w.statuses(*ONCE)) == (False, ["failed"])


def test_a_skipped_and_a_cancelled_run_have_ended(w: World) -> None:
    once(w)
    once(w, "late", start_deadline_s=1)
    w.manual.skip_next("alice", "once", 1, "")
    w.clock.move_to(at("2026-11-21T03:15:30Z"))
    w.run_until(AFTER, ticks=True)
    assert (w.statuses(*ONCE), w.statuses("alice", "late")) == (["skipped(cancelled)"], ["skipped(misfire)"])
    assert (is_left(w), is_left(w, "late")) == (False, False)


def test_a_missed_one_off_is_deleted_as_well(w: World) -> None:
    once(w, at="2026-11-21T04:00:00Z", catch_up="none")
    once(w, "caught-up", at="2026-11-21T04:00:00Z")
    w.run_until("2026-11-21T04:28:00Z")
    w.tick()
    assert (is_left(w), w.statuses(*ONCE)) == (False, ["skipped(missed)"])
    w.run_until("2026-11-21T04:39:00Z", ticks=True)
    assert (is_left(w, "caught-up"), w.statuses("alice", "caught-up")) == (False, ["succeeded"])


def test_what_changed_meanwhile_stays(w: World) -> None:
    for job_id in ("rescheduled", "paused", "kept", "again"):
        once(w, job_id)
    w.run_until("2026-11-21T03:16:00Z")
    assert notes(w) == 4
    w.registry.put("alice", "rescheduled", job(at="2026-11-21T12:00:00Z", after_completion="delete"))
    w.store.pause("alice", "paused")
    w.registry.put("alice", "kept", job(at=DUE))
    w.store.delete("alice", "again")
    once(w, "again", at="2026-11-21T12:00:00Z")
    w.tick()
    assert [is_left(w, one) for one in ("rescheduled", "paused", "kept", "again")] == [True] * 4
    assert notes(w) == 0


def test_a_late_copy_of_its_message_does_nothing_to_a_job_of_the_same_name(w: World) -> None:
    once(w)
    w.run_until(AFTER, ticks=True)
    assert not is_left(w)
    w.registry.accepting_past().create("alice", "once", job(at=DUE, after_completion="delete"))
    w.executor.execute(Message("copy", w.sqs.bodies[0]))
    w.tick()
    assert is_left(w)
    assert len(w.target.calls) == 1


def test_a_change_that_leaves_its_times_does_not_keep_it(w: World) -> None:
    once(w)
    w.run_until("2026-11-21T03:16:00Z")
    w.registry.put("alice", "once", job(at=DUE, after_completion="delete", name="new"))
    w.tick()
    assert not is_left(w)


def test_a_run_that_still_goes_keeps_it_until_it_ends(w: World) -> None:
    def slow(event: Mapping[str, Any]) -> Outcome:
        return Outcome(ok=event["minute8"]["attempt"] > 1 or "03:14" not in event["minute8"]["fire_at"])

    w.target.answer = slow
    once(w, cron="14,15 * * * *", end_at="2026-11-21T03:30:00Z", retry={"base_s": 900, "cap_s": 900})
    w.run_until(AFTER, ticks=True)
    assert (is_left(w), w.statuses(*ONCE)) == (True, ["retrying", "succeeded"])
    w.run_until("2026-11-21T03:39:00Z", ticks=True)
    assert (is_left(w), w.statuses(*ONCE)) == (False, ["succeeded", "succeeded"])


def test_a_run_that_waits_in_the_queue_is_not_lost(w: World) -> None:
    """The last fire time's message overtakes the one before."""
    once(w, cron="14,15 * * * *", end_at="2026-11-21T03:30:00Z")
    w.clock.move_to(at("2026-11-21T03:14:00Z"))
    before = w.sqs.receive()
    assert before
    w.run_until(AFTER, ticks=True)
    assert (is_left(w), w.statuses(*ONCE)) == (True, ["succeeded"])
    w.deliver_one(before)
    w.run_until("2026-11-21T03:29:00Z", ticks=True)
    assert (is_left(w), w.statuses(*ONCE)) == (False, ["succeeded", "succeeded"])


def test_a_backfill_runs_to_its_end_first(w: World) -> None:
    once(w, cron="*/10 * * * *", end_at="2026-11-21T03:16:00Z", start_at="2026-11-20T00:00:00Z")
    w.manual.backfills.start("alice", "once", at("2026-11-21T00:00:00Z"), at("2026-11-21T01:00:00Z"), 1, "b")
    for _ in range(3):
        message = w.sqs.receive()
        assert message
        w.deliver_one(message)
    w.tick()
    assert is_left(w)
    w.run_until("2026-11-21T03:29:00Z", ticks=True)
    assert (is_left(w), w.statuses(*ONCE)) == (False, ["succeeded"] * 6)


def test_runs_older_than_those_looked_at_do_not_keep_it(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ended, "_LOOKED_AT", 2)
    once(w, cron="13-15 * * * *", end_at="2026-11-21T03:30:00Z")
    w.run_until(AFTER, ticks=True)
    assert not is_left(w)


def test_many_end_at_once(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifteen of each of three tenants; one transaction of a tenant has fourteen."""
    monkeypatch.setattr(ended, "_A_PAGE", 20)
    for tenant in ("alice", "bob", "carol"):
        for n in range(15):
            w.registry.create(tenant, f"once-{n}", job(at=DUE, after_completion="delete"))
    w.run_until("2026-11-21T03:18:00Z")
    deleted = w.completion.delete_ended(w.clock.now())
    assert (deleted, notes(w)) == (45, 0)
    assert [list(w.store.list_jobs(tenant)) for tenant in ("alice", "bob", "carol")] == [[], [], []]


def test_one_that_cannot_be_deleted_does_not_keep_the_others(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        once(w, f"once-{n}")
    w.run_until("2026-11-21T03:16:00Z")
    w.table("jobs").put({"pk": "alice", "sk": "JOB#once-1", "state": "active"})
    assert w.completion.delete_ended(w.clock.now()) == 2
    assert notes(w) == 1


def test_a_busy_tenant_is_left_to_the_next_tick(w: World, monkeypatch: pytest.MonkeyPatch) -> None:
    once(w)
    w.run_until("2026-11-21T03:16:00Z")

    def busy(*_: object) -> None:
        raise Busy("other writers")

    monkeypatch.setattr(JobStore, "change_all", busy)
    assert (w.completion.delete_ended(w.clock.now()), notes(w), is_left(w)) == (0, 1, True)
    monkeypatch.undo()
    assert (w.completion.delete_ended(w.clock.now()), notes(w), is_left(w)) == (1, 0, False)


def test_it_ends_in_time(w: World) -> None:
    once(w)
    w.run_until("2026-11-21T03:16:00Z")
    assert w.completion.delete_ended(w.clock.now() - ended.WORKS_FOR_S) == 0
    assert (notes(w), is_left(w)) == (1, True)


def test_an_unreadable_table_is_only_logged(w: World) -> None:
    w.dynamodb.delete_table(TableName="test-due")
    assert w.completion.delete_ended(w.clock.now()) == 0


def test_the_notes_of_a_tenant_that_is_gone_are_dropped(w: World) -> None:
    once(w)
    w.run_until("2026-11-21T03:16:00Z")
    w.table("jobs").delete({"pk": "alice", "sk": "JOB#once"})
    w.tick()
    assert notes(w) == 0


def test_a_job_that_a_tick_looked_at_and_that_changes_then_stays(w: World) -> None:
    """Between the look and the deletion."""
    once(w)
    w.run_until("2026-11-21T03:16:00Z")
    looked_at = w.store.get(*ONCE)
    w.registry.put("alice", "once", job(at="2026-11-21T12:00:00Z", after_completion="delete"))
    completion = replace(w.completion)
    assert completion._delete([looked_at], w.clock.now() + 10) == []
    assert is_left(w)


@pytest.mark.parametrize("value", ["DELETE", "drop", None, True])
def test_other_values_are_refused(w: World, value: object) -> None:
    with pytest.raises(InvalidInput, match="after_completion"):
        w.registry.create("alice", "once", job(at=DUE, after_completion=value))


def test_a_cron_ends_with_its_last_year(w: World) -> None:
    once(w, cron="20 3 21,22 11 ? 2026", dialect="eventbridge")
    w.run_until("2026-11-21T03:40:00Z", ticks=True)
    assert is_left(w)
    w.run_until("2026-11-22T03:40:00Z", ticks=True)
    assert not is_left(w)


def test_a_run_that_is_due_a_day_after_its_fire_time_keeps_the_job(w: World) -> None:
    """Its fire time is long past while nothing is recorded: the end of another run must not delete the job."""
    once(w, jitter_s=86_400)
    w.run_until("2026-11-21T08:00:00Z", ticks=True)
    w.completion.ended.note(Execution("alice", "once", at(DUE), at(DUE), 1), w.clock.now())
    w.run_until("2026-11-21T08:20:00Z", ticks=True)
    assert (is_left(w), notes(w), w.target.calls) == (True, 0, [])
    w.run_until("2026-11-22T03:40:00Z", ticks=True)
    assert (is_left(w), len(w.target.calls)) == (False, 1)
