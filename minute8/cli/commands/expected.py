"""`minute8 expected` and `jobs explain`: when jobs were due, and what became of each due instant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Annotated, Any

import typer

from common.history.expected import QUIET, TO_COME
from common.timing.durations import parse_instant
from common.timing.instants import relative
from minute8.cli import output
from minute8.cli.options import AsJson, Limit, Since, Until, with_options
from minute8.cli.output import console, print_json, say, seconds, state
from minute8.cli.rest_of_list import say_more
from minute8.cli.session import session
from minute8.cli.time_range import range_of
from minute8.client.shapes import ExpectedFire, ExpectedOfJob, ExpectedPage


@dataclass(frozen=True, slots=True)
class ExpectedFilters:
    """Which due instants, and how many."""

    since: Since = None
    until: Until = None
    problems: Annotated[bool, typer.Option("--problems", help="List only entries that need attention.")] = (
        False
    )
    limit: Limit = 50
    max_pages: Annotated[
        int, typer.Option("--most", min=1, help="Read at most this many times 5,000 due instants.")
    ] = 20


@dataclass(slots=True)
class _ExpectedPages:
    """What the read pages hold together."""

    counts: Counter[str] = field(default_factory=Counter)
    instants: list[ExpectedFire] = field(default_factory=list)
    known_from_at: dict[str, str] = field(default_factory=dict)
    cursor: str | None = None

    def add(self, page: Mapping[str, Any]) -> None:
        self.cursor = page["next_cursor"]
        for job in page.get("by_job", [page]):
            self.counts.update(job["counts"])
            if job["known_from_at"]:
                self.known_from_at[job["job_id"]] = job["known_from_at"]
        self.instants += page["expected"]


@with_options
def expected(
    ctx: typer.Context,
    job_id: Annotated[str | None, typer.Argument(help="The job's id; without one, all jobs.")] = None,
    *,
    filters: ExpectedFilters,
    as_json: AsJson = False,
) -> None:
    """Show when jobs were due and what became of each due instant: on time, late, skipped, missed, no record.

    Of all jobs, problems come first, and what is to come comes last.
    """
    now = session(ctx).clock.now()
    from_at, until_at = range_of(filters.since, filters.until, now)
    read = _ExpectedPages()
    with session(ctx).client() as client:
        span = {"from_at": from_at, "until_at": until_at}
        pages: Iterator[ExpectedOfJob | ExpectedPage] = (
            client.expected_of_job(job_id, problems=filters.problems, **span)
            if job_id
            else client.list_expected(problems=filters.problems, **span)
        )
        for page in islice(pages, filters.max_pages):
            read.add(page)
    _say_rest(ctx, read, filters)
    if as_json:
        view = {"counts": read.counts, "known_from_at": read.known_from_at}
        print_json(view | {"expected": read.instants[: filters.limit], "complete": not read.cursor})
        return
    if not job_id:
        read.instants.sort(key=_attention_first)
    _print_expected(read, filters, now, with_job=not job_id)


def _print_expected(read: _ExpectedPages, filters: ExpectedFilters, now: float, *, with_job: bool) -> None:
    out, counts, instants = console(), read.counts, read.instants
    out.print(", ".join(f"{word(status)} {counts[status]}" for status in sorted(counts)) or "nothing was due")
    if filters.problems and not instants and counts:
        out.print("no problems")
    if instants:
        columns = ("DUE", "", *(("JOB",) if with_job else ()), "STATUS", "WHY", "RUN")
        out.print(output.table(columns, [_row(fire, now, with_job) for fire in instants[: filters.limit]]))
    for name, known_from_at in read.known_from_at.items():
        say(f"minute8: {name}: when it was due is known from {known_from_at} on")


def _say_rest(ctx: typer.Context, read: _ExpectedPages, filters: ExpectedFilters) -> None:
    more = len(read.instants) - filters.limit
    if more > 0:
        say_more(ctx, f"there are {more} more due instants", "--limit", filters.limit, short="-n")
    if read.cursor:
        say_more(ctx, "the range holds more", "--most", filters.max_pages)


def _attention_first(fire: ExpectedFire) -> tuple[int, float]:
    """The order for all jobs: problems, then past instants, both newest first, then instants to come."""
    due_at = parse_instant(fire["due_at"], "due_at")
    if fire["status"] == TO_COME:
        return 2, due_at
    return int(fire["status"] in QUIET), -due_at


def word(status: str) -> str:
    """`no_record` as people write it."""
    return status.replace("_", " ")


def _row(fire: ExpectedFire, now: float, with_job: bool) -> tuple[object, ...]:
    return (
        fire["due_at"],
        relative(fire["due_at"], now),
        *([fire["job_id"]] if with_job else []),
        state(word(fire["status"])),
        _why(fire),
        fire["run"]["execution_id"] if "run" in fire else "-",
    )


def _why(fire: ExpectedFire) -> str:
    late = f"late by {seconds(fire['late_s'])}" if fire["status"] in ("late", "overdue", "no_record") else ""
    ended = fire["run"]["status"] if "run" in fire and fire["status"] in ("on_time", "late") else ""
    words = ", ".join(part for part in (late, ended, fire.get("detail") or fire.get("reason", "")) if part)
    return words if fire["is_due"] else f"{words} (planned before the job changed)"


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
        explanation = client.explain_job(job_id, at)
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
    out.print(explanation["text"], soft_wrap=True)
    for fire in explanation["found"]:
        if "run" in fire:
            out.print(f"run {fire['run']['execution_id']}", soft_wrap=True)
    if explanation["since"]:
        since = explanation["since"]
        by = since.get("by_name", since["by"])
        out.print(f"times in force since {since['at']}: {since['action']} by {by}")
    if explanation["next_due_at"]:
        far = relative(explanation["next_due_at"], now)
        words = "was due next" if far.endswith("ago") else "due next"
        out.print(f"{words} {explanation['next_due_at']} ({far})")
