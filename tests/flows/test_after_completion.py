"""`after_completion: delete`: the job is deleted after its last run has ended. Nothing that is to run is lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from common.errors import Busy, NotFound
from common.jobs.job import Job
from common.jobs.store import JobStore
from common.planning.chores import Done
from common.platform.tenants import Tenants
from common.runs.outcome import Outcome
from executor.pipeline import Message
from scheduler import removal
from tests.worlds import World, at, job

DUE, AFTER = "2026-11-21T03:15:00Z", "2026-11-21T03:19:00Z"
ONCE = ("alice", "once")


def once(world: World, job_id: str = "once", **fields: Any) -> None:
    timing = {} if fields.keys() & {"cron", "every"} else {"at": DUE}
    world.registry.create("alice", job_id, job(**{"after_completion": "delete", **timing, **fields}))


def is_left(world: World, job_id: str = "once") -> bool:
    try:
        world.store.get("alice", job_id)
    except NotFound:
        return False
    return True


def notes(world: World) -> int:
    return len(list(world.completion.ended.noted()))


@pytest.mark.parametrize("invocation", ["RequestResponse", "Event"])
def test_a_one_off_is_deleted_by_the_tick_after_its_run(world: World, invocation: str) -> None:
    Tenants(world.table("tenants")).create("alice", "", world.clock.now(), {"allowed_targets": ["*"]})
    once(world, invocation=invocation)
    once(world, "kept", after_completion="keep")
    world.run_until("2026-11-21T03:17:00Z", ticks=True)
    assert is_left(world)
    world.run_until(AFTER, ticks=True)
    assert (is_left(world), is_left(world, "kept"), notes(world)) == (False, True, 0)
    assert len(world.run_items("alice", "once")) == 1  # its runs stay
    counts = Tenants(world.table("tenants")).get("alice")
    assert (counts.jobs, counts.executions_per_day) == (1, 1)
    (entry,) = world.store.audited.audit.newest("alice", 1)
    assert (entry.action, entry.subject, entry.by) == ("job.deleted", "once", "minute8")


def test_a_job_without_it_costs_no_request(world: World) -> None:
    requests: list[str] = []
    once(world, after_completion="keep")
    world.run_until("2026-11-21T03:14:59Z")
    world.dynamodb.before = requests.append
    world.run_until("2026-11-21T03:16:00Z")
    assert requests == ["get_item", "update_item", "update_item"]


def test_a_schedule_ends_with_its_last_fire_time_and_not_before(world: World) -> None:
    once(world, cron="*/10 * * * *", end_at="2026-11-21T03:40:00Z")
    once(world, "endless", cron="*/10 * * * *")
    world.run_until("2026-11-21T03:29:00Z", ticks=True)
    assert (is_left(world), notes(world)) == (True, 0)
    world.run_until("2026-11-21T03:39:00Z", ticks=True)
    assert (is_left(world), is_left(world, "endless")) == (False, True)
    assert world.statuses("alice", "once") == ["succeeded"] * 2


def test_the_last_fire_time_may_be_one_that_a_calendar_leaves(world: World) -> None:
    world.table("jobs").put({"pk": "alice", "sk": "CALENDAR#c", "dates": "2026-11-22"})
    exclude = {"calendars": ["c"]}
    once(world, cron="15 3 * * *", end_at="2026-11-22T12:00:00Z", exclude=exclude)
    world.run_until(AFTER, ticks=True)
    assert not is_left(world)


def test_a_one_off_of_the_next_century_may_be_run_by_hand(world: World) -> None:
    once(world, at="2150-01-01T00:00:00Z")
    once(world, "daily", cron="0 3 * * *", start_at="2150-01-01T00:00:00Z", end_at="2151-01-01T00:00:00Z")
    for job_id in ("once", "daily"):
        world.manual.run_now("alice", job_id, "n")
    world.run_until(AFTER, ticks=True)
    assert (is_left(world), is_left(world, "daily")) == (True, True)


def test_a_failed_run_ends_with_its_last_retry(world: World) -> None:
    world.target.answer = lambda event: Outcome(ok=False, error_type="Boom")
    once(world, retry={"max_attempts": 2, "base_s": 600})
    world.run_until(AFTER, ticks=True)
    assert (is_left(world), world.statuses(*ONCE)) == (True, ["retrying"])
    world.run_until("2026-11-21T03:29:00Z", ticks=True)
    assert (is_left(world), world.statuses(*ONCE)) == (False, ["failed"])


def test_a_skipped_and_a_cancelled_run_have_ended(world: World) -> None:
    once(world)
    once(world, "late", start_deadline_s=1)
    world.manual.skip_next("alice", "once", 1, "")
    world.clock.move_to(at("2026-11-21T03:15:30Z"))
    world.run_until(AFTER, ticks=True)
    assert (world.statuses(*ONCE), world.statuses("alice", "late")) == (
        ["skipped(cancelled)"],
        ["skipped(misfire)"],
    )
    assert (is_left(world), is_left(world, "late")) == (False, False)


def test_a_missed_one_off_is_deleted_as_well(world: World) -> None:
    once(world, at="2026-11-21T04:00:00Z", catch_up="none")
    once(world, "caught-up", at="2026-11-21T04:00:00Z")
    world.run_until("2026-11-21T04:28:00Z")
    world.tick()
    assert (is_left(world), world.statuses(*ONCE)) == (False, ["skipped(missed)"])
    world.run_until("2026-11-21T04:39:00Z", ticks=True)
    assert (is_left(world, "caught-up"), world.statuses("alice", "caught-up")) == (False, ["succeeded"])


def test_a_job_that_changed_meanwhile_stays(world: World) -> None:
    for job_id in ("rescheduled", "paused", "kept", "again"):
        once(world, job_id)
    world.run_until("2026-11-21T03:16:00Z")
    assert notes(world) == 4
    world.registry.put("alice", "rescheduled", job(at="2026-11-21T12:00:00Z", after_completion="delete"))
    world.store.pause("alice", "paused")
    world.registry.put("alice", "kept", job(at=DUE))
    world.store.delete("alice", "again")
    once(world, "again", at="2026-11-21T12:00:00Z")
    world.tick()
    assert [is_left(world, job_id) for job_id in ("rescheduled", "paused", "kept", "again")] == [True] * 4
    assert notes(world) == 0


def test_a_late_copy_of_its_message_does_nothing_to_a_job_of_the_same_name(world: World) -> None:
    once(world)
    world.run_until(AFTER, ticks=True)
    assert not is_left(world)
    world.registry.accepting_past().create("alice", "once", job(at=DUE, after_completion="delete"))
    world.execute(Message("copy", world.sqs.bodies[0]))
    world.tick()
    assert is_left(world)
    assert len(world.target.calls) == 1


def test_a_change_of_other_fields_does_not_keep_the_job(world: World) -> None:
    once(world)
    world.run_until("2026-11-21T03:16:00Z")
    world.registry.put("alice", "once", job(at=DUE, after_completion="delete", name="new"))
    world.tick()
    assert not is_left(world)


def test_a_run_that_still_goes_keeps_it_until_it_ends(world: World) -> None:
    def slow(event: Mapping[str, Any]) -> Outcome:
        return Outcome(ok=event["minute8"]["attempt"] > 1 or "03:14" not in event["minute8"]["fire_at"])

    world.target.answer = slow
    once(world, cron="14,15 * * * *", end_at="2026-11-21T03:30:00Z", retry={"base_s": 900, "cap_s": 900})
    world.run_until(AFTER, ticks=True)
    assert (is_left(world), world.statuses(*ONCE)) == (True, ["retrying", "succeeded"])
    world.run_until("2026-11-21T03:39:00Z", ticks=True)
    assert (is_left(world), world.statuses(*ONCE)) == (False, ["succeeded", "succeeded"])


def test_a_run_that_waits_in_the_queue_is_not_lost(world: World) -> None:
    """The last fire time's message overtakes the one before."""
    once(world, cron="14,15 * * * *", end_at="2026-11-21T03:30:00Z")
    world.clock.move_to(at("2026-11-21T03:14:00Z"))
    before = world.sqs.receive()
    assert before
    world.run_until(AFTER, ticks=True)
    assert (is_left(world), world.statuses(*ONCE)) == (True, ["succeeded"])
    world.deliver_one(before)
    world.run_until("2026-11-21T03:29:00Z", ticks=True)
    assert (is_left(world), world.statuses(*ONCE)) == (False, ["succeeded", "succeeded"])


def test_a_backfill_runs_to_its_end_first(world: World) -> None:
    once(world, cron="*/10 * * * *", end_at="2026-11-21T03:16:00Z", start_at="2026-11-20T00:00:00Z")
    world.manual.backfills.start(
        "alice", "once", at("2026-11-21T00:00:00Z"), at("2026-11-21T01:00:00Z"), 1, "b"
    )
    for _ in range(3):
        message = world.sqs.receive()
        assert message
        world.deliver_one(message)
    world.tick()
    assert is_left(world)
    world.run_until("2026-11-21T03:29:00Z", ticks=True)
    assert (is_left(world), world.statuses(*ONCE)) == (False, ["succeeded"] * 6)


def test_runs_beyond_the_newest_hundred_do_not_keep_the_job(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "_MAX_RUNS_READ", 2)
    once(world, cron="13-15 * * * *", end_at="2026-11-21T03:30:00Z")
    world.run_until(AFTER, ticks=True)
    assert not is_left(world)


def test_many_end_at_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifteen of each of three tenants; one transaction of a tenant has fourteen."""
    monkeypatch.setattr(removal, "_NOTES_PAGE", 20)
    for tenant in ("alice", "bob", "carol"):
        for n in range(15):
            world.registry.create(tenant, f"once-{n}", job(at=DUE, after_completion="delete"))
    world.run_until("2026-11-21T03:18:00Z")
    deleted = world.delete_ended()
    assert (deleted, notes(world)) == (45, 0)
    assert [list(world.store.list_jobs(tenant)) for tenant in ("alice", "bob", "carol")] == [[], [], []]


def test_a_job_that_cannot_be_deleted_does_not_stop_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        once(world, f"once-{n}")
    world.run_until("2026-11-21T03:16:00Z")
    load_all = JobStore.load_all

    def load_others(store: JobStore, tenant: str, job_ids: Sequence[str]) -> dict[str, Job]:
        if "once-1" in job_ids:
            raise Busy("once-1")
        return load_all(store, tenant, job_ids)

    monkeypatch.setattr(JobStore, "load_all", load_others)
    assert world.delete_ended() == 2
    assert notes(world) == 1


def test_an_error_that_nobody_foresaw_holds_back_one_tenant(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for tenant in ("alice", "bob", "carol"):
        world.registry.create(tenant, "once", job(at=DUE, after_completion="delete"))
    world.run_until("2026-11-21T03:16:00Z")
    change_all = JobStore.change_all

    def change_others(store: JobStore, tenant: str, changes: Any) -> Any:
        if tenant == "bob":
            raise RuntimeError("unforeseen")
        return change_all(store, tenant, changes)

    monkeypatch.setattr(JobStore, "change_all", change_others)
    assert (world.delete_ended(), notes(world)) == (2, 1)
    monkeypatch.undo()
    assert (world.delete_ended(), notes(world)) == (1, 0)


def test_a_busy_tenant_is_left_to_the_next_tick(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    once(world)
    world.run_until("2026-11-21T03:16:00Z")

    def busy(*_: object) -> None:
        raise Busy("other writers")

    monkeypatch.setattr(JobStore, "change_all", busy)
    assert (world.delete_ended(), notes(world), is_left(world)) == (0, 1, True)
    monkeypatch.undo()
    assert (world.delete_ended(), notes(world), is_left(world)) == (1, 0, False)


def test_the_deletion_of_ended_jobs_ends_in_time(world: World) -> None:
    once(world)
    world.run_until("2026-11-21T03:16:00Z")
    assert world.delete_ended(seconds=0) == 0
    assert (notes(world), is_left(world)) == (1, True)


def test_an_unreadable_note_is_only_logged(world: World) -> None:
    once(world)
    world.run_until("2026-11-21T03:16:00Z")

    def refuse(name: str) -> None:
        if name == "query":
            raise OSError("no table")

    steps, world.dynamodb.before = world.completion.steps, refuse
    done = Done("ended jobs", world.clock, world.clock.now() + 60)
    with pytest.raises(OSError):
        next(steps(None, done))
    world.dynamodb.before = lambda _: None
    assert world.round("ended jobs", steps).counts["deleted"] == 1
