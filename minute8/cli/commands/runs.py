"""`minute8 runs`: the results of executions; and their totals by day."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import count, islice
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from common.errors import InvalidInput, NotFound
from common.projection.totals import Summary
from common.timing.durations import parse_instant
from common.timing.instants import relative, rfc3339, when
from minute8.cli import output
from minute8.cli.commands.stats import merge_shown
from minute8.cli.options import (
    AsJson,
    Limit,
    Since,
    Until,
    complete_job_ids,
    complete_statuses,
    complete_tags,
    complete_triggers,
    with_options,
)
from minute8.cli.output import console, print_json, seconds, share, state, why
from minute8.cli.rest_of_list import listed, say_more
from minute8.cli.session import session
from minute8.cli.time_range import range_of
from minute8.client import Client, Run

app = typer.Typer(no_args_is_help=True, help="Runs: the results of executions.")


@dataclass(frozen=True, slots=True)
class RunFilters:
    """Which runs."""

    status: Annotated[
        str | None,
        typer.Option(
            help="Only runs with this status: failed, skipped, succeeded…", autocompletion=complete_statuses
        ),
    ] = None
    trigger: Annotated[
        str | None,
        typer.Option(
            help="Only runs with this trigger: schedule, manual, backfill.",
            autocompletion=complete_triggers,
        ),
    ] = None
    since: Since = None
    until: Until = None

    tag: Annotated[
        str | None,
        typer.Option(help="Only runs of jobs that have this tag now.", autocompletion=complete_tags),
    ] = None
    target: Annotated[
        str | None, typer.Option(help="Only runs of jobs with this target now: its kind, ARN or address.")
    ] = None

    def query(self, now: float, job_id: str | None) -> dict[str, str | None]:
        """The parameters of the request. Raises InvalidInput."""
        from_at, until_at = range_of(self.since, self.until, now)
        shown = {"status": self.status, "trigger": self.trigger, "from_at": from_at, "until_at": until_at}
        if job_id is None:
            return {**shown, "tag": self.tag, "target": self.target}
        for option, value in (("tag", self.tag), ("target", self.target)):
            if value:
                raise InvalidInput(option, "is for the runs of all jobs", value=value, accepted="no job id")
        return shown


@app.command("list")
@with_options
def list_runs(
    ctx: typer.Context,
    job_id: Annotated[
        str | None,
        typer.Argument(help="The job's id; without one, all jobs.", autocompletion=complete_job_ids),
    ] = None,
    limit: Limit = 20,
    *,
    filters: RunFilters,
    as_json: AsJson = False,
) -> None:
    """List a job's runs, or all of the last 24 hours, newest first, with the reason where one failed or was skipped."""
    now = session(ctx).clock.now()
    query = filters.query(now, job_id)
    with session(ctx).client() as client:
        runs_of_any = client.list_runs_of_job(job_id, **query) if job_id else client.list_runs(**query)
        runs = listed(ctx, runs_of_any, limit, "runs")
    if as_json:
        print_json(runs)
        return
    job_column = () if job_id else ("JOB",)
    columns = ("FIRE TIME", "", *job_column, "STATUS", "LATE", "TOOK", "ATTEMPT", "WHY", "RUN")
    rows = [_row(run, now, with_job=not job_id) for run in runs]
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
    out.print(state(run["status"]), why(run), soft_wrap=True)
    out.print(run["execution_id"], soft_wrap=True)
    rows = [
        ("fire time", when(run["fire_at"], now)),
        ("due", when(run["due_at"], now)),
        ("started", when(run.get("started_at"), now)),
        ("waited for its turn", seconds(run.get("waited_s"))),
        ("waits for its turn", _turn_words(run, now)),
        ("late by", seconds(run.get("lateness_s"))),
        ("took", seconds(run.get("duration_s"))),
        ("its work may go on until", when(run.get("work_until"), now)),
        ("next attempt", when(run.get("next_attempt_at"), now)),
        *_sign_rows(run, now),
        ("trigger", run["trigger"]),
        ("trace", run.get("trace_id", "-")),
    ]
    out.print(output.table(("", ""), [row for row in rows if row[1] != "-"]))
    for attempt in run["attempts"]:
        error = f"{attempt.get('error_type', '')}: {attempt.get('error', '')}".strip(": ")
        words = f"attempt {attempt['attempt']}: {attempt['outcome']} {attempt['started_at']} {error}"
        first, *rest = words.strip().split("\n")
        out.print("", first, sep="\n", soft_wrap=True)
        # What the target says in several lines cannot be taken for the command's own.
        for line in (*rest, *attempt.get("log_tail", "").rstrip().splitlines()):
            out.print(f"| {line}", soft_wrap=True, style="dim")


@app.command()
def watch(
    ctx: typer.Context,
    job_id: Annotated[str, typer.Argument(help="The job's id.", autocompletion=complete_job_ids)],
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
                print_json(run, indent=None)
                continue
            late = f"late {seconds(run.get('lateness_s'))}" if "lateness_s" in run else ""
            took = f"took {seconds(run.get('duration_s'))}" if "duration_s" in run else ""
            line = Text.assemble(run["fire_at"], "  ", state(run["status"]))
            out.print(line, late, took, why(run), soft_wrap=True)


def _turn_words(run: Run, now: float) -> str:
    """How long a run has waited that has not begun: for others to end, or for a place."""
    waits_s = now - parse_instant(run["due_at"], "due_at")
    return f"since {seconds(waits_s)}" if run["status"] == "queued" and waits_s > 0 else "-"


def permits(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(help="The concurrency key.")],
    as_json: AsJson = False,
) -> None:
    """Show who has the permits of a concurrency key, and who waits for one."""
    with session(ctx).client() as client:
        shown = client.list_permits(key)
    if as_json:
        print_json(shown)
        return
    now = session(ctx).clock.now()
    rows = [
        (role, each["execution_id"], when(each.get("since_at"), now), when(each["until_at"], now))
        for role, entries in (("has one", shown["holders"]), ("waits", shown["waiting"]))
        for each in entries
    ]
    console().print(
        output.table(("", "RUN", "SINCE", "AT MOST UNTIL"), rows) if rows else "nobody has a permit"
    )


def _sign_rows(run: Run, now: float) -> list[tuple[str, Any]]:
    """What a target that calls back has told, and whether a person wants it to stop."""
    rows = [
        ("waits for a callback", when(run.get("callback_until"), now)),
        ("started in AWS", tuple(run.get("started", ())) or "-"),
        ("next look at its end", when(run.get("look_at"), now)),
        ("nobody sees its end", run.get("look_problem", "-")),
    ]
    if progress := run.get("progress"):
        percent = f"{progress['percent']} % " if "percent" in progress else ""
        rows.append(("progress", f"{percent}{progress.get('text', '')} {when(progress['at'], now)}".strip()))
    if stop := run.get("stop"):
        why_not = f", {stop['problem']}" if "problem" in stop else ""
        rows.append(("is to stop", f"{stop['note']} {when(stop['requested_at'], now)}{why_not}".strip()))
    return rows


def _newest(client: Client, job_id: str, now: float) -> Run:
    """A job's newest run whose fire time has passed. Raises NotFound, also for a job without runs."""
    runs = client.list_runs_of_job_page(job_id, limit=1, until_at=rfc3339(math.floor(now) + 1))["runs"]
    if not runs:
        raise NotFound("run of job", job_id)
    return runs[0]


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


_COLUMNS = ("DAY", "RUNS", "DUE", "OK", "SUCCEEDED", "FAILED", "SKIPPED", "OTHER")
_SPREADS = ("LATE: 50 % · 95 % · 99 % · MOST", "TOOK: 50 % · 95 % · 99 % · MOST")


def summary(
    ctx: typer.Context,
    job_id: Annotated[str | None, typer.Argument(help="The job's id; without one, all jobs.")] = None,
    since: Since = None,
    until: Until = None,
    max_pages: Annotated[
        int, typer.Option("--most", min=1, help="Read at most this many times 10,000 runs, the newest first.")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """Show by day how many runs succeeded, failed and were skipped, how late they were, how long they took."""
    from_at, until_at = range_of(since, until, session(ctx).clock.now())
    merged, last = Summary(), None
    with session(ctx).client() as client:
        span = {"from_at": from_at, "until_at": until_at}
        parts = (
            client.summarise_job(job_id, values=True, **span)
            if job_id
            else client.summarise(values=True, **span)
        )
        for part in islice(parts, max_pages):
            merge_shown(merged, part["days"])
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
        console().print(output.table((*_COLUMNS, *_SPREADS), map(_day_row, days)))
    if not last["complete"]:
        jobs_remain = last["complete_from_at"] in (None, last["until_at"])
        upto = "not all jobs are read" if jobs_remain else f"complete from {last['complete_from_at']} on"
        say_more(ctx, f"there are more runs ({upto})", "--most", max_pages)


def _day_row(day: Mapping[str, Any]) -> tuple[object, ...]:
    ended = [day["statuses"].get(name, 0) for name in ("succeeded", "failed", "skipped")]
    return (
        day["date"],
        day["runs"],
        day["due"],
        share(day["success_rate"]),
        *ended,
        day["runs"] - sum(ended),
        *(_spread(day[name]) for name in ("lateness_s", "duration_s")),
    )


def _spread(values: Mapping[str, Any]) -> str:
    return " · ".join(seconds(values[name]) for name in ("p50", "p95", "p99", "max") if name in values) or "-"


_WATCHED_RUNS: Final = 50
_ENDED: Final = frozenset({"succeeded", "failed", "skipped", "dispatched"})


def watched(client: Client, job_id: str, rounds: Iterable[object], wait: Callable[[], None]) -> Iterator[Run]:
    """The changes of a job's newest runs, oldest first: read once per round, with `wait` between rounds.

    Runs that had ended before the first round are left out.
    """
    known = {
        run["execution_id"]: run["status"] for run in _newest_page(client, job_id) if run["status"] in _ENDED
    }
    for n, _ in enumerate(rounds):
        if n:
            wait()
        for run in reversed(_newest_page(client, job_id)):
            if known.get(run["execution_id"]) != run["status"]:
                known[run["execution_id"]] = run["status"]
                yield run


def _newest_page(client: Client, job_id: str) -> list[Run]:
    return list(islice(client.list_runs_of_job(job_id), _WATCHED_RUNS))
