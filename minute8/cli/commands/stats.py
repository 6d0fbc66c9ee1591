"""`minute8 stats`: what became of the runs of a day or a week, as a picture by hour and a table; `minute8 overview`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final

import typer
from rich.text import Text

from common.projection.totals import RunTotals, Summary
from common.timing.durations import parse_instant
from common.timing.instants import DAY_S, relative, rfc3339
from minute8.cli import output
from minute8.cli.commands.failures import error_words
from minute8.cli.options import AsJson
from minute8.cli.output import SUSPENDED, console, plural, print_json, say, seconds, share
from minute8.cli.session import session
from minute8.client.shapes import FailingJobs, StoppedJobs

_HOUR_S: Final = 3_600
_WEEK_DAYS: Final = 7
_ROWS: Final = 6
_EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_COLUMNS: Final = (
    "DAY",
    "RUNS",
    "DUE",
    "OK",
    "SUCCEEDED",
    "FAILED",
    "SKIPPED",
    "OTHER",
    "LATE: 50 % · 99 % · MOST",
)


def merge_shown(summary: Summary, days: Iterable[Mapping[str, Any]]) -> None:
    """Add days as an answer shows them, with the values."""
    for day in days:
        spreads = [dict(day[name]["values"]) for name in ("lateness_s", "duration_s")]
        summary.merge([(day["date"], RunTotals(day["statuses"], day["reasons"], *spreads))])


def stats(
    ctx: typer.Context,
    days: Annotated[int, typer.Option("--days", min=1, max=92, help="So many days back.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Show what became of all runs: a picture by hour (of a week or more by day), and a table by day."""
    now = int(session(ctx).clock.now())
    from_at = now - now % _HOUR_S + _HOUR_S - days * DAY_S
    merged, hours, fresh_at = Summary(), [], None
    with session(ctx).client() as client:
        for part in client.summarise(from_at=rfc3339(from_at), until_at=rfc3339(now + 1), values=True):
            merge_shown(merged, part["days"])
            hours += part.get("hours", [])
            fresh_at = part.get("fresh_at") or fresh_at
    shown = merged.to_json()
    if as_json:
        print_json({"from_at": rfc3339(from_at), "until_at": rfc3339(now + 1), "fresh_at": fresh_at,
                    **shown, "hours": hours})  # fmt: skip
        return
    if not shown["days"]:
        console().print("no runs")
        return
    if days < _WEEK_DAYS:
        counts = {parse_instant(hour["at"], "at"): Counter(hour["statuses"]) for hour in hours}
        starts = range(from_at, now + 1, _HOUR_S)
        _print_picture(starts, [counts.get(start, Counter()) for start in starts], "hour")
    else:
        by_date = {day["date"]: Counter(day["statuses"]) for day in shown["days"]}
        starts = range(from_at - from_at % DAY_S, now + 1, DAY_S)
        _print_picture(starts, [by_date.get(rfc3339(at)[:10], Counter()) for at in starts], "day")
    rows = [_day_row(day) for day in [*shown["days"], {"date": "all", **shown["total"]}]]
    console().print(output.table(_COLUMNS, rows))
    if fresh_at and parse_instant(fresh_at, "fresh_at") < now:
        console().print(f"counted up to {fresh_at}", style="dim")


def overview(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Show a first look: the jobs, the last and the next 24 hours, what fails."""
    with session(ctx).client() as client:
        shown = client.overview_of_tenant()
    if as_json:
        print_json(shown)
        return
    out, now = console(), session(ctx).clock.now()
    if shown["suspended"]:
        say(SUSPENDED)
    if jobs := shown["job_counts"]:
        out.print(f"{plural(jobs['total'], 'job')}, {jobs['active']} active")
    if past := shown["past"]:
        rate = f"{share(past['success_rate'])} of {past['due']:,} due succeeded"
        words = f"24 hours back: {plural(past['runs'], 'run')}, {rate}"
        out.print(words)
        _print_picture(*_hours(past["from_at"], past["hours"], now), "hour")
    if ahead := shown["ahead"]:
        out.print(f"24 hours ahead: {plural(ahead['total'], 'execution')}")
    if going := shown["open"]:
        _print_open(going, now)
    if failing := shown["failing"]:
        _print_failing(failing)
    if stopped := shown["not_running"]:
        _print_stopped(stopped, now)
    errors = [
        (relative(group["last_at"], now), group["job_id"], group["count"], error_words(group))
        for group in shown["errors"]
        if not group["muted"]
    ]
    if errors:
        out.print(output.table(("LAST", "JOB", "TIMES", "ERROR"), errors))


def _print_failing(failing: FailingJobs) -> None:
    """The jobs that fail, and how many fail with a muted error."""
    out, count, muted = console(), failing["count"], failing["muted"]
    if muted:
        out.print(f"{plural(muted, 'job')} with a muted failure; `minute8 failures muted` says which")
    if not count:
        return
    rows = [(job["job_id"], job["name"] or "-", job["failures_in_row"]) for job in failing["jobs"]]
    out.print(output.table(("FAILING", "NAME", "IN A ROW"), rows))
    if count > len(rows):
        out.print(f"{count} jobs fail; `minute8 jobs list` shows the others")


def _print_stopped(stopped: StoppedJobs, now: float) -> None:
    """What does not run, and why."""
    rows = [
        (
            each["job_id"] or each["subscription"],
            each["reason"],
            relative(each["since_at"], now),
            each["detail"],
        )
        for each in stopped["first"]
    ]
    if rows:
        console().print(output.table(("NOT RUNNING", "REASON", "SINCE", "WHY"), rows))
    if stopped["count"] > len(rows):
        console().print(f"{stopped['count']} do not run; `minute8 jobs list --not-running` shows the jobs")


def _print_open(going: Mapping[str, Any], now: float) -> None:
    """The runs that have not ended, and those that are stuck."""
    out = console()
    counts = ", ".join(f"{going[name]} {name}" for name in ("running", "retrying", "queued"))
    out.print(f"now: {counts}{'' if going['complete'] else ', and more'}")
    if stuck := going["stuck_runs"]:
        lines = [(run["execution_id"], run["status"], relative(run["since_at"], now)) for run in stuck]
        out.print(output.table(("STUCK", "STATUS", "SINCE"), lines))
        if going["stuck"] > len(stuck):
            out.print(f"{going['stuck']} runs are stuck in all")


def _hours(from_at: str, hours: Iterable[Any], now: float) -> tuple[Sequence[int], Sequence[Counter[str]]]:
    counts = {parse_instant(hour["at"], "at"): Counter(hour["statuses"]) for hour in hours}
    first = parse_instant(from_at, "from_at")
    starts = range(first - first % _HOUR_S, int(now) + 1, _HOUR_S)
    return starts, [counts.get(start, Counter()) for start in starts]


def _print_picture(starts: Sequence[int], counts: Sequence[Counter[str]], unit: str) -> None:
    """Bars by hour or day: what failed is red, at the foot of its bar."""
    width = max(2, min(8, 72 // max(1, len(starts))))
    most = max((each.total() for each in counts), default=0)
    out = console()
    out.print(f"{most:,} runs in the fullest {unit}", style="dim")
    for row in range(_ROWS - 1, -1, -1):
        line = Text()
        for each in counts:
            cell = bar_cell(each.total(), most, row)
            failed = bar_cell(each["failed"], most, row) != " "
            line.append(cell * (width - 1) + " ", style="red" if failed else "green")
        out.print(line, soft_wrap=True)
    labels = "".join(_label(start, unit).ljust(width) if nth % _every(width) == 0 else " " * width
                     for nth, start in enumerate(starts))  # fmt: skip
    out.print(labels.rstrip(), style="dim", soft_wrap=True)


def bar_cell(count: int, most: int, row: int) -> str:
    """The character of a bar in a row from below; any count above 0 shows. Pure."""
    if not count:
        return " "
    eighths = max(1, round(count * _ROWS * 8 / most)) - row * 8
    return _EIGHTHS[max(0, min(8, eighths))]


def _label(start: int, unit: str) -> str:
    text = rfc3339(start)
    return text[11:13] if unit == "hour" else text[8:10]


def _every(width: int) -> int:
    return 1 if width >= 3 else 3


def _day_row(day: dict[str, Any]) -> tuple[object, ...]:
    ended = [day["statuses"].get(name, 0) for name in ("succeeded", "failed", "skipped")]
    late = day["lateness_s"]
    spread = " · ".join(seconds(late[name]) for name in ("p50", "p99", "max") if name in late)
    return (
        day["date"],
        day["runs"],
        day["due"],
        share(day["success_rate"]),
        *ended,
        day["runs"] - sum(ended),
        spread or "-",
    )
