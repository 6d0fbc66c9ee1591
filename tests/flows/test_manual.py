"""Manual commands: run now, retry, cancel, backfill."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from itertools import count
from typing import Any

import pytest

from common.errors import Conflict, InvalidInput, NotFound
from common.jobs.backfill import Backfills
from common.planning.execution import Execution, parse_execution_id
from common.registration.calendar_store import CalendarStore
from common.runs.outcome import Outcome
from common.storage import keys
from common.storage.conflicts import TransactionConflict
from common.timing.instants import rfc3339
from tests.worlds import World, at, job

BACKFILL_EXCLUDED_DATES = 1_000
MIN_NOTICE_S = 60
SKIPPED_AHEAD_S = 31_622_400

FAILS = Outcome(ok=False, permanent=True, error_type="Boom", error="it went wrong")


def test_run_now_starts_at_once_and_says_who_started_it(world: World) -> None:
    world.registry.create("alice", "job", job(cron="0 12 * * *"))
    execution = world.manual.run_now("alice", "job", "abc")
    assert world.statuses("alice", "job") == ["queued"]
    world.deliver()
    (run,) = world.run_items("alice", "job")
    assert (run["status"], run["trigger"]) == ("succeeded", "manual")
    assert execution.execution_id == "alice:job:20261121T031200Z:m-abc"


def test_run_now_runs_a_paused_job_and_the_same_nonce_once(world: World) -> None:
    world.registry.create("alice", "job", job(cron="0 12 * * *"))
    world.store.pause("alice", "job")
    world.manual.run_now("alice", "job", "abc")
    world.manual.run_now("alice", "job", "abc")
    world.deliver()
    assert world.statuses("alice", "job") == ["succeeded"]
    assert len(world.target.calls) == 1


def test_a_failed_run_is_tried_again_by_hand_beyond_its_policy(world: World) -> None:
    world.registry.create("alice", "job", job(at="2026-11-21T03:13:00Z", retry={"max_attempts": 1}))
    world.target.answer = lambda event: FAILS
    world.run_until("2026-11-21T03:14:00Z")
    world.target.answer = lambda event: Outcome(ok=True)
    (failed,) = world.run_items("alice", "job")
    execution_id = "alice:job:20261121T031300Z"
    world.manual.retry("alice", execution_id)
    world.deliver()
    (run,) = world.run_items("alice", "job")
    assert (failed["status"], run["status"], run["attempt"], run["trigger"]) == (
        "failed",
        "succeeded",
        2,
        "schedule",
    )
    assert [attempt["outcome"] for attempt in run["attempts"]] == ["failed", "succeeded"]
    assert "failed_tenant" not in run
    with pytest.raises(Conflict, match="is succeeded; only a failed run"):
        world.manual.retry("alice", execution_id)


def test_a_waiting_execution_is_cancelled_before_it_starts(world: World) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *"))
    world.manual.cancel("alice", "alice:job:20261121T031400Z", "not today")
    world.run_until("2026-11-21T03:15:30Z")
    assert world.statuses("alice", "job") == ["succeeded", "skipped(cancelled)", "succeeded"]
    assert "not today" in world.run_items("alice", "job")[1]["detail"]
    with pytest.raises(Conflict, match="is succeeded"):
        world.manual.cancel("alice", "alice:job:20261121T031300Z", "")


def test_skips_are_taken_back_until_shortly_before_the_fire_time(world: World) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *"))
    world.manual.skip_next("alice", "job", 3, "not today")
    world.run_until("2026-11-21T03:12:51Z")
    restored = world.manual.take_back(world.manual.skipped("alice", "job"))
    assert [execution.fire_at for execution in restored] == [
        at("2026-11-21T03:14:00Z"),
        at("2026-11-21T03:15:00Z"),
    ]
    assert world.manual.skipped("alice", "job") == []
    world.run_until("2026-11-21T03:15:30Z")
    assert world.statuses("alice", "job") == ["skipped(cancelled)", "succeeded", "succeeded"]


def test_a_skip_is_not_taken_back_too_late_or_after_a_change_of_the_times(world: World) -> None:
    world.registry.create("alice", "job", job(cron="*/5 * * * *"))
    world.manual.skip_next("alice", "job", 1, "")
    world.registry.put("alice", "job", job(cron="*/10 * * * *"))
    assert world.manual.skipped("alice", "job") == []
    (coming,) = world.manual.skip_next("alice", "job", 1, "")
    world.clock.sleep(coming.fire_at - MIN_NOTICE_S + 0.5 - world.clock.now())
    assert world.manual.take_back([coming]) == []
    world.clock.sleep(MIN_NOTICE_S)
    world.deliver()
    assert world.statuses("alice", "job")[-1] == "skipped(cancelled)"


@pytest.mark.parametrize(("further_s", "count"), [(-1, 1), (0, 0)])
def test_fire_times_beyond_366_days_are_not_skipped(world: World, further_s: int, count: int) -> None:
    fire_at = int(world.clock.now()) + SKIPPED_AHEAD_S + further_s
    world.registry.create("alice", "job", job(at=rfc3339(fire_at)))
    if not count:
        with pytest.raises(Conflict, match="never fires again within 366 days, so there is nothing to skip"):
            world.manual.skip_next("alice", "job", 1, "")
        world.manual.cancel("alice", Execution("alice", "job", fire_at, fire_at, 1).execution_id, "")
    else:
        assert [execution.fire_at for execution in world.manual.skip_next("alice", "job", 50, "")] == [
            fire_at
        ]
    assert len(world.manual.skipped("alice", "job")) == len(world.store.get("alice", "job").skips) == count


def test_an_unskip_looks_at_so_many_records_of_former_schedules(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("common.runs.records.MAX_RECORDS_READ", 5)
    world.registry.create("alice", "job", job(cron="*/10 * * * *"))
    world.manual.skip_next("alice", "job", 5, "")
    world.registry.put("alice", "job", job(cron="5 5 * * *"))
    world.manual.skip_next("alice", "job", 1, "")
    assert world.manual.skipped("alice", "job") == []
    monkeypatch.setattr("common.runs.records.MAX_RECORDS_READ", 6)
    assert [rfc3339(execution.fire_at) for execution in world.manual.skipped("alice", "job")] == [
        "2026-11-21T05:05:00Z"
    ]


def test_a_waiting_retry_is_cancelled(world: World) -> None:
    world.registry.create("alice", "job", job(at="2026-11-21T03:13:00Z", retry={"base_s": 300}))
    world.target.answer = lambda event: Outcome(ok=False, error_type="Boom")
    world.run_until("2026-11-21T03:14:00Z")
    world.manual.cancel("alice", "alice:job:20261121T031300Z", "")
    world.run_until("2026-11-21T03:40:00Z")
    (run,) = world.run_items("alice", "job")
    assert (run["status"], run["error_type"], len(world.target.calls)) == ("failed", "cancelled", 1)


@pytest.mark.parametrize(
    "execution_id",
    [
        "",
        "alice",
        "alice:job:20261121T031500Z:1",  # as ids were before 1.0
        "alice:job:20261121T031530Z",  # no fire time of the job
        "alice:job:20261121T031100Z",  # before it was registered
        "alice:other:20261121T031500Z",
        "bob:job:20261121T031500Z",
        "alice:job:20261121T031500Z:x-1",
        "alice:job:20261121T031500Z:١",
        "alice:job:99999999T999999Z",
        "alice:job:20261121T031500Z:b-1:more",
    ],
)
def test_an_execution_that_the_tenant_does_not_have_is_not_found(world: World, execution_id: str) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *"))
    with pytest.raises(NotFound):
        world.manual.cancel("alice", execution_id, "")
    with pytest.raises(NotFound):
        world.manual.retry("alice", execution_id)


def test_an_execution_id_is_read_back_as_it_was_written(world: World) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *"))
    execution = world.manual.run_now("alice", "job", "abc")
    assert parse_execution_id("alice", execution.execution_id).execution_id == execution.execution_id


def test_a_backfill_runs_each_fire_time_once_with_bounded_concurrency(world: World) -> None:
    world.registry.create("alice", "job", job(cron="*/10 * * * *", timeout_s=200))
    start, end = at("2026-11-21T00:00:00Z"), at("2026-11-21T03:00:00Z")
    assert world.manual.backfills.count("alice", "job", start, end) == 18
    under_way: list[int] = []

    def busy(event: Mapping[str, Any]) -> Outcome:
        under_way.append(len(world.sqs))
        return Outcome(ok=True)

    world.target.answer = busy
    world.manual.backfills.start("alice", "job", start, end, concurrency=3, backfill_id="one")
    waiting_before = len(world.sqs)
    world.deliver()
    runs = [run for run in world.run_items("alice", "job") if run["trigger"] == "backfill"]
    assert [run["fire_at"] for run in runs] == list(range(start, end, 600))
    assert {run["status"] for run in runs} == {"succeeded"}
    assert max(under_way) < waiting_before
    progress = world.manual.backfills.progress("alice", "job", "one")
    assert (progress.sent, progress.total) == (18, 18)


def test_conflicts_at_a_backfills_pointer_send_no_message_twice(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    move, conflicts = Backfills._move, count()

    def in_conflict(self: Backfills, *arguments: Any) -> None:
        if next(conflicts) % 4:
            raise TransactionConflict
        move(self, *arguments)

    monkeypatch.setattr(Backfills, "_move", in_conflict)
    world.registry.create("alice", "job", job(cron="0 * * * *"))
    start, end = at("2026-11-20T00:00:00Z"), at("2026-11-21T00:00:00Z")
    world.manual.backfills.start("alice", "job", start, end, concurrency=2, backfill_id="one")
    world.deliver()
    backfilled = [body for body in world.sqs.bodies if '"backfill"' in body]
    assert len(backfilled) == len(set(backfilled)) == 24


def test_a_backfill_leaves_the_scheduled_runs_as_they_are(world: World) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:14:30Z")
    world.manual.backfills.start(
        "alice", "job", at("2026-11-21T03:13:00Z"), at("2026-11-21T03:14:01Z"), concurrency=1, backfill_id="x"
    )
    world.deliver()
    assert [run["trigger"] for run in world.run_items("alice", "job")] == ["schedule", "backfill"] * 2


def test_a_backfill_leaves_out_the_dates_of_calendars(world: World) -> None:
    """A backfill uses the calendars as they were when it began, in the schedule's zone, for its count and its runs."""
    calendars = CalendarStore(world.table("jobs"), world.store.audited)
    calendars.put("alice", "feasts", {"dates": ["2026-11-19", "2020-01-01"]}, world.clock.now())
    exclude = {"calendars": ["feasts"], "dates": ["2026-11-17"]}
    world.registry.create("alice", "job", job(cron="0 1 * * *", timezone="Asia/Tokyo", exclude=exclude))
    start, end = at("2026-11-15T16:00:00Z"), at("2026-11-20T15:00:00Z")
    assert world.manual.backfills.count("alice", "job", start, end) == 3
    world.manual.backfills.start("alice", "job", start, end, concurrency=1, backfill_id="one")
    calendars.put("alice", "feasts", {"dates": ["2026-11-20"]}, world.clock.now())
    world.deliver()
    assert world.target.fire_times("job") == [f"2026-11-{day}T16:00:00Z" for day in (15, 17, 19)]
    progress = world.manual.backfills.progress("alice", "job", "one")
    assert (progress.sent, progress.total) == (3, 3)


def test_a_backfill_moves_times_as_its_schedule_does(world: World) -> None:
    """Also out of dates around its range, and only to dates of the calendar that includes."""
    calendars = CalendarStore(world.table("jobs"), world.store.audited)
    calendars.put("alice", "open", {"dates": ["2026-11-10", "2026-11-16", "2026-11-18"]}, world.clock.now())
    rest = {"include_calendars": ["open"], "on_excluded": "next"}
    world.registry.create("alice", "job", job(cron="0 1 11,17 * *", **rest))
    start, end = at("2026-11-12T00:00:00Z"), at("2026-11-19T00:00:00Z")
    world.manual.backfills.start("alice", "job", start, end, concurrency=2, backfill_id="one")
    calendars.put("alice", "open", {"dates": []}, world.clock.now())
    world.deliver()
    assert sorted(world.target.fire_times("job")) == ["2026-11-16T01:00:00Z", "2026-11-18T01:00:00Z"]


def test_a_backfill_needs_the_calendars_that_its_job_names(world: World) -> None:
    world.registry.create("alice", "job", job(cron="0 1 * * *"))
    item = world.table("jobs").get(keys.job("alice", "job"))
    assert item
    world.table("jobs").put(item | {"schedule": item["schedule"] | {"calendars": ["gone"]}})
    with pytest.raises(Conflict, match="'gone', which does not exist"):
        world.manual.backfills.count("alice", "job", at("2026-11-15T00:00:00Z"), at("2026-11-20T00:00:00Z"))


def test_the_dates_of_a_backfill_are_bounded(world: World) -> None:
    days = [(date(2020, 1, 1) + timedelta(n)).isoformat() for n in range(BACKFILL_EXCLUDED_DATES + 1)]
    calendars = CalendarStore(world.table("jobs"), world.store.audited)
    calendars.put("alice", "days", {"dates": days}, world.clock.now())
    world.registry.create("alice", "job", job(cron="0 1 * * *", exclude={"calendars": ["days"]}))
    start, end = at("2020-01-01T00:00:00Z"), at(f"{days[-1]}T00:00:00Z")
    with pytest.raises(InvalidInput) as refused:
        world.manual.backfills.count("alice", "job", start, end)
    assert refused.value.field == "start_at"
    assert world.manual.backfills.count("alice", "job", start, end - 86_400) == 0


def test_an_excluded_fire_time_cannot_be_cancelled(world: World) -> None:
    CalendarStore(world.table("jobs"), world.store.audited).put(
        "alice", "feasts", {"dates": ["2026-11-21"]}, world.clock.now()
    )
    world.registry.create("alice", "job", job(cron="* * * * *", exclude={"calendars": ["feasts"]}))
    with pytest.raises(NotFound):
        world.manual.cancel("alice", "alice:job:20261121T031500Z", "")


@pytest.mark.parametrize(
    ("start", "end", "field"),
    [
        ("2026-11-21T03:00:00Z", "2026-11-21T03:00:00Z", "end_at"),
        ("2026-11-21T03:00:00Z", "2026-11-22T03:00:00Z", "end_at"),
        ("2025-11-21T03:00:00Z", "2026-11-21T03:00:00Z", "start_at"),
    ],
)
def test_a_backfill_is_bounded(world: World, start: str, end: str, field: str) -> None:
    world.registry.create("alice", "job", job(cron="* * * * *"))
    with pytest.raises(InvalidInput) as refused:
        world.manual.backfills.start("alice", "job", at(start), at(end), concurrency=1, backfill_id="x")
    assert refused.value.field == field
