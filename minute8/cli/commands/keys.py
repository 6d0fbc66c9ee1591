"""`minute8 keys`, `operator-keys` and `webhook-secret`: a tenant's keys and secret, and the platform's own keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.table import Table

from common.timing.instants import relative, when
from minute8.cli import output
from minute8.cli.options import AsJson, with_options
from minute8.cli.output import console, print_json, say, state
from minute8.cli.platform import Stage, platform
from minute8.cli.session import session
from minute8.cli.time_range import time_ahead
from minute8.client.shapes import Key, MadeKey

app = typer.Typer(
    no_args_is_help=True,
    help="API keys: your own tenant's, with an admin key; any tenant's, with an operator key or AWS credentials.",
)
operator_app = typer.Typer(
    no_args_is_help=True, help="Keys of operators; needs an operator key or AWS credentials."
)

TenantId = Annotated[
    str | None,
    typer.Argument(metavar="[TENANT]", help="For operators: the tenant's id; your own tenant if left out."),
]
Purpose = Annotated[str, typer.Option("--name", help="The purpose of the key.")]
Expiry = Annotated[
    str,
    typer.Option("--expires", help="After this (90d, PT12H) or at a time (RFC 3339); never if left out."),
]


@dataclass(frozen=True, slots=True)
class NewKey:
    """What a new key allows, and for how long."""

    role: Annotated[str, typer.Option(help="read, write or admin.")] = "write"
    name: Purpose = ""
    expires: Expiry = ""
    aws: Annotated[
        bool, typer.Option("--aws", help="A pair for AWS's SDKs and the EventBridge endpoint.")
    ] = False


@app.command("create")
@with_options
def create(
    ctx: typer.Context,
    tenant_id: TenantId = None,
    *,
    new: NewKey,
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Create an API key. It is shown this once and stored only as a hash.

    With --aws it prints two lines that a shell can evaluate: the access key id and the secret access key.
    """
    now = session(ctx).clock.now()
    expires_at = time_ahead(new.expires, now, "expires", 90) if new.expires else None
    if tenant_id is None:
        with session(ctx).client() as client:
            key = client.create_key(new.role, name=new.name, expires_at=expires_at, aws=new.aws)
    else:
        with platform(ctx, stage) as api:
            key = api.create_key_of_tenant(
                tenant_id, new.role, name=new.name, expires_at=expires_at, aws=new.aws
            )
    _print_new_key(key, f"{new.role} for {tenant_id or 'your tenant'}", now, as_json)


@app.command("list")
def list_keys(
    ctx: typer.Context, tenant_id: TenantId = None, stage: Stage = None, as_json: AsJson = False
) -> None:
    """List keys: a tenant's, or your own tenant's."""
    if tenant_id is None:
        with session(ctx).client() as client:
            keys = list(client.list_keys())
    else:
        with platform(ctx, stage) as api:
            keys = list(api.list_keys_of_tenant(tenant_id))
    _print_keys(keys, session(ctx).clock.now(), as_json)


@app.command("revoke")
def revoke(
    ctx: typer.Context,
    ids: Annotated[
        list[str], typer.Argument(metavar="[TENANT] KEY_ID", help="The key's id, as `keys list` shows it.")
    ],
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key: within a minute it is refused everywhere."""
    match ids:
        case [key_id]:
            with session(ctx).client() as client:
                key = client.revoke_key(key_id)
        case [tenant_id, key_id]:
            with platform(ctx, stage) as api:
                key = api.revoke_key_of_tenant(tenant_id, key_id)
        case _:
            raise typer.BadParameter("a key's id, and for the platform its tenant before it")
    _print_revoked(key, key_id, as_json)


@operator_app.command("create")
def create_operator(
    ctx: typer.Context, name: Purpose = "", expires: Expiry = "", stage: Stage = None, as_json: AsJson = False
) -> None:
    """Create a key of the platform's own. The first one needs AWS credentials."""
    now = session(ctx).clock.now()
    with platform(ctx, stage) as api:
        expires_at = time_ahead(expires, now, "expires", 90) if expires else None
        key = api.create_operator_key(name=name, expires_at=expires_at)
    _print_new_key(key, "operator, over all tenants", now, as_json)


@operator_app.command("list")
def list_operators(ctx: typer.Context, stage: Stage = None, as_json: AsJson = False) -> None:
    """List the platform's own keys."""
    with platform(ctx, stage) as api:
        keys = list(api.list_operator_keys())
    _print_keys(keys, session(ctx).clock.now(), as_json)


@operator_app.command("revoke")
def revoke_operator(
    ctx: typer.Context,
    key_id: Annotated[str, typer.Argument(help="The key's id, as `operator-keys list` shows it.")],
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key of the platform's own: within a minute it is refused everywhere."""
    with platform(ctx, stage) as api:
        key = api.revoke_operator_key(key_id)
    _print_revoked(key, key_id, as_json)


def key_table(keys: Sequence[Key], now: float) -> Table | str:
    """A table of keys, without the keys themselves."""
    rows = [
        (
            key["key_id"],
            key.get("access_key_id") or f"{key['prefix']}…",
            key["role"],
            state(key["state"]),
            relative(key["created_at"], now),
            relative(key["expires_at"], now),
            key["name"],
        )
        for key in keys
    ]
    columns = ("KEY", "BEGINS", "ROLE", "STATE", "CREATED", "EXPIRES", "NAME")
    return output.table(columns, rows) if rows else "no keys"


def _print_new_key(key: MadeKey, purpose: str, now: float, as_json: bool) -> None:
    """Print only the key on stdout, so that a shell can assign it to a variable; of a pair, the assignments."""
    if as_json:
        print_json(key)
        return
    if access_key_id := key.get("access_key_id"):
        typer.echo(f"export AWS_ACCESS_KEY_ID={access_key_id}\nexport AWS_SECRET_ACCESS_KEY={key['key']}")
    else:
        typer.echo(key["key"])
    ends = f"until {when(key['expires_at'], now)}" if key["expires_at"] else "until it is revoked"
    say(f"Key {key['key_id']}: {purpose}, {ends}. It cannot be shown again.")


def _print_keys(keys: Sequence[Key], now: float, as_json: bool) -> None:
    if as_json:
        print_json(keys)
        return
    console().print(key_table(keys, now))


def _print_revoked(key: Key, key_id: str, as_json: bool) -> None:
    if as_json:
        print_json(key)
        return
    console().print(f"{key_id} revoked; within a minute it is refused everywhere")


def webhook_secret(
    ctx: typer.Context,
    rotate: Annotated[
        bool, typer.Option(help="Create a new secret; the old one signs for one more day.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the secret that signs calls of HTTP targets (Standard Webhooks); needs an admin key."""
    with session(ctx).client() as client:
        secret = client.rotate_webhook_secret() if rotate else client.get_webhook_secret()
    print_json({"secret": secret}) if as_json else typer.echo(secret)
