"""`minute8 unrecorded`: executions that were enqueued and have no record; and to run them again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated

import typer

from cli import output
from cli.options import AsJson, Yes
from cli.output import console, print_json, relative
from cli.platform import Platform, Stage, platform
from cli.session import session
from cli.time_range import since_at
from common.timing.instants import rfc3339
from minute8_client.shapes import RanUnrecorded

app = typer.Typer(
    no_args_is_help=True,
    help="Executions that were enqueued and have no record; needs an operator key or AWS credentials.",
)
# What one request runs; common/platform/unrecorded.py.
_AT_ONCE = 100

Since = Annotated[str | None, typer.Option(help="Only those due in the last 2h, 7d…, or since a time.")]


@app.command("list")
def list_unrecorded(
    ctx: typer.Context, since: Since = None, stage: Stage = None, as_json: AsJson = False
) -> None:
    """List what ticks have found without a record, and what has none now."""
    now = session(ctx).clock.now()
    with platform(ctx, stage) as here:
        found = list(here.unrecorded(from_at=_from(since, now)))
    if as_json:
        print_json(found)
        return
    rows = [
        (one["due_at"], relative(one["due_at"], now), relative(one["sent_at"], now), one["execution_id"])
        for one in found
    ]
    console().print(
        output.table(("DUE", "", "SENT AGAIN", "EXECUTION"), rows)
        if rows
        else "every planned execution has a record"
    )


@app.command()
def run(
    ctx: typer.Context,
    execution_ids: Annotated[list[str] | None, typer.Argument(help="Ids of the list.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Run all that are listed.")] = False,
    since: Since = None,
    stage: Stage = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Send executions again that have no record. They are the same executions: each runs once."""
    now = session(ctx).clock.now()
    if bool(execution_ids) == everything:
        raise typer.BadParameter("give the ids of executions, or --all")
    with platform(ctx, stage) as here:
        wanted = list(execution_ids or ())
        if everything:
            wanted = [one["execution_id"] for one in here.unrecorded(from_at=_from(since, now))]
            if wanted and not yes and not as_json:
                typer.confirm(f"Run {len(wanted)} executions that have no record?", abort=True)
        done = list(run_all(here, wanted))
    sent = [one for part in done for one in part["sent"]]
    recorded = [one for part in done for one in part["recorded"]]
    if as_json:
        print_json({"sent": sent, "recorded": recorded})
        return
    for one in recorded:
        console().print(f"has a record meanwhile: {one}", soft_wrap=True, markup=False)
    for one in sent:
        console().print(f"sent again: {one}", soft_wrap=True, markup=False)
    console().print(f"{len(sent)} executions are in the queue again")


def run_all(here: Platform, execution_ids: Sequence[str]) -> Iterator[RanUnrecorded]:
    """Run them in as many requests as it takes."""
    left = iter(execution_ids)
    while some := list(islice(left, _AT_ONCE)):
        yield here.run_unrecorded(some)


def _from(since: str | None, now: float) -> str | None:
    return rfc3339(since_at(since, now)) if since else None
