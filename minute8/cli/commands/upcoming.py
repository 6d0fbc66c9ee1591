"""`minute8 upcoming`, `density` and `clock-changes`: what is coming."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Annotated, Any

import typer

from common.errors import InvalidInput
from common.history.next_fires import MAX_AHEAD_DAYS
from common.timing.density import MINUTE_S, crowded
from common.timing.durations import parse_duration, parse_instant
from common.timing.instants import DAY_S, relative, rfc3339
from minute8.cli import output
from minute8.cli.options import AsJson, Limit
from minute8.cli.output import console, plural, print_json, say
from minute8.cli.platform import operator_api
from minute8.cli.rest_of_list import say_more
from minute8.cli.session import session

_PAGE = 1_000
Within = Annotated[str, typer.Option(help=f"How far ahead: 90m, 24h; at most {MAX_AHEAD_DAYS}d.")]


def upcoming(
    ctx: typer.Context,
    within: Within = "24h",
    limit: Limit = 50,
    as_json: AsJson = False,
) -> None:
    """List the next executions of all jobs, the earliest first."""
    now = session(ctx).clock.now()
    with session(ctx).client() as client:
        page = client.list_upcoming_page(limit=min(limit, _PAGE), until_at=(until_at := _until(within, now)))
        executions = list(page["executions"])
        while page["next_cursor"] and len(executions) < limit:
            page = client.list_upcoming_page(limit=_PAGE, cursor=page["next_cursor"], until_at=until_at)
            executions += page["executions"]
    if page["next_cursor"] or len(executions) > limit:
        say_more(ctx, "there are more executions", "--limit", limit, short="-n")
    if not page["complete"]:
        say(f"minute8: these are of {page['jobs_counted']} jobs; there was no time for more")
    executions = executions[:limit]
    if as_json:
        print_json(executions)
        return
    rows = [
        (execution["due_at"], relative(execution["due_at"], now), execution["job_id"])
        for execution in executions
    ]
    console().print(output.table(("DUE", "", "JOB"), rows) if rows else "nothing")


def density(
    ctx: typer.Context,
    within: Within = "24h",
    minute: Annotated[
        str,
        typer.Option(help="Show one minute by second, with its jobs: 2026-11-21T18:30Z, or 20m from now."),
    ] = "",
    platform: Annotated[
        bool, typer.Option("--platform", help="Show all tenants; needs an operator key.")
    ] = False,
    max_pages: Annotated[
        int, typer.Option("--most", min=1, help="With --platform: read at most this many pages of jobs.")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """Show how many executions are due by hour, which minutes are crowded, and what would spread them."""
    now = session(ctx).clock.now()
    minute_at = _until(minute, now, "--minute") if minute else ""
    if minute and not platform:
        _minute(ctx, minute_at, now, as_json=as_json)
        return
    span = {"from_at": rfc3339(int(now)), "until_at": _until(within, now)}
    if minute:
        start = parse_instant(minute_at, "--minute") // MINUTE_S * MINUTE_S
        span = {"from_at": rfc3339(start), "until_at": rfc3339(start + MINUTE_S)}
    figures = _of_platform(ctx, span, max_pages) if platform else _of_tenant(ctx, span)
    if as_json:
        print_json(figures)
        return
    _print_density(figures, now)


def _of_tenant(ctx: typer.Context, span: Mapping[str, str]) -> dict[str, Any]:
    with session(ctx).client() as client:
        shown = client.density(**span)
    return {**shown, "minutes": {line["minute_at"]: line["executions"] for line in shown["minutes"]}}


def _of_platform(ctx: typer.Context, span: Mapping[str, str], max_pages: int) -> dict[str, Any]:
    with operator_api(ctx) as operator:
        pages: list[Mapping[str, Any]] = list(islice(operator.density_of_platform(**span), max_pages))
    minutes = _merged(pages, "minutes", "minute_at")
    span_s = parse_instant(span["until_at"], "within") - parse_instant(span["from_at"], "within")
    full = crowded({parse_instant(at, "minute_at"): count for at, count in minutes.items()}, span_s)
    is_complete = pages[-1]["next_cursor"] is None
    if not is_complete:
        say_more(ctx, "there are more jobs", "--most", max_pages)
    return {
        **span,
        "jobs_counted": sum(page["jobs_counted"] for page in pages),
        "executions": minutes.total(),
        "complete": is_complete,
        "minutes": dict(sorted(minutes.items())),
        "seconds": dict(sorted(_merged(pages, "seconds", "at").items())),
        "crowded": [{"minute_at": rfc3339(at), "executions": count} for at, count in full],
        "tenants": dict(_merged(pages, "tenants", "tenant_id").most_common(10)),
    }


def _minute(ctx: typer.Context, minute_at: str, now: float, *, as_json: bool) -> None:
    """Print the executions of a minute by second, with the jobs' names."""
    with session(ctx).client() as client:
        shown = client.density_of_minute(minute_at)
    if as_json:
        print_json(shown)
        return
    out = console()
    out.print(
        f"{plural(shown['executions'], 'execution', is_whole=shown['complete'])} in the minute of {minute_at}"
    )
    named: dict[str, list[str]] = {}
    for job in shown["jobs"]:
        named.setdefault(job["due_at"], []).append(job["name"] or job["job_id"])
    rows = [
        (
            second["at"],
            relative(second["at"], now),
            second["executions"],
            ", ".join(named.get(second["at"], [])),
        )
        for second in shown["seconds"]
    ]
    if rows:
        out.print(output.table(("SECOND", "", "DUE", "JOBS"), rows))


def clock_changes(
    ctx: typer.Context,
    tzdata: Annotated[
        str | None,
        typer.Option(
            help="List the jobs that the update from this tzdata release moved instead; `last`: the previous one."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the jobs that the next clock change of their time zones moves, doubles or drops."""
    now = session(ctx).clock.now()
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
    with session(ctx).client() as client:
        if tzdata is not None:
            changed = list(client.list_tzdata_changes(since=None if tzdata == "last" else tzdata))
            columns = ("JOB", "ZONE", "WAS TO FIRE", "FIRES")
            rows = [
                (job["job_id"], job["timezone"], job["before_at"] or "-", job["after_at"] or "-")
                for job in changed
            ]
            shown: object = changed
        else:
            moved = sorted(client.list_clock_changes(), key=lambda job: (job["change_at"], job["job_id"]))
            columns = ("CHANGE", "JOB", "ZONE", "WHAT BECOMES OF IT")
            rows = [
                (relative(job["change_at"], now), job["job_id"], job["timezone"], job["text"])
                for job in moved
            ]
            shown = moved
    if as_json:
        print_json(shown)
        return
    console().print(output.table(columns, rows) if rows else "no job is moved")


def _until(within: str, now: float, option: str = "--within") -> str:
    """Raises InvalidInput."""
    try:
        span_s = parse_duration(within, option)
    except InvalidInput:
        try:
            span_s = parse_instant(within, option) - int(now)
        except InvalidInput:
            accepted = f"a duration such as 90m or 24h, at most {MAX_AHEAD_DAYS}d, or a time"
            raise InvalidInput(option, "is no span of time", value=within, accepted=accepted) from None
    if span_s > MAX_AHEAD_DAYS * DAY_S:
        raise InvalidInput(option, "is too far ahead", value=within, accepted=f"at most {MAX_AHEAD_DAYS}d")
    return rfc3339(int(now) + span_s)


def _merged(pages: Iterable[Mapping[str, Any]], field: str, key: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for page in pages:
        for entry in page[field] or ():
            counts[entry[key]] += entry["executions"]
    return counts


def _print_density(figures: Mapping[str, Any], now: float) -> None:
    out = console()
    jobs = plural(figures["jobs_counted"], "job", is_whole=figures["complete"])
    out.print(f"{plural(figures['executions'], 'execution', is_whole=figures['complete'])} of {jobs}")
    hours: Counter[str] = Counter()
    for minute, count in figures["minutes"].items():
        hours[f"{minute[:13]}:00Z"] += count
    fullest = max(hours.values(), default=1)
    bars = [(hour, count, "#" * max(1, count * 40 // fullest)) for hour, count in hours.items()]
    if bars:
        out.print(output.table(("HOUR", "DUE", ""), bars))
    if seconds := figures.get("seconds"):
        rows_of_seconds = [(at, relative(at, now), count) for at, count in seconds.items()]
        out.print(output.table(("SECOND", "", "DUE"), rows_of_seconds))
    if figures["crowded"]:
        rows = [
            (
                minute["minute_at"],
                relative(minute["minute_at"], now),
                minute["executions"],
                _proposals(minute),
            )
            for minute in figures["crowded"]
        ]
        out.print(output.table(("CROWDED MINUTE", "", "DUE", "TO SPREAD IT"), rows))
    if figures.get("paces"):
        names = ("key", "per_second", "executions", "delayed", "longest_s", "over")
        out.print(
            output.table(
                ("PACE", "A SECOND", "DUE", "DELAYED", "BY AT MOST, S", "TOO MANY"),
                [tuple(pace[name] for name in names) for pace in figures["paces"]],
            )
        )
    if figures.get("concurrency"):
        rows_of_keys = [
            (key["key"], key["limit"], key["executions"], key["crowded"]) for key in figures["concurrency"]
        ]
        out.print(output.table(("CONCURRENCY KEY", "AT A TIME", "DUE", "AT ONCE TOO MANY"), rows_of_keys))
    for tenant, count in figures.get("tenants", {}).items():
        out.print(f"tenant {tenant}: {count}")


def _proposals(minute: Mapping[str, Any]) -> str:
    proposals = [
        f"{job['job_id']}: {', '.join(f'{name} {value}' for name, value in job['proposal'].items())}"
        for job in minute.get("jobs", [])
        if job["proposal"]
    ]
    return "; ".join(proposals)
