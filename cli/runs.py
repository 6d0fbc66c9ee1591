"""`minute8 runs`: what became of the executions."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from itertools import count, islice
from typing import Annotated

import typer
from rich.text import Text

from cli import output
from cli.output import console, print_json, relative, seconds, state, when, why
from cli.session import session
from cli.watching import watched
from common.duration import parse_duration, parse_instant
from common.errors import InvalidInput
from common.instants import rfc3339
from minute8_client import Run

app = typer.Typer(no_args_is_help=True, help="What became of the executions.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_runs(
    ctx: typer.Context,
    job_id: Annotated[str, typer.Argument(help="The job's id.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 20,
    status: Annotated[str | None, typer.Option(help="Only such: failed, skipped, succeeded…")] = None,
    since: Annotated[str | None, typer.Option(help="Only of the last 2h, 7d…, or from a time on.")] = None,
    until: Annotated[str | None, typer.Option(help="Only before this time.")] = None,
    as_json: AsJson = False,
) -> None:
    """List a job's runs, newest first, with the reason of each that failed or was skipped."""
    now = session(ctx).clock.now()
    from_at = rfc3339(since_at(since, now)) if since else None
    with session(ctx).client() as client:
        found = list(islice(client.runs(job_id, status=status, from_at=from_at, until_at=until), limit))
    if as_json:
        print_json(found)
        return
    columns = ("FIRE TIME", "", "STATUS", "LATE", "TOOK", "ATTEMPT", "WHY")
    console().print(output.table(columns, [_row(run, now) for run in found]) if found else "no runs yet")


@app.command()
def show(
    ctx: typer.Context,
    execution_id: Annotated[str, typer.Argument(help="The run's execution id.")],
    as_json: AsJson = False,
) -> None:
    """Show one run: what became of it, and each attempt with the end of its log."""
    with session(ctx).client() as client:
        run = client.get_run(execution_id)
    if as_json:
        print_json(run)
        return
    out, now = console(), session(ctx).clock.now()
    out.print(state(run["status"]), why(run), soft_wrap=True, markup=False)
    rows = [
        ("fire time", when(run["fire_at"], now)),
        ("due", when(run["due_at"], now)),
        ("started", when(run.get("started_at"), now)),
        ("late by", seconds(run.get("lateness_s"))),
        ("took", seconds(run.get("duration_s"))),
        ("next attempt", when(run.get("next_attempt_at"), now)),
        ("trigger", run["trigger"]),
    ]
    out.print(output.table(("", ""), [row for row in rows if row[1] != "-"]))
    for attempt in run["attempts"]:
        error = f"{attempt.get('error_type', '')}: {attempt.get('error', '')}".strip(": ")
        words = f"attempt {attempt['attempt']}: {attempt['outcome']} {attempt['started_at']} {error}"
        out.print(f"\n{words.strip()}", soft_wrap=True, markup=False)
        if tail := attempt.get("log_tail"):
            out.print(tail.rstrip(), soft_wrap=True, markup=False, style="dim")


@app.command()
def watch(
    ctx: typer.Context,
    job_id: Annotated[str, typer.Argument(help="The job's id.")],
    every_s: Annotated[float, typer.Option("--every", min=0.5, help="Seconds between two looks.")] = 2.0,
    looks: Annotated[int | None, typer.Option(min=1, help="End after so many looks.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each change.")] = False,
) -> None:
    """Show a job's runs as they happen, a line for each change, until Ctrl-C."""
    out, clock = console(), session(ctx).clock
    with session(ctx).client() as client, suppress(KeyboardInterrupt):
        rounds = range(looks) if looks else count()
        for run in watched(client, job_id, rounds, lambda: clock.sleep(every_s)):
            if as_json:
                sys.stdout.write(json.dumps(run, ensure_ascii=False) + "\n")
                sys.stdout.flush()
                continue
            late = f"late {seconds(run.get('lateness_s'))}" if "lateness_s" in run else ""
            took = f"took {seconds(run.get('duration_s'))}" if "duration_s" in run else ""
            line = Text.assemble(run["fire_at"], "  ", state(run["status"]))
            out.print(line, late, took, why(run), soft_wrap=True, markup=False)


def since_at(text: str, now: float) -> int:
    try:
        return int(now) - parse_duration(text, "since")
    except InvalidInput:
        return parse_instant(text, "since")


def _row(run: Run, now: float) -> tuple[object, ...]:
    return (
        run["fire_at"],
        relative(run["fire_at"], now),
        state(run["status"]),
        seconds(run.get("lateness_s")),
        seconds(run.get("duration_s")),
        run.get("attempt") or "-",
        why(run),
    )
