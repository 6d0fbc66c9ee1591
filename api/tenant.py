"""The routes of the tenant itself."""

from __future__ import annotations

from dataclasses import asdict

from api.requests import Request
from api.routing import Reply, Route
from api.services import Services
from common.instants import rfc3339


def get(services: Services, request: Request) -> Reply:
    """GET /v1/tenant"""
    tenant = services.tenants.get(request.tenant)
    return Reply(
        {
            "tenant_id": tenant.tenant_id,
            "name": tenant.name,
            "created_at": rfc3339(tenant.created_at),
            "state": tenant.rules.state,
            "note": tenant.note,
            "usage": {"jobs": tenant.jobs, "executions_per_day": tenant.executions_per_day},
            "quotas": asdict(tenant.rules.quotas),
            "allowed_targets": list(tenant.rules.allowed_targets),
            "retention_days": tenant.rules.retention_days,
            "key": {"key_id": request.credential.key_id, "role": request.credential.role},
        }
    )


ROUTES = (Route("GET", "/v1/tenant", "get_tenant", get, "read", "Who you are", "Tenant"),)
