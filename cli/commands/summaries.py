"""`minute8 runs summary`: the results of one job's runs, or of all runs, by day."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any

import typer

from cli import output
from cli.options import AsJson, Since, Until
from cli.output import console, print_json, seconds
from cli.session import session
from cli.time_range import range_of
from common.history.summary import RunTotals, Summary

_COLUMNS = ("DAY", "RUNS", "OK", "SUCCEEDED", "FAILED", "SKIPPED", "OTHER")
_SPREADS = ("LATE: 50 % · 95 % · 99 % · MOST", "TOOK: 50 % · 95 % · 99 % · MOST")


def summary(
    ctx: typer.Context,
    job_id: Annotated[str | None, typer.Argument(help="The job's id; without one, all jobs.")] = None,
    since: Since = None,
    until: Until = None,
    most: Annotated[
        int, typer.Option("--most", min=1, help="Read at most this many times 10,000 runs, the newest first.")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """Show by day how many runs succeeded, failed and were skipped, how late they were, how long they took."""
    from_at, until_at = range_of(since, until, session(ctx).clock.now())
    merged, last = Summary(), None
    with session(ctx).client() as client:
        for part in islice(client.summaries(job_id, from_at=from_at, until_at=until_at, values=True), most):
            merged.merge((day["date"], RunTotals.of_json(day)) for day in part["days"])
            last = part
    assert last is not None
    bounds = {name: last[name] for name in ("from_at", "until_at", "complete", "complete_from_at")}
    shown = merged.to_json()
    if as_json:
        print_json(bounds | shown)
    elif not shown["days"]:
        console().print("no runs")
    else:
        days = [*shown["days"], {"date": "all", **shown["total"]}]
        console().print(output.table((*_COLUMNS, *_SPREADS), map(_row, days)))
    if not last["complete"]:
        some = last["complete_from_at"] in (None, last["until_at"])
        upto = "not all jobs are read" if some else f"complete from {last['complete_from_at']} on"
        typer.echo(f"minute8: there are more runs ({upto}); --most reads on", err=True)


def _row(day: Mapping[str, Any]) -> tuple[object, ...]:
    ended = [day["statuses"].get(name, 0) for name in ("succeeded", "failed", "skipped")]
    rate = day["success_rate"]
    return (
        day["date"],
        day["runs"],
        "-" if rate is None else f"{rate:.2%}",
        *ended,
        day["runs"] - sum(ended),
        *(_spread(day[name]) for name in ("lateness_s", "duration_s")),
    )


def _spread(values: Mapping[str, Any]) -> str:
    return " · ".join(seconds(values[name]) for name in ("p50", "p95", "p99", "max") if name in values) or "-"
