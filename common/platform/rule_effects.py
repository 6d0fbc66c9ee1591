"""The effects that a change of a tenant's rules would have on its jobs. Pure; the caller reads the jobs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from common.jobs.job import Job
from common.tenants.allowed_targets import is_allowed
from common.tenants.tenant import Tenant
from common.timing.compiled import compiled
from common.timing.cron import shortest_interval_s
from common.timing.schedule import AtTiming, EveryTiming, ManyTiming, Schedule

# In one request.
MAX_JOBS: Final = 2_000
TARGETS_NAMED: Final = 20


@dataclass(slots=True)
class Effects:
    """The numbers of jobs that a change of rules newly affects, among the read ones.

    `not_allowed` counts jobs by their target: these stop running. Jobs with a too short interval or a too large payload
    go on, and can no longer be changed without becoming valid.
    """

    jobs_read: int = 0
    complete: bool = True
    not_allowed: Counter[str] = field(default_factory=Counter)
    interval_too_short: int = 0
    payload_too_large: int = 0


def effects_of(before: Tenant, after: Tenant, jobs: Iterable[Job]) -> Effects:
    """The effects on the first MAX_JOBS jobs; more of them make it incomplete."""
    effects = Effects()
    for job in jobs:
        if effects.jobs_read == MAX_JOBS:
            effects.complete = False
            break
        effects.jobs_read += 1
        if is_allowed(job.spec.target, before.allowed_targets) and not is_allowed(
            job.spec.target, after.allowed_targets
        ):
            effects.not_allowed[_reached(job)] += 1
        interval_s = _interval_s(job.schedule)
        if interval_s is not None:
            shortest_before, shortest = before.quotas.shortest_interval_s, after.quotas.shortest_interval_s
            effects.interval_too_short += shortest_before <= interval_s < shortest
        size = job.payload.bytes
        effects.payload_too_large += after.quotas.payload_bytes < size <= before.quotas.payload_bytes
    return effects


def overused(after: Tenant) -> dict[str, dict[str, int]]:
    """The quotas of which the tenant would use more than it has: it keeps its jobs, and can add none."""
    used = {"jobs": after.jobs, "executions_per_day": after.executions_per_day}
    return {
        name: {"used": count, "allowed": getattr(after.quotas, name)}
        for name, count in used.items()
        if count > getattr(after.quotas, name)
    }


def _reached(job: Job) -> str:
    target = str(job.spec.target.get("arn") or job.spec.target.get("url"))
    return f"{target} with {job.spec.target['role_arn']}" if job.spec.target.get("role_arn") else target


def _interval_s(schedule: Schedule) -> int | None:
    timing = schedule.timing
    if isinstance(timing, ManyTiming):
        return min((each for each in map(_interval_s, schedule.parts) if each is not None), default=None)
    if isinstance(timing, AtTiming):
        return None
    if isinstance(timing, EveryTiming):
        return timing.interval_s
    return shortest_interval_s(compiled(timing))
