"""A realistic mix of jobs, each computed from its number, so that a million of them need no memory.

Four parts in ten have the schedules of a public multi-tenant platform's periodic jobs (examples/prow-periodics.csv),
the others are what that platform has none of: daily jobs at local times of many zones, one-off jobs, a few that fire
every some seconds.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Mapping
from functools import cache
from typing import Any

from common.jobs.job import ACTIVE, Job
from common.jobs.spec import JobSpec
from common.jobs.stored_text import StoredText
from common.planning.due_entry import DueEntry
from common.registration.schedule_text import parse_schedule
from common.timing.durations import parse_duration
from common.timing.groups import group_key
from common.timing.schedule import Schedule
from scripts.demo.workload import REAL_WORKLOAD

TENANTS = 1_000
# 2026-11-21T00:00:00Z, a Saturday.
DAY = 1_795_219_200
_DAYS_OF_ONE_OFFS = 30
ZONES = (
    *("America/New_York", "America/Los_Angeles", "America/Chicago", "America/Sao_Paulo", "America/Denver"),
    *("America/Toronto", "America/Mexico_City", "America/Bogota", "America/Argentina/Buenos_Aires"),
    *("Europe/London", "Europe/Berlin", "Europe/Paris", "Europe/Madrid", "Europe/Warsaw", "Europe/Istanbul"),
    *("Europe/Moscow", "Africa/Lagos", "Africa/Cairo", "Africa/Johannesburg", "Asia/Dubai", "Asia/Karachi"),
    *("Asia/Kolkata", "Asia/Kathmandu", "Asia/Dhaka", "Asia/Jakarta", "Asia/Shanghai", "Asia/Singapore"),
    *("Asia/Tokyo", "Asia/Seoul", "Australia/Sydney", "Pacific/Auckland", "UTC"),
)
_MINUTES = (0, 0, 0, 0, 30, 30, 15, 45, 5, 10)
_TARGET = {
    "kind": "lambda",
    "arn": "arn:aws:lambda:us-east-1:123456789012:function:customer-report",
    "invocation": "Event",
}


def job(number: int) -> Job:
    """The job of this number."""
    rng = random.Random(number)
    tenant, job_id = f"tenant-{rng.randrange(TENANTS):04}", f"job-{number:07}"
    fields = _schedule_fields(rng)
    schedule = _schedule(fields)
    return Job(
        tenant=tenant,
        job_id=job_id,
        spec=JobSpec(
            schedule=dict(fields), target=_TARGET, name=f"Report {number}", tags=["reports", "billing"]
        ),
        schedule=schedule,
        payload=StoredText.of(
            {"report": "daily", "customer": rng.randrange(10**6), "formats": ["pdf", "csv"]}
        ),
        effective_at=DAY - 10**6,
        created_at=DAY - 10**6,
        updated_at=DAY - 10**6,
        group=group_key(schedule),
        shard=0,
        state=ACTIVE,
        revision=1,
        schedule_revision=1,
    )


def entry(number: int) -> DueEntry:
    return job(number).due_entry()


def group(number: int) -> str:
    """The group of the job of this number, in a fraction of the time that the job takes."""
    rng = random.Random(number)
    rng.randrange(TENANTS)
    fields = _schedule_fields(rng)
    return _cron_group(tuple(fields.items())) if "cron" in fields else group_key(_schedule(fields))


def _schedule_fields(rng: random.Random) -> Mapping[str, Any]:
    part = rng.random()
    if part < 0.40:
        return _real(rng)
    if part < 0.7999:
        return _daily(rng)
    if part < 0.80:
        return {"cron": f"*/{rng.choice((10, 15, 30))} * * * * *"}
    return {"at": DAY + rng.randrange(_DAYS_OF_ONE_OFFS * 86_400)}


def _real(rng: random.Random) -> Mapping[str, Any]:
    kind, text = rng.choice(_real_schedules())
    if kind == "cron":
        return {"cron": text}
    interval_s = parse_duration(text)
    return {"every_s": interval_s, "anchor_at": DAY - rng.randrange(interval_s)}


def _daily(rng: random.Random) -> Mapping[str, Any]:
    """Mostly in the morning, at a minute that people choose."""
    hour, minute = min(23, max(0, round(rng.gauss(9, 5)))), rng.choice(_MINUTES)
    days = rng.choice(("*", "*", "*", "1-5", "1-5", "1"))
    return {"cron": f"{minute} {hour} * * {days}", "timezone": rng.choice(ZONES)}


def _schedule(fields: Mapping[str, Any]) -> Schedule:
    if "at" in fields:
        return Schedule(at=fields["at"])
    if "every_s" in fields:
        return Schedule(every_s=fields["every_s"], anchor_at=fields["anchor_at"])
    return _parsed(tuple(sorted(fields.items())))


@cache
def _cron_group(fields: tuple[tuple[str, str], ...]) -> str:
    return group_key(_schedule(dict(fields)))


@cache
def _parsed(fields: tuple[tuple[str, str], ...]) -> Schedule:
    return parse_schedule(dict(fields), job_key="a/job", now=DAY)


@cache
def _real_schedules() -> list[tuple[str, str]]:
    with REAL_WORKLOAD.open(newline="") as file:
        return [(row["kind"], row["schedule"]) for row in csv.DictReader(file)]
