"""The client for the platform, with an operator key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from minute8_client.keys import key_body
from minute8_client.shapes import (
    AuditEntry,
    Hold,
    Holds,
    Key,
    MadeKey,
    PlatformDensity,
    RuleEffects,
    TenantDeletion,
    TenantHealth,
    TenantLine,
    TenantSummary,
    TenantView,
)
from minute8_client.transport import Json, Transport, pages, path_of


class Operator(Transport):
    """The API for the platform: tenants, their keys and the platform's own. Tenants' jobs and runs are not visible."""

    def create_tenant(self, tenant_id: str, settings: Json | None = None) -> TenantView:
        """`settings`: name, allowed_targets, quotas, retention_days, spread_s. Raises AlreadyExists, InvalidInput."""
        body = {**(settings or {}), "tenant_id": tenant_id}
        return cast(TenantView, self.call("POST", "/v1/tenants", body, repeatable=False))

    def tenants(self) -> Iterator[TenantSummary]:
        """All tenants in the order of their ids, page by page while they are consumed."""
        return pages(self, "/v1/tenants", "tenants")

    def get_tenant(self, tenant_id: str) -> TenantView:
        return cast(TenantView, self.call("GET", path_of("tenants", tenant_id)))

    def patch_tenant(self, tenant_id: str, changes: Json, revision: int | None = None) -> TenantView:
        """Change settings: absent ones stay, None sets the default. Raises RevisionMismatch.

        `add_targets` and `remove_targets` are single patterns of `allowed_targets`.
        """
        return cast(TenantView, self.call("PATCH", path_of("tenants", tenant_id), changes, revision))

    def suspend_tenant(self, tenant_id: str, note: str = "") -> TenantView:
        """Stop its jobs and its changes, everywhere within seconds."""
        path = path_of("tenants", tenant_id, "suspend")
        return cast(TenantView, self.call("POST", path, {"note": note}))

    def resume_tenant(self, tenant_id: str) -> TenantView:
        return cast(TenantView, self.call("POST", path_of("tenants", tenant_id, "resume")))

    def delete_tenant(self, tenant_id: str) -> TenantDeletion:
        """Stop the tenant permanently; the platform's ticks then remove everything that it owns."""
        return cast(TenantDeletion, self.call("DELETE", path_of("tenants", tenant_id)))

    def deletion_of(self, tenant_id: str) -> TenantDeletion:
        """The progress of a deletion. Raises NotFound, also a month after its end."""
        return cast(TenantDeletion, self.call("GET", path_of("tenants", tenant_id, "deletion")))

    def overview(
        self, *, from_at: str | None = None, until_at: str | None = None, problems: bool = False
    ) -> Iterator[TenantLine]:
        """All tenants with their use of quotas and their failures of a day, or of [from_at, until_at)."""
        span = {"from_at": from_at, "until_at": until_at, "problems": "true" if problems else None}
        return pages(self, "/v1/operator-overview", "tenants", **span)

    def tenant_health(
        self, tenant_id: str, *, from_at: str | None = None, until_at: str | None = None
    ) -> TenantHealth:
        """Counts and lateness of a tenant's runs of a day, or of [from_at, until_at); failing and overdue jobs."""
        query = {"from_at": from_at, "until_at": until_at}
        return cast(TenantHealth, self.call("GET", path_of("tenants", tenant_id, "health"), query=query))

    def check_tenant(self, tenant_id: str, changes: Json) -> RuleEffects:
        """What a change of settings would break; changes nothing."""
        return cast(RuleEffects, self.call("POST", path_of("tenants", tenant_id, "check"), changes))

    def densities(
        self, *, from_at: str | None = None, until_at: str | None = None
    ) -> Iterator[PlatformDensity]:
        """How many executions of all tenants are due in each minute, for an hour by default; counts of pages add up."""
        cursor = None
        while True:
            query = {"cursor": cursor, "from_at": from_at, "until_at": until_at}
            page = cast(PlatformDensity, self.call("GET", "/v1/operator-density", query=query))
            yield page
            if not (cursor := page["next_cursor"]):
                return

    def keys_of(self, tenant_id: str) -> Iterator[Key]:
        """A tenant's keys, oldest first."""
        return pages(self, path_of("tenants", tenant_id, "keys"), "keys")

    def create_key_of(
        self, tenant_id: str, role: str, *, name: str = "", expires_at: str | None = None
    ) -> MadeKey:
        """Create a key for a tenant. The key is shown only in this answer, as `key`."""
        body = {"role": role, **key_body(name, expires_at)}
        path = path_of("tenants", tenant_id, "keys")
        return cast(MadeKey, self.call("POST", path, body, repeatable=False))

    def revoke_key_of(self, tenant_id: str, key_id: str) -> Key:
        """Within a minute it is refused everywhere."""
        return cast(Key, self.call("DELETE", path_of("tenants", tenant_id, "keys", key_id)))

    def audit_of(self, tenant_id: str, **wanted: str | None) -> Iterator[AuditEntry]:
        """Who changed what of a tenant, newest first; `wanted` as for `Client.audit`."""
        return pages(self, path_of("tenants", tenant_id, "audit"), "entries", **wanted)

    def operator_audit(self, **wanted: str | None) -> Iterator[AuditEntry]:
        """Who created and revoked the platform's own keys, and deleted tenants."""
        return pages(self, "/v1/operator-audit", "entries", **wanted)

    def operator_keys(self) -> Iterator[Key]:
        """The platform's own keys, oldest first."""
        return pages(self, "/v1/operator-keys", "keys")

    def create_operator_key(self, *, name: str = "", expires_at: str | None = None) -> MadeKey:
        body = key_body(name, expires_at)
        return cast(MadeKey, self.call("POST", "/v1/operator-keys", body, repeatable=False))

    def revoke_operator_key(self, key_id: str) -> Key:
        return cast(Key, self.call("DELETE", path_of("operator-keys", key_id)))

    def holds(self) -> list[Hold]:
        """The targets that no run calls."""
        return cast("Holds", self.call("GET", path_of("holds")))["holds"]

    def hold_target(self, pattern: str, note: str = "") -> list[Hold]:
        """Skip the runs of all tenants that would call it; `*` is everything. Again, it changes the note."""
        return cast("Holds", self.call("POST", path_of("holds"), {"pattern": pattern, "note": note}))["holds"]

    def release_target(self, pattern: str) -> list[Hold]:
        """Let it be called again. Raises NotFound."""
        body = {"pattern": pattern}
        return cast("Holds", self.call("POST", path_of("holds", "release"), body, repeatable=False))["holds"]
