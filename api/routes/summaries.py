"""The routes of summaries: the results of one job's runs, or of all runs, by day."""

from __future__ import annotations

from typing import Final

from api.http.cursors import not_of_this_list, read_place
from api.http.ranges import INSTANT, bounds, check_length
from api.http.requests import Request
from api.http.routing import A_THOUSAND_JOBS, CURSOR, Query, Reply, Route
from api.routes.jobs import existing_id
from api.routes.runs import next_place
from api.services import Services
from common.history.runs_cursor import RunsCursor
from common.history.summary import Summary
from common.timing.durations import parse_instant
from common.timing.instants import DAY_S, rfc3339

_DAYS: Final = 7
_MAX_DAYS: Final = 92


def of_job(services: Services, request: Request) -> Reply:
    """GET /v1/jobs/{job_id}/summary"""
    job_id = existing_id(request)
    summary, reply = _summary(services, request, job_id)
    if not summary.records and not services.runs.of_job(request.tenant, job_id, limit=1):
        services.store.get(request.tenant, job_id)  # raises NotFound: a job without runs has an empty summary
    return reply


def of_tenant(services: Services, request: Request) -> Reply:
    """GET /v1/summary"""
    return _summary(services, request)[1]


def _summary(services: Services, request: Request, job_id: str = "") -> tuple[Summary, Reply]:
    start, values = _start(request), request.flag("values")
    list_name = f"summary:{job_id}:{request.query.get('from_at')}:{request.query.get('until_at')}"
    place = read_place(request.tenant, list_name, request.query.get("cursor"), RunsCursor.of_text) or start
    if place.until_at is None:
        raise not_of_this_list(request.query.get("cursor"))
    summary, following = services.tenant_runs.summary(request.tenant, place, job_id)
    complete_from_at = following.complete_from_at if following else place.from_at
    shown = summary.to_json(values=values)
    for day in shown["days"]:
        begins_at = max(place.from_at, parse_instant(f"{day['date']}T00:00:00Z", "date"))
        day["complete"] = complete_from_at is not None and complete_from_at <= begins_at
    shown |= {
        "from_at": rfc3339(place.from_at),
        "until_at": rfc3339(place.until_at),
        "complete": following is None,
        **next_place(request, list_name, place, following),
    }
    return summary, Reply(shown)


def _start(request: Request) -> RunsCursor:
    """The start of the requested range; without one, whole days. Raises InvalidInput."""
    given = bounds(request.query)
    until_at = given.get("until_at", int(request.now) // DAY_S * DAY_S + DAY_S)
    from_at = given.get("from_at", max(0, (until_at - 1) // DAY_S * DAY_S - (_DAYS - 1) * DAY_S))
    check_length(from_at, until_at, _MAX_DAYS)
    return RunsCursor.start(request.now, from_at, until_at)


_QUERY = (
    CURSOR,
    Query("from_at", f"Only fire times at or after this; {_DAYS} days unless given.", INSTANT),
    Query("until_at", "Only fire times before this; the end of today (UTC) unless given.", INSTANT),
    Query(
        "values",
        "Show every value, so that answers can be merged exactly.",
        {"type": "boolean", "default": False},
    ),
)

ROUTES = (
    Route(
        "GET", "/v1/jobs/{job_id}/summary", "summarise_job", of_job, "read",
        "What became of a job's runs, by day", "RunSummary", query=_QUERY,
    ),
    Route(
        "GET", "/v1/summary", "summarise", of_tenant, "read",
        "What became of the runs of all jobs, by day", "RunSummary", query=_QUERY, weight=A_THOUSAND_JOBS,
    ),
)  # fmt: skip
