"""The routes of expected against actual: when jobs were due, and what became of each due instant."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from common.history.expected import QUIET, InstantOutcome
from common.history.expected_runs import ExpectedPosition, ExpectedQuery, ExplainedInstant, JobPage
from common.history.explain import BLOCKED, SUSPENDED, TARGET_NOT_ALLOWED, Reason
from common.jobs.job import DELETED, Job
from common.tenants import tenant as tenants
from common.tenants.allowed_targets import is_allowed, is_blocked
from common.timing.durations import parse_instant
from common.timing.fires import newest_fires, next_fires
from common.timing.instants import DAY_S, rfc3339
from minute8.api.http.paging import INSTANT, bounds, check_length, read_cursor, write_cursor
from minute8.api.http.requests import Request
from minute8.api.http.routing import A_THOUSAND_JOBS, CURSOR, THOUSANDS, Query, Response, Routes
from minute8.api.routes.jobs import existing_id
from minute8.api.services import Services

PAGE: Final = 500
MAX_PAGE: Final = 5_000
_MAX_DAYS: Final = 92
_LATEST: Final = 10**11
SPAN: Final = (
    Query("from_at", "Only fire times at or after this; a day ago unless given.", INSTANT),
    Query("until_at", "Only fire times before this; in a day unless given.", INSTANT),
)
_QUERY: Final = (
    Query(
        "limit",
        "How many due instants at most.",
        {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": PAGE},
    ),
    CURSOR,
    *SPAN,
    Query(
        "problems",
        "List only what needs attention; the counts count all.",
        {"type": "boolean", "default": False},
    ),
)

ROUTES = Routes()


@ROUTES.add(
    "GET", "/v1/jobs/{job_id}/expected", "read", response="ExpectedOfJob", query=_QUERY, weight=THOUSANDS
)
def expected_of_job(services: Services, request: Request) -> Response:
    """When a job was due, and what became of each due instant.

    Each due instant of the range with its result: on time, late, skipped and why, missed, or still to come. A day
    on each side of now by default, 92 days at most. It reads the runs of the range, the audit of the job, and its
    calendars. `no_record` would be a fault of Minute8.
    """
    job_id = existing_id(request)
    start, end = span_of(request)
    limit = request.number("limit", PAGE, MAX_PAGE)
    list_name = f"expected:{job_id}:{_filter_text(request)}"
    cursor = _read_cursor(request, list_name)
    begin = cursor.at if cursor and cursor.at is not None else start
    retention_s = kept_s_of(services, request)
    query = ExpectedQuery(request.tenant, begin, end, request.now, retention_s, limit)
    page = services.expected.of_job(query, job_id)
    if not page.instants and not services.runs.of_job(request.tenant, job_id, limit=1):
        services.store.get(request.tenant, job_id)  # raises NotFound
    next_cursor = ExpectedPosition(job_id, page.next_at) if page.next_at is not None else None
    return Response(
        {
            "job_id": job_id,
            "from_at": rfc3339(start),
            "until_at": rfc3339(end),
            "known_from_at": known_from(page, begin),
            "counts": page.counts,
            "expected": _shown(request, [page]),
            "next_cursor": write_cursor(request.tenant, list_name, next_cursor),
        }
    )


@ROUTES.add("GET", "/v1/expected", "read", response="ExpectedPage", query=_QUERY, weight=A_THOUSAND_JOBS)
def list_expected(services: Services, request: Request) -> Response:
    """When all jobs were due, and what became of each due instant.

    The same for all jobs, job by job in the order of their ids. A request reads up to 1,000 jobs and the runs of
    their range.
    """
    start, end = span_of(request)
    limit = request.number("limit", PAGE, MAX_PAGE)
    list_name = f"expected::{_filter_text(request)}"
    cursor = _read_cursor(request, list_name)
    retention_s = kept_s_of(services, request)
    query = ExpectedQuery(request.tenant, start, end, request.now, retention_s, limit)
    pages, next_cursor = services.expected.of_tenant(query, cursor)
    return Response(
        {
            "from_at": rfc3339(start),
            "until_at": rfc3339(end),
            "by_job": [
                {
                    "job_id": page.job_id,
                    "known_from_at": known_from(page, start),
                    "counts": page.counts,
                    "complete": page.next_at is None,
                }
                for page in pages
            ],
            "expected": _shown(request, pages),
            "next_cursor": write_cursor(request.tenant, list_name, next_cursor),
        }
    )


def span_of(request: Request) -> tuple[int, int]:
    """The requested range; without one, a day on each side of now. Raises InvalidInput."""
    span = bounds(request.query)
    from_at = span.get("from_at", max(0, min(int(request.now), span.get("until_at", _LATEST)) - DAY_S))
    until_at = span.get("until_at", max(int(request.now), from_at) + DAY_S)
    check_length(from_at, until_at, _MAX_DAYS)
    return from_at, until_at


def kept_s_of(services: Services, request: Request) -> int:
    """How long the tenant's runs are kept."""
    rules = services.known_tenants.rules(request.tenant, request.now)
    return rules.run_retention_s if rules else 0


def known_from(page: JobPage, start: int) -> str | None:
    """From when on the due set is known; None: for the whole range."""
    return rfc3339(math.ceil(page.known_from_at)) if start < page.known_from_at < math.inf else None


def expected_view(job_id: str, instant: InstantOutcome) -> dict[str, Any]:
    """An instant as JSON, without empty fields."""
    view: dict[str, Any] = {
        "job_id": job_id,
        "fire_at": rfc3339(instant.fire_at),
        "due_at": rfc3339(instant.due_at),
        "schedule_revision": instant.schedule_revision,
        "status": instant.status,
        "is_due": instant.is_due,
    }
    if instant.late_s is not None:
        view["late_s"] = round(instant.late_s, 3)
    view |= {name: value for name in ("reason", "detail") if (value := getattr(instant, name))}
    if run := instant.run:
        view["run"] = {"execution_id": run.execution_id, "status": run.status}
        if run.error_type:
            view["run"]["error_type"] = run.error_type
    return view


def _shown(request: Request, pages: list[JobPage]) -> list[dict[str, Any]]:
    problems = request.flag("problems")
    return [
        expected_view(page.job_id, instant)
        for page in pages
        for instant in page.instants
        if not problems or instant.status not in QUIET
    ]


def _filter_text(request: Request) -> str:
    return ":".join(request.query.get(name, "") for name in ("from_at", "until_at", "problems"))


def _read_cursor(request: Request, list_name: str) -> ExpectedPosition | None:
    text = request.query.get("cursor")
    position: ExpectedPosition | None = read_cursor(request.tenant, list_name, text, ExpectedPosition)
    return position


@ROUTES.add(
    "GET",
    "/v1/jobs/{job_id}/explain",
    "read",
    response="Explanation",
    query=(
        Query(
            "at",
            "The instant: RFC 3339, or without an offset a local time of the job's zone. "
            "Unless given, the last fire time of its schedule, or the first one if none has passed.",
            {"type": "string", "minLength": 1, "maxLength": 64},
        ),
    ),
    weight=THOUSANDS,
)
def explain_job(services: Services, request: Request) -> Response:
    """Why a job was, is or is not due at an instant, and what became of it.

    Tells in sentences what decided about the instant: the schedule, exclusions, a pause, the platform's rules, a
    run before it. It reads the audit of the job, the runs around the instant, and the tenant's rules.
    """
    job_id = existing_id(request)
    at = _explained_instant(services, request, job_id)

    def blocks(job: Job | None) -> list[Reason]:
        return _blocks(services, request, job)

    def names_of(authors: Iterable[str]) -> dict[str, str]:
        return services.tenants.api_keys.author_names(request.tenant, authors)

    retention_s = kept_s_of(services, request)
    query = ExpectedQuery(request.tenant, at, at + 1, request.now, retention_s)
    explained = services.expected.explain(query, job_id, blocks, names_of)
    if explained.job is None and not services.runs.of_job(request.tenant, job_id, limit=1):
        services.store.get(request.tenant, job_id)  # raises NotFound
    return Response(_explanation_view(job_id, at, explained))


def _explained_instant(services: Services, request: Request, job_id: str) -> int:
    """The instant to explain: RFC 3339, or a local time of the job's zone. Raises InvalidInput.

    Without `at`: the last fire time of the schedule, also if nothing ran; else the first fire time; else now.
    """
    job = services.store.load_all(request.tenant, [job_id]).get(job_id)
    if (text := request.query.get("at")) is not None:
        return parse_instant(text, "at", _zone(job) if job else None)
    now = int(request.now)
    if job is None:
        return now
    near = newest_fires(job.schedule, job.created_at + 1, now + 1, 1) or next_fires(job.schedule, now + 1, 1)
    return near[0] if near else now


def _zone(job: Job) -> str:
    return job.schedule.timezone


def _blocks(services: Services, request: Request, job: Job | None) -> list[Reason]:
    """What would stop a run of the job now, whatever its schedule says."""
    rules = services.known_tenants.rules(request.tenant, request.now)
    if rules is None or job is None or job.state == DELETED:
        return []
    reasons = []
    if rules.state == tenants.SUSPENDED:
        note = services.tenants.get(request.tenant).note
        words = f": {note}" if note else ""
        reasons.append(Reason(SUSPENDED, f"The platform has suspended the tenant{words}.", {"note": note}))
    if not is_allowed(job.spec.target, rules.allowed_targets):
        target = job.spec.target.get("arn") or job.spec.target.get("url")
        text = f"The platform does not allow the tenant the target {target}."
        reasons.append(Reason(TARGET_NOT_ALLOWED, text, {"target": target}))
    for block in services.known_tenants.blocks(request.now):
        if is_blocked(job.spec.target, (block.pattern,)):
            note = f": {block.note}" if block.note else ""
            reasons.append(
                Reason(BLOCKED, f"The platform blocks the job's target{note}.", {"pattern": block.pattern})
            )
    return reasons


def _explanation_view(job_id: str, at: int, explained: ExplainedInstant) -> dict[str, Any]:
    zone = _zone(explained.job) if explained.job else "UTC"
    change = explained.version.began_by if explained.version else None
    times = explained.version.times if explained.version else None
    return {
        "job_id": job_id,
        "at": rfc3339(at),
        "timezone": zone,
        "local": datetime.fromtimestamp(at, ZoneInfo(zone)).isoformat(),
        "status": explained.explanation.status,
        "text": explained.explanation.text,
        "reasons": [
            {"code": reason.code, "text": reason.text, "data": dict(reason.data)}
            for reason in explained.explanation.reasons
        ],
        "found": [expected_view(job_id, instant) for instant in explained.explanation.instants],
        "schedule_revision": times.schedule_revision if times else None,
        "since": change
        and {
            "at": rfc3339(change.at),
            "by": change.by,
            **({"by_name": change.by_name} if change.by_name else {}),
            "action": change.action,
        },
        "next_due_at": rfc3339(explained.following.due_at) if explained.following else None,
    }
