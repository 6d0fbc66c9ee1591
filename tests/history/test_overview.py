"""The executions of the next 24 hours: they are those of the schedules, however they are counted."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from common.history.job_directory import ListedJob
from common.history.overview import AHEAD_S, ahead
from common.planning.execution import job_key
from common.registration.schedule_text import parse_schedule
from common.timing.fires import due_at, fires
from common.timing.instants import rfc3339
from common.timing.schedule import Schedule
from tests.worlds import at

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


@pytest.mark.parametrize("later_s", [0, 1, 600, 766, 767, 768, 3_600, 40_000])
def test_the_hours_ahead_are_those_of_the_schedules(later_s: int) -> None:
    """Also of a later request in the same hour, which finds what an earlier one has counted."""
    schedules = [parse_schedule(fields, job_key="a/job", now=NOW - 10**6) for fields in SCHEDULES]
    jobs = [listed(number, schedule) for number, schedule in enumerate([*schedules, *schedules[:4]])]
    ahead("alice", jobs, NOW)
    now = NOW + later_s
    counted = ahead("alice", [*jobs, listed(99, schedules[0], "paused")], now + 0.5)
    expected: Counter[int] = Counter()
    for job in jobs:
        schedule = Schedule.from_item(json.loads(job.schedule))
        for fire_at in fires(schedule, now + 1, now + 1 + AHEAD_S):
            due = due_at(schedule, job_key("alice", job.job_id), fire_at)
            expected[due - due % 3_600] += 1
    assert (counted.hours, counted.jobs, counted.complete) == (expected, len(jobs), True)
