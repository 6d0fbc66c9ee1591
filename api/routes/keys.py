"""The routes of API keys: a tenant's own, a tenant's as the platform manages them, and the platform's own."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from api.http.cursors import read_cursor, write_cursor
from api.http.requests import Request, boolean
from api.http.routing import CURSOR, LIMIT, MAX_PAGE, PAGE, Reply, Route
from api.routes.tenants import existing_tenant
from api.services import Services
from common.platform.api_keys import ApiKey
from common.platform.views import key_view
from common.storage import keys
from common.timing.durations import parse_instant


def list_own(services: Services, request: Request) -> Reply:
    """GET /v1/keys"""
    return _page(services, request, request.tenant)


def create_own(services: Services, request: Request) -> Reply:
    """POST /v1/keys"""
    return _create(services, request, request.tenant)


def revoke_own(services: Services, request: Request) -> Reply:
    """DELETE /v1/keys/{key_id}"""
    return _revoke(services, request, request.tenant)


def list_of_tenant(services: Services, request: Request) -> Reply:
    """GET /v1/tenants/{tenant_id}/keys"""
    return _page(services, request, _tenant(services, request))


def create_of_tenant(services: Services, request: Request) -> Reply:
    """POST /v1/tenants/{tenant_id}/keys"""
    return _create(services, request, existing_tenant(request))


def revoke_of_tenant(services: Services, request: Request) -> Reply:
    """DELETE /v1/tenants/{tenant_id}/keys/{key_id}"""
    return _revoke(services, request, _tenant(services, request))


def list_of_platform(services: Services, request: Request) -> Reply:
    """GET /v1/operator-keys"""
    return _page(services, request, keys.OPERATORS)


def create_of_platform(services: Services, request: Request) -> Reply:
    """POST /v1/operator-keys"""
    made = services.tenants.api_keys.create_operator_key(
        request.now, **_name_and_expiry(request.fields("name", "expires_at")), by=request.credential.by
    )
    return _made(*made, request.now)


def revoke_of_platform(services: Services, request: Request) -> Reply:
    """DELETE /v1/operator-keys/{key_id}"""
    return _revoke(services, request, keys.OPERATORS)


def _tenant(services: Services, request: Request) -> str:
    return services.tenants.get(existing_tenant(request)).tenant_id


def _page(services: Services, request: Request, owner: str) -> Reply:
    limit = request.number("limit", PAGE, MAX_PAGE)
    after = read_cursor(owner, "keys", request.query.get("cursor"))
    found = [key for key in services.tenants.api_keys.keys_of(owner) if _place(key) > after]
    page = found[:limit]
    cursor = write_cursor(owner, "keys", _place(page[-1])) if len(found) > limit else None
    return Reply({"keys": [key_view(key, request.now) for key in page], "next_cursor": cursor})


def _place(key: ApiKey) -> str:
    """The key's position in the list, as `keys_of` sorts it."""
    return f"{key.created_at:012}-{key.key_id}"


def _create(services: Services, request: Request, tenant: str) -> Reply:
    fields = request.fields("role", "name", "expires_at", "aws")
    # This route needs the highest role (admin), so the new key cannot have more rights than its creator.
    role = fields.pop("role", None)
    made = services.tenants.api_keys.create_key(
        tenant,
        role,
        request.now,
        **_name_and_expiry(fields),
        masters=services.masters.required(request.now) if boolean(fields, "aws") else None,
        by=request.credential.by,
    )
    return _made(*made, request.now)


def _name_and_expiry(fields: dict[str, Any]) -> dict[str, Any]:
    expires_at = fields.get("expires_at")
    return {
        "name": fields.get("name"),
        "expires_at": None if expires_at is None else parse_instant(expires_at, "expires_at"),
    }


def _made(raw_key: str, key: ApiKey, now: float) -> Reply:
    return Reply({**key_view(key, now), "key": raw_key}, HTTPStatus.CREATED)


def _revoke(services: Services, request: Request, owner: str) -> Reply:
    """Revoke a key. A key may revoke itself: this ends a leaked key, and completes a rotation."""
    key_id = request.path["key_id"]
    key = services.tenants.api_keys.revoke_key(owner, key_id, request.now, by=request.credential.by)
    return Reply(key_view(key, request.now))


_REVOKE = "Revoke a key: within a minute it is refused everywhere"

ROUTES = (
    Route(
        "GET", "/v1/keys", "list_keys", list_own, "admin", "List the tenant's keys", "KeyPage",
        query=(LIMIT, CURSOR), while_suspended=True,
    ),
    Route(
        "POST", "/v1/keys", "create_key", create_own, "admin", "Create a key, which is shown this once", "MadeKey",
        HTTPStatus.CREATED, takes="NewKey",
    ),
    Route(
        "DELETE", "/v1/keys/{key_id}", "revoke_key", revoke_own, "admin", _REVOKE, "KeyView", while_suspended=True,
    ),
    Route(
        "GET", "/v1/tenants/{tenant_id}/keys", "list_keys_of_tenant", list_of_tenant, "operator",
        "List a tenant's keys", "KeyPage", query=(LIMIT, CURSOR),
    ),
    Route(
        "POST", "/v1/tenants/{tenant_id}/keys", "create_key_of_tenant", create_of_tenant, "operator",
        "Create a key for a tenant, which is shown this once", "MadeKey", HTTPStatus.CREATED, takes="NewKey",
    ),
    Route(
        "DELETE", "/v1/tenants/{tenant_id}/keys/{key_id}", "revoke_key_of_tenant", revoke_of_tenant, "operator",
        _REVOKE, "KeyView",
    ),
    Route(
        "GET", "/v1/operator-keys", "list_operator_keys", list_of_platform, "operator",
        "List the platform's own keys", "KeyPage", query=(LIMIT, CURSOR),
    ),
    Route(
        "POST", "/v1/operator-keys", "create_operator_key", create_of_platform, "operator",
        "Create a key of the platform's own, which is shown this once", "MadeKey",
        HTTPStatus.CREATED, takes="NewOperatorKey",
    ),
    Route(
        "DELETE", "/v1/operator-keys/{key_id}", "revoke_operator_key", revoke_of_platform, "operator",
        _REVOKE, "KeyView",
    ),
)  # fmt: skip
