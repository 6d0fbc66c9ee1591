"""The platform's commands: what they need, over the API or in the tables.

With an operator key (MINUTE8_OPERATOR_KEY, or `operator_key` in the profile) the commands use the API. Without one, or
with `--stage`, they use that deployment's tables with your AWS credentials, so the first key can be created without a
key. Both give the same results.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Protocol, Self

import typer

from minute8.cli.options import ExitCode
from minute8.cli.session import operator_settings, session
from minute8.client import Operator
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

Stage = Annotated[
    str | None,
    typer.Option(help="Work on this deployment's tables, with AWS credentials; else MINUTE8_STAGE, or dev."),
]


class MissingKey(typer.BadParameter):
    """There is no operator key. The command ends with the exit code NOT_ALLOWED."""

    exit_code = ExitCode.NOT_ALLOWED


class Platform(Protocol):
    """The tenants and all keys, with the methods of `minute8.client.Operator`."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: Any) -> None: ...

    def create_tenant(self, tenant_id: str, settings: Mapping[str, Any]) -> TenantView: ...
    def list_tenants(self) -> Iterator[TenantSummary]: ...
    def get_tenant(self, tenant_id: str) -> TenantView: ...
    def patch_tenant(self, tenant_id: str, changes: Mapping[str, Any]) -> TenantView: ...
    def suspend_tenant(self, tenant_id: str, note: str) -> TenantView: ...
    def resume_tenant(self, tenant_id: str) -> TenantView: ...

    def delete_tenant(self, tenant_id: str) -> TenantDeletion: ...
    def get_tenant_deletion(self, tenant_id: str) -> TenantDeletion: ...

    def list_keys_of_tenant(self, tenant_id: str) -> Iterator[Key]: ...
    def create_key_of_tenant(
        self, tenant_id: str, role: str, *, name: str, expires_at: str | None, aws: bool
    ) -> MadeKey: ...
    def revoke_key_of_tenant(self, tenant_id: str, key_id: str) -> Key: ...

    def list_audit_of_tenant(
        self,
        tenant_id: str,
        *,
        subject: str | None = None,
        action: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> Iterator[AuditEntry]: ...
    def list_operator_audit(
        self,
        *,
        subject: str | None = None,
        action: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> Iterator[AuditEntry]: ...

    def list_blocks(self) -> list[Block]: ...
    def block_target(self, pattern: str, note: str) -> list[Block]: ...
    def release_target(self, pattern: str) -> list[Block]: ...

    def list_unrecorded(self, *, from_at: str | None) -> Iterator[WithoutRecord]: ...
    def run_unrecorded(self, execution_ids: Sequence[str], *, send: bool) -> RanUnrecorded: ...

    def list_operator_keys(self) -> Iterator[Key]: ...
    def create_operator_key(self, *, name: str, expires_at: str | None) -> MadeKey: ...
    def revoke_operator_key(self, key_id: str) -> Key: ...


def operator_api(ctx: typer.Context) -> Operator:
    """The API for the platform. Raises typer.BadParameter without an operator key."""
    current = session(ctx)
    if settings := operator_settings(current.url, current.profile):
        return Operator(settings.url, settings.key)
    raise MissingKey(
        "needs an operator key: MINUTE8_OPERATOR_KEY, or operator_key in the profile;"
        " `minute8 operator-keys create --stage STAGE` makes one, with AWS credentials"
    )


def platform(ctx: typer.Context, stage: str | None) -> Platform:
    """The API if there is an operator key and no `--stage`, else the tables. Raises typer.BadParameter."""
    current = session(ctx)
    if stage is None and (settings := operator_settings(current.url, current.profile)):
        return Operator(settings.url, settings.key)
    # Imported here: boto3 would slow the start of every command.
    from minute8.cli.platform_tables import TablesPlatform

    return TablesPlatform.of(stage or os.environ.get("MINUTE8_STAGE") or "dev", current.clock)
