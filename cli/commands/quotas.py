"""`minute8 quotas`: what the platform allows, next to what is used of it."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer
from rich.table import Table

from cli import output
from cli.options import AsJson
from cli.output import console, print_json
from cli.platform import Stage, platform
from cli.session import session
from common.errors import InvalidInput
from minute8_client.shapes import TenantView

app = typer.Typer(no_args_is_help=False, help="Quotas, and how much of them is used.")


@app.callback(invoke_without_command=True)
def quotas(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Show your own tenant's quotas, and how much of them is used; a tenant's key will do."""
    if ctx.invoked_subcommand is None:
        show(ctx, None, None, as_json)


@app.command("show")
def show(
    ctx: typer.Context,
    tenant_id: Annotated[
        str | None, typer.Argument(help="For operators: the tenant's id; your own tenant if left out.")
    ] = None,
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Show quotas and how much of them is used: a tenant's, or your own."""
    if tenant_id is None:
        with session(ctx).client() as client:
            _print(client.tenant(), as_json)
    else:
        with platform(ctx, stage) as here:
            _print(here.get_tenant(tenant_id), as_json)


@app.command("set")
def set_quotas(
    ctx: typer.Context,
    tenant_id: Annotated[str, typer.Argument(help="The tenant's id.")],
    quota: Annotated[list[str], typer.Argument(help="jobs=500, or jobs=default.", metavar="NAME=NUMBER…")],
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Change some of a tenant's quotas; the others stay. In force within 15 s."""
    with platform(ctx, stage) as here:
        _print(here.patch_tenant(tenant_id, {"quotas": read_quotas(quota)}), as_json)


def read_quotas(texts: list[str]) -> dict[str, int | None]:
    """The number in `jobs=500`; None for `jobs=default`, which sets the default. Raises InvalidInput."""
    return {name: _number(name, value) for name, _, value in (text.partition("=") for text in texts)}


def _number(name: str, text: str) -> int | None:
    if text == "default":
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise InvalidInput(
            "quota", "must be a quota", value=f"{name}={text}", accepted="a name and a number: jobs=100"
        )
    return int(text)


def _print(tenant: TenantView, as_json: bool) -> None:
    if as_json:
        print_json({name: tenant[name] for name in ("tenant_id", "usage", "quotas")})
        return
    if tenant["state"] != "active":
        note = f": {tenant['note']}" if tenant.get("note") else ""
        console().print(f"{tenant['tenant_id']} is {tenant['state']}{note}", soft_wrap=True, markup=False)
    console().print(quota_table(tenant))


def quota_table(tenant: TenantView) -> Table:
    """A table of the quotas; counted ones also show the use and its share."""
    rows: list[tuple[Any, ...]] = []
    used_of = cast("dict[str, int]", tenant["usage"])
    for name, most in cast("dict[str, int]", tenant["quotas"]).items():
        used = used_of.get(name)
        percent = output.used(used, most) if used is not None else "-"
        rows.append((name, f"{most:,}", f"{used:,}" if used is not None else "-", percent))
    return output.table(("QUOTA", "ALLOWED", "USED", "PERCENT"), rows)
