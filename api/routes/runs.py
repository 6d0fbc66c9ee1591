"""The routes of runs."""

from __future__ import annotations

from collections.abc import Mapping

from api.http.cursors import read_cursor, read_place, write_cursor
from api.http.ranges import INSTANT, bounds
from api.http.requests import Request
from api.http.routing import A_THOUSAND_JOBS, CURSOR, LIMIT, MAX_PAGE, PAGE, Query, Reply, Route
from api.routes.jobs import existing_id
from api.services import Services
from api.views import run_view
from common.errors import InvalidInput, NotFound
from common.history.run_lists import RunFilter
from common.history.runs_cursor import RunsCursor
from common.planning.execution import split_execution_id
from common.runs.states import DISPATCHED, FAILED, QUEUED, RETRYING, RUNNING, SKIPPED, SUCCEEDED
from common.timing.instants import DAY_S, rfc3339

STATUSES = (QUEUED, RUNNING, DISPATCHED, SUCCEEDED, FAILED, RETRYING, SKIPPED)
TRIGGERS = ("schedule", "manual", "retry", "backfill")
_LATEST = 1e11
# How far back the list of all runs goes without `from_at`.
RECENT_S = DAY_S


def of_job(services: Services, request: Request) -> Reply:
    """GET /v1/jobs/{job_id}/runs"""
    job_id = existing_id(request)
    limit = request.number("limit", PAGE, MAX_PAGE)
    wanted = _filter(request.query)
    list_name = f"runs:{job_id}:{wanted}"
    before = read_cursor(request.tenant, list_name, request.query.get("cursor"))
    page, next_place = services.run_lists.of_job(request.tenant, job_id, wanted, limit=limit, before=before)
    if not page and not before and not services.runs.of_job(request.tenant, job_id, limit=1):
        services.store.get(request.tenant, job_id)  # raises NotFound: a job without runs has an empty list
    cursor = write_cursor(request.tenant, list_name, next_place) if next_place else None
    return Reply({"runs": [run_view(item) for item in page], "next_cursor": cursor})


def of_tenant(services: Services, request: Request) -> Reply:
    """GET /v1/runs"""
    limit = request.number("limit", PAGE, MAX_PAGE)
    wanted = _filter(request.query)
    list_name = f"runs::{wanted}"
    place = read_place(request.tenant, list_name, request.query.get("cursor"), RunsCursor.of_text)
    place = place or _newest(request.now, wanted)
    page = services.tenant_runs.page(request.tenant, place, wanted, limit=limit)
    return Reply(
        {"runs": [run_view(item) for item in page.runs], **next_place(request, list_name, place, page.next)}
    )


def _newest(now: float, wanted: RunFilter) -> RunsCursor:
    until_at = wanted.until_at
    from_at = wanted.from_at
    if from_at is None:
        from_at = max(0, (int(now) if until_at is None else until_at) - RECENT_S)
    return RunsCursor.start(now, from_at, until_at)


def next_place(
    request: Request, list_name: str, place: RunsCursor, following: RunsCursor | None
) -> dict[str, str | None]:
    """The fields of an answer that describe the rest of the list: `following` is the next place, None at the end."""
    complete_from_at = following.complete_from_at if following else place.from_at
    return {
        "next_cursor": write_cursor(request.tenant, list_name, following.to_text()) if following else None,
        "complete_from_at": rfc3339(complete_from_at) if complete_from_at is not None else None,
    }


def get(services: Services, request: Request) -> Reply:
    """GET /v1/runs/{execution_id}"""
    execution_id = request.path["execution_id"]
    named = split_execution_id(execution_id)
    if named is None or named[0] != request.tenant:
        raise NotFound("run", execution_id)
    item = services.runs.named(*named)
    if item is None:
        raise NotFound("run", execution_id)
    return Reply(run_view(item))


def _filter(query: Mapping[str, str]) -> RunFilter:
    for name, accepted in (("status", STATUSES), ("trigger", TRIGGERS)):
        if name in query and query[name] not in accepted:
            raise InvalidInput(
                name, f"must be a valid {name}", value=query[name], accepted=", ".join(accepted)
            )
    return RunFilter(**bounds(query), status=query.get("status", ""), trigger=query.get("trigger", ""))


_FILTERS = (
    Query("status", "Only runs with this status.", {"type": "string", "enum": list(STATUSES)}),
    Query("trigger", "Only runs started by this.", {"type": "string", "enum": list(TRIGGERS)}),
    Query("from_at", "Only fire times at or after this.", INSTANT),
    Query("until_at", "Only fire times before this.", INSTANT),
)

ROUTES = (
    Route(
        "GET", "/v1/jobs/{job_id}/runs", "list_runs_of_job", of_job, "read", "A job's runs, newest first",
        "RunPage", query=(LIMIT, CURSOR, *_FILTERS),
    ),
    Route(
        "GET", "/v1/runs", "list_runs", of_tenant, "read", "The runs of all jobs, newest first",
        "TenantRunPage", query=(LIMIT, CURSOR, *_FILTERS), weight=A_THOUSAND_JOBS,
    ),
    Route("GET", "/v1/runs/{execution_id}", "get_run", get, "read", "Get a run with its attempts", "Run"),
)  # fmt: skip
