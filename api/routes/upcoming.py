"""The routes of what is coming: the next executions, and how many are due in each minute."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from api.http.cursors import read_place, write_cursor
from api.http.ranges import INSTANT, bounds
from api.http.requests import Request
from api.http.routing import A_THOUSAND_JOBS, CURSOR, Query, Reply, Route
from api.services import Services
from common.errors import InvalidInput
from common.history.density import MAX_AHEAD_DAYS, Density, jobs_in, proposal
from common.history.upcoming import DensityCursor, PacedJobs, UpcomingCursor, platform_density
from common.ids import JOB_ID_CHARS, is_id
from common.storage import keys
from common.timing.instants import DAY_S, rfc3339

PAGE: Final = 100
MAX_PAGE: Final = 1_000
_HOUR_S: Final = 3_600
_TENANTS_SHOWN: Final = 10


def upcoming(services: Services, request: Request) -> Reply:
    """GET /v1/upcoming"""
    start, end = _span(request, DAY_S)
    limit = request.number("limit", PAGE, MAX_PAGE)
    list_name = f"upcoming:{start if 'from_at' in request.query else ''}:{request.query.get('until_at', '')}"
    place = read_place(request.tenant, list_name, request.query.get("cursor"), _place_of) or UpcomingCursor()
    found, following = services.upcoming.page(request.tenant, place, start, end, request.now, limit)
    return Reply(
        {
            "from_at": rfc3339(start),
            "until_at": rfc3339(end),
            "executions": [
                {"job_id": one.job_id, "fire_at": rfc3339(one.fire_at), "due_at": rfc3339(one.due_at)}
                for one in found
            ],
            "next_cursor": following
            and write_cursor(
                request.tenant, list_name, json.dumps([following.after_job, following.at, following.job_id])
            ),
        }
    )


def density(services: Services, request: Request) -> Reply:
    """GET /v1/density"""
    start, end = _span(request, DAY_S)
    list_name = f"density:{request.query.get('from_at', '')}:{request.query.get('until_at', '')}"
    after = after_job_id(request, list_name)
    page = services.upcoming.density(request.tenant, after, start, end, request.now)
    crowded = [
        {
            "minute_at": rfc3339(minute),
            "executions": count,
            "jobs": [{"job_id": job.job_id, "proposal": proposal(job)} for job in jobs_in(page.jobs, minute)],
        }
        for minute, count in page.density.crowded()
    ]
    return Reply(
        {
            "from_at": rfc3339(start),
            "until_at": rfc3339(end),
            "jobs_counted": len(page.jobs),
            **_density_view(page.density),
            "paces": _paces_view(page.paces),
            "crowded": crowded,
            "next_cursor": write_cursor(request.tenant, list_name, page.after_job)
            if page.after_job
            else None,
        }
    )


def of_platform(services: Services, request: Request) -> Reply:
    """GET /v1/operator-density"""
    start, end = _span(request, _HOUR_S)
    list_name = f"density:{request.query.get('from_at', '')}:{request.query.get('until_at', '')}"
    spot = read_place(keys.OPERATORS, list_name, request.query.get("cursor"), _spot_of) or DensityCursor()
    page = platform_density(services.store.index, spot, start, end, request.now)
    cursor = page.next and json.dumps([page.next.partition, page.next.shard, page.next.entry])
    return Reply(
        {
            "from_at": rfc3339(start),
            "until_at": rfc3339(end),
            "jobs_counted": page.jobs,
            "unreadable": page.unreadable,
            **_density_view(page.density),
            "crowded": [
                {"minute_at": rfc3339(minute), "executions": count}
                for minute, count in page.density.crowded()
            ],
            "tenants": [
                {"tenant_id": tenant, "executions": count}
                for tenant, count in page.tenants.most_common(_TENANTS_SHOWN)
            ],
            "next_cursor": write_cursor(keys.OPERATORS, list_name, cursor) if cursor else None,
        }
    )


def _paces_view(paces: Mapping[str, PacedJobs]) -> list[dict[str, Any]]:
    found = [
        {"key": key, "per_second": one.per_second, **one.foreseen()._asdict()} for key, one in paces.items()
    ]
    return sorted(found, key=lambda one: (-one["over"], -one["delayed"], one["key"]))


def _density_view(found: Density) -> dict[str, Any]:
    return {
        "executions": found.total,
        "minutes": [
            {"minute_at": rfc3339(minute), "executions": count}
            for minute, count in sorted(found.minutes.items())
        ],
    }


def _span(request: Request, default_s: int) -> tuple[int, int]:
    """The requested range of fire times, from now on. Raises InvalidInput."""
    now = int(request.now)
    given = bounds(request.query)
    start = max(now, given.get("from_at", now))
    end = given.get("until_at", start + default_s)
    if end < now and not {"from_at", "cursor"} & request.query.keys():  # later pages may come after it
        raise InvalidInput(
            "until_at",
            "is before now, where the range begins",
            value=request.query["until_at"],
            accepted=f"{rfc3339(now)} or later",
        )
    if end - start > MAX_AHEAD_DAYS * DAY_S:
        raise InvalidInput(
            "until_at",
            "is too far from from_at",
            value=rfc3339(end),
            accepted=f"a range of up to {MAX_AHEAD_DAYS} days, from now on",
        )
    return start, max(start, end)


def after_job_id(request: Request, list_name: str) -> str:
    """The last job of the page before; empty at the beginning. Raises InvalidInput."""
    return read_place(request.tenant, list_name, request.query.get("cursor"), _job_id_of) or ""


def _job_id_of(text: str) -> str:
    if not is_id(text, JOB_ID_CHARS):
        raise ValueError
    return text


def _place_of(text: str) -> UpcomingCursor:
    after_job, at, job_id = json.loads(text)
    named = all(one == "" or is_id(one, JOB_ID_CHARS) for one in (after_job, job_id))
    if not named or type(at) is not int or not 0 <= at < 10**11:
        raise ValueError
    return UpcomingCursor(after_job, at, job_id)


def _spot_of(text: str) -> DensityCursor:
    partition, shard, entry = json.loads(text)
    if type(partition) is not int or not 0 <= partition < 2 * keys.SPREAD:
        raise ValueError
    if not isinstance(shard, str) or not isinstance(entry, str):
        raise ValueError
    if entry:
        keys.group_and_shard(shard)
    return DensityCursor(partition, shard, entry)


def _between(default: str) -> Iterable[Query]:
    return (
        CURSOR,
        Query("from_at", "Only fire times at or after this; now unless given.", INSTANT),
        Query("until_at", f"Only fire times before this; {default} later unless given.", INSTANT),
    )


_LIMIT: Final = Query(
    "limit",
    "How many at most.",
    {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": PAGE},
)

ROUTES = (
    Route(
        "GET", "/v1/upcoming", "list_upcoming", upcoming, "read",
        "The next executions of all jobs, the earliest first", "UpcomingPage",
        query=(_LIMIT, *_between("a day")), weight=A_THOUSAND_JOBS,
    ),
    Route(
        "GET", "/v1/density", "density", density, "read",
        "How many executions are due in each minute, and which minutes are crowded", "TenantDensity",
        query=(*_between("a day"),), weight=A_THOUSAND_JOBS,
    ),
    Route(
        "GET", "/v1/operator-density", "density_of_platform", of_platform, "operator",
        "How many executions of all tenants are due in each minute", "PlatformDensity",
        query=(*_between("an hour"),),
    ),
)  # fmt: skip
