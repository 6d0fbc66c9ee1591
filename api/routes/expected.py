"""The routes of expected against actual: when jobs were due, and what became of each due instant."""

from __future__ import annotations

import math
from typing import Any, Final

from api.http.cursors import read_place, write_cursor
from api.http.ranges import INSTANT, bounds, check_length
from api.http.requests import Request
from api.http.routing import A_THOUSAND_JOBS, CURSOR, THOUSANDS, Query, Reply, Route
from api.routes.jobs import existing_id
from api.services import Services
from common.history.expected import QUIET, InstantOutcome
from common.history.expected_runs import ExpectedCursor, JobPage
from common.ids import JOB_ID_CHARS, is_id
from common.planning.execution import execution_id
from common.timing.instants import DAY_S, rfc3339

PAGE: Final = 500
MAX_PAGE: Final = 5_000
_MAX_DAYS: Final = 92
_LATEST: Final = 10**11


def of_job(services: Services, request: Request) -> Reply:
    """GET /v1/jobs/{job_id}/expected"""
    job_id = existing_id(request)
    start, end = span_of(request)
    limit = request.number("limit", PAGE, MAX_PAGE)
    list_name = f"expected:{job_id}:{_named(request)}"
    place = _read_place(request, list_name)
    begin = place.at if place and place.at is not None else start
    kept_s = kept_s_of(services, request)
    page = services.expected.of_job(request.tenant, job_id, begin, end, request.now, kept_s, limit)
    if not page.found and not services.runs.of_job(request.tenant, job_id, limit=1):
        services.store.get(request.tenant, job_id)  # raises NotFound
    following = ExpectedCursor(job_id, page.next_at) if page.next_at is not None else None
    return Reply(
        {
            "job_id": job_id,
            "from_at": rfc3339(start),
            "until_at": rfc3339(end),
            "known_from_at": known_from(page, begin),
            "counts": page.counts,
            "expected": _shown(request, [page]),
            "next_cursor": _cursor(request, list_name, following),
        }
    )


def of_tenant(services: Services, request: Request) -> Reply:
    """GET /v1/expected"""
    start, end = span_of(request)
    limit = request.number("limit", PAGE, MAX_PAGE)
    list_name = f"expected::{_named(request)}"
    place = _read_place(request, list_name)
    kept_s = kept_s_of(services, request)
    pages, following = services.expected.of_tenant(
        request.tenant, place, start, end, request.now, kept_s, limit
    )
    return Reply(
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
            "next_cursor": _cursor(request, list_name, following),
        }
    )


def span_of(request: Request) -> tuple[int, int]:
    """The requested range; without one, a day on each side of now. Raises InvalidInput."""
    given = bounds(request.query)
    from_at = given.get("from_at", max(0, min(int(request.now), given.get("until_at", _LATEST)) - DAY_S))
    until_at = given.get("until_at", max(int(request.now), from_at) + DAY_S)
    check_length(from_at, until_at, _MAX_DAYS)
    return from_at, until_at


def kept_s_of(services: Services, request: Request) -> int:
    """How long the tenant's runs are kept."""
    rules = services.known_tenants.rules(request.tenant, request.now)
    return rules.runs_kept_s if rules else 0


def known_from(page: JobPage, start: int) -> str | None:
    """From when on the due set is known; None: for the whole range."""
    return rfc3339(math.ceil(page.known_from_at)) if start < page.known_from_at < math.inf else None


def expected_view(job_id: str, one: InstantOutcome) -> dict[str, Any]:
    """One instant. Fields that say nothing are left out."""
    view: dict[str, Any] = {
        "job_id": job_id,
        "fire_at": rfc3339(one.fire_at),
        "due_at": rfc3339(one.due_at),
        "schedule_revision": one.schedule_revision,
        "status": one.status,
        "is_due": one.is_due,
    }
    if one.late_s is not None:
        view["late_s"] = round(one.late_s, 3)
    view |= {name: value for name in ("reason", "detail") if (value := getattr(one, name))}
    if one.record:
        record = one.record
        view["run"] = {
            "execution_id": execution_id(record["tenant"], record["job_id"], record["sk"]),
            "status": record["status"],
            **({"error_type": record["error_type"]} if record.get("error_type") else {}),
        }
    return view


def _shown(request: Request, pages: list[JobPage]) -> list[dict[str, Any]]:
    problems = request.flag("problems")
    return [
        expected_view(page.job_id, one)
        for page in pages
        for one in page.found
        if not problems or one.status not in QUIET
    ]


def _named(request: Request) -> str:
    return ":".join(request.query.get(name, "") for name in ("from_at", "until_at", "problems"))


def _read_place(request: Request, list_name: str) -> ExpectedCursor | None:
    return read_place(request.tenant, list_name, request.query.get("cursor"), _place_of)


def _place_of(text: str) -> ExpectedCursor:
    job_id, _, at = text.partition(":")
    if not is_id(job_id, JOB_ID_CHARS) or not (at == "" or (at.isdecimal() and int(at) < _LATEST)):
        raise ValueError
    return ExpectedCursor(job_id, int(at) if at else None)


def _cursor(request: Request, list_name: str, place: ExpectedCursor | None) -> str | None:
    if place is None:
        return None
    at = "" if place.at is None else place.at
    return write_cursor(request.tenant, list_name, f"{place.job_id}:{at}")


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

ROUTES = (
    Route(
        "GET", "/v1/jobs/{job_id}/expected", "expected_of_job", of_job, "read",
        "When a job was due, and what became of each due instant", "ExpectedOfJob", query=_QUERY,
        weight=THOUSANDS,
    ),
    Route(
        "GET", "/v1/expected", "list_expected", of_tenant, "read",
        "When all jobs were due, and what became of each due instant", "ExpectedPage", query=_QUERY,
        weight=A_THOUSAND_JOBS,
    ),
)  # fmt: skip
