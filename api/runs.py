"""The routes of runs."""

from __future__ import annotations

from api.cursors import read_cursor, write_cursor
from api.jobs import existing_id
from api.requests import Request
from api.routing import CURSOR, LIMIT, LONGEST_PAGE, PAGE, Reply, Route
from api.services import Services
from api.views import read_execution_id, run_view
from common.errors import NotFound


def of_job(services: Services, request: Request) -> Reply:
    """GET /v1/jobs/{job_id}/runs"""
    job_id = existing_id(request)
    limit = request.number("limit", PAGE, LONGEST_PAGE)
    list_name = f"runs:{job_id}"
    before = read_cursor(request.tenant, list_name, request.query.get("cursor"))
    found = services.runs.of_job(request.tenant, job_id, limit=limit + 1, before_run_name=before)
    if not found and not before:
        services.registry.get(request.tenant, job_id)  # tells a job without runs from no job
    page = found[:limit]
    cursor = write_cursor(request.tenant, list_name, page[-1]["sk"]) if len(found) > limit else None
    return Reply({"runs": [run_view(item) for item in page], "next_cursor": cursor})


def get(services: Services, request: Request) -> Reply:
    """GET /v1/runs/{execution_id}"""
    execution_id = request.path["execution_id"]
    named = read_execution_id(execution_id)
    if named is None or named[0] != request.tenant:
        raise NotFound("run", execution_id)
    item = services.runs.named(*named)
    if item is None:
        raise NotFound("run", execution_id)
    return Reply(run_view(item))


ROUTES = (
    Route(
        "GET", "/v1/jobs/{job_id}/runs", "list_runs_of_job", of_job, "read", "A job's runs, newest first",
        "RunPage", query=(LIMIT, CURSOR),
    ),
    Route("GET", "/v1/runs/{execution_id}", "get_run", get, "read", "Get a run with its attempts", "Run"),
)  # fmt: skip
