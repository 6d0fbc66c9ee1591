"""`minute8 tenants` and `minute8 keys`: the platform's side.

They work on the deployment's tables with your AWS credentials (AWS_PROFILE, AWS_ENDPOINT_URL and so on are honoured),
so that the first key can be made before there is any.
"""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Annotated, Any

import typer

from cli import output
from cli.output import console, print_json, relative, state, when
from cli.session import session
from common import aws
from common.duration import parse_duration, parse_instant
from common.errors import InvalidInput
from common.instants import rfc3339
from common.tables import Table
from common.tenants import ApiKey, Tenant, Tenants

tenants_app = typer.Typer(no_args_is_help=True, help="Tenants; needs AWS credentials.")
keys_app = typer.Typer(no_args_is_help=True, help="API keys; needs AWS credentials.")

TenantId = Annotated[str, typer.Argument(help="The tenant's id.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Targets = Annotated[
    list[str] | None,
    typer.Option("--allow-target", help="An ARN pattern or a host that it may call; may be repeated."),
]
Stage = Annotated[str, typer.Option(help="The deployment's stage.", envvar="MINUTE8_STAGE")]


@tenants_app.command("create")
def create_tenant(
    ctx: typer.Context,
    tenant_id: TenantId,
    name: Annotated[str, typer.Option(help="A name for people.")] = "",
    allow_target: Targets = None,
    stage: Stage = "dev",
    as_json: AsJson = False,
) -> None:
    """Create a tenant. It may call nothing but the targets that are allowed here or by `tenants edit`."""
    rules = {"allowed_targets": allow_target} if allow_target else {}
    tenant = _tenants(stage).create(tenant_id, name, session(ctx).clock.now(), rules)
    if as_json:
        print_json(_tenant_view(tenant))
        return
    console().print(f"{tenant_id} created; its first key: minute8 keys create {tenant_id} --role admin")


@tenants_app.command("edit")
def edit_tenant(
    ctx: typer.Context,
    tenant_id: TenantId,
    allow_target: Targets = None,
    quota: Annotated[list[str] | None, typer.Option(help="A quota, jobs=100; may be repeated.")] = None,
    retention_days: Annotated[int | None, typer.Option(help="How long its runs are kept.")] = None,
    stage: Stage = "dev",
) -> None:
    """Change what a tenant may do. The targets given take the place of those before."""
    changes: dict[str, Any] = {"allowed_targets": allow_target, "retention_days": retention_days}
    if quota:
        changes["quotas"] = {
            name: _number(name, value) for name, _, value in (q.partition("=") for q in quota)
        }
    given = {name: value for name, value in changes.items() if value is not None}
    _tenants(stage).edit(tenant_id, given, session(ctx).clock.now())
    console().print(f"{tenant_id} is changed; the executors know within 15 s", markup=False)


@tenants_app.command("suspend")
def suspend_tenant(
    ctx: typer.Context,
    tenant_id: TenantId,
    note: Annotated[str, typer.Option(help="Why.")] = "",
    stage: Stage = "dev",
) -> None:
    """Stop all jobs of a tenant; what becomes due meanwhile is skipped."""
    _tenants(stage).suspend(tenant_id, note, session(ctx).clock.now())
    console().print(f"{tenant_id} is suspended; the executors know within 15 s", markup=False)


@tenants_app.command("resume")
def resume_tenant(ctx: typer.Context, tenant_id: TenantId, stage: Stage = "dev") -> None:
    """Let a suspended tenant's jobs run again."""
    _tenants(stage).resume(tenant_id, session(ctx).clock.now())
    console().print(f"{tenant_id} is resumed", markup=False)


def _number(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise InvalidInput(
            "quota", "is no quota", value=f"{name}={text}", accepted="a name and a number: jobs=100"
        )
    return int(text)


@tenants_app.command("list")
def list_tenants(ctx: typer.Context, stage: Stage = "dev", as_json: AsJson = False) -> None:
    """List the tenants."""
    found = list(_tenants(stage).list_tenants())
    if as_json:
        print_json([_tenant_view(tenant) for tenant in found])
        return
    now = session(ctx).clock.now()
    rows = [(tenant.tenant_id, relative(tenant.created_at, now), tenant.name) for tenant in found]
    console().print(output.table(("TENANT", "CREATED", "NAME"), rows) if rows else "no tenants")


@tenants_app.command("show")
def show_tenant(
    ctx: typer.Context, tenant_id: TenantId, stage: Stage = "dev", as_json: AsJson = False
) -> None:
    """Show a tenant and its keys."""
    tenants = _tenants(stage)
    tenant, keys = tenants.get(tenant_id), tenants.list_keys(tenant_id)
    now = session(ctx).clock.now()
    if as_json:
        print_json(_tenant_view(tenant) | {"keys": [_key_view(key, now) for key in keys]})
        return
    name = f" ({tenant.name})" if tenant.name else ""
    created = when(tenant.created_at, now)
    console().print(f"{tenant_id}{name}, created {created}", markup=False, soft_wrap=True)
    _print_keys(keys, now)


@keys_app.command("create")
def create_key(
    ctx: typer.Context,
    tenant_id: TenantId,
    role: Annotated[str, typer.Option(help="read, write or admin.")] = "write",
    name: Annotated[str, typer.Option(help="What it is for.")] = "",
    expires: Annotated[
        str, typer.Option(help="After this (90d, PT12H) or at a time (RFC 3339); never if left out.")
    ] = "",
    stage: Stage = "dev",
    as_json: AsJson = False,
) -> None:
    """Create an API key. It is shown this once and stored only as a hash."""
    now = session(ctx).clock.now()
    expires_at = _expiry(expires, now) if expires else None
    raw_key, key = _tenants(stage).create_key(tenant_id, role, now, name=name, expires_at=expires_at)
    if as_json:
        print_json(_key_view(key, now) | {"key": raw_key})
        return
    typer.echo(raw_key)
    ends = f"until {when(key.expires_at, now)}" if key.expires_at else "until it is revoked"
    typer.echo(f"Key {key.key_id}: {role} for {tenant_id}, {ends}. It cannot be shown again.", err=True)


@keys_app.command("list")
def list_keys(ctx: typer.Context, tenant_id: TenantId, stage: Stage = "dev", as_json: AsJson = False) -> None:
    """List a tenant's keys."""
    now = session(ctx).clock.now()
    found = _tenants(stage).list_keys(tenant_id)
    if as_json:
        print_json([_key_view(key, now) for key in found])
        return
    _print_keys(found, now)


@keys_app.command("revoke")
def revoke_key(
    ctx: typer.Context,
    tenant_id: TenantId,
    key_id: Annotated[str, typer.Argument(help="The key's id, as `keys list` shows it.")],
    stage: Stage = "dev",
    as_json: AsJson = False,
) -> None:
    """Revoke a key: within a minute it is refused everywhere."""
    now = session(ctx).clock.now()
    key = _tenants(stage).revoke_key(tenant_id, key_id, now)
    if as_json:
        print_json(_key_view(key, now))
        return
    console().print(f"{key_id} revoked; within a minute it is refused everywhere")


def _tenants(stage: str) -> Tenants:
    return Tenants(Table(aws.dynamodb(), os.environ.get("TENANTS_TABLE") or f"minute8-{stage}-tenants"))


def _expiry(text: str, now: float) -> int:
    try:
        return int(now) + parse_duration(text, "expires")
    except InvalidInput:
        return parse_instant(text, "expires")


def _print_keys(keys: list[ApiKey], now: float) -> None:
    rows = [
        (
            key.key_id,
            f"{key.prefix}…",
            key.role,
            state(key.state(now)),
            relative(key.created_at, now),
            relative(key.expires_at, now),
            key.name,
        )
        for key in keys
    ]
    columns = ("KEY", "BEGINS", "ROLE", "STATE", "CREATED", "EXPIRES", "NAME")
    console().print(output.table(columns, rows) if rows else "no keys")


def _tenant_view(tenant: Tenant) -> dict[str, Any]:
    return asdict(tenant) | {"created_at": rfc3339(tenant.created_at)}


def _key_view(key: ApiKey, now: float) -> dict[str, Any]:
    instants = {
        name: rfc3339(at) if at is not None else None
        for name, at in (
            ("created_at", key.created_at),
            ("expires_at", key.expires_at),
            ("revoked_at", key.revoked_at),
        )
    }
    shown = ("key_id", "tenant", "role", "name", "prefix")
    return {name: getattr(key, name) for name in shown} | {"state": key.state(now)} | instants
