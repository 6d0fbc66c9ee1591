"""The first look at a tenant: one request."""

from __future__ import annotations

import heapq
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from common.errors import Busy
from common.history.failed_runs import FailureFilter, muted_runs
from common.history.job_directory import ListedJob, Streak
from common.history.live_runs import LiveRecords
from common.history.next_fires import AHEAD_S, Ahead, Fires, NextFire
from common.jobs.job import ACTIVE
from common.jobs.muted_groups import Muted
from common.jobs.not_running import NotRunning, in_force
from common.notices.store import not_allowed
from common.projection.entry import OPEN
from common.projection.totals import Summary
from common.storage.table import Table
from common.timing.instants import DAY_S, rfc3339
from minute8.api.http.requests import Request
from minute8.api.http.routing import Response, Routes
from minute8.api.routes.failures import group_view
from minute8.api.services import Services
from minute8.api.views import hours_view, stopped_view


@dataclass(frozen=True, slots=True)
class FailingJob:
    """A job whose last runs failed."""

    job_id: str
    name: str
    failures_in_row: int


def failing(
    jobs: Sequence[ListedJob], streaks: Mapping[str, Streak], muted: Collection[str]
) -> tuple[list[FailingJob], int]:
    """The active jobs that fail, the most failures in a row first, and how many more of them are muted. Pure."""
    failing_jobs = [
        FailingJob(job.job_id, job.name, streak.failures)
        for job in jobs
        if job.state == ACTIVE and (streak := streaks.get(job.job_id)) and streak.failures
    ]
    shown = [job for job in failing_jobs if job.job_id not in muted]
    shown.sort(key=lambda job: (-job.failures_in_row, job.job_id))
    return shown, len(failing_jobs) - len(shown)


def not_running(
    table: Table, tenant: str, streaks: Mapping[str, Streak], addresses_off: Iterable[NotRunning]
) -> list[NotRunning]:
    """The jobs that do not run, and the addresses that are switched off, the newest first."""
    notes = [streak.not_running for streak in streaks.values() if streak.not_running]
    present = in_force(table, tenant, notes)
    return sorted([*present, *addresses_off], key=lambda note: (-note.since_at, note.name))


def soonest(jobs: Iterable[ListedJob], next_fire: NextFire, most: int) -> list[tuple[int, ListedJob]]:
    """The active jobs that fire next, with their fire times, the earliest first."""
    times = ((next_fire(job), job) for job in jobs if job.state == ACTIVE)
    known = ((at, job) for at, job in times if at is not None)
    return heapq.nsmallest(most, known, key=lambda pair: (pair[0], pair[1].job_id))


# It reads as much as some requests of one job.
_WEIGHT: Final = 10
_FAILING_SHOWN: Final = 10
_NOT_RUNNING_SHOWN: Final = 20
_NEXT_SHOWN: Final = 10
# Of a whole core, for what is ahead.
_AHEAD_CPU_S: Final = 1.0
_GROUPS_SHOWN: Final = 5
_STUCK_SHOWN: Final = 10
_FAILURES_READ: Final = 100
_ERROR_CHARS: Final = 300
_TIMES: Final = ("from_at", "until_at", "fresh_at")

ROUTES = Routes()


@ROUTES.add("GET", "/v1/overview", "read", response="TenantOverview", weight=_WEIGHT)
def overview_of_tenant(services: Services, request: Request) -> Response:
    """What a first look needs: the jobs, 24 hours back by outcome and hour, 24 hours ahead, what needs attention.

    Some twenty reads and at most 40 KB, however many jobs and runs there are. `job_counts`, `ahead`,
    `failing` and `not_running` are null while the directory of jobs is made: ask again.
    """
    tenant, now = request.tenant, request.now
    live = services.by_time.records(tenant, now)
    going = _open(live, now)
    muted = services.muted.now_muted(tenant, now)
    past, of_jobs = _past(services, tenant, now, live), _of_jobs(services, tenant, now, muted)
    shown = {
        "suspended": services.is_suspended(tenant, now),
        "past": past,
        "open": going,
        **of_jobs,
        "errors": _errors(services, tenant, now, muted),
    }
    return Response({"at": rfc3339(int(now)), **shown}, version=_news(shown))


def _news(shown: dict[str, Any]) -> str:
    """What makes an overview another one: not the times at which it was read."""

    def without_times(part: dict[str, Any] | None) -> dict[str, Any] | None:
        return part and {name: value for name, value in part.items() if name not in _TIMES}

    return json.dumps({**shown, "past": without_times(shown["past"]), "ahead": without_times(shown["ahead"])})


def _past(services: Services, tenant: str, now: float, live: LiveRecords) -> dict[str, Any]:
    from_at = int(now) - DAY_S
    summary = services.summaries.between(tenant, from_at, int(now) + 1, now, live)
    total = Summary.of_hours(summary.hourly).total().to_json()
    return {
        "from_at": rfc3339(summary.from_at),
        "fresh_at": rfc3339(summary.fresh_at),
        **total,
        "hours": hours_view(summary.hourly),
    }


def _open(live: LiveRecords, now: float) -> dict[str, Any]:
    open_runs = live.open()
    statuses = Counter[str](run.status for run in open_runs)
    stuck = [run for run in open_runs if run.is_stuck(now)]
    return {
        **{status: statuses[status] for status in sorted(OPEN)},
        "stuck": len(stuck),
        "stuck_runs": [
            {
                "execution_id": run.execution_id,
                "job_id": run.job_id,
                "status": run.status,
                "since_at": rfc3339(int(run.stuck_since)),
            }
            for run in stuck[:_STUCK_SHOWN]
        ],
        "complete": live.complete,
    }


def _of_jobs(services: Services, tenant: str, now: float, muted: Muted) -> dict[str, Any]:
    directory = services.directory
    try:
        jobs = directory.listed(tenant, now)
    except Busy:
        return dict.fromkeys(("job_counts", "ahead", "failing", "not_running"))
    states = Counter(job.state for job in jobs)
    quiet = muted_runs(services.tables.runs, tenant, muted, muted.last_failed.items())
    streaks = directory.streaks(tenant)
    failing_jobs, muted_jobs = failing(jobs, streaks, {job_id for job_id, _ in quiet})
    subscriptions, addresses = services.subscriptions.stored.with_addresses_off(tenant, consistent=False)
    if rules := services.known_tenants.rules(tenant, now):
        addresses += not_allowed(subscriptions, rules)
    stopped = not_running(services.store.jobs, tenant, streaks, addresses)
    fires = Fires.of(services.store.jobs, tenant, now, _AHEAD_CPU_S)
    next_jobs = soonest(jobs, fires.next, _NEXT_SHOWN)
    return {
        "job_counts": {"total": len(jobs), "active": states[ACTIVE], "paused": len(jobs) - states[ACTIVE]},
        "ahead": _ahead_view(fires.day(jobs))
        | {
            "jobs": [
                {"job_id": job.job_id, "name": job.name, "fire_at": rfc3339(at)} for at, job in next_jobs
            ]
        },
        "failing": {
            "count": len(failing_jobs),
            "muted": muted_jobs,
            "jobs": [
                {"job_id": job.job_id, "name": job.name, "failures_in_row": job.failures_in_row}
                for job in failing_jobs[:_FAILING_SHOWN]
            ],
        },
        "not_running": {
            "count": len(stopped),
            "first": [{**stopped_view(note), "detail": note.detail} for note in stopped[:_NOT_RUNNING_SHOWN]],
        },
    }


def _ahead_view(ahead: Ahead) -> dict[str, Any]:
    return {
        "from_at": rfc3339(ahead.start),
        "until_at": rfc3339(ahead.start + AHEAD_S),
        "total": sum(ahead.hours.values()),
        "hours": [{"at": rfc3339(at), "executions": count} for at, count in sorted(ahead.hours.items())],
        "jobs_counted": ahead.jobs,
        "complete": ahead.complete,
    }


def _errors(services: Services, tenant: str, now: float, muted: Muted) -> list[dict[str, Any]]:
    filters = FailureFilter(from_at=int(now) - DAY_S)
    groups, _ = services.failed_runs.groups(tenant, filters, most_looked_at=_FAILURES_READ)
    groups.sort(key=lambda group: group.key in muted.groups)  # muted ones last
    views = [group_view(group, muted) for group in groups[:_GROUPS_SHOWN]]
    return [{**view, "error": view["error"][:_ERROR_CHARS]} for view in views]
