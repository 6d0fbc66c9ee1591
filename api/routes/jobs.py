"""The routes of jobs."""

from __future__ import annotations

import json
import secrets
from collections.abc import Container
from datetime import datetime
from http import HTTPStatus
from typing import Any
from zoneinfo import ZoneInfo

from api.http.cursors import read_cursor, write_cursor
from api.http.job_filter import FILTERS, MAX_SEEN, JobFilter
from api.http.requests import Request
from api.http.routing import CURSOR, LIMIT, MAX_PAGE, MAX_PAGE_BYTES, PAGE, Query, Reply, Route
from api.job_health import health_of_jobs
from api.services import Services
from api.views import coming_fires, job_view
from common.errors import InvalidInput, NotFound
from common.ids import JOB_ID_CHARS, check_id
from common.jobs.calendars import Calendars, MissingCalendar, RememberedCalendars
from common.jobs.idempotency import IdempotencyKey
from common.jobs.job import Job
from common.planning.execution import Execution
from common.registration.registry import Registry
from common.runs.states import SKIPPED
from common.timing.fires import due_at
from common.timing.instants import rfc3339
from common.timing.schedule import CronTiming

_MAX_FIRES = 100
_FIRES = 5


def create(services: Services, request: Request) -> Reply:
    """POST /v1/jobs"""
    body = request.object()
    definition = {name: value for name, value in body.items() if name != "job_id"}
    named = body.get("job_id")
    job_id = check_id("job_id", _new_id() if named is None else named, JOB_ID_CHARS)
    key = request.idempotency_key()
    idempotency_key = IdempotencyKey.of(request.tenant, key, body) if key else None
    job = registry_for(services, request).create(request.tenant, job_id, definition, idempotency_key)
    # The job as it was when it was created, also if the client repeats the request.
    return _job_reply(services, job, job.effective_at, HTTPStatus.CREATED)


def put(services: Services, request: Request) -> Reply:
    """PUT /v1/jobs/{job_id}"""
    job_id = check_id("job_id", request.path["job_id"], JOB_ID_CHARS)
    definition = request.object()
    named = definition.pop("job_id", None)
    if named not in (None, job_id):
        raise InvalidInput("job_id", "is not the one in the path", value=named, accepted=job_id)
    existed = _exists(services, request.tenant, job_id)
    job = registry_for(services, request).put(request.tenant, job_id, definition, request.if_match())
    return _job_reply(services, job, request.now, HTTPStatus.OK if existed else HTTPStatus.CREATED)


def get(services: Services, request: Request) -> Reply:
    """GET /v1/jobs/{job_id}"""
    return _job_reply(services, services.store.get(request.tenant, existing_id(request)), request.now)


def delete(services: Services, request: Request) -> Reply:
    """DELETE /v1/jobs/{job_id}"""
    services.store.delete(request.tenant, existing_id(request), request.if_match())
    return Reply(status=HTTPStatus.NO_CONTENT)


def patch(services: Services, request: Request) -> Reply:
    """PATCH /v1/jobs/{job_id}"""
    changes = request.object(also="application/merge-patch+json")
    registry = registry_for(services, request)
    job = registry.patch(request.tenant, existing_id(request), changes, request.if_match())
    return _job_reply(services, job, request.now)


def list_page(services: Services, request: Request) -> Reply:
    """GET /v1/jobs"""
    limit = request.number("limit", PAGE, MAX_PAGE)
    wanted = JobFilter.of(request.query)
    after = read_cursor(request.tenant, wanted.list_name, request.query.get("cursor"))
    calendars = _calendars(services)
    page: list[dict[str, Any]] = []
    jobs: list[Job] = []
    size, last, cursor = 0, after, None
    # Few jobs may match, and many may be deleted. A page reads at most MAX_SEEN, so it can be empty and have a next.
    at_once = limit + 1 if wanted == JobFilter() else None
    found = services.store.list_jobs(request.tenant, after, MAX_SEEN + 1, page=at_once, deleted=True)
    for seen, job in enumerate(found):
        full = len(page) == limit or size >= MAX_PAGE_BYTES
        if seen == MAX_SEEN or (full and wanted.takes(job)):
            cursor = write_cursor(request.tenant, wanted.list_name, last)
            break
        if wanted.takes(job):
            jobs.append(job)
            page.append(job_view(job, request.now, _excluded(calendars, job)))
            size += len(json.dumps(page[-1], ensure_ascii=False).encode())
        last = job.job_id
    health = {}
    if request.flag("health"):
        health = {"health": health_of_jobs(services, request.tenant, request.now, jobs, calendars)}
    return Reply({"jobs": page, **health, "next_cursor": cursor})


def health(services: Services, request: Request) -> Reply:
    """GET /v1/jobs/{job_id}/health"""
    job = services.store.get(request.tenant, existing_id(request))
    found = health_of_jobs(services, request.tenant, request.now, [job], _calendars(services))
    return Reply(found[job.job_id])


def pause(services: Services, request: Request) -> Reply:
    """POST /v1/jobs/{job_id}/pause"""
    note = request.note()
    job = services.store.pause(request.tenant, existing_id(request), note, request.if_match())
    return _job_reply(services, job, request.now)


def resume(services: Services, request: Request) -> Reply:
    """POST /v1/jobs/{job_id}/resume"""
    request.fields(optional=True)
    job = services.store.resume(request.tenant, existing_id(request), request.if_match())
    return _job_reply(services, job, request.now)


def next_fires(services: Services, request: Request) -> Reply:
    """GET /v1/jobs/{job_id}/next"""
    count = request.number("count", _FIRES, _MAX_FIRES)
    job = services.store.get(request.tenant, existing_id(request))
    timing = job.schedule.timing
    times = coming_fires(job, request.now, count, _excluded(_calendars(services), job))
    executions = [Execution(job.tenant, job.job_id, at, at, job.schedule_revision) for at in times]
    records = services.runs.found(executions)
    zone = ZoneInfo(timing.timezone if isinstance(timing, CronTiming) else "UTC")
    fires = [
        {
            "fire_at": rfc3339(at),
            "due_at": rfc3339(due_at(job.schedule, job.key, at)),
            "local": datetime.fromtimestamp(at, zone).isoformat(),
            "skipped": records.get(execution.run_name, {}).get("status") == SKIPPED,
        }
        for at, execution in zip(times, executions, strict=True)
    ]
    return Reply({"job_id": job.job_id, "state": job.state, "timezone": zone.key, "fires": fires})


def registry_for(services: Services, request: Request) -> Registry:
    """The registry; with `past=true` it takes one-offs whose `at` is past."""
    return services.registry.accepting_past() if request.flag("past") else services.registry


def _calendars(services: Services) -> RememberedCalendars:
    """Calendars that are read once per answer, even if many of its jobs name them."""
    return RememberedCalendars(Calendars(services.store.jobs))


def _excluded(calendars: RememberedCalendars, job: Job) -> Container[str]:
    try:
        return calendars.excluded(job.tenant, job.schedule.calendars)
    except MissingCalendar:
        return frozenset()


def existing_id(request: Request) -> str:
    """The job id in the path. Raises NotFound if the text cannot be an id."""
    return request.path_id("job_id", "job", JOB_ID_CHARS)


def _exists(services: Services, tenant: str, job_id: str) -> bool:
    try:
        services.store.get(tenant, job_id)
    except NotFound:
        return False
    return True


def _job_reply(services: Services, job: Job, now: float, status: HTTPStatus = HTTPStatus.OK) -> Reply:
    headers = {"ETag": f'"{job.revision}"'}
    if status == HTTPStatus.CREATED:
        headers["Location"] = f"/v1/jobs/{job.job_id}"
    return Reply(job_view(job, now, _excluded(_calendars(services), job)), status, headers)


def _new_id() -> str:
    return f"job-{secrets.token_hex(8)}"


_COUNT = Query(
    "count",
    "How many fire times.",
    {"type": "integer", "minimum": 1, "maximum": _MAX_FIRES, "default": _FIRES},
)

PAST = Query(
    "past",
    "Accept an `at` that is past, which never fires.",
    {"type": "boolean", "default": False},
)

_HEALTH = Query(
    "health",
    "Add the last run, the last outcomes, failures in a row and what is overdue.",
    {"type": "boolean", "default": False},
)

ROUTES = (
    Route(
        "GET", "/v1/jobs", "list_jobs", list_page, "read", "List jobs", "JobPage",
        query=(LIMIT, CURSOR, *FILTERS, _HEALTH),
    ),
    Route(
        "GET", "/v1/jobs/{job_id}/health", "job_health", health, "read",
        "A job's last runs, failures in a row, and whether it is overdue", "JobHealth",
    ),
    Route(
        "POST", "/v1/jobs", "create_job", create, "write", "Create a job", "Job",
        HTTPStatus.CREATED, takes="NewJob", takes_key=True, query=(PAST,),
    ),
    Route("GET", "/v1/jobs/{job_id}", "get_job", get, "read", "Get a job", "Job"),
    Route(
        "PUT", "/v1/jobs/{job_id}", "put_job", put, "write", "Create or replace a job", "Job",
        also=HTTPStatus.CREATED, takes="NewJob", if_match=True, query=(PAST,),
    ),
    Route(
        "PATCH", "/v1/jobs/{job_id}", "patch_job", patch, "write", "Change a part of a job", "Job",
        takes="JobPatch", takes_type="application/merge-patch+json", if_match=True, query=(PAST,),
    ),
    Route(
        "DELETE", "/v1/jobs/{job_id}", "delete_job", delete, "write", "Delete a job", "",
        HTTPStatus.NO_CONTENT, if_match=True,
    ),
    Route(
        "POST", "/v1/jobs/{job_id}/pause", "pause_job", pause, "write", "Pause a job", "Job",
        takes="Pause", body_optional=True, if_match=True,
    ),
    Route(
        "POST", "/v1/jobs/{job_id}/resume", "resume_job", resume, "write", "Resume a job", "Job",
        if_match=True,
    ),
    Route(
        "GET", "/v1/jobs/{job_id}/next", "next_fires", next_fires, "read", "When a job fires next", "Fires",
        query=(_COUNT,),
    ),
)  # fmt: skip
