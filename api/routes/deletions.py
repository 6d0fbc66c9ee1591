"""The platform's routes that remove a tenant: they start the removal and show its progress. The ticks remove."""

from __future__ import annotations

from http import HTTPStatus

from api.http.requests import Request
from api.http.routing import Reply, Route
from api.routes.tenants import existing_tenant
from api.services import Services
from common.platform.deletion import Deletion
from common.platform.views import deletion_view


def begin(services: Services, request: Request) -> Reply:
    """DELETE /v1/tenants/{tenant_id}"""
    tenant_id = existing_tenant(request)
    return _reply(services.deletions.begin(tenant_id, request.now, by=request.credential.by), request.now)


def progress(services: Services, request: Request) -> Reply:
    """GET /v1/tenants/{tenant_id}/deletion"""
    deletion = services.deletions.progress(existing_tenant(request))
    return Reply(deletion_view(deletion, request.now))


def _reply(deletion: Deletion, now: float) -> Reply:
    status = HTTPStatus.ACCEPTED if deletion.finished_at is None else HTTPStatus.OK
    where = {"Location": f"/v1/tenants/{deletion.tenant_id}/deletion"}
    return Reply(deletion_view(deletion, now), status, where)


ROUTES = (
    Route(
        "DELETE", "/v1/tenants/{tenant_id}", "delete_tenant", begin, "operator",
        "Stop a tenant at once and for good, and remove all of it in the background", "TenantDeletion",
        HTTPStatus.ACCEPTED, also=HTTPStatus.OK,
    ),
    Route(
        "GET", "/v1/tenants/{tenant_id}/deletion", "get_tenant_deletion", progress, "operator",
        "How far the removal of a tenant is", "TenantDeletion",
    ),
)  # fmt: skip
