"""The client for the platform, with an operator key."""

from __future__ import annotations

from collections.abc import Sequence

from minute8.client.client import key_body
from minute8.client.operations import (
    Json,
    Listing,
    ListSteps,
    Operation,
    Request,
    entries_of,
    path_of,
    whole_pages,
)
from minute8.client.shapes import (
    AuditEntry,
    DeadLetterCount,
    DeadLetterCounts,
    DeadLetterList,
    DeadLettersDone,
    EndedRun,
    Hold,
    Holds,
    Key,
    MadeKey,
    Overview,
    PlatformDensity,
    PlatformPlanning,
    RanUnrecorded,
    RebuiltRuns,
    RuleEffects,
    TenantDeletion,
    TenantHealth,
    TenantLine,
    TenantSummary,
    TenantView,
    WithoutRecord,
)
from minute8.client.transport import Transport


class OperatorCalls:
    """All operations of an operator."""

    @Operation
    def create_tenant(self, tenant_id: str, settings: Json | None = None) -> Request[TenantView]:
        """`settings`: name, allowed_targets, quotas, retention_days, spread_s. Raises AlreadyExists, InvalidInput."""
        body = {**(settings or {}), "tenant_id": tenant_id}
        return Request("POST", "/v1/tenants", body, repeatable=False)

    @Listing
    def tenants(self) -> ListSteps[TenantSummary]:
        """All tenants in the order of their ids, page by page while they are consumed."""
        return entries_of("/v1/tenants", "tenants")

    @Operation
    def get_tenant(self, tenant_id: str) -> Request[TenantView]:
        return Request("GET", path_of("tenants", tenant_id))

    @Operation
    def patch_tenant(self, tenant_id: str, changes: Json, revision: int | None = None) -> Request[TenantView]:
        """Change settings: absent ones stay, None sets the default. Raises RevisionMismatch.

        `add_targets` and `remove_targets` are single patterns of `allowed_targets`.
        """
        return Request("PATCH", path_of("tenants", tenant_id), changes, revision)

    @Operation
    def suspend_tenant(self, tenant_id: str, note: str = "") -> Request[TenantView]:
        """Stop its jobs and its changes, everywhere within seconds."""
        path = path_of("tenants", tenant_id, "suspend")
        return Request("POST", path, {"note": note})

    @Operation
    def resume_tenant(self, tenant_id: str) -> Request[TenantView]:
        return Request("POST", path_of("tenants", tenant_id, "resume"))

    @Operation
    def end_run_of(self, tenant_id: str, execution_id: str, note: str = "") -> Request[EndedRun]:
        """End a tenant's run by force, and free what other runs wait for, even if its work goes on."""
        path = path_of("tenants", tenant_id, "runs", execution_id, "end")
        return Request("POST", path, {"note": note})

    @Operation
    def delete_tenant(self, tenant_id: str) -> Request[TenantDeletion]:
        """Stop the tenant permanently; the platform's ticks then remove everything that it owns."""
        return Request("DELETE", path_of("tenants", tenant_id))

    @Operation
    def deletion_of(self, tenant_id: str) -> Request[TenantDeletion]:
        """The progress of a deletion. Raises NotFound, also a month after its end."""
        return Request("GET", path_of("tenants", tenant_id, "deletion"))

    @Operation
    def rebuild_step(
        self, tenant_id: str, *, days: int = 30, cursor: str | None = None
    ) -> Request[RebuiltRuns]:
        """A step of writing down a tenant's runs by time again."""
        query = {"days": days, "cursor": cursor}
        return Request("POST", path_of("tenants", tenant_id, "projection"), query=query)

    @Listing
    def rebuild_runs(self, tenant_id: str, days: int = 30) -> ListSteps[RebuiltRuns]:
        """All steps of it, each done when it is yielded."""
        return whole_pages(
            lambda cursor: OperatorCalls.rebuild_step.request(tenant_id, days=days, cursor=cursor)
        )

    @Operation
    def overview_page(
        self,
        *,
        from_at: str | None = None,
        until_at: str | None = None,
        problems: bool = False,
        sort: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Request[Overview]:
        """A page of all tenants with their runs of a day, or of [from_at, until_at), and the platform's runs by hour.

        `sort`: `id`, `failing`, `late`, `load` or `quota`.
        """
        query = {
            "from_at": from_at,
            "until_at": until_at,
            "problems": "true" if problems else None,
            "sort": sort,
            "limit": limit,
            "cursor": cursor,
        }
        return Request("GET", "/v1/operator-overview", query=query)

    @Listing
    def overview(
        self,
        *,
        from_at: str | None = None,
        until_at: str | None = None,
        problems: bool = False,
        sort: str | None = None,
    ) -> ListSteps[TenantLine]:
        """All tenants with their use of quotas and their runs of a day, or of [from_at, until_at)."""
        query = {
            "from_at": from_at,
            "until_at": until_at,
            "problems": "true" if problems else None,
            "sort": sort,
        }
        return entries_of("/v1/operator-overview", "tenants", **query)

    @Operation
    def tenant_health(
        self, tenant_id: str, *, from_at: str | None = None, until_at: str | None = None
    ) -> Request[TenantHealth]:
        """Counts and lateness of a tenant's runs of a day, or of [from_at, until_at); failing and overdue jobs."""
        query = {"from_at": from_at, "until_at": until_at}
        return Request("GET", path_of("tenants", tenant_id, "health"), query=query)

    @Operation
    def check_tenant(self, tenant_id: str, changes: Json) -> Request[RuleEffects]:
        """What a change of settings would break; changes nothing."""
        return Request("POST", path_of("tenants", tenant_id, "check"), changes)

    @Listing
    def densities(
        self, *, from_at: str | None = None, until_at: str | None = None
    ) -> ListSteps[PlatformDensity]:
        """How many executions of all tenants are due in each minute, for an hour by default; counts of pages add up."""
        return whole_pages(
            lambda cursor: Request(
                "GET",
                "/v1/operator-density",
                query={"cursor": cursor, "from_at": from_at, "until_at": until_at},
            )
        )

    @Operation
    def planning(self, *, windows: int | None = None) -> Request[PlatformPlanning]:
        """Up to when all is planned, how so many of the last windows went (36 by default), what is set aside."""
        return Request("GET", "/v1/operator-planning", query={"windows": windows})

    @Operation
    def dead_letter_counts(self) -> Request[list[DeadLetterCount]]:
        """How many messages of each queue were given up."""
        return Request("GET", path_of("dead-letters"), shape=_counted)

    @Operation
    def dead_letters(self, queue: str, *, limit: int | None = None) -> Request[DeadLetterList]:
        """What the given-up messages of `executions`, `planning` or `outcomes` are about; 100 at most."""
        return Request("GET", path_of("dead-letters", queue), query={"limit": limit})

    @Operation
    def redrive(self, queue: str, message_ids: list[str] | None = None) -> Request[DeadLettersDone]:
        """Send some again, or without ids all, of which a request takes 100."""
        return Request("POST", path_of("dead-letters", queue, "redrive"), _letters(message_ids))

    @Operation
    def discard(self, queue: str, message_ids: list[str] | None = None) -> Request[DeadLettersDone]:
        """Delete some, or without ids all, of which a request takes 100."""
        return Request("POST", path_of("dead-letters", queue, "discard"), _letters(message_ids))

    @Listing
    def keys_of(self, tenant_id: str) -> ListSteps[Key]:
        """A tenant's keys, oldest first."""
        return entries_of(path_of("tenants", tenant_id, "keys"), "keys")

    @Operation
    def create_key_of(
        self, tenant_id: str, role: str, *, name: str = "", expires_at: str | None = None, aws: bool = False
    ) -> Request[MadeKey]:
        """Create a key for a tenant, as `Client.create_key`. The key is shown only in this answer, as `key`."""
        body = {"role": role, **key_body(name, expires_at), **({"aws": True} if aws else {})}
        path = path_of("tenants", tenant_id, "keys")
        return Request("POST", path, body, repeatable=False)

    @Operation
    def revoke_key_of(self, tenant_id: str, key_id: str) -> Request[Key]:
        """Within a minute it is refused everywhere."""
        return Request("DELETE", path_of("tenants", tenant_id, "keys", key_id))

    @Listing
    def audit_of(self, /, tenant_id: str, **filters: str | None) -> ListSteps[AuditEntry]:
        """Who changed what of a tenant, newest first; `wanted` as for `Client.audit`."""
        return entries_of(path_of("tenants", tenant_id, "audit"), "entries", **filters)

    @Listing
    def operator_audit(self, /, **filters: str | None) -> ListSteps[AuditEntry]:
        """Who created and revoked the platform's own keys, and deleted tenants."""
        return entries_of("/v1/operator-audit", "entries", **filters)

    @Listing
    def operator_keys(self) -> ListSteps[Key]:
        """The platform's own keys, oldest first."""
        return entries_of("/v1/operator-keys", "keys")

    @Operation
    def create_operator_key(self, *, name: str = "", expires_at: str | None = None) -> Request[MadeKey]:
        body = key_body(name, expires_at)
        return Request("POST", "/v1/operator-keys", body, repeatable=False)

    @Operation
    def revoke_operator_key(self, key_id: str) -> Request[Key]:
        return Request("DELETE", path_of("operator-keys", key_id))

    @Operation
    def holds(self) -> Request[list[Hold]]:
        """The targets that no run calls."""
        return Request("GET", path_of("holds"), shape=_held)

    @Operation
    def hold_target(self, pattern: str, note: str = "") -> Request[list[Hold]]:
        """Skip the runs of all tenants that would call it; `*` is everything. Again, it changes the note."""
        return Request("POST", path_of("holds"), {"pattern": pattern, "note": note}, shape=_held)

    @Operation
    def release_target(self, pattern: str) -> Request[list[Hold]]:
        """Let it be called again. Raises NotFound."""
        body = {"pattern": pattern}
        return Request("POST", path_of("holds", "release"), body, repeatable=False, shape=_held)

    @Listing
    def unrecorded(self, *, from_at: str | None = None) -> ListSteps[WithoutRecord]:
        """The executions that were enqueued and have no record, of those due from `from_at` on."""
        return entries_of("/v1/platform/unrecorded", "executions", from_at=from_at)

    @Operation
    def run_unrecorded(self, execution_ids: Sequence[str]) -> Request[RanUnrecorded]:
        """Send up to 100 of them again: the same executions, which run once. Raises NotFound if one is not listed."""
        body = {"execution_ids": list(execution_ids)}
        return Request("POST", path_of("platform", "unrecorded", "run"), body)


class Operator(OperatorCalls, Transport):
    """The API for the platform: tenants, their keys and the platform's own. Tenants' jobs and runs are not visible."""


def _counted(answer: DeadLetterCounts) -> list[DeadLetterCount]:
    return answer["queues"]


def _letters(message_ids: list[str] | None) -> Json:
    return {"all": True} if message_ids is None else {"message_ids": message_ids}


def _held(answer: Holds) -> list[Hold]:
    return answer["holds"]
