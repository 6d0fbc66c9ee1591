"""The executions of the next 24 hours: they are those of the schedules, or said to be incomplete."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from msgspec import convert, to_builtins

from common.clock import CpuBudget
from common.history.job_directory import ListedJob
from common.history.next_fires import Fires
from common.jobs.calendars import Calendars, RememberedCalendars
from common.planning.execution import job_key
from common.registration.schedule_text import parse_schedule
from common.timing.fires import due_at, fires
from common.timing.instants import rfc3339
from common.timing.schedule import Schedule
from minute8.api.routes.overview import soonest
from tests.worlds import World, at

AHEAD_S = 86_400

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
    text = json.dumps(to_builtins(schedule), separators=(",", ":"))
    return ListedJob(f"job-{number}", "", "", "lambda", "", state, 1, text)


def expected(jobs: list[ListedJob], start: int) -> Counter[int]:
    """By hour, of the executions that are due in the 24 hours from `start` on."""
    hours: Counter[int] = Counter()
    for job in jobs:
        schedule = convert(json.loads(job.schedule), Schedule)
        for fire_at in fires(schedule, start - 10_000, start + AHEAD_S):
            due = due_at(schedule, job_key("alice", job.job_id), fire_at)
            if start <= due < start + AHEAD_S:
                hours[due - due % 3_600] += 1
    return hours


@pytest.mark.parametrize("later_s", [0, 1, 767, 100_000])
def test_the_hours_ahead_are_those_of_the_schedules(world: World, later_s: int) -> None:
    schedules = [parse_schedule(fields, job_key="a/job", now=NOW - 10**6) for fields in SCHEDULES]
    jobs = [listed(number, schedule) for number, schedule in enumerate([*schedules, *schedules[:7]])]
    now = NOW + later_s
    start = now - now % 60 + 60
    fires_ = Fires.of(world.table("jobs"), "alice", now + 0.5, 1_000)
    counted = fires_.day([*jobs, listed(99, schedules[0], "paused")])
    assert (counted.start, counted.complete, counted.jobs) == (start, True, len(jobs))
    assert counted.hours == expected(jobs, start)


def test_what_there_is_no_time_for_is_said(world: World) -> None:
    schedules = [parse_schedule({"cron": f"{minute} * * * *"}, job_key="", now=NOW) for minute in range(9)]
    jobs = [listed(number, schedule) for number, schedule in enumerate([*schedules, *schedules])]

    class ThreeSchedules(CpuBudget):
        looks = 0

        @property
        def is_spent(self) -> bool:
            self.looks += 1
            return self.looks > 3

    calendars = RememberedCalendars(Calendars(world.table("jobs")))
    counted = Fires("alice", calendars, NOW, ThreeSchedules()).day(jobs)
    assert (counted.jobs, counted.complete) == (6, False)
    assert counted.hours == expected([*jobs[:3], *jobs[9:12]], counted.start)
    next_jobs = soonest(jobs, Fires("alice", calendars, NOW, ThreeSchedules()).next, 10)
    assert {job.job_id for _, job in next_jobs} == {f"job-{n}" for n in (0, 1, 2, 9, 10, 11)}
