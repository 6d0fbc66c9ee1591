"""`minute8 runs`: what became of the executions."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from cli import output
from cli.output import console, print_json, relative, seconds, state, when, why
from cli.session import session
from minute8_client import Run

app = typer.Typer(no_args_is_help=True, help="What became of the executions.")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_runs(
    ctx: typer.Context,
    job_id: Annotated[str, typer.Argument(help="The job's id.")],
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List a job's runs, newest first, with the reason of each that failed or was skipped."""
    with session(ctx).client() as client:
        found = list(islice(client.runs(job_id), limit))
    if as_json:
        print_json(found)
        return
    now = session(ctx).clock.now()
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
