"""The platform's view of its tenants: how they are, and what a change of their rules would break."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from api.http.cursors import read_cursor, write_cursor
from api.http.ranges import INSTANT, bounds, check_length
from api.http.requests import Request
from api.http.routing import CURSOR, LIMIT, MAX_PAGE, PAGE, Query, Reply, Route
from api.routes.tenants import existing_tenant
from api.services import Services
from common.history.expected import AsOf
from common.history.health import FailureCounts
from common.platform.rule_effects import MAX_JOBS, TARGETS_NAMED, effects, overused
from common.platform.tenants import Tenant, edited
from common.platform.views import tenant_summary, tenant_view
from common.storage import keys
from common.tenants.rules import EDITABLE
from common.tenants.states import SUSPENDED
from common.timing.instants import DAY_S, rfc3339

_MAX_DAYS: Final = 31


def overview(services: Services, request: Request) -> Reply:
    """GET /v1/operator-overview"""
    from_at, until_at = _span(request)
    limit = request.number("limit", PAGE, MAX_PAGE)
    list_name = ":".join(
        ["overview", *(request.query.get(name, "") for name in ("from_at", "until_at", "problems"))]
    )
    after = read_cursor(keys.OPERATORS, list_name, request.query.get("cursor"))
    found = list(services.tenants.list_tenants(after, limit + 1))
    page = services.tenants.with_counts([tenant.tenant_id for tenant in found[:limit]])
    failed = services.tenant_health.failures([tenant.tenant_id for tenant in page], from_at, until_at)
    problems = request.flag("problems")
    cursor = found[limit - 1].tenant_id if len(found) > limit else ""
    return Reply(
        {
            "from_at": rfc3339(from_at),
            "until_at": rfc3339(until_at),
            "tenants": [
                _tenant_line(tenant, failures)
                for tenant in page
                if (failures := failed[tenant.tenant_id]).count
                or not problems
                or tenant.rules.state == SUSPENDED
            ],
            "next_cursor": write_cursor(keys.OPERATORS, list_name, cursor) if cursor else None,
        }
    )


def _tenant_line(tenant: Tenant, failures: FailureCounts) -> dict[str, Any]:
    return {
        **tenant_summary(tenant),
        **{name: tenant_view(tenant)[name] for name in ("usage", "quotas")},
        "failures": {
            **asdict(failures),
            "last_at": rfc3339(int(failures.last_at)) if failures.last_at is not None else None,
        },
    }


def health(services: Services, request: Request) -> Reply:
    """GET /v1/tenants/{tenant_id}/health"""
    tenant_id = services.tenants.get(existing_tenant(request)).tenant_id
    from_at, until_at = _span(request)
    total, complete = services.tenant_health.runs(tenant_id, from_at, until_at, request.now)
    mark = services.store.index.mark()
    as_of = AsOf(request.now, mark.planned_until if mark else -math.inf, -math.inf)
    return Reply(
        {
            "tenant_id": tenant_id,
            "from_at": rfc3339(from_at),
            "until_at": rfc3339(until_at),
            "run_totals": {**total.to_json(), "complete": complete},
            "job_counts": asdict(services.tenant_health.jobs(tenant_id, as_of)),
        }
    )


def check(services: Services, request: Request) -> Reply:
    """POST /v1/tenants/{tenant_id}/check"""
    changes: Mapping[str, Any] = request.fields("name", *EDITABLE, also="application/merge-patch+json")
    before = services.tenants.get(existing_tenant(request))
    after = edited(before, changes, request.if_match())
    found = effects(before, after, services.store.list_jobs(before.tenant_id, limit=MAX_JOBS + 1))
    return Reply(
        {
            "tenant": tenant_view(after),
            "jobs_read": found.jobs_read,
            "complete": found.complete,
            "not_allowed": found.not_allowed.total(),
            "targets": [
                {"target": target, "jobs": count}
                for target, count in found.not_allowed.most_common(TARGETS_NAMED)
            ],
            "interval_too_short": found.interval_too_short,
            "payload_too_large": found.payload_too_large,
            "overused": [{"quota": name, **counts} for name, counts in overused(after).items()],
        }
    )


def _span(request: Request) -> tuple[int, int]:
    """The requested range; without one, the last day. Raises InvalidInput."""
    given = bounds(request.query)
    until_at = given.get("until_at", int(request.now) + 1)
    from_at = given.get("from_at", max(0, until_at - DAY_S))
    check_length(from_at, until_at, _MAX_DAYS)
    return from_at, until_at


_SPAN: Final = (
    Query("from_at", "Only what happened at or after this; a day before `until_at` unless given.", INSTANT),
    Query("until_at", "Only what happened before this; now unless given.", INSTANT),
)
_PROBLEMS: Final = Query(
    "problems", "Only suspended tenants, and those with failures.", {"type": "boolean", "default": False}
)

ROUTES = (
    Route(
        "GET", "/v1/operator-overview", "overview", overview, "operator",
        "All tenants with their use of quotas, and their failures in a range", "Overview",
        query=(LIMIT, CURSOR, *_SPAN, _PROBLEMS),
    ),
    Route(
        "GET", "/v1/tenants/{tenant_id}/health", "tenant_health", health, "operator",
        "How a tenant is: counts and lateness of its runs in a range, failing and overdue jobs", "TenantHealth",
        query=_SPAN,
    ),
    Route(
        "POST", "/v1/tenants/{tenant_id}/check", "check_tenant", check, "operator",
        "What a change of a tenant's rules would break; changes nothing", "RuleEffects",
        takes="TenantPatch", takes_type="application/merge-patch+json", if_match=True,
    ),
)  # fmt: skip
