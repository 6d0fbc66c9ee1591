"""`minute8 runs`: the results of executions."""

from __future__ import annotations

import json
import math
import sys
from contextlib import suppress
from itertools import count, islice
from typing import Annotated

import typer
from rich.text import Text

from cli import completion, output
from cli.options import AsJson, Limit, Since, Until
from cli.output import console, print_json, relative, seconds, state, when, why
from cli.session import session
from cli.time_range import range_of
from cli.watching import watched
from common.errors import NotFound
from common.timing.instants import rfc3339
from minute8_client import Client, Run

app = typer.Typer(no_args_is_help=True, help="Runs: the results of executions.")


@app.command("list")
def list_runs(
    ctx: typer.Context,
    job_id: Annotated[
        str | None,
        typer.Argument(help="The job's id; without one, all jobs.", autocompletion=completion.job_ids),
    ] = None,
    limit: Limit = 20,
    status: Annotated[
        str | None,
        typer.Option(
            help="Only runs with this status: failed, skipped, succeeded…", autocompletion=completion.statuses
        ),
    ] = None,
    trigger: Annotated[
        str | None,
        typer.Option(
            help="Only runs with this trigger: schedule, manual, backfill.",
            autocompletion=completion.triggers,
        ),
    ] = None,
    since: Since = None,
    until: Until = None,
    as_json: AsJson = False,
) -> None:
    """List a job's runs, or all of the last 24 hours, newest first, with the reason where one failed or was skipped."""
    now = session(ctx).clock.now()
    from_at, until_at = range_of(since, until, now)
    wanted = {"status": status, "trigger": trigger, "from_at": from_at, "until_at": until_at}
    with session(ctx).client() as client:
        found = list(islice(client.runs(job_id, **wanted), limit))
    if as_json:
        print_json(found)
        return
    job_column = () if job_id else ("JOB",)
    columns = ("FIRE TIME", "", *job_column, "STATUS", "LATE", "TOOK", "ATTEMPT", "WHY", "RUN")
    rows = [_row(run, now, with_job=not job_id) for run in found]
    console().print(output.table(columns, rows) if rows else "no runs yet")


@app.command()
def show(
    ctx: typer.Context,
    execution_id: Annotated[str, typer.Argument(help="The run's execution id; with --last, the job's id.")],
    last: Annotated[bool, typer.Option("--last", help="Show the job's newest run.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show one run: its result, and each attempt with the end of its log."""
    with session(ctx).client() as client:
        run = (
            _newest(client, execution_id, session(ctx).clock.now()) if last else client.get_run(execution_id)
        )
    if as_json:
        print_json(run)
        return
    out, now = console(), session(ctx).clock.now()
    out.print(state(run["status"]), why(run), soft_wrap=True, markup=False)
    out.print(run["execution_id"], soft_wrap=True, markup=False)
    rows = [
        ("fire time", when(run["fire_at"], now)),
        ("due", when(run["due_at"], now)),
        ("started", when(run.get("started_at"), now)),
        ("late by", seconds(run.get("lateness_s"))),
        ("took", seconds(run.get("duration_s"))),
        ("next attempt", when(run.get("next_attempt_at"), now)),
        ("trigger", run["trigger"]),
        ("trace", run.get("trace_id", "-")),
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
    job_id: Annotated[str, typer.Argument(help="The job's id.", autocompletion=completion.job_ids)],
    every_s: Annotated[float, typer.Option("--every", min=0.5, help="Seconds between two looks.")] = 2.0,
    looks: Annotated[int | None, typer.Option(min=1, help="End after this many looks.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each change.")] = False,
) -> None:
    """Show a job's runs as they happen, one line for each change, until Ctrl-C."""
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


def _newest(client: Client, job_id: str, now: float) -> Run:
    """A job's newest run whose fire time has passed. Raises NotFound, also for a job without runs."""
    found = client.runs_page(job_id, limit=1, until_at=rfc3339(math.floor(now) + 1))["runs"]
    if not found:
        raise NotFound("run of job", job_id)
    return found[0]


def _row(run: Run, now: float, *, with_job: bool) -> tuple[object, ...]:
    return (
        run["fire_at"],
        relative(run["fire_at"], now),
        *([run["job_id"]] if with_job else []),
        state(run["status"]),
        seconds(run.get("lateness_s")),
        seconds(run.get("duration_s")),
        run.get("attempt") or "-",
        why(run),
        run["execution_id"],
    )
