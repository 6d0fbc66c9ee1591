"""The health of jobs as JSON, for lists of jobs and for one job."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from api.services import Services
from api.views import run_view
from common.history.expected import AsOf
from common.history.health import Health
from common.jobs.calendars import RememberedCalendars
from common.jobs.job import Job
from common.timing.instants import rfc3339

# How many jobs whose health is read count as one more request.
JOBS_A_REQUEST: Final = 50
_OUTCOME: Final = ("fire_at", "status", "trigger", "reason", "lateness_s", "duration_s")
_LAST: Final = ("execution_id", *_OUTCOME, "error_type", "error")


def health_of_jobs(
    services: Services, tenant: str, now: float, jobs: Sequence[Job], calendars: RememberedCalendars
) -> dict[str, dict[str, Any]]:
    """The health of each job by its id: a query for each job."""
    services.count_as(tenant, now, len(jobs) // JOBS_A_REQUEST + 1)
    mark = services.store.index.mark()
    as_of = AsOf(now, mark.planned_until if mark else -math.inf, -math.inf)
    found = services.health.of_jobs(jobs, as_of, calendars)
    last_runs = services.health.with_errors(
        [health.outcomes[0] for health in found.values() if health.outcomes]
    )
    last_of = {record["job_id"]: run_view(dict(record)) for record in last_runs}
    return {job_id: _view(health, last_of.get(job_id)) for job_id, health in found.items()}


def _view(health: Health, last: dict[str, Any] | None) -> dict[str, Any]:
    runs = [run_view(dict(record)) for record in health.outcomes]
    late = health.overdue
    return {
        "last_run": _some(last, _LAST) if last else None,
        "outcomes": [_some(run, _OUTCOME) for run in runs],
        "failures_in_row": health.failures_in_row,
        "overdue": None
        if late is None
        else {
            "fire_at": rfc3339(late.fire_at),
            "due_at": rfc3339(late.due_at),
            "late_s": round(late.late_s or 0.0, 3),
            "detail": late.detail,
        },
    }


def _some(run: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: run[name] for name in names if name in run}
