"""The platform's routes for tenants and what each tenant may do."""

from __future__ import annotations

from http import HTTPStatus

from api.http.cursors import read_cursor, write_cursor
from api.http.requests import Request
from api.http.routing import CURSOR, LIMIT, MAX_PAGE, PAGE, Reply, Route
from api.services import Services
from common.ids import TENANT_ID_CHARS, check_id
from common.platform.tenants import Tenant
from common.platform.views import tenant_summary, tenant_view
from common.storage import keys
from common.tenants.rules import EDITABLE, SETTABLE


def create(services: Services, request: Request) -> Reply:
    """POST /v1/tenants"""
    fields = request.fields("tenant_id", "name", *SETTABLE)
    tenant_id = check_id("tenant_id", fields.pop("tenant_id", None), TENANT_ID_CHARS)
    name = fields.pop("name", None)
    tenant = services.tenants.create(tenant_id, name, request.now, fields, by=request.credential.by)
    return _reply(tenant, HTTPStatus.CREATED, Location=f"/v1/tenants/{tenant_id}")


def list_page(services: Services, request: Request) -> Reply:
    """GET /v1/tenants"""
    limit = request.number("limit", PAGE, MAX_PAGE)
    after = read_cursor(keys.OPERATORS, "tenants", request.query.get("cursor"))
    found = list(services.tenants.list_tenants(after, limit + 1))
    page = found[:limit]
    cursor = write_cursor(keys.OPERATORS, "tenants", page[-1].tenant_id) if len(found) > limit else None
    return Reply({"tenants": [tenant_summary(tenant) for tenant in page], "next_cursor": cursor})


def get(services: Services, request: Request) -> Reply:
    """GET /v1/tenants/{tenant_id}"""
    return _reply(services.tenants.get(existing_tenant(request)))


def patch(services: Services, request: Request) -> Reply:
    """PATCH /v1/tenants/{tenant_id}"""
    tenant_id = existing_tenant(request)
    changes = request.fields("name", *EDITABLE, also="application/merge-patch+json")
    tenant = services.tenants.edit(
        tenant_id, changes, request.now, expected_revision=request.if_match(), by=request.credential.by
    )
    return _reply(tenant)


def suspend(services: Services, request: Request) -> Reply:
    """POST /v1/tenants/{tenant_id}/suspend"""
    note = request.note()
    tenant_id = existing_tenant(request)
    return _reply(services.tenants.suspend(tenant_id, note, request.now, by=request.credential.by))


def resume(services: Services, request: Request) -> Reply:
    """POST /v1/tenants/{tenant_id}/resume"""
    request.fields(optional=True)
    tenant_id = existing_tenant(request)
    return _reply(services.tenants.resume(tenant_id, request.now, by=request.credential.by))


def existing_tenant(request: Request) -> str:
    """The tenant id in the path. Raises NotFound if the text cannot be an id."""
    return request.path_id("tenant_id", "tenant", TENANT_ID_CHARS)


def _reply(tenant: Tenant, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> Reply:
    return Reply(tenant_view(tenant), status, {"ETag": f'"{tenant.revision}"', **headers})


ROUTES = (
    Route(
        "GET", "/v1/tenants", "list_tenants", list_page, "operator", "List tenants", "TenantPage",
        query=(LIMIT, CURSOR),
    ),
    Route(
        "POST", "/v1/tenants", "create_tenant", create, "operator", "Create a tenant", "TenantView",
        HTTPStatus.CREATED, takes="NewTenant",
    ),
    Route("GET", "/v1/tenants/{tenant_id}", "get_tenant_of_platform", get, "operator", "Get a tenant", "TenantView"),
    Route(
        "PATCH", "/v1/tenants/{tenant_id}", "patch_tenant", patch, "operator",
        "Change what a tenant may", "TenantView",
        takes="TenantPatch", takes_type="application/merge-patch+json", if_match=True,
    ),
    Route(
        "POST", "/v1/tenants/{tenant_id}/suspend", "suspend_tenant", suspend, "operator",
        "Stop a tenant's jobs and changes", "TenantView", takes="Suspension", body_optional=True,
    ),
    Route(
        "POST", "/v1/tenants/{tenant_id}/resume", "resume_tenant", resume, "operator",
        "Let a suspended tenant go on", "TenantView",
    ),
)  # fmt: skip
