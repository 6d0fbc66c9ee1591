"""`minute8 expected`: when jobs were due, and what became of each due instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any

import typer

from cli import output
from cli.options import AsJson, Limit, Since, Until
from cli.output import console, print_json, relative, seconds, state
from cli.session import session
from cli.time_range import range_of
from common.history.expected import QUIET, TO_COME
from common.timing.durations import parse_instant
from minute8_client.shapes import ExpectedFire


def expected(
    ctx: typer.Context,
    job_id: Annotated[str | None, typer.Argument(help="The job's id; without one, all jobs.")] = None,
    since: Since = None,
    until: Until = None,
    problems: Annotated[
        bool, typer.Option("--problems", help="List only entries that need attention.")
    ] = False,
    limit: Limit = 50,
    most: Annotated[
        int, typer.Option("--most", min=1, help="Read at most this many times 5,000 due instants.")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """Show when jobs were due and what became of each due instant: on time, late, skipped, missed, no record.

    Of all jobs, problems come first, and what is to come comes last.
    """
    now = session(ctx).clock.now()
    from_at, until_at = range_of(since, until, now)
    counts: Counter[str] = Counter()
    found: list[ExpectedFire] = []
    unknown: dict[str, str] = {}
    cursor = None
    with session(ctx).client() as client:
        for page in islice(
            client.expected(job_id, from_at=from_at, until_at=until_at, problems=problems), most
        ):
            cursor = page["next_cursor"]
            for one in _jobs(page):
                counts.update(one["counts"])
                if one["known_from_at"]:
                    unknown[one["job_id"]] = one["known_from_at"]
            found += page["expected"]
    if as_json:
        print_json(
            {"counts": counts, "known_from_at": unknown, "expected": found[:limit], "complete": not cursor}
        )
        return
    if not job_id:
        found.sort(key=_of_all_jobs)
    out = console()
    out.print(", ".join(f"{word(status)} {counts[status]}" for status in sorted(counts)) or "nothing was due")
    if problems and not found and counts:
        out.print("no problems")
    if found:
        columns = ("DUE", "", *(() if job_id else ("JOB",)), "STATUS", "WHY", "RUN")
        out.print(output.table(columns, [_row(one, now, not job_id) for one in found[:limit]]))
    if len(found) > limit:
        typer.echo(f"minute8: {len(found) - limit} more; --limit lists more of them", err=True)
    if cursor:
        typer.echo("minute8: the range holds more; --most looks further", err=True)
    for name, known_from_at in unknown.items():
        typer.echo(f"minute8: {name}: when it was due is known from {known_from_at} on", err=True)


def _of_all_jobs(one: ExpectedFire) -> tuple[int, float]:
    """What needs attention first, then what was, the newest first; what is to come fills no list of all jobs."""
    due_at = parse_instant(one["due_at"], "due_at")
    if one["status"] == TO_COME:
        return 2, due_at
    return int(one["status"] in QUIET), -due_at


def _jobs(page: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(page.get("by_job", [page]))


def word(status: str) -> str:
    """`no_record` as people write it."""
    return status.replace("_", " ")


def _row(one: ExpectedFire, now: float, with_job: bool) -> tuple[object, ...]:
    return (
        one["due_at"],
        relative(one["due_at"], now),
        *([one["job_id"]] if with_job else []),
        state(word(one["status"])),
        _why(one),
        one["run"]["execution_id"] if "run" in one else "-",
    )


def _why(one: ExpectedFire) -> str:
    late = f"late by {seconds(one['late_s'])}" if one["status"] in ("late", "overdue", "no_record") else ""
    ended = one["run"]["status"] if "run" in one and one["status"] in ("on_time", "late") else ""
    words = ", ".join(part for part in (late, ended, one.get("detail") or one.get("reason", "")) if part)
    return words if one["is_due"] else f"{words} (planned before the job changed)"


def explain(
    ctx: typer.Context,
    job_id: Annotated[str, typer.Argument(help="The job's id.")],
    at: Annotated[
        str | None,
        typer.Argument(help="With its offset, or local in the job's zone; else its last fire time."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain why a job was, is or is not due at an instant, and what became of it.

    Without an instant, the last fire time of its schedule is explained.
    """
    with session(ctx).client() as client:
        explanation = client.explain(job_id, at)
    if as_json:
        print_json(explanation)
        return
    out, now = console(), session(ctx).clock.now()
    out.print(
        state(word(explanation["status"])),
        f"- {explanation['at']}, {explanation['local']}",
        soft_wrap=True,
        markup=False,
    )
    out.print(explanation["text"], soft_wrap=True, markup=False)
    for one in explanation["found"]:
        if "run" in one:
            out.print(f"run {one['run']['execution_id']}", soft_wrap=True, markup=False)
    if explanation["since"]:
        since = explanation["since"]
        by = since.get("by_name", since["by"])
        out.print(f"times in force since {since['at']}: {since['action']} by {by}", markup=False)
    if explanation["next_due_at"]:
        far = relative(explanation["next_due_at"], now)
        words = "was due next" if far.endswith("ago") else "due next"
        out.print(f"{words} {explanation['next_due_at']} ({far})", markup=False)
