"""The routes of the tenant itself."""

from __future__ import annotations

from api.http.requests import Request
from api.http.routing import Reply, Route
from api.services import Services
from common.platform.views import tenant_view


def get(services: Services, request: Request) -> Reply:
    """GET /v1/tenant"""
    tenant = services.tenants.get(request.tenant)
    key = {"key_id": request.credential.key_id, "role": request.credential.role}
    return Reply({**tenant_view(tenant), "key": key})


ROUTES = (Route("GET", "/v1/tenant", "get_tenant", get, "read", "Who you are", "Tenant"),)
