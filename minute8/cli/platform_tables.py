"""The platform's commands with AWS credentials: directly on the deployment's tables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, cast

from common.clock import Clock
from common.planning.due_index import DueIndex
from common.planning.queue import ExecutionsQueue
from common.platform.api_keys import ApiKey
from common.platform.deletion import Deletion, Deletions
from common.platform.run_again import RunAgain
from common.platform.signing_masters import StoredMasters, parameter_name
from common.platform.tenants import Tenants
from common.platform.views import (
    block_view,
    deletion_view,
    entry_view,
    key_view,
    ran_view,
    tenant_summary,
    tenant_view,
    unrecorded_view,
)
from common.runs.unrecorded import Unrecorded
from common.storage import aws, keys
from common.storage.aws import read_parameter
from common.storage.table import Table
from common.tenants.allowed_targets import Block as StoredBlock
from common.tenants.audit import EntryFilter
from common.tenants.blocks import Blocks
from common.tenants.tenant import Tenant
from common.timing.durations import parse_instant
from minute8.client.shapes import (
    AuditEntry,
    Block,
    Key,
    MadeKey,
    RanUnrecorded,
    TenantDeletion,
    TenantSummary,
    TenantView,
    WithoutRecord,
)


def table(kind: Literal["tenants", "jobs", "runs", "due"], stage: str) -> Table:
    """The stage's table, or the table that TENANTS_TABLE, JOBS_TABLE and so on name."""
    return Table(aws.dynamodb(), os.environ.get(f"{kind.upper()}_TABLE") or f"minute8-{stage}-{kind}")


class _QueueByName:
    """SQS for the stage's executions queue. Its address is looked up when it is needed: most commands send nothing."""

    def __init__(self, stage: str) -> None:
        self._stage = stage

    def __getattr__(self, operation: str) -> Any:
        def call(QueueUrl: str, **request: Any) -> Any:
            sqs = aws.sqs()
            name = f"minute8-{self._stage}-executions"
            url = os.environ.get("EXECUTIONS_QUEUE_URL") or sqs.get_queue_url(QueueName=name)["QueueUrl"]
            return getattr(sqs, operation)(QueueUrl=url, **request)

        return call


def executions_queue(stage: str, clock: Clock) -> ExecutionsQueue:
    """The stage's executions queue, or the queue that EXECUTIONS_QUEUE_URL names."""
    client: Any = _QueueByName(stage)
    return ExecutionsQueue(client, "", clock)


_ENTRIES_IN_PAGE = 200


@dataclass(frozen=True, slots=True)
class TablesPlatform:
    """`minute8.cli.platform.Platform` on the tables. The audit shows `aws` as the author."""

    store: Tenants
    deletions: Deletions
    blocked: Blocks
    run_again: RunAgain
    clock: Clock
    masters: StoredMasters

    @classmethod
    def of(cls, stage: str, clock: Clock) -> TablesPlatform:
        """For the tables of a stage, or the tables that TENANTS_TABLE, JOBS_TABLE and so on name."""
        tenants = table("tenants", stage)
        index = DueIndex(table("due", stage))
        return cls(
            Tenants(tenants),
            Deletions(tenants, table("jobs", stage), table("runs", stage), index),
            Blocks(tenants, clock),
            RunAgain(
                Unrecorded(table("due", stage), table("runs", stage)),
                executions_queue(stage, clock),
                tenants,
                clock,
            ),
            clock,
            StoredMasters(lambda: read_parameter(parameter_name(stage))),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None: ...

    def create_tenant(self, tenant_id: str, settings: Mapping[str, Any]) -> TenantView:
        rules = {field: value for field, value in settings.items() if field != "name"}
        return _tenant(self.store.create(tenant_id, settings.get("name", ""), self.clock.now(), rules))

    def list_tenants(self) -> Iterator[TenantSummary]:
        read = (tenant for tenant in self.store.list_tenants() if isinstance(tenant, Tenant))
        return (cast(TenantSummary, tenant_summary(tenant)) for tenant in read)

    def get_tenant(self, tenant_id: str) -> TenantView:
        return _tenant(self.store.get(tenant_id))

    def patch_tenant(self, tenant_id: str, changes: Mapping[str, Any]) -> TenantView:
        return _tenant(self.store.edit(tenant_id, changes, self.clock.now()))

    def suspend_tenant(self, tenant_id: str, note: str) -> TenantView:
        return _tenant(self.store.suspend(tenant_id, note, self.clock.now()))

    def resume_tenant(self, tenant_id: str) -> TenantView:
        return _tenant(self.store.resume(tenant_id, self.clock.now()))

    def delete_tenant(self, tenant_id: str) -> TenantDeletion:
        return self._deletion(self.deletions.begin(tenant_id, self.clock.now()))

    def get_tenant_deletion(self, tenant_id: str) -> TenantDeletion:
        return self._deletion(self.deletions.progress(tenant_id))

    def move_on(self, tenant_id: str) -> TenantDeletion:
        """Remove a slice of a tenant that is being deleted, as the ticks do."""
        return self._deletion(self.deletions.move_on(tenant_id, self.clock.now()))

    def list_keys_of_tenant(self, tenant_id: str) -> Iterator[Key]:
        return map(self._key, self.store.list_keys(tenant_id))

    def create_key_of_tenant(
        self, tenant_id: str, role: str, *, name: str, expires_at: str | None, aws: bool
    ) -> MadeKey:
        expiry, now = parse_instant(expires_at, "expires_at") if expires_at else None, self.clock.now()
        masters = self.masters.required(now) if aws else None
        return self._new_key(
            *self.store.api_keys.create_key(
                tenant_id, role, now, name=name, expires_at=expiry, masters=masters
            )
        )

    def revoke_key_of_tenant(self, tenant_id: str, key_id: str) -> Key:
        self.store.get(tenant_id)
        return self._key(self.store.api_keys.revoke_key(tenant_id, key_id, self.clock.now()))

    def list_operator_keys(self) -> Iterator[Key]:
        return map(self._key, self.store.api_keys.keys_of(keys.OPERATORS))

    def create_operator_key(self, *, name: str, expires_at: str | None) -> MadeKey:
        expiry = parse_instant(expires_at, "expires_at") if expires_at else None
        return self._new_key(
            *self.store.api_keys.create_operator_key(self.clock.now(), name=name, expires_at=expiry)
        )

    def revoke_operator_key(self, key_id: str) -> Key:
        return self._key(self.store.api_keys.revoke_key(keys.OPERATORS, key_id, self.clock.now()))

    def list_audit_of_tenant(self, tenant_id: str, **filters: str | None) -> Iterator[AuditEntry]:
        return self._audit(self.store.get(tenant_id).tenant_id, filters)

    def list_operator_audit(self, **filters: str | None) -> Iterator[AuditEntry]:
        return self._audit(keys.OPERATORS, filters)

    def _audit(self, owner: str, filters: Mapping[str, str | None]) -> Iterator[AuditEntry]:
        entry_filter = EntryFilter.of({name: text for name, text in filters.items() if text is not None})
        entries, following = self.store.audit.page(owner, entry_filter, limit=_ENTRIES_IN_PAGE)
        while True:
            names = self.store.api_keys.author_names(owner, {entry.by for entry in entries})
            yield from (cast(AuditEntry, entry_view(entry, names)) for entry in entries)
            if not following:
                return
            entries, following = self.store.audit.page(
                owner, entry_filter, limit=_ENTRIES_IN_PAGE, before_id=following
            )

    def list_blocks(self) -> list[Block]:
        return self._blocks(self.blocked.all())

    def block_target(self, pattern: str, note: str) -> list[Block]:
        return self._blocks(self.blocked.block(pattern, note, self.clock.now()))

    def release_target(self, pattern: str) -> list[Block]:
        return self._blocks(self.blocked.release(pattern, self.clock.now()))

    def list_unrecorded(self, *, from_at: str | None = None) -> Iterator[WithoutRecord]:
        first = parse_instant(from_at, "from_at") if from_at else 0
        executions, next_id = self.run_again.unrecorded.page("", first, _ENTRIES_IN_PAGE)
        while True:
            yield from (cast(WithoutRecord, unrecorded_view(execution)) for execution in executions)
            if not next_id:
                return
            executions, next_id = self.run_again.unrecorded.page(next_id, first, _ENTRIES_IN_PAGE)

    def run_unrecorded(self, execution_ids: Sequence[str], *, send: bool = False) -> RanUnrecorded:
        plan = self.run_again.run(execution_ids, dry_run=not send)
        return cast(RanUnrecorded, ran_view(plan, dry_run=not send))

    def _blocks(self, blocks: Iterable[StoredBlock]) -> list[Block]:
        return [cast(Block, block_view(block)) for block in blocks]

    def _deletion(self, deletion: Deletion) -> TenantDeletion:
        return cast(TenantDeletion, deletion_view(deletion, self.clock.now()))

    def _key(self, key: ApiKey) -> Key:
        return cast(Key, key_view(key, self.clock.now()))

    def _new_key(self, raw_key: str, key: ApiKey) -> MadeKey:
        return cast(MadeKey, {**self._key(key), "key": raw_key})


def _tenant(tenant: Tenant) -> TenantView:
    return cast(TenantView, tenant_view(tenant))
