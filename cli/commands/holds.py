"""`minute8 holds`: stop the calls of a target, or of all, across tenants; and let them go on."""

from __future__ import annotations

from typing import Annotated

import typer

from cli import output
from cli.options import AsJson
from cli.output import console, print_json, relative
from cli.platform import Stage, platform
from cli.session import session
from minute8_client.shapes import Hold

app = typer.Typer(no_args_is_help=True, help="Targets that no tenant's run calls; needs an operator key.")

Pattern = Annotated[str, typer.Argument(help="A pattern of ARNs or hosts, in quotes; '*' is everything.")]


@app.command("list")
def list_holds(ctx: typer.Context, stage: Stage = None, as_json: AsJson = False) -> None:
    """List what is held."""
    with platform(ctx, stage) as here:
        _print(ctx, here.holds(), as_json)


@app.command()
def add(
    ctx: typer.Context,
    pattern: Pattern,
    note: Annotated[str, typer.Option(help="Why; the skipped runs show it.")] = "",
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Skip the runs of all tenants that would call a target, everywhere within seconds."""
    with platform(ctx, stage) as here:
        _print(ctx, here.hold_target(pattern, note), as_json)


@app.command()
def release(ctx: typer.Context, pattern: Pattern, stage: Stage = None, as_json: AsJson = False) -> None:
    """Let a held target be called again."""
    with platform(ctx, stage) as here:
        _print(ctx, here.release_target(pattern), as_json)


def _print(ctx: typer.Context, holds: list[Hold], as_json: bool) -> None:
    if as_json:
        print_json(holds)
        return
    now = session(ctx).clock.now()
    rows = [(one["pattern"], relative(one["held_at"], now), one["by"], one["note"]) for one in holds]
    console().print(output.table(("HELD", "SINCE", "BY", "NOTE"), rows) if rows else "nothing is held")
