"""The routes that do one thing to the jobs or runs that a filter takes, a bounded number per request.

A request counts with `dry_run`, or acts until its bound or its time is reached. Its answer says where the next one
continues. A refusal of one job or run does not stop the others.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from api.http.cursors import read_cursor, read_place, write_cursor
from api.http.job_filter import FILTERS, MAX_SEEN, JobFilter
from api.http.problems import problem_of
from api.http.ranges import bounds, check_range
from api.http.requests import Request, boolean
from api.http.routing import A_THOUSAND_JOBS, MAX_PAGE, Reply, Route
from api.routes.failing_jobs import SINCE_S, failing_jobs
from api.routes.failures import place_of
from api.routes.runs import RECENT_S
from api.services import Services
from common.errors import Busy, InvalidInput, Minute8Error
from common.history.failed_runs import FailureFilter
from common.history.run_lists import RunFilter
from common.history.runs_cursor import RunsCursor
from common.ids import NONCE_CHARS, check_id
from common.planning.execution import execution_id
from common.runs.states import QUEUED, RETRYING
from common.texts import NOTE_CHARS, check_note

# The most jobs or runs that one request changes, and how long it may take: each is a transaction of its own.
AT_ONCE: Final = 100
_ACTING_S: Final = 18
_ERROR_FIELDS: Final = ("error_type", "fingerprint")
_JOB_FIELDS: Final = ("all", *(query.name for query in FILTERS), *_ERROR_FIELDS)
_MAX_TEXT: Final = 200
_LONGEST: Final = {"cursor": 2_000, "target": 2_000, "note": NOTE_CHARS}


@dataclass(slots=True)
class _Done:
    """What a request did so far."""

    dry_run: bool
    ids: list[str] = field(default_factory=list)
    refused: list[dict[str, Any]] = field(default_factory=list)

    def reply(self, next_cursor: str | None) -> Reply:
        return Reply(
            {
                "dry_run": self.dry_run,
                "matched": len(self.ids),
                "done": 0 if self.dry_run else len(self.ids) - len(self.refused),
                "ids": self.ids,
                "refused": self.refused,
                "next_cursor": next_cursor,
            }
        )

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


def pause(services: Services, request: Request) -> Reply:
    """POST /v1/jobs/_all/pause"""
    fields = _fields(request, *_JOB_FIELDS, "note")
    note = check_note(fields.get("note", ""))
    return _jobs(services, request, fields, lambda job_id: services.store.pause(request.tenant, job_id, note))


def resume(services: Services, request: Request) -> Reply:
    """POST /v1/jobs/_all/resume"""
    fields = _fields(request, *_JOB_FIELDS)
    return _jobs(services, request, fields, lambda job_id: services.store.resume(request.tenant, job_id))


def run(services: Services, request: Request) -> Reply:
    """POST /v1/jobs/_all/run"""
    fields = _fields(request, *_JOB_FIELDS, "nonce")
    nonce = check_id("nonce", fields.get("nonce") or secrets.token_hex(6), NONCE_CHARS)
    if not fields["dry_run"]:
        services.count_as(request.tenant, request.now, AT_ONCE, A_THOUSAND_JOBS)
    return _jobs(
        services, request, fields, lambda job_id: services.manual.run_now(request.tenant, job_id, nonce)
    )


def _jobs(
    services: Services, request: Request, fields: Mapping[str, Any], act: Callable[[str], object]
) -> Reply:
    wanted = JobFilter.of({query.name: fields[query.name] for query in FILTERS if query.name in fields})
    if any(name in fields for name in _ERROR_FIELDS):
        return _failing_jobs(services, request, fields, wanted, act)
    if wanted == JobFilter() and not fields["all"]:
        raise InvalidInput(
            "all", "no filter is given", accepted=f'"all": true for all jobs, or {", ".join(_JOB_FIELDS[1:])}'
        )
    list_name = f"many:{request.path}:{wanted.list_name}"
    last = read_cursor(request.tenant, list_name, fields.get("cursor"))
    done, ends_at = _Done(fields["dry_run"]), request.now + _ACTING_S
    found = services.store.list_jobs(request.tenant, last, MAX_SEEN + 1, payloads=False, deleted=True)
    for seen, job in enumerate(found):
        full = not done.dry_run and (len(done.ids) == AT_ONCE or services.clock.now() >= ends_at)
        if seen == MAX_SEEN or (wanted.takes(job) and full):
            return done.reply(write_cursor(request.tenant, list_name, last))
        if wanted.takes(job) and not done.act(job.job_id, partial(act, job.job_id)):
            return done.reply(write_cursor(request.tenant, list_name, last) if last else None)
        last = job.job_id
    return done.reply(None)


def _failing_jobs(
    services: Services,
    request: Request,
    fields: Mapping[str, Any],
    wanted: JobFilter,
    act: Callable[[str], object],
) -> Reply:
    """The same for jobs that failed with an error. One with failures on two pages is taken twice: it changes once."""
    error = {name: fields.get(name, "") for name in _ERROR_FIELDS}
    list_name = f"many:{request.path}:{wanted.list_name}:{error}"
    before = read_place(request.tenant, list_name, fields.get("cursor"), place_of)
    failed = FailureFilter(from_at=max(0, int(request.now) - SINCE_S), **error)
    groups, place = services.failed_runs.groups(request.tenant, failed, before)
    done, ends_at = _Done(fields["dry_run"]), request.now + _ACTING_S
    for job, at in failing_jobs(services, request.tenant, groups, wanted):
        late = bool(done.ids) and services.clock.now() >= ends_at
        full = not done.dry_run and (len(done.ids) == AT_ONCE or late)
        if full or not done.act(job.job_id, partial(act, job.job_id)):
            place = before
            break
        before = at
    return done.reply(write_cursor(request.tenant, list_name, json.dumps(place)) if place else None)


def retry(services: Services, request: Request) -> Reply:
    """POST /v1/runs/_all/retry"""
    fields = _fields(request, "from_at", "until_at", "job_id", "tag", "error_type", "fingerprint")
    if "from_at" not in fields:
        raise InvalidInput(
            "from_at", "is missing", accepted="an RFC 3339 instant: what failed at or after it"
        )
    given = bounds(fields)
    wanted = FailureFilter(
        from_at=given["from_at"],
        until_at=given.get("until_at", 0),
        **{name: fields.get(name, "") for name in ("job_id", "tag", "error_type", "fingerprint")},
    )
    list_name = f"many failures:{wanted}"
    before = read_place(request.tenant, list_name, fields.get("cursor"), place_of)
    done = _Done(fields["dry_run"])
    if not done.dry_run:
        services.count_as(request.tenant, request.now, AT_ONCE)
    items, place = services.failed_runs.page(request.tenant, wanted, limit=AT_ONCE, before=before)
    for item in items:
        name = execution_id(item["tenant"], item["job_id"], item["sk"])
        if not done.act(name, partial(services.manual.retry, request.tenant, name)):
            break
        before = float(item["failed_at"]), item["job_id"], item["sk"]
    else:
        before = place
    return done.reply(write_cursor(request.tenant, list_name, json.dumps(before)) if before else None)


def cancel(services: Services, request: Request) -> Reply:
    """POST /v1/runs/_all/cancel"""
    fields = _fields(request, "from_at", "until_at", "status", "job_prefix", "note")
    note, prefix = check_note(fields.get("note", "")), fields.get("job_prefix", "")
    status = fields.get("status", RETRYING)
    if status not in (QUEUED, RETRYING):
        raise InvalidInput(
            "status", "must be one of a waiting run", value=status, accepted=f"{RETRYING}, {QUEUED}"
        )
    given = bounds(fields)
    from_at, until_at = given.get("from_at"), given.get("until_at")
    if from_at is None:
        from_at = max(0, (until_at or int(request.now)) - RECENT_S)
    list_name = f"many waiting:{status}:{prefix}:{from_at if given else ''}:{until_at}"
    place = read_place(request.tenant, list_name, fields.get("cursor"), RunsCursor.of_text)
    place = place or RunsCursor.start(request.now, from_at, until_at)
    page = services.tenant_runs.page(request.tenant, place, RunFilter(status=status), limit=MAX_PAGE)
    done = _Done(fields["dry_run"])
    for item in page.runs:
        name = execution_id(item["tenant"], item["job_id"], item["sk"])
        if item["job_id"].startswith(prefix):
            act = partial(services.manual.cancel, request.tenant, name, note)
            if not done.act(name, act):  # the same page again: what is cancelled is no longer on it
                return done.reply(write_cursor(request.tenant, list_name, place.to_text()))
    following = write_cursor(request.tenant, list_name, page.next.to_text()) if page.next else None
    return done.reply(following)


def _fields(request: Request, *names: str) -> dict[str, Any]:
    """The body's fields: texts, but for the flags `all` and `dry_run`, which are always there. Raises InvalidInput."""
    fields = request.fields(*names, "dry_run", "cursor", optional=True)
    for name, value in fields.items():
        if name in ("all", "dry_run"):
            boolean(fields, name)
        elif (
            not isinstance(value, str)
            or len(value) > _LONGEST.get(name, _MAX_TEXT)
            or not (value or name == "note")
        ):
            most = _LONGEST.get(name, _MAX_TEXT)
            raise InvalidInput(
                name, "must be a text", value=value, accepted=f"a text of 1 to {most} characters"
            )
    check_range(fields)
    return {"all": False, "dry_run": False, **fields}


def _route(
    path: str, name: str, answer: Callable[[Services, Request], Reply], summary: str, takes: str
) -> Route:
    return Route(
        "POST", path, name, answer, "write", summary, "ManyDone", HTTPStatus.OK,
        takes=takes, body_optional=True, weight=A_THOUSAND_JOBS,
    )  # fmt: skip


ROUTES = (
    _route("/v1/jobs/_all/pause", "pause_jobs", pause, "Pause the jobs that a filter takes", "PauseJobs"),
    _route("/v1/jobs/_all/resume", "resume_jobs", resume, "Resume the jobs that a filter takes", "ManyJobs"),
    _route("/v1/jobs/_all/run", "run_jobs", run, "Run the jobs that a filter takes now", "RunJobs"),
    _route("/v1/runs/_all/retry", "retry_runs", retry, "Try failed runs of a span once more", "RetryRuns"),
    _route("/v1/runs/_all/cancel", "cancel_runs", cancel, "Cancel runs that wait", "CancelRuns"),
)
