"""What became of one due instant, by the rules; and from when on a schedule is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from common.history.expected import AsOf, count_by_status, outcomes
from common.history.schedule_history import ALWAYS, DueInstant, schedule_history
from common.jobs.job import Job
from common.jobs.ledger import times_before
from common.runs.run import Run
from common.tenants.audit import Entry
from common.timing.instants import compact_time
from common.timing.schedule import CronTiming, Schedule
from tests.worlds import at, plain_job

NOW = at("2026-11-21T12:00:00Z")
HOUR, DAY = 3_600, 86_400
MINUTELY = Schedule.of(CronTiming("* * * * *", "UTC"))


def record(fire_at: int, **fields: Any) -> Run:
    item = {"tenant": "alice", "job_id": "job", "sk": f"{compact_time(fire_at)}", "trigger": "schedule"}
    item |= {"fire_at": fire_at, "due_at": fire_at, "schedule_revision": 1, "status": "succeeded"}
    return Run.from_item({**item, **fields})


def status(
    fire_at: int,
    *records: Run,
    planned_until: float = NOW + 600,
    retention_s: int = 30 * DAY,
) -> str:
    due = DueInstant(fire_at, fire_at, 1)
    (outcome,) = outcomes([due], records, AsOf(NOW, planned_until, NOW - retention_s))
    return outcome.status


@pytest.mark.parametrize(
    ("fields", "expected_status"),
    [
        ({"lateness_s": 0.2}, "on_time"),
        ({"lateness_s": 10}, "on_time"),
        ({"lateness_s": 10.1}, "late"),
        ({"status": "failed", "lateness_s": 0.1}, "on_time"),
        ({"status": "running", "lateness_s": 0.1}, "running"),
        ({"status": "retrying", "lateness_s": 0.1}, "running"),
        ({"status": "queued"}, "queued"),
        ({"status": "skipped", "reason": "overlap"}, "skipped"),
        ({"status": "skipped", "reason": "cancelled"}, "cancelled"),
        ({"status": "skipped", "reason": "missed", "skipped_count": 1, "skipped_from_at": NOW - HOUR}, "missed"),
    ],
)  # fmt: skip
def test_a_recorded_instant_is_what_its_record_says(fields: dict[str, Any], expected_status: str) -> None:
    assert status(NOW - HOUR, record(NOW - HOUR, **fields)) == expected_status


def test_an_instant_without_a_record() -> None:
    assert status(NOW + 1) == "to_come"
    assert status(NOW - 10) == "to_come"
    assert status(NOW - 11) == "overdue"
    assert status(NOW - HOUR) == "overdue"
    assert status(NOW - HOUR - 1) == "no_record"
    assert status(NOW - HOUR - 1, planned_until=NOW - HOUR - 1) == "overdue"  # no tick has planned it
    assert status(NOW - 2 * DAY, retention_s=DAY) == "not_kept"


def test_a_pace_may_delay_an_instant_and_its_record_says_by_how_much() -> None:
    def became(fire_at: int, *records: Run) -> tuple[str, int]:
        due = DueInstant(fire_at, fire_at, 1, tolerance_s=300)
        outcome = next(iter(outcomes([due], records, AsOf(NOW, NOW + 600, NOW - DAY))))
        return outcome.status, outcome.due_at - fire_at

    assert became(NOW - 310) == ("to_come", 0)
    assert became(NOW - 311) == ("overdue", 0)
    delayed = record(NOW - HOUR, due_at=NOW - HOUR + 200, lateness_s=0.1)
    assert became(NOW - HOUR, delayed) == ("on_time", 200)
    several = {"status": "skipped", "reason": "missed", "skipped_from_at": NOW - HOUR, "skipped_count": 2}
    assert became(NOW - HOUR, record(NOW - HOUR + 60, **several)) == ("missed", 0)


def test_an_aggregate_record_covers_all_its_fire_times() -> None:
    missed = record(
        NOW - 600, status="skipped", reason="missed", skipped_from_at=NOW - 1_200, skipped_count=11
    )
    for fire_at, status in ((NOW - 1_260, "overdue"), (NOW - 1_200, "missed"), (NOW - 660, "missed")):
        due = [DueInstant(fire_at, fire_at, 1)]
        assert [
            outcome.status for outcome in outcomes(due, [missed], AsOf(NOW, NOW, 0)) if outcome.is_due
        ] == [status]


def test_a_window_that_could_not_be_planned_covers_its_instants_until_the_next_run() -> None:
    start = NOW - 2 * HOUR
    bad = record(start, schedule_revision=0, status="skipped", reason="invalid", detail="unreadable")
    after = record(start + 600, lateness_s=0.1)
    due = [DueInstant(start + offset, start + offset, 1) for offset in (60, 540, 600, 660)]
    listed = list(outcomes(due, [bad, after], AsOf(NOW, NOW, 0)))
    assert [outcome.status for outcome in listed] == ["skipped", "skipped", "on_time", "no_record"]
    assert count_by_status(listed) == {"on_time": 1, "skipped": 2, "no_record": 1}


def test_a_run_outside_the_due_set_is_shown_as_not_due() -> None:
    (outcome,) = outcomes(
        [], [record(NOW - 60, status="skipped", reason="rescheduled")], AsOf(NOW, NOW + 600, 0)
    )
    assert (outcome.status, outcome.is_due, count_by_status([outcome])) == ("skipped", False, {})


def no_calendars(schedule: Schedule) -> tuple[frozenset[str], float]:
    return frozenset(), ALWAYS


def entry(ago_s: int, action: str, after: dict[str, Any] | None = None) -> Entry:
    """Of a change that left the times as they were."""
    return Entry("id", NOW - ago_s, "key", action, "j", {}, after or {})


def a_job(schedule: Schedule, ago_s: int) -> Job:
    return plain_job("alice", "j", schedule, effective_at=NOW - ago_s)


JOB = a_job(MINUTELY, 100 * HOUR)


def test_a_change_of_something_else_begins_no_schedule_version() -> None:
    entries = [entry(HOUR, "job.changed", after={"payload": 2}), entry(2 * HOUR, "job.run")]
    assert len(schedule_history(JOB.key, JOB, entries, NOW - 5 * HOUR, no_calendars).versions) == 1


def test_a_calendar_is_known_only_as_long_as_it_did_not_change() -> None:
    named = Schedule.of(MINUTELY.timing, calendars=("holidays",))
    job = a_job(named, 100 * HOUR)

    def changed(names: tuple[str, ...]) -> tuple[frozenset[str], float]:
        return frozenset(), NOW - HOUR if names else ALWAYS

    history = schedule_history(job.key, job, [], NOW - 5 * HOUR, changed)
    settled_at = NOW - HOUR + 1_500  # windows that were planned before the change kept the former dates
    assert (history.known_from_at, history.by_calendar) == (settled_at, True)
    assert len(list(history.due(NOW - 3 * HOUR, NOW, changed))) == 35


@pytest.mark.parametrize(("ago_s", "known_from_at"), [(HOUR - 1, ALWAYS), (HOUR, NOW - HOUR + 1_500)])
def test_a_job_that_is_newer_than_its_calendar_is_known_from_its_beginning(
    ago_s: int, known_from_at: float
) -> None:
    named = Schedule.of(MINUTELY.timing, calendars=("holidays",))
    job = a_job(named, ago_s)
    created = [replace(entry(ago_s, "job.created"), times=times_before(None, job))]
    history = schedule_history(job.key, job, created, NOW - 5 * HOUR, lambda names: (frozenset(), NOW - HOUR))
    assert history.known_from_at == known_from_at
