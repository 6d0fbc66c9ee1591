"""The routes of the audit: who changed what of a tenant, the values before and after, and when."""

from __future__ import annotations

from typing import Final

from api.http.cursors import read_cursor, write_cursor
from api.http.ranges import INSTANT
from api.http.requests import Request
from api.http.routing import CURSOR, LIMIT, MAX_PAGE, PAGE, Query, Reply, Route
from api.routes.tenants import existing_tenant
from api.services import Services
from common.platform.views import entry_view
from common.storage import keys
from common.tenants.audit import EntryFilter


def list_page(services: Services, request: Request) -> Reply:
    """GET /v1/audit"""
    return page_of(services, request, request.tenant)


def list_of_tenant(services: Services, request: Request) -> Reply:
    """GET /v1/tenants/{tenant_id}/audit"""
    return page_of(services, request, services.tenants.get(existing_tenant(request)).tenant_id)


def list_of_platform(services: Services, request: Request) -> Reply:
    """GET /v1/operator-audit"""
    return page_of(services, request, keys.OPERATORS)


def page_of(services: Services, request: Request, owner: str) -> Reply:
    """A page of the entries of `owner` (a tenant or the platform), filtered by the query."""
    wanted = EntryFilter.of(request.query)
    limit = request.number("limit", PAGE, MAX_PAGE)
    list_name = f"audit:{wanted}"
    before = read_cursor(owner, list_name, request.query.get("cursor"))
    entries, next_place = services.audit.page(owner, wanted, limit=limit, before_id=before)
    cursor = write_cursor(owner, list_name, next_place) if next_place else None
    names = services.tenants.api_keys.author_names(owner, {entry.by for entry in entries})
    return Reply({"entries": [entry_view(entry, names) for entry in entries], "next_cursor": cursor})


FILTERS: Final = (
    Query("subject", "Only changes of this job, calendar or key, by its id.", {"type": "string"}),
    Query("action", "Only this action (`job.paused`), or this kind (`job`).", {"type": "string"}),
    Query("from_at", "Only changes at or after this.", INSTANT),
    Query("until_at", "Only changes before this.", INSTANT),
)

ROUTES = (
    Route(
        "GET", "/v1/audit", "list_audit", list_page, "admin", "Who changed what, newest first", "AuditPage",
        query=(LIMIT, CURSOR, *FILTERS), while_suspended=True,
    ),
    Route(
        "GET", "/v1/tenants/{tenant_id}/audit", "list_audit_of_tenant", list_of_tenant, "operator",
        "Who changed what of a tenant's, newest first", "AuditPage", query=(LIMIT, CURSOR, *FILTERS),
    ),
    Route(
        "GET", "/v1/operator-audit", "list_operator_audit", list_of_platform, "operator",
        "Who made and revoked the platform's keys and deleted tenants, newest first", "AuditPage",
        query=(LIMIT, CURSOR, *FILTERS),
    ),
)  # fmt: skip
