"""The platform's routes for tenants and what each tenant may do."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from msgspec import to_builtins

from common.ids import TENANT_ID_CHARS
from common.limits import MAX_PAGE
from common.platform.api_keys import ApiKey
from common.platform.deletion import Deletion
from common.platform.views import deletion_view, entry_view, key_view, tenant_summary, tenant_view
from common.projection.entry import window_of
from common.projection.rebuild import RebuildPosition
from common.storage import keys
from common.storage.unreadable import Unreadable
from common.tenants.audit import EntryFilter
from common.tenants.tenant import Tenant
from minute8.api.http.paging import INSTANT, read_cursor, read_key, write_cursor
from minute8.api.http.requests import Request
from minute8.api.http.routing import CURSOR, LIMIT, PAGE, Query, Response, Routes
from minute8.api.services import Services

if TYPE_CHECKING:
    from minute8.api.shapes.tenants import NewKey, NewOperatorKey, NewTenant, Suspension, TenantPatch

_AUDIT_FILTERS: Final = (
    Query("subject", "Only changes of this job, calendar or key, by its id.", {"type": "string"}),
    Query("action", "Only this action (`job.paused`), or this kind (`job`).", {"type": "string"}),
    Query("from_at", "Only changes at or after this.", INSTANT),
    Query("until_at", "Only changes before this.", INSTANT),
)

_DAYS_REBUILT: Final = 30
_MAX_DAYS_REBUILT: Final = 400
_REBUILT_DAYS: Final = Query(
    "days",
    "So many days back; of the first request.",
    {"type": "integer", "minimum": 1, "maximum": _MAX_DAYS_REBUILT, "default": _DAYS_REBUILT},
)

ROUTES = Routes()


@ROUTES.add(
    "POST", "/v1/tenants", "operator", response="TenantView", status=HTTPStatus.CREATED, repeatable=False
)
def create_tenant(services: Services, request: Request, body: NewTenant) -> Response:
    """Create a tenant.

    The tenant may call no target until `allowed_targets` has a pattern. `already-exists`: a tenant has this id, or
    had it within 31 days. One transaction.
    """
    settings = {name: value for name, value in to_builtins(body).items() if name not in ("tenant_id", "name")}
    tenant = services.tenants.create(
        body.tenant_id, body.name or "", request.now, settings, by=request.credential.by
    )
    return _reply(tenant, HTTPStatus.CREATED, Location=f"/v1/tenants/{body.tenant_id}")


@ROUTES.add("GET", "/v1/tenants", "operator", response="TenantPage", query=(LIMIT, CURSOR))
def list_tenants(services: Services, request: Request) -> Response:
    """List tenants.

    Tenants in the order of their ids. A page reads one query of up to `limit` entries.
    """
    limit = request.number("limit", PAGE, MAX_PAGE)
    after = read_key(keys.OPERATORS, "tenants", request.query.get("cursor"))
    tenants = list(services.tenants.list_tenants(after, limit + 1))
    page = tenants[:limit]
    cursor = None
    if len(tenants) > limit:
        last_id = page[-1].key["sk"] if isinstance(page[-1], Unreadable) else page[-1].tenant_id
        cursor = write_cursor(keys.OPERATORS, "tenants", last_id)
    damaged = [
        {"tenant_id": tenant.key["sk"], "problem": tenant.reason}
        for tenant in page
        if isinstance(tenant, Unreadable)
    ]
    shown = [tenant_summary(tenant) for tenant in page if isinstance(tenant, Tenant)]
    unreadable = {"unreadable": damaged} if damaged else {}
    return Response({"tenants": shown, **unreadable, "next_cursor": cursor})


@ROUTES.add("GET", "/v1/tenants/{tenant_id}", "operator", response="TenantView", revision=True)
def get_tenant(services: Services, request: Request) -> Response:
    """Get a tenant.

    What the tenant may do, and how much of its quotas it uses. One read.
    """
    return _reply(services.tenants.get(existing_tenant(request)))


@ROUTES.add(
    "PATCH",
    "/v1/tenants/{tenant_id}",
    "operator",
    response="TenantView",
    body_type="application/merge-patch+json",
    if_match=True,
)
def patch_tenant(services: Services, request: Request, body: TenantPatch) -> Response:
    """Change what a tenant may.

    Fields that the body leaves out stay, and null means the default; `add_targets` and `remove_targets` change
    single patterns. It takes effect within 15 s, also for runs that wait. With `If-Match` only if that is the
    current revision. One read and one transaction.
    """
    tenant_id = existing_tenant(request)
    changes = to_builtins(body)
    tenant = services.tenants.edit(
        tenant_id, changes, request.now, expected_revision=request.if_match(), by=request.credential.by
    )
    return _reply(tenant)


@ROUTES.add(
    "POST",
    "/v1/tenants/{tenant_id}/suspend",
    "operator",
    response="TenantView",
    body_optional=True,
)
def suspend_tenant(services: Services, request: Request, body: Suspension) -> Response:
    """Stop a tenant's jobs and changes.

    Within 15 s its executions are skipped and its changes refused; it can still read everything, and the note. One
    read and one transaction. `conflict`: the tenant is being deleted.
    """
    tenant_id = existing_tenant(request)
    return _reply(services.tenants.suspend(tenant_id, body.note, request.now, by=request.credential.by))


@ROUTES.add("POST", "/v1/tenants/{tenant_id}/resume", "operator", response="TenantView")
def resume_tenant(services: Services, request: Request) -> Response:
    """Let a suspended tenant go on.

    Within 15 s its jobs fire again and it can make changes. What was skipped does not run. One read and one
    transaction.
    """
    request.no_fields()
    tenant_id = existing_tenant(request)
    return _reply(services.tenants.resume(tenant_id, request.now, by=request.credential.by))


def existing_tenant(request: Request) -> str:
    """The tenant id in the path. Raises NotFound if the text cannot be an id."""
    return request.path_id("tenant_id", "tenant", TENANT_ID_CHARS)


def _reply(tenant: Tenant, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> Response:
    return Response(tenant_view(tenant), status, {"ETag": f'"{tenant.revision}"', **headers})


@ROUTES.add("GET", "/v1/tenant", "read", response="Tenant")
def get_own_tenant(services: Services, request: Request) -> Response:
    """Who you are.

    The tenant of the key or token, what the platform allows it, and how much it uses. One read.
    """
    tenant = services.tenants.get(request.tenant)
    key = {"key_id": request.credential.key_id, "role": request.credential.role}
    return Response({**tenant_view(tenant), "key": key})


@ROUTES.add(
    "DELETE",
    "/v1/tenants/{tenant_id}",
    "operator",
    response="TenantDeletion",
    status=HTTPStatus.ACCEPTED,
    other_status=HTTPStatus.OK,
)
def delete_tenant(services: Services, request: Request) -> Response:
    """Stop a tenant at once and for good, and remove all of it in the background.

    Within 15 s its keys are refused and its executions skipped. A minute later the ticks remove its jobs, runs,
    keys and audit. It cannot be undone, and the id is taken for 31 days. The status is 202, and 200 when all is
    removed; the same request again changes nothing.
    """
    tenant_id = existing_tenant(request)
    return _deletion_response(
        services.deletions.begin(tenant_id, request.now, by=request.credential.by), request.now
    )


@ROUTES.add("GET", "/v1/tenants/{tenant_id}/deletion", "operator", response="TenantDeletion")
def get_tenant_deletion(services: Services, request: Request) -> Response:
    """How far the removal of a tenant is.

    The number of items that were removed so far, and whether it has finished. One read. `not-found`: the tenant is
    not being deleted, or was removed over 31 days ago.
    """
    deletion = services.deletions.progress(existing_tenant(request))
    return Response(deletion_view(deletion, request.now))


@ROUTES.add(
    "POST",
    "/v1/tenants/{tenant_id}/projection",
    "operator",
    response="RebuiltRuns",
    query=(CURSOR, _REBUILT_DAYS),
)
def rebuild_projection(services: Services, request: Request) -> Response:
    """Write down the tenant's runs by time again.

    What lists across jobs read is made again from the runs of its jobs: a day of up to 200 jobs a request, or 20,000
    runs of these. Repeat it with the answer's cursor until that is null. It is needed if what lists show differs from a
    job's own list.
    """
    tenant, rebuild = existing_tenant(request), services.rebuild
    list_name = f"projection:{tenant}"
    cursor = read_cursor(
        keys.OPERATORS,
        list_name,
        request.query.get("cursor"),
        RebuildPosition,
        lambda position: position.from_run and window_of(position.from_run),
    )
    services.tenants.get(tenant)  # raises NotFound
    days = request.number("days", _DAYS_REBUILT, _MAX_DAYS_REBUILT)
    step = rebuild.step(tenant, cursor or rebuild.start(request.now, days), request.now)
    following = write_cursor(keys.OPERATORS, list_name, step.next)
    return Response({"runs_read": step.runs, "next_cursor": following})


def _deletion_response(deletion: Deletion, now: float) -> Response:
    status = HTTPStatus.ACCEPTED if deletion.finished_at is None else HTTPStatus.OK
    where = {"Location": f"/v1/tenants/{deletion.tenant_id}/deletion"}
    return Response(deletion_view(deletion, now), status, where)


@ROUTES.add("GET", "/v1/keys", "admin", response="KeyPage", query=(LIMIT, CURSOR), while_suspended=True)
def list_keys(services: Services, request: Request) -> Response:
    """List the tenant's keys.

    All of each key but the key itself, oldest first. A revoked key stays in the list for 30 days.
    """
    return _key_page(services, request, request.tenant)


@ROUTES.add("POST", "/v1/keys", "admin", response="MadeKey", status=HTTPStatus.CREATED, repeatable=False)
def create_key(services: Services, request: Request, body: NewKey) -> Response:
    """Create a key, which is shown this once.

    The response is the only place that shows the key: Minute8 stores its hash. `aws` makes a pair for AWS's SDKs.
    `conflict`: the tenant has the most keys that are possible. One query and one transaction.
    """
    return _create_key(services, request, body, request.tenant)


@ROUTES.add("DELETE", "/v1/keys/{key_id}", "admin", response="KeyView", while_suspended=True)
def revoke_key(services: Services, request: Request) -> Response:
    """Revoke a key: within a minute it is refused everywhere.

    A key may revoke itself. Revoking it again changes nothing. One read and one transaction.
    """
    return _revoke_key(services, request, request.tenant)


@ROUTES.add("GET", "/v1/tenants/{tenant_id}/keys", "operator", response="KeyPage", query=(LIMIT, CURSOR))
def list_keys_of_tenant(services: Services, request: Request) -> Response:
    """List a tenant's keys.

    As the tenant's own list.
    """
    return _key_page(services, request, _tenant_of_path(services, request))


@ROUTES.add(
    "POST",
    "/v1/tenants/{tenant_id}/keys",
    "operator",
    response="MadeKey",
    status=HTTPStatus.CREATED,
    repeatable=False,
)
def create_key_of_tenant(services: Services, request: Request, body: NewKey) -> Response:
    """Create a key for a tenant, which is shown this once.

    The first key of a tenant is made this way. The response is the only place that shows the key.
    """
    return _create_key(services, request, body, existing_tenant(request))


@ROUTES.add("DELETE", "/v1/tenants/{tenant_id}/keys/{key_id}", "operator", response="KeyView")
def revoke_key_of_tenant(services: Services, request: Request) -> Response:
    """Revoke a key: within a minute it is refused everywhere.

    Revoking it again changes nothing. One read and one transaction.
    """
    return _revoke_key(services, request, _tenant_of_path(services, request))


@ROUTES.add("GET", "/v1/operator-keys", "operator", response="KeyPage", query=(LIMIT, CURSOR))
def list_operator_keys(services: Services, request: Request) -> Response:
    """List the platform's own keys.

    All of each key but the key itself, oldest first. A revoked key stays in the list for 30 days.
    """
    return _key_page(services, request, keys.OPERATORS)


@ROUTES.add(
    "POST",
    "/v1/operator-keys",
    "operator",
    response="MadeKey",
    status=HTTPStatus.CREATED,
    repeatable=False,
)
def create_operator_key(services: Services, request: Request, body: NewOperatorKey) -> Response:
    """Create a key of the platform's own, which is shown this once.

    The response is the only place that shows the key. The first operator key is made with AWS credentials, by
    `minute8 operator-keys create`.
    """
    created = services.tenants.api_keys.create_operator_key(
        request.now, name=body.name or "", expires_at=body.expires_at, by=request.credential.by
    )
    return _key_response(*created, request.now)


@ROUTES.add("DELETE", "/v1/operator-keys/{key_id}", "operator", response="KeyView")
def revoke_operator_key(services: Services, request: Request) -> Response:
    """Revoke a key: within a minute it is refused everywhere.

    A key may revoke itself. Revoking it again changes nothing. One read and one transaction.
    """
    return _revoke_key(services, request, keys.OPERATORS)


def _tenant_of_path(services: Services, request: Request) -> str:
    return services.tenants.get(existing_tenant(request)).tenant_id


def _key_page(services: Services, request: Request, owner: str) -> Response:
    limit = request.number("limit", PAGE, MAX_PAGE)
    after = read_key(owner, "keys", request.query.get("cursor"))
    stored_keys = [key for key in services.tenants.api_keys.keys_of(owner) if _key_position(key) > after]
    page = stored_keys[:limit]
    cursor = write_cursor(owner, "keys", _key_position(page[-1])) if len(stored_keys) > limit else None
    return Response({"keys": [key_view(key, request.now) for key in page], "next_cursor": cursor})


def _key_position(key: ApiKey) -> str:
    """The key's position in the list, as `keys_of` sorts it."""
    return f"{key.created_at:012}-{key.key_id}"


def _create_key(services: Services, request: Request, body: NewKey, tenant: str) -> Response:
    # This route needs the highest role (admin), so the new key cannot have more rights than its creator.
    created = services.tenants.api_keys.create_key(
        tenant,
        body.role,
        request.now,
        name=body.name or "",
        expires_at=body.expires_at,
        masters=services.masters.required(request.now) if body.aws else None,
        by=request.credential.by,
    )
    return _key_response(*created, request.now)


def _key_response(raw_key: str, key: ApiKey, now: float) -> Response:
    return Response({**key_view(key, now), "key": raw_key}, HTTPStatus.CREATED)


def _revoke_key(services: Services, request: Request, owner: str) -> Response:
    """Revoke a key. A key may revoke itself: this ends a leaked key, and completes a rotation."""
    key_id = request.path["key_id"]
    key = services.tenants.api_keys.revoke_key(owner, key_id, request.now, by=request.credential.by)
    return Response(key_view(key, request.now))


@ROUTES.add(
    "GET",
    "/v1/audit",
    "admin",
    response="AuditPage",
    query=(LIMIT, CURSOR, *_AUDIT_FILTERS),
    while_suspended=True,
)
def list_audit(services: Services, request: Request) -> Response:
    """Who changed what, newest first.

    Each change with its author and the values before and after; entries stay for 400 days. A request reads up to
    2,000 entries, so a page of a filtered list can be short and have a next one.
    """
    return audit_page(services, request, request.tenant)


@ROUTES.add(
    "GET",
    "/v1/tenants/{tenant_id}/audit",
    "operator",
    response="AuditPage",
    query=(LIMIT, CURSOR, *_AUDIT_FILTERS),
)
def list_audit_of_tenant(services: Services, request: Request) -> Response:
    """Who changed what of a tenant's, newest first.

    As the tenant's own list, with changes of the platform's operators. The tenant must exist.
    """
    return audit_page(services, request, services.tenants.get(existing_tenant(request)).tenant_id)


@ROUTES.add(
    "GET", "/v1/operator-audit", "operator", response="AuditPage", query=(LIMIT, CURSOR, *_AUDIT_FILTERS)
)
def list_operator_audit(services: Services, request: Request) -> Response:
    """Who made and revoked the platform's keys and deleted tenants, newest first.

    Also blocks, dead letters and executions that were sent again. Entries stay for 400 days.
    """
    return audit_page(services, request, keys.OPERATORS)


def audit_page(services: Services, request: Request, owner: str) -> Response:
    """A page of the entries of `owner` (a tenant or the platform), filtered by the query."""
    entry_filter = EntryFilter.of(request.query)
    limit = request.number("limit", PAGE, MAX_PAGE)
    list_name = f"audit:{entry_filter}"
    before = read_key(owner, list_name, request.query.get("cursor"))
    entries, following = services.audit.page(owner, entry_filter, limit=limit, before_id=before)
    cursor = write_cursor(owner, list_name, following or None)
    names = services.tenants.api_keys.author_names(owner, {entry.by for entry in entries})
    return Response({"entries": [entry_view(entry, names) for entry in entries], "next_cursor": cursor})
