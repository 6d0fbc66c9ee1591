"""The routes of jobs."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass
from datetime import datetime
from http import HTTPStatus
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

import msgspec
from msgspec import structs, to_builtins

from common.clock import CpuBudget
from common.errors import InvalidInput
from common.history.expected import AsOf
from common.history.health import Health
from common.ids import check_id
from common.jobs.calendars import Calendars, MissingCalendar, RememberedCalendars
from common.jobs.delivery import DELIVERIES
from common.jobs.idempotency import IdempotencyKey
from common.jobs.job import ACTIVE, CORRUPT, DELETED, NO_PAYLOAD, PAUSED, Job, exists
from common.limits import JOB_ID_CHARS, MAX_JOBS_READ, MAX_PAGE, MAX_PAGE_BYTES
from common.planning.execution import Execution
from common.registration.job_warnings import ended_fires, job_warnings
from common.registration.registry import Registry
from common.runs.run import Run
from common.runs.states import SKIPPED
from common.tenants.tenant import TenantRules
from common.timing.excluded_days import Excluded
from common.timing.fires import due_at
from common.timing.instants import rfc3339
from minute8.api.http.paging import read_key, write_cursor
from minute8.api.http.requests import Request
from minute8.api.http.routing import CURSOR, LIMIT, PAGE, Query, Response, Routes
from minute8.api.routes.job_lists import SEARCH, search_of, searched
from minute8.api.services import Services
from minute8.api.views import coming_fires, job_view, run_view

if TYPE_CHECKING:
    from minute8.api.shapes.jobs import Pause

_MAX_FIRES = 100
_DEFAULT_FIRES = 5
_COUNT = Query(
    "count",
    "How many fire times.",
    {"type": "integer", "minimum": 1, "maximum": _MAX_FIRES, "default": _DEFAULT_FIRES},
)
PAST = Query(
    "past",
    "Accept an `at` that is past, which never fires.",
    {"type": "boolean", "default": False},
)
_DRY_RUN = Query(
    "dry_run",
    "Store nothing: the answer is the job as it would be, with `warnings` and `ends`. Quotas are not checked.",
    {"type": "boolean", "default": False},
)
_HEALTH = Query(
    "health",
    "Add the last run, the last outcomes, failures in a row and what is overdue.",
    {"type": "boolean", "default": False},
)
_MAX_FILTER_CHARS: Final = 200
FILTERS: Final = (
    Query("state", "Only jobs in this state.", {"type": "string", "enum": [ACTIVE, PAUSED]}),
    Query("tag", "Only jobs with this tag.", {"type": "string", "maxLength": _MAX_FILTER_CHARS}),
    Query(
        "name_prefix",
        "Only jobs whose id or name begins so.",
        {"type": "string", "maxLength": _MAX_FILTER_CHARS},
    ),
    Query("target", "Only jobs with this ARN or URL as target.", {"type": "string", "maxLength": 2_000}),
)
# Reading the health of further jobs counts as further requests.
HEALTHS_PER_REQUEST: Final = 50
# So many jobs' health is read before the next look at the budget of time.
_HEALTHS_AT_ONCE: Final = 25
_OUTCOME_FIELDS: Final = ("fire_at", "status", "trigger", "reason", "lateness_s", "duration_s")
_LAST_RUN_FIELDS: Final = ("execution_id", *_OUTCOME_FIELDS, "error_type", "error")

ROUTES = Routes()


@ROUTES.add(
    "POST",
    "/v1/jobs",
    "write",
    response="Job",
    status=HTTPStatus.CREATED,
    body="NewJob",
    query=(PAST,),
    idempotency_key=True,
)
def create_job(services: Services, request: Request) -> Response:
    """Create a job.

    The job fires from the next second on. Without a `job_id` one is generated. A paused job is created with `state`
    and `note`.

    With an `Idempotency-Key` a repeated request returns the job as it was created, for 24 hours. One transaction
    writes the job, its due entry and the audit. Executions that are due within the planned window are enqueued at
    once, and ten of them count as a further request. `conflict`: a calendar that the schedule names is being
    deleted. `already-exists`: a job has this id.
    """
    body = request.object()
    definition = {name: value for name, value in body.items() if name != "job_id"}
    requested_id = body.get("job_id")
    job_id = check_id("job_id", _new_id() if requested_id is None else requested_id, JOB_ID_CHARS)
    key = request.idempotency_key()
    idempotency_key = IdempotencyKey.of(request.tenant, key, body) if key else None
    job = registry_for(services, request).create(request.tenant, job_id, definition, idempotency_key)
    # The job as it was when it was created, also if the client repeats the request.
    return _job_reply(services, job, job.effective_at, HTTPStatus.CREATED)


@ROUTES.add(
    "PUT",
    "/v1/jobs/{job_id}",
    "write",
    response="Job",
    other_status=HTTPStatus.CREATED,
    body="NewJob",
    query=(PAST, _DRY_RUN),
    if_match=True,
    if_none_match=True,
)
def put_job(services: Services, request: Request) -> Response:
    """Create or replace a job.

    The whole definition is replaced; what the body leaves out gets its default. An existing job keeps its state,
    and nothing is stored if nothing changes. With `If-Match` the job is written only if that is its current
    revision, and with `If-None-Match: *` only if it does not exist yet, else `revision-mismatch`. `ends` names what
    waited and does not run by the new times; a change of the times reads the newest records for it.

    One transaction writes the job, its due entry and the audit. Ten executions that it enqueues count as a further
    request.
    """
    job_id = check_id("job_id", request.path["job_id"], JOB_ID_CHARS)
    definition = request.object()
    requested_id = definition.pop("job_id", None)
    if requested_id not in (None, job_id):
        raise InvalidInput("job_id", "is not the one in the path", value=requested_id, accepted=job_id)
    registry = registry_for(services, request)
    edit = registry.put_edit(request.tenant, job_id, definition, request.expected_revision())
    is_new = (edit.old is None or edit.old.state == DELETED) and not registry.store.is_dry
    status = HTTPStatus.CREATED if is_new else HTTPStatus.OK
    return _job_reply(services, edit.new, request.now, status, edit.old)


@ROUTES.add("GET", "/v1/jobs/{job_id}", "read", response="Job", revision=True)
def get_job(services: Services, request: Request) -> Response:
    """Get a job.

    One read of the job, and one of each calendar that it names. A deleted job is `not-found`.
    """
    return _job_reply(services, services.store.get(request.tenant, existing_id(request)), request.now)


@ROUTES.add("DELETE", "/v1/jobs/{job_id}", "write", status=HTTPStatus.NO_CONTENT, if_match=True)
def delete_job(services: Services, request: Request) -> Response:
    """Delete a job.

    The job fires no more. Executions that are in the queue are recorded as skipped; the runs stay until they
    expire. Deleting it again is `not-found`. With `If-Match` only if that is the current revision. One transaction.
    """
    services.store.delete(request.tenant, existing_id(request), request.if_match())
    return Response(status=HTTPStatus.NO_CONTENT)


@ROUTES.add(
    "PATCH",
    "/v1/jobs/{job_id}",
    "write",
    response="Job",
    body="JobPatch",
    body_type="application/merge-patch+json",
    query=(PAST, _DRY_RUN),
    if_match=True,
)
def patch_job(services: Services, request: Request) -> Response:
    """Change a part of a job.

    The body is a JSON merge patch: fields that it leaves out stay, null resets a field to its default, and objects
    are merged. The result is validated as a whole job. An unchanged job keeps its revision. One read and one
    transaction; ten executions that it enqueues count as a further request. `ends` is as for PUT.
    """
    registry = registry_for(services, request)
    edit = registry.patch(request.tenant, existing_id(request), request.object(), request.if_match())
    return _job_reply(services, edit.new, request.now, old=edit.old)


@ROUTES.add("GET", "/v1/jobs", "read", response="JobPage", query=(LIMIT, CURSOR, *FILTERS, *SEARCH, _HEALTH))
def list_jobs(services: Services, request: Request) -> Response:
    """List jobs.

    Jobs with their definitions, in the order of their ids or by `sort`. A page ends at `limit`, at 1 MiB, and after
    1.5 s of work. Conditions and orders use a directory of the tenant's jobs, and `matched` says how many it has for
    them. The first such request makes it: `busy` until it is done, some 10,000 jobs a request.

    With `health=true`, 50 jobs count as a further request. Outcomes but the last run have no seconds then. They begin
    with what ticks wrote down up to a week before somebody first asked; a job without any there is asked itself.
    """
    limit = request.number("limit", PAGE, MAX_PAGE)
    search = search_of(
        request.query,
        asdict(JobFilter.of(request.query)),
        failing=request.flag("failing"),
        not_running=request.flag("not_running"),
    )
    list_name = search.list_name if search else JobFilter().list_name
    matched: int | None = None
    stored: Iterator[tuple[Any, Job]]
    if search:
        matched, stored = searched(services, request, search)
    else:
        stored = _all_jobs(services, request, list_name, limit)
    calendars = _calendars(services)
    page: list[dict[str, Any]] = []
    jobs: list[Job] = []
    places: list[Any] = []
    corrupt: list[dict[str, str]] = []
    size, cursor = 0, None
    last: Any = None
    budget = CpuBudget()
    for seen, (place, job) in enumerate(stored):
        full = len(page) == limit or size >= MAX_PAGE_BYTES
        # Many may not match. So a page can be empty and have a next one.
        if seen == MAX_JOBS_READ or (full and exists(job)) or (seen and budget.is_spent):
            cursor = write_cursor(request.tenant, list_name, last)
            break
        if exists(job):
            jobs.append(job)
            unread = structs.replace(job, payload=NO_PAYLOAD)
            page.append(job_view(unread, request.now, _excluded(calendars, job)))
            size += len(msgspec.json.encode(page[-1])) + job.payload.bytes
            places.append(place)
        elif job.state == CORRUPT:
            corrupt.append({"job_id": job.job_id, "problem": job.note})
        last = place
    about: dict[str, Any] = {"suspended": services.is_suspended(request.tenant, request.now)}
    if request.flag("health"):
        counted = services.store.failures.counted(jobs)
        of_jobs = health_of_jobs(services, request.tenant, request.now, counted, calendars, budget)
        about["health"] = of_jobs
        if len(of_jobs) < len(jobs):
            jobs, page = jobs[: len(of_jobs)], page[: len(of_jobs)]
            cursor = write_cursor(request.tenant, list_name, places[len(jobs) - 1])
    page = _with_payloads(services, page, jobs, corrupt)
    return Response({"jobs": page, **about, "corrupt": corrupt, "matched": matched, "next_cursor": cursor})


def _with_payloads(
    services: Services, page: list[dict[str, Any]], jobs: Sequence[Job], corrupt: list[dict[str, str]]
) -> list[dict[str, Any]]:
    """The views of jobs with their payloads. `corrupt` gets the jobs whose payloads somebody has deleted."""
    views: list[dict[str, Any]] = []
    for view, job in zip(page, services.store.texts.with_stored_payloads(jobs), strict=True):
        if job:
            views.append({**view, "payload": job.payload.value})
        else:
            corrupt.append({"job_id": view["job_id"], "problem": "its payload is not stored"})
    return views


def _all_jobs(services: Services, request: Request, list_name: str, limit: int) -> Iterator[tuple[str, Job]]:
    after = read_key(request.tenant, list_name, request.query.get("cursor"))
    stored = services.store.read_on(request.tenant, after, MAX_JOBS_READ + 1, page=limit + 1)
    return ((job.job_id, job) for job in stored)


@ROUTES.add("GET", "/v1/targets", "read", response="TargetList")
def list_targets(services: Services, request: Request) -> Response:
    """List the kinds of target.

    How often each kind is called for an execution, and by which key a repetition is known. The list is constant.
    """
    return Response({"targets": to_builtins(DELIVERIES)})


@ROUTES.add("GET", "/v1/jobs/{job_id}/health", "read", response="JobHealth")
def job_health(services: Services, request: Request) -> Response:
    """A job's last runs, failures in a row, and whether it is overdue.

    The last run, the newest 20 outcomes, the number of failures since one succeeded, and the earliest due instant
    that has no run. One query of runs.
    """
    job = services.store.get(request.tenant, existing_id(request))
    budget = CpuBudget()
    health = health_of_jobs(services, request.tenant, request.now, [job], _calendars(services), budget)
    return Response(health[job.job_id])


@ROUTES.add(
    "POST",
    "/v1/jobs/{job_id}/pause",
    "write",
    response="Job",
    body_optional=True,
    if_match=True,
)
def pause_job(services: Services, request: Request, body: Pause) -> Response:
    """Pause a job.

    The job fires no more until it is resumed, and what is in the queue is skipped. Pausing a paused job changes its
    note. A run by hand still starts. One read and one transaction.
    """
    job = services.store.pause(request.tenant, existing_id(request), body.note, request.if_match())
    return _job_reply(services, job, request.now)


@ROUTES.add("POST", "/v1/jobs/{job_id}/resume", "write", response="Job", if_match=True)
def resume_job(services: Services, request: Request) -> Response:
    """Resume a job.

    The job fires again from the next second on. What it would have done meanwhile does not run. An active job stays
    as it is. One read and one transaction; ten executions that it enqueues count as a further request.
    """
    request.no_fields()
    job = services.store.resume(request.tenant, existing_id(request), request.if_match())
    return _job_reply(services, job, request.now)


@ROUTES.add("GET", "/v1/jobs/{job_id}/next", "read", response="Fires", query=(_COUNT,))
def next_fires(services: Services, request: Request) -> Response:
    """When a job fires next.

    The next fire times with spread, jitter and local time; each says whether it was cancelled beforehand. A paused
    job has none. One read of the job, one of each calendar, and one of each fire time.
    """
    count = request.number("count", _DEFAULT_FIRES, _MAX_FIRES)
    job = services.store.get(request.tenant, existing_id(request))
    times = coming_fires(job, request.now, count, _excluded(_calendars(services), job))
    executions = [Execution(job.tenant, job.job_id, at, at, job.schedule_revision) for at in times]
    runs = services.runs.of_executions(executions)
    skipped = {name for name, run in runs.items() if run.status == SKIPPED}
    zone = ZoneInfo(job.schedule.timezone)
    fires = [
        {
            "fire_at": rfc3339(at),
            "due_at": rfc3339(due_at(job.schedule, job.key, at)),
            "local": datetime.fromtimestamp(at, zone).isoformat(),
            "skipped": execution.run_name in skipped,
        }
        for at, execution in zip(times, executions, strict=True)
    ]
    return Response({"job_id": job.job_id, "state": job.state, "timezone": zone.key, "fires": fires})


def registry_for(services: Services, request: Request) -> Registry:
    """The registry; with `past=true` it takes one-offs whose `at` is past, with `dry_run=true` it stores nothing."""
    registry = services.registry.accepting_past() if request.flag("past") else services.registry
    return registry.only_deciding() if request.flag("dry_run") else registry


def _calendars(services: Services) -> RememberedCalendars:
    """Calendars that are read once per answer, even if many of its jobs name them."""
    return RememberedCalendars(Calendars(services.store.jobs))


def _excluded(calendars: RememberedCalendars, job: Job) -> Excluded:
    try:
        return calendars.excluded(job.tenant, job.schedule)
    except MissingCalendar:
        return frozenset()


def existing_id(request: Request) -> str:
    """The job id in the path. Raises NotFound if the text cannot be an id."""
    return request.path_id("job_id", "job", JOB_ID_CHARS)


def _job_reply(
    services: Services, job: Job, now: float, status: HTTPStatus = HTTPStatus.OK, old: Job | None = None
) -> Response:
    """The job with warnings, and with what of the `old` one its edit ends."""
    headers = {"ETag": f'"{job.revision}"'}
    if status == HTTPStatus.CREATED:
        headers["Location"] = f"/v1/jobs/{job.job_id}"
    ends = ended_fires(services.store.jobs, services.runs, old, job, now)
    if job.payload.text is None:  # a dry run has it in memory
        (job,) = services.store.texts.with_payloads([job])
    view, warnings = job_view(job, now, _excluded(_calendars(services), job)), list(job_warnings(job))
    added = {"warnings": warnings, "ends": to_builtins(ends)}
    return Response(view | {name: value for name, value in added.items() if value}, status, headers)


def _new_id() -> str:
    return f"job-{secrets.token_hex(8)}"


@dataclass(frozen=True, slots=True)
class JobFilter:
    """The conditions that a listed job must meet; an empty field sets none."""

    state: str = ""
    tag: str = ""
    name_prefix: str = ""
    target: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> JobFilter:
        """Raises InvalidInput."""
        texts = {parameter.name: query.get(parameter.name, "") for parameter in FILTERS}
        for parameter in FILTERS:
            value = texts[parameter.name]
            if len(value) > parameter.schema.get("maxLength", _MAX_FILTER_CHARS):
                raise InvalidInput(parameter.name, "is too long", value=value, accepted="a shorter text")
            if parameter.name in query and not value:
                raise InvalidInput(parameter.name, "is empty", accepted="a text, or no such parameter")
        if texts["state"] not in ("", ACTIVE, PAUSED):
            raise InvalidInput(
                "state", "must be a state", value=texts["state"], accepted=f"{ACTIVE}, {PAUSED}"
            )
        return cls(**texts)

    @property
    def list_name(self) -> str:
        """The name of the filtered list, to which a cursor is bound."""
        return f"jobs:{astuple(self)!r}"

    def matches(self, job: Job) -> bool:
        """Whether the job exists and meets all conditions."""
        return (
            exists(job)
            and self.state in ("", job.state)
            and (not self.tag or self.tag in job.spec.tags)
            and any(text.startswith(self.name_prefix) for text in (job.job_id, job.spec.name))
            and self.target in ("", job.spec.target.get("arn"), job.spec.target.get("url"))
        )


def health_of_jobs(
    services: Services,
    tenant: str,
    now: float,
    jobs: Sequence[Job],
    calendars: RememberedCalendars,
    budget: CpuBudget,
) -> dict[str, dict[str, Any]]:
    """The health of each job by its id, or of the first ones that there is time for.

    Several jobs are asked together, and a job by a query of its own if what ticks wrote down does not tell.
    """
    services.count_as(tenant, now, len(jobs) // HEALTHS_PER_REQUEST + 1)
    progress = services.store.index.progress()
    as_of = AsOf(now, progress.surely_until if progress else -math.inf, -math.inf)
    health_of: dict[str, Health] = {}
    if len(jobs) > 1:
        rules = services.known_tenants.rules(tenant, now) or TenantRules()
        health_of = services.listed_health.of_jobs(tenant, jobs, as_of, calendars, rules.retention_days)
    remaining = [job for job in jobs if job.job_id not in health_of]
    for first in range(0, len(remaining), _HEALTHS_AT_ONCE):
        if first and budget.is_spent:
            break
        together = remaining[first : first + _HEALTHS_AT_ONCE]
        health_of |= services.health.of_jobs(together, as_of, calendars)
    first_ones = [job.job_id for job in takewhile(lambda job: job.job_id in health_of, jobs)]
    health_of = {job_id: health_of[job_id] for job_id in first_ones}
    last_of = _last_runs(services, health_of.values(), now)
    return {job_id: _health_view(health, last_of.get(job_id)) for job_id, health in health_of.items()}


def _last_runs(services: Services, healths: Iterable[Health], now: float) -> dict[str, dict[str, Any]]:
    """The view of the last run of each job, by the job's id."""
    last_runs = services.health.with_errors([health.outcomes[0] for health in healths if health.outcomes])
    return {run.job_id: run_view(run, now) for run in last_runs}


def _health_view(health: Health, last: dict[str, Any] | None) -> dict[str, Any]:
    overdue = health.overdue
    return {
        "last_run": last and {name: last[name] for name in _LAST_RUN_FIELDS if name in last},
        "outcomes": [_outcome_view(run) for run in health.outcomes],
        "failures_in_row": health.failures_in_row,
        "not_running": health.not_running or None,
        "overdue": None
        if overdue is None
        else {
            "fire_at": rfc3339(overdue.fire_at),
            "due_at": rfc3339(overdue.due_at),
            "late_s": round(overdue.late_s or 0.0, 3),
            "detail": overdue.detail,
        },
    }


def _outcome_view(run: Run) -> dict[str, Any]:
    view = {name: getattr(run, name) for name in _OUTCOME_FIELDS}
    return {name: value for name, value in view.items() if value not in (None, "")} | {
        "fire_at": rfc3339(run.fire_at)
    }
