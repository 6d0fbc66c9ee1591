"""The routes of the jobs whose fire times move: by a clock change, or by an update of the time zone data."""

from __future__ import annotations

from typing import Final

from api.http.cursors import write_cursor
from api.http.requests import Request
from api.http.routing import A_THOUSAND_JOBS, CURSOR, Query, Reply, Route
from api.routes.upcoming import after_job_id
from api.services import Services
from common.timing.instants import rfc3339
from common.timing.schedule import Timing

# The most timings whose fires one call compares with those of an earlier tzdata release.
MAX_COMPARED: Final = 50


def clock_changes(services: Services, request: Request) -> Reply:
    """GET /v1/clock-changes"""
    # Imported here: only routes that describe schedules need it.
    from common.preview.preview import next_clock_change

    after = after_job_id(request, "clock-changes")
    jobs, after_job = services.upcoming.jobs(request.tenant, after)
    moved = [(job, change) for job in jobs if (change := next_clock_change(job.schedule, int(request.now)))]
    return Reply(
        {
            "moved": [
                {
                    "job_id": job.job_id,
                    "timezone": job.schedule.to_item().get("timezone", "UTC"),
                    "change_at": rfc3339(at),
                    "text": text,
                }
                for job, (at, text) in moved
            ],
            "next_cursor": write_cursor(request.tenant, "clock-changes", after_job) if after_job else None,
        }
    )


def tzdata_changes(services: Services, request: Request) -> Reply:
    """GET /v1/tzdata-changes"""
    # Imported here: no other route needs it.
    from common.preview.zone_releases import check_release, compared, moved
    from common.timing.zones import TZDATA_VERSION

    since = check_release(request.query.get("since"))
    list_name = f"tzdata-changes:{since}"
    jobs, after_job = services.upcoming.jobs(request.tenant, after_job_id(request, list_name))
    timings: set[Timing] = set()
    for number, job in enumerate(jobs):
        if timing := compared(job.schedule, since):
            timings.add(timing)
        if len(timings) > MAX_COMPARED:
            jobs, after_job = jobs[:number], jobs[number - 1].job_id
            break
    found = [(job, change) for job in jobs if (change := moved(job.schedule, since, int(request.now)))]
    return Reply(
        {
            "tzdata": TZDATA_VERSION,
            "since": since,
            "moved": [
                {
                    "job_id": job.job_id,
                    "timezone": job.schedule.to_item().get("timezone", "UTC"),
                    "before_at": rfc3339(change.before_at) if change.before_at is not None else None,
                    "after_at": rfc3339(change.after_at) if change.after_at is not None else None,
                }
                for job, change in found
            ],
            "next_cursor": write_cursor(request.tenant, list_name, after_job) if after_job else None,
        }
    )


ROUTES = (
    Route(
        "GET", "/v1/clock-changes", "list_clock_changes", clock_changes, "read",
        "The jobs that the next clock change of their time zones moves", "ClockChangePage",
        query=(CURSOR,), weight=A_THOUSAND_JOBS,
    ),
    Route(
        "GET", "/v1/tzdata-changes", "list_tzdata_changes", tzdata_changes, "read",
        "The jobs whose coming year an update of the time zone data changed", "TzdataChangePage",
        query=(
            CURSOR,
            Query(
                "since",
                "An earlier tzdata release, such as 2026e; the one before the present one unless given.",
                {"type": "string", "minLength": 1, "maxLength": 10},
            ),
        ),
        weight=A_THOUSAND_JOBS,
    ),
)  # fmt: skip
