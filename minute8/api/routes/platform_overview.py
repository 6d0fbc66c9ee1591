"""The platform's list of its tenants: who fails, who is late, who runs much, who has used up a quota."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final, get_args

from common.errors import InvalidInput
from common.jobs.not_running import StoppedOfTenant
from common.limits import MAX_PAGE
from common.platform.tenant_ranks import (
    ORDERS,
    FailingJobs,
    Order,
    Place,
    PlatformRanks,
    RankedTenant,
    after_place,
)
from common.platform.views import block_view, tenant_summary, tenant_view
from common.projection.tenants import TenantTotals
from common.storage import keys
from common.tenants.tenant import SUSPENDED
from common.timing.instants import rfc3339
from minute8.api.http.paging import INSTANT, last_day_or, read_cursor, write_cursor
from minute8.api.http.requests import Request
from minute8.api.http.routing import CURSOR, LIMIT, PAGE, Query, Response, Routes
from minute8.api.services import Services
from minute8.api.views import stopped_view

_MAX_DAYS: Final = 7
_STOPPED_SHOWN: Final = 3
_QUERY: Final = (
    LIMIT,
    CURSOR,
    Query(
        "from_at",
        "Only runs of the hour of this time, or later; a day before `until_at` unless given.",
        INSTANT,
    ),
    Query("until_at", "Only runs of hours before this; now unless given.", INSTANT),
    Query(
        "problems",
        "Only suspended tenants, and those with failed runs or jobs that do not run.",
        {"type": "boolean", "default": False},
    ),
    Query(
        "sort",
        "By id; or the most failed, late or all runs first; or the most used quota first.",
        {"type": "string", "enum": list(ORDERS), "default": "id"},
    ),
)

ROUTES = Routes()


@ROUTES.add("GET", "/v1/operator-overview", "operator", response="Overview", query=_QUERY)
def overview_of_platform(services: Services, request: Request) -> Response:
    """All tenants with their use of quotas and their runs, the platform's runs by hour, and what is blocked.

    The runs of the last day by default, of 7 days at most, by hours of their fire times: what ticks wrote down up to
    `fresh_at`, some ten to thirty minutes ago. With `problems` only suspended tenants, and those with failed runs or
    jobs that do not run. Of the first ten tenants of a page with failed runs it names up to three jobs that fail now;
    of each tenant up to three jobs that do not run.

    It reads up to 5,000 tenants, a hundred in a request to DynamoDB, and what does not run of up to 200.
    """
    order = _order(request)
    from_at, until_at = last_day_or(request.query, request.now, _MAX_DAYS)
    limit = request.number("limit", PAGE, MAX_PAGE)
    named = (request.query.get(name, "") for name in ("from_at", "until_at", "problems", "sort"))
    list_name = ":".join(["overview", *named])
    after = read_cursor(keys.OPERATORS, list_name, request.query.get("cursor"), Place)
    ranks = services.ranks.ranked(services.tenants, from_at, until_at, request.now, order)
    problems = request.flag("problems")
    tenants = [ranked for ranked in ranks.tenants if ranked.is_problem or not problems]
    page = after_place(tenants, order, after)[: limit + 1]
    cursor = page[limit - 1].place(order) if len(page) > limit else None
    page = page[:limit]
    failing = services.ranks.failing_jobs(page)
    return Response(
        {
            "from_at": rfc3339(ranks.from_at),
            "until_at": rfc3339(until_at),
            "fresh_at": rfc3339(ranks.fresh_at),
            "totals": _totals_view(ranks),
            "hours": [
                {"at": rfc3339(hour), **_shown(runs)} for hour, runs in sorted(ranks.totals.hours.items())
            ],
            "blocks": [block_view(block) for block in services.blocks.all()],
            "matched": len(tenants),
            "tenants": [_line(ranked, failing.get(ranked.tenant.tenant_id)) for ranked in page],
            "next_cursor": write_cursor(keys.OPERATORS, list_name, cursor),
        }
    )


def _order(request: Request) -> Order:
    text = request.query.get("sort", "id")
    orders: tuple[Order, ...] = get_args(Order)
    if (order := next((known for known in orders if known == text), None)) is None:
        raise InvalidInput("sort", "is not known", value=text, accepted=", ".join(ORDERS))
    return order


def _totals_view(ranks: PlatformRanks) -> dict[str, Any]:
    tenants = [ranked.tenant for ranked in ranks.tenants]
    runs = TenantTotals.sum(ranked.runs for ranked in ranks.tenants)
    return {
        "tenants": len(tenants),
        "suspended": sum(tenant.state == SUSPENDED for tenant in tenants),
        "failing": sum(ranked.runs.failed > 0 for ranked in ranks.tenants),
        "not_running": sum(ranked.stopped is not None for ranked in ranks.tenants),
        "jobs": sum(tenant.jobs for tenant in tenants),
        "executions_per_day": sum(tenant.executions_per_day for tenant in tenants),
        **_shown(runs),
        "complete": ranks.complete,
    }


def _line(ranked: RankedTenant, failing: FailingJobs | None) -> dict[str, Any]:
    view = tenant_view(ranked.tenant)
    return {
        **tenant_summary(ranked.tenant),
        **{name: view[name] for name in ("usage", "quotas")},
        "quota_share": round(ranked.quota_share, 4),
        "past": _shown(ranked.runs),
        "failing": failing
        and {
            "count": failing.count,
            "jobs": [{"job_id": job_id, "failures_in_row": count} for job_id, count in failing.jobs],
            "complete": failing.complete,
        },
        "not_running": ranked.stopped and _stopped_view(ranked.stopped),
    }


def _stopped_view(stopped: StoppedOfTenant) -> dict[str, Any]:
    return {
        "count": len(stopped.notes),
        "reasons": stopped.reasons,
        "first": [stopped_view(note) for note in stopped.notes[:_STOPPED_SHOWN]],
        "complete": stopped.complete,
    }


def _shown(runs: TenantTotals) -> dict[str, Any]:
    """What the answers have of them. Skipped runs are for the daily report: rows of earlier windows lack them."""
    return {name: value for name, value in asdict(runs).items() if name != "skipped"}
