"""`minute8 failures`: what went wrong, over all jobs."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from cli import output
from cli.output import console, print_json, relative, why
from cli.session import session


def failures(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="At most so many.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the failed runs of all jobs, latest failure first."""
    with session(ctx).client() as client:
        found = list(islice(client.failures(), limit))
    if as_json:
        print_json(found)
        return
    now = session(ctx).clock.now()
    rows = [
        (relative(run.get("finished_at"), now), run["job_id"], why(run), run["execution_id"]) for run in found
    ]
    console().print(output.table(("FAILED", "JOB", "WHY", "RUN"), rows) if rows else "no failures")
