"""The executions of the next 24 hours: they are those of the schedules, however they are counted."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from common.history import ahead
from common.history.ahead import AHEAD_S, JobsAhead
from common.history.job_directory import ListedJob
from common.planning.execution import job_key
from common.registration.schedule_text import parse_schedule
from common.timing.fires import due_at, fires
from common.timing.instants import rfc3339
from common.timing.schedule import Schedule
from tests.worlds import World, at

NOW = at("2026-11-21T03:47:13Z")
SCHEDULES = (
    {"cron": "0 3 * * *", "timezone": "UTC"},
    {"cron": "47 3 * * *"},
    {"cron": "48 3 * * *"},
    {"cron": "*/7 * * * *", "timezone": "Asia/Kathmandu"},
    {"cron": "* * * * * *"},
    {"cron": "*/20 * * * * *"},
    {"cron": "0 * * * *", "jitter_s": 900},
    {"every": "5000s", "anchor": rfc3339(NOW - 77)},
    {"at": rfc3339(NOW + AHEAD_S)},
    {"at": rfc3339(NOW + AHEAD_S + 1)},
    {"at": rfc3339(NOW)},
    {"at": rfc3339(NOW + 1)},
)


def listed(number: int, schedule: Schedule, state: str = "active") -> ListedJob:
    text = json.dumps(schedule.to_item(), separators=(",", ":"))
    return ListedJob(f"job-{number}", "", "", "lambda", "", state, 1, text)


def reader(world: World) -> JobsAhead:
    return JobsAhead(world.table("jobs"))


def expected(jobs: list[ListedJob], start: int) -> Counter[int]:
    """By hour, of the executions that are due in the 24 hours from `start` on."""
    hours: Counter[int] = Counter()
    for job in jobs:
        schedule = Schedule.from_item(json.loads(job.schedule))
        for fire_at in fires(schedule, start - 10_000, start + AHEAD_S):
            due = due_at(schedule, job_key("alice", job.job_id), fire_at)
            if start <= due < start + AHEAD_S:
                hours[due - due % 3_600] += 1
    return hours


@pytest.mark.parametrize("later_s", [0, 1, 600, 766, 767, 768, 3_600, 40_000, 100_000])
@pytest.mark.parametrize("jobs_of_part", [4, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 640))])
def test_the_hours_ahead_are_those_of_the_schedules(
    world: World, later_s: int, jobs_of_part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of a later request, in this function or another one, which finds what an earlier one has counted."""
    monkeypatch.setattr(ahead, "_JOBS_OF_PART", jobs_of_part)
    monkeypatch.setattr(ahead, "_CPU_S", 1_000)
    monkeypatch.setattr(ahead, "_PART_CPU_S", 1_000)
    schedules = [parse_schedule(fields, job_key="a/job", now=NOW - 10**6) for fields in SCHEDULES]
    jobs = [listed(number, schedule) for number, schedule in enumerate([*schedules, *schedules[:4]])]
    kept = reader(world)
    kept.of("alice", jobs, NOW)
    now = NOW + later_s
    start = now - now % 60 + 60
    for each in (kept, reader(world)):
        counted = each.of("alice", [*jobs, listed(99, schedules[0], "paused")], now + 0.5)
        assert (counted.start, counted.complete, counted.jobs) == (start, True, len(jobs))
        assert counted.hours == expected(jobs, start)


def test_a_change_of_a_job_counts_its_part_again_and_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "_JOBS_OF_PART", 1)
    schedules = [parse_schedule({"cron": f"{minute} * * * *"}, job_key="", now=NOW) for minute in range(40)]
    jobs = [listed(number, schedule) for number, schedule in enumerate(schedules)]
    kept = reader(world)
    kept.of("alice", jobs, NOW)
    counted: list[str] = []
    due_times = ahead.due_times
    monkeypatch.setattr(
        ahead,
        "due_times",
        lambda *args: counted.append(args[1]) or due_times(*args),  # type: ignore[func-returns-value]
    )
    assert kept.of("alice", jobs, NOW + 60).hours == reader(world).of("alice", jobs, NOW + 60).hours
    assert not counted
    changed = [*jobs[1:], listed(0, schedules[7])]
    shown = kept.of("alice", changed, NOW + 60)
    assert shown.hours == expected(changed, NOW + 60 - (NOW + 60) % 60 + 60)
    assert 1 <= len(counted) < 10


def test_what_there_is_no_time_for_is_said_and_done_by_the_next_looks(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ahead, "_JOBS_OF_PART", 1)
    schedules = [parse_schedule({"cron": f"{minute} * * * *"}, job_key="", now=NOW) for minute in range(9)]
    jobs = [listed(number, schedule) for number, schedule in enumerate(schedules)]

    class OnePart:
        def __init__(self, seconds: float) -> None:
            self.looks = 0

        @property
        def is_spent(self) -> bool:
            self.looks += 1
            return self.looks > 3

    monkeypatch.setattr(ahead, "CpuBudget", OnePart)
    seen = []
    for minute in range(16):
        shown = reader(world).of("alice", jobs, NOW + 60 * minute)
        seen.append((shown.jobs, shown.complete))
        assert shown.hours.keys() <= expected(jobs, shown.start).keys()
    assert seen == sorted(seen)
    assert seen[0][1] is False
    assert seen[-1] == (9, True)
