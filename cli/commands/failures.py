"""`minute8 failures`: what went wrong, over all jobs."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from cli import output
from cli.options import AsJson, Limit, Since
from cli.output import console, print_json, relative, why
from cli.session import session
from cli.time_range import since_at
from common.timing.instants import rfc3339


def failures(
    ctx: typer.Context,
    limit: Limit = 20,
    since: Since = None,
    job_id: Annotated[str | None, typer.Option("--job", help="Only runs of this job.")] = None,
    tag: Annotated[str | None, typer.Option(help="Only runs of jobs that have this tag now.")] = None,
    groups: Annotated[
        bool,
        typer.Option("--groups", help="Group the failures by job and error; of the last 7 days by default."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the failed runs of all jobs, latest failure first."""
    now = session(ctx).clock.now()
    wanted = {"from_at": rfc3339(since_at(since, now)) if since else None, "job_id": job_id, "tag": tag}
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
    with session(ctx).client() as client:
        if groups:
            by_error = client.failure_groups(**wanted)[:limit]
            columns = ("TIMES", "LAST", "FIRST", "JOB", "ERROR", "LAST RUN")
            rows = [
                (
                    group["count"],
                    relative(group["last_at"], now),
                    relative(group["first_at"], now),
                    group["job_id"],
                    f"{group['error_type']}: {group['error']}".strip(": ").partition("\n")[0],
                    group["last_execution_id"],
                )
                for group in by_error
            ]
            found: object = by_error
        else:
            runs = list(islice(client.failures(**wanted), limit))
            columns = ("FAILED", "JOB", "WHY", "RUN")
            rows = [
                (relative(run.get("finished_at"), now), run["job_id"], why(run), run["execution_id"])
                for run in runs
            ]
            found = runs
        if job_id and not rows:
            client.get_job(job_id)  # raises NotFound: a mistyped id must not look as if all went well
    if as_json:
        print_json(found)
        return
    console().print(output.table(columns, rows) if rows else "no failures")
