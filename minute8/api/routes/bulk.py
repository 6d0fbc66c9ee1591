"""The routes for many jobs at once: create or replace them, and export all."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from common.errors import Busy, InvalidInput, Minute8Error
from common.history.failed_runs import FailureFilter, FailureGroup, position_of
from common.history.runs_by_time import RunFilter, TimeRange
from common.jobs.job import CORRUPT, Job, existing, exists
from common.limits import (
    BODY_BYTES,
    BULK_BYTES,
    BULK_LINES,
    BULK_WRITES_S,
    CHANGES_S,
    MAX_CHANGED,
    MAX_JOBS_READ,
    MAX_PAGE_BYTES,
)
from common.registration import bulk
from common.runs.states import RETRYING
from common.storage.bounded import FailurePosition
from common.timing.instants import DAY_S
from minute8.api.http.paging import check_order, read_cursor, read_key, write_cursor
from minute8.api.http.problems import line_view, problem_of
from minute8.api.http.requests import Request
from minute8.api.http.routing import A_THOUSAND_JOBS, CURSOR, NDJSON, Query, Response, Routes
from minute8.api.routes.failures import check_failure
from minute8.api.routes.jobs import FILTERS, PAST, JobFilter, registry_for
from minute8.api.routes.runs import RECENT_S, check_range_of_runs
from minute8.api.services import Services
from minute8.api.views import job_line

if TYPE_CHECKING:
    from minute8.api.shapes.bulk import CancelRuns, ManyJobs, PauseJobs, RetryRuns, RunJobs

# The lines that count as one request, where that is more than the route's own weight.
_LINES_A_REQUEST: Final = 10
_EXPORT: Final = "export"
_WITH_SCHEDULES: Final = Query(
    "eventbridge",
    "Add to each job that is an EventBridge schedule what its API would return.",
    {"type": "boolean", "default": False},
)
_BULK_FLAGS = (
    Query("atomic", "Store nothing unless every line can be.", {"type": "boolean", "default": False}),
    Query("dry_run", "Tell what would change, and store nothing.", {"type": "boolean", "default": False}),
    PAST,
)
_ERROR_FIELDS: Final = ("error_type", "fingerprint")
_JOB_CONDITIONS: Final = (*(query.name for query in FILTERS), *_ERROR_FIELDS)
# How far back the error filter looks: as far as the groups of failures.
SINCE_S: Final = 7 * DAY_S
# How many jobs are in memory at a time, with payloads of up to 128 KB.
_LOADED_AT_ONCE: Final = 25

ROUTES = Routes()


@ROUTES.add(
    "POST",
    "/v1/jobs/_bulk",
    "write",
    response="BulkResult",
    body="BulkJob",
    body_type=NDJSON,
    query=_BULK_FLAGS,
    if_none_match=True,
    weight=A_THOUSAND_JOBS,
    max_body_bytes=BULK_BYTES,
)
def put_jobs(services: Services, request: Request) -> Response:
    """Create and replace many jobs.

    The body is NDJSON with a job on each line, or a JSON array of the same jobs: up to 1,000 jobs and 4 MiB. Each
    job has its `job_id`. A job that equals its line stays as it is. An id on two lines is refused on both. With
    `If-None-Match: *` a line that would replace a job is refused as `revision-mismatch`.

    The response has a result for each line; a refused line does not stop the others. With `atomic=true` nothing is
    stored unless every line can be: else `bulk-refused`. `unfinished` says that a part is stored; the same request
    again finishes it. Writing ends after 18 s, and the lines after that are refused as `busy`.

    It counts as a tenth of its lines if that is more, and as half of the tenant's `requests_per_minute` at most.
    """
    dry_run = request.flag("dry_run")
    lines = request.lines(BULK_LINES, BODY_BYTES)
    services.count_as(request.tenant, request.now, len(lines) // _LINES_A_REQUEST, A_THOUSAND_JOBS)
    outcomes = bulk.put_all(
        registry_for(services, request),
        request.tenant,
        lines,
        until=request.now + BULK_WRITES_S,
        atomic=request.flag("atomic"),
        dry_run=dry_run,
        only_new=request.only_new(),
    )
    counts = Counter(outcome.result for outcome in outcomes)
    return Response(
        {
            "dry_run": dry_run,
            **{result: counts[result] for result in bulk.RESULTS},
            "results": [line_view(outcome) for outcome in outcomes],
        }
    )


@ROUTES.add(
    "GET",
    "/v1/jobs/_export",
    "read",
    response="ExportedJob",
    response_type=NDJSON,
    query=(CURSOR, _WITH_SCHEDULES),
)
def export_jobs(services: Services, request: Request) -> Response:
    """All jobs as they can be put again.

    Each line is a job as `POST /v1/jobs/_bulk` takes it, in the order of the ids. A page has up to 1,000 jobs or
    about 1 MiB; the `Link` header leads to the next one. It reads each job once.
    """
    line = partial(_line, services, with_schedule=request.flag(_WITH_SCHEDULES.name))
    after = read_key(request.tenant, _EXPORT, request.query.get("cursor"))
    lines: list[str] = []
    large: dict[int, Job] = {}
    size, last, headers = 0, after, {}
    stored = services.store.read_on(request.tenant, after, BULK_LINES + 1)
    for seen, job in enumerate(stored):
        if seen == BULK_LINES or size >= MAX_PAGE_BYTES:
            # A relative link: the function does not know its own address if it runs after a gateway.
            more = f"&{_WITH_SCHEDULES.name}=true" if request.flag(_WITH_SCHEDULES.name) else ""
            headers["Link"] = f'<?cursor={write_cursor(request.tenant, _EXPORT, last)}{more}>; rel="next"'
            break
        if exists(job):
            if job.payload.is_large:
                large[len(lines)] = job
                size += job.payload.bytes
            lines.append("" if job.payload.is_large else line(job))
            size += len(lines[-1].encode())
        elif job.state == CORRUPT:
            existing(job, job.job_id, None)  # says so: an export never leaves a job out
        last = job.job_id
    for number, job in zip(large, services.store.texts.with_payloads(list(large.values())), strict=True):
        lines[number] = line(job)
    return Response("".join(lines), headers=headers, content_type=NDJSON)


def _line(services: Services, job: Job, with_schedule: bool) -> str:
    line, imports = job_line(job), services.registry.imports
    if with_schedule and (schedule := imports.resource_of(services.store, job)):
        line[imports.field] = schedule
    return msgspec.json.encode(line).decode() + "\n"


@dataclass(slots=True)
class _Done:
    """What a request did so far."""

    dry_run: bool
    ids: list[str] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)

    def reply(self, next_cursor: str | None) -> Response:
        return Response(
            {
                "dry_run": self.dry_run,
                "matched": len(self.ids),
                "done": 0 if self.dry_run else len(self.ids) - len(self.refused),
                "ids": self.ids,
                "refused": self.refused,
                "next_cursor": next_cursor,
            }
        )

    def is_full(self) -> bool:
        return not self.dry_run and len(self.ids) == MAX_CHANGED

    def act(self, name: str, act: Callable[[], object]) -> bool:
        """Do it to one; False if the request must stop before it. Raises Busy if nothing was done."""
        if not self.dry_run:
            try:
                act()
            except Busy:
                if not self.ids:
                    raise
                return False
            except Minute8Error as error:
                problem = problem_of(error, "").body
                self.refused.append({"id": name, **{key: problem[key] for key in ("type", "detail")}})
        self.ids.append(name)
        return True


@ROUTES.add(
    "POST",
    "/v1/jobs/_all/pause",
    "write",
    response="ManyDone",
    body_optional=True,
    weight=A_THOUSAND_JOBS,
)
def pause_jobs(services: Services, request: Request, body: PauseJobs) -> Response:
    """Pause the jobs that a filter takes.

    All conditions of the body must hold; `all` takes every job. A request pauses up to 100 jobs within 18 s, each
    in a transaction of its own. A refusal of one job stops no other. Send the same body with `next_cursor` as
    `cursor` until it is null. `dry_run` counts and names the jobs only.

    A request reads up to 2,000 jobs.
    """
    return _jobs(
        services, request, body, lambda job_id: services.store.pause(request.tenant, job_id, body.note)
    )


@ROUTES.add(
    "POST",
    "/v1/jobs/_all/resume",
    "write",
    response="ManyDone",
    body_optional=True,
    weight=A_THOUSAND_JOBS,
)
def resume_jobs(services: Services, request: Request, body: ManyJobs) -> Response:
    """Resume the jobs that a filter takes.

    As `POST /v1/jobs/_all/pause`: the jobs fire again from the next second on, and what they missed does not run.
    """
    return _jobs(services, request, body, lambda job_id: services.store.resume(request.tenant, job_id))


@ROUTES.add(
    "POST",
    "/v1/jobs/_all/run",
    "write",
    response="ManyDone",
    body_optional=True,
    weight=A_THOUSAND_JOBS,
)
def run_jobs(services: Services, request: Request, body: RunJobs) -> Response:
    """Run the jobs that a filter takes now.

    As `POST /v1/jobs/_all/pause`: each job is started once for a `nonce`, also if it is paused. Send a `nonce` of
    your own, so that the request can be repeated. Without `dry_run` it counts as 100 requests.
    """
    nonce = body.nonce or secrets.token_hex(6)
    if not body.dry_run:
        services.count_as(request.tenant, request.now, MAX_CHANGED, A_THOUSAND_JOBS)
    return _jobs(
        services, request, body, lambda job_id: services.manual.run_now(request.tenant, job_id, nonce)
    )


@ROUTES.add(
    "POST",
    "/v1/jobs/_all/delete",
    "write",
    response="ManyDone",
    body_optional=True,
    weight=A_THOUSAND_JOBS,
)
def delete_jobs(services: Services, request: Request, body: ManyJobs) -> Response:
    """Delete the jobs that a filter takes.

    As `POST /v1/jobs/_all/pause`. A deleted job is gone: `GET /v1/jobs/_export` beforehand keeps the definitions.
    """
    return _jobs(services, request, body, lambda job_id: services.store.delete(request.tenant, job_id))


def _jobs(services: Services, request: Request, body: ManyJobs, act: Callable[[str], object]) -> Response:
    job_filter = _job_filter(body)
    if body.error_type or body.fingerprint:
        return _failing_jobs(services, request, body, job_filter, act)
    if job_filter == JobFilter() and not body.all:
        raise InvalidInput(
            "all", "no filter is given", accepted=f'"all": true for all jobs, or {", ".join(_JOB_CONDITIONS)}'
        )
    list_name = f"many:{request.path}:{job_filter.list_name}"
    last = read_key(request.tenant, list_name, body.cursor)
    done, ends_at = _Done(body.dry_run), request.now + CHANGES_S
    stored = services.store.read_on(request.tenant, last, MAX_JOBS_READ + 1)
    for seen, job in enumerate(stored):
        if seen == MAX_JOBS_READ:
            return done.reply(write_cursor(request.tenant, list_name, last))
        if job_filter.matches(job):
            late = not body.dry_run and services.clock.now() >= ends_at
            if done.is_full() or late:
                return done.reply(write_cursor(request.tenant, list_name, last))
            if not done.act(job.job_id, partial(act, job.job_id)):
                return done.reply(write_cursor(request.tenant, list_name, last or None))
        last = job.job_id
    return done.reply(None)


def _job_filter(body: ManyJobs) -> JobFilter:
    return JobFilter(body.state or "", body.tag or "", body.name_prefix or "", body.target or "")


def _failing_jobs(
    services: Services,
    request: Request,
    body: ManyJobs,
    job_filter: JobFilter,
    act: Callable[[str], object],
) -> Response:
    """The same for jobs that failed with an error. One with failures on two pages is taken twice: it changes once."""
    error = {"error_type": body.error_type or "", "fingerprint": body.fingerprint or ""}
    list_name = f"many:{request.path}:{job_filter.list_name}:{error}"
    before = read_cursor(request.tenant, list_name, body.cursor, FailurePosition, check_failure)
    failed = FailureFilter(
        from_at=max(0, int(request.now) - SINCE_S),
        error_type=error["error_type"],
        fingerprint=error["fingerprint"],
    )
    groups, following = services.failed_runs.groups(request.tenant, failed, before)
    done, ends_at = _Done(body.dry_run), request.now + CHANGES_S
    for job, at in failing_jobs(services, request.tenant, groups, job_filter):
        late = not body.dry_run and bool(done.ids) and services.clock.now() >= ends_at
        if done.is_full() or late or not done.act(job.job_id, partial(act, job.job_id)):
            following = before
            break
        before = at
    return done.reply(write_cursor(request.tenant, list_name, following))


@ROUTES.add(
    "POST",
    "/v1/runs/_all/retry",
    "write",
    response="ManyDone",
    body_optional=True,
    weight=A_THOUSAND_JOBS,
)
def retry_runs(services: Services, request: Request, body: RetryRuns) -> Response:
    """Try failed runs of a span once more.

    Each run that failed in the range gets one more attempt, 100 in a request. `not-found` and `conflict` of one run
    are listed and stop no other. Without `dry_run` it counts as 100 requests. Send the same body with `next_cursor`
    as `cursor` until it is null.
    """
    check_order(body.from_at, body.until_at)
    failure_filter = FailureFilter(
        from_at=body.from_at,
        until_at=body.until_at or 0,
        job_id=body.job_id or "",
        tag=body.tag or "",
        error_type=body.error_type or "",
        fingerprint=body.fingerprint or "",
    )
    list_name = f"many failures:{failure_filter}"
    before = read_cursor(request.tenant, list_name, body.cursor, FailurePosition, check_failure)
    done = _Done(body.dry_run)
    if not done.dry_run:
        services.count_as(request.tenant, request.now, MAX_CHANGED)
    page = services.failed_runs.page(request.tenant, failure_filter, limit=MAX_CHANGED, before=before)
    for run in page.items:
        name = run.execution_id
        if not done.act(name, partial(services.manual.retry, request.tenant, name)):
            break
        before = position_of(run)
    else:
        before = page.after
    return done.reply(write_cursor(request.tenant, list_name, before))


@ROUTES.add(
    "POST",
    "/v1/runs/_all/cancel",
    "write",
    response="ManyDone",
    body_optional=True,
    weight=A_THOUSAND_JOBS,
)
def cancel_runs(services: Services, request: Request, body: CancelRuns) -> Response:
    """Cancel runs that wait.

    Runs that wait for their next attempt, or with `status: queued` for their first one, are recorded as skipped.
    Without a range: those of the last day. Send the same body with `next_cursor` as `cursor` until it is null.
    """
    if body.from_at is not None:
        check_order(body.from_at, body.until_at)
    status, prefix = body.status or RETRYING, body.job_prefix or ""
    until_at = body.until_at
    day_before = max(0, (until_at or int(request.now)) - RECENT_S)
    from_at = day_before if body.from_at is None else int(body.from_at)
    has_range = body.from_at is not None or until_at is not None
    list_name = f"many waiting:{status}:{prefix}:{from_at if has_range else ''}:{until_at}"
    span = read_cursor(request.tenant, list_name, body.cursor, TimeRange, check_range_of_runs)
    span = span or TimeRange(from_at, until_at)
    page = services.by_time.page(
        request.tenant, span, RunFilter(status=status), limit=MAX_CHANGED, now=request.now
    )
    done = _Done(body.dry_run)
    for run in page.items:
        if run.job_id.startswith(prefix):
            act = partial(services.manual.cancel, request.tenant, run.execution_id, body.note)
            if not done.act(
                run.execution_id, act
            ):  # the same page again: what is cancelled is no longer on it
                return done.reply(write_cursor(request.tenant, list_name, span))
    return done.reply(write_cursor(request.tenant, list_name, page.after))


def failing_jobs(
    services: Services, tenant: str, groups: Sequence[FailureGroup], job_filter: JobFilter
) -> Iterator[tuple[Job, FailurePosition]]:
    """The jobs of these groups, the one that failed last first, each once, with its cursor among the failures."""
    newest = list({group.job_id: group for group in reversed(groups)}.values())[::-1]
    for start in range(0, len(newest), _LOADED_AT_ONCE):
        loaded_groups = newest[start : start + _LOADED_AT_ONCE]
        jobs = services.store.load_all(tenant, [group.job_id for group in loaded_groups])
        for group in loaded_groups:
            job = jobs.get(group.job_id)
            if job and exists(job) and job_filter.matches(job):
                yield job, position_of(group.latest)
