"""`minute8 planning`: up to when all is planned, how the last windows went, and what could not be planned."""

from __future__ import annotations

from typing import Annotated

import typer

from cli import output
from cli.options import AsJson
from cli.output import console, print_json, seconds, when
from cli.platform import operator_api
from cli.session import session
from minute8_client.shapes import PlatformPlanning


def planning(
    ctx: typer.Context,
    windows: Annotated[int, typer.Option(min=1, max=144, help="How many of the last windows.")] = 12,
    as_json: AsJson = False,
) -> None:
    """Show up to when all is planned, how the last windows went, and what is set aside. Needs an operator key."""
    with operator_api(ctx) as api:
        found = api.planning(windows=windows)
    if as_json:
        print_json(found)
        return
    _print(found, session(ctx).clock.now())


def _print(found: PlatformPlanning, now: float) -> None:
    out = console()
    rows = [
        (
            one["start_at"],
            seconds(one["took_s"]),
            f"{seconds(one['ahead_s'])} before"
            if one["ahead_s"] >= 0
            else f"{seconds(-one['ahead_s'])} late",
            one["executions"],
            one["missed"],
            one["planners"] or "-",
        )
        for one in found["windows"]
    ]
    for finding in found["findings"]:
        out.print(f"{finding['level']}: {finding['found']}", markup=False, soft_wrap=True)
        if finding["remedy"]:
            out.print(f"→ {finding['remedy']}", markup=False, soft_wrap=True)
    if rows:
        out.print(output.table(("WINDOW", "TOOK", "READY", "EXECUTIONS", "MISSED", "PLANNERS"), rows))
    for aside in found["set_aside"]:
        line = f"{aside['kind']} {aside['name']}, {when(aside['seen_at'], now)}: {aside['reason']}"
        out.print(line, markup=False, soft_wrap=True)
