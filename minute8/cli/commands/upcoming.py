"""`minute8 upcoming`, `density` and `clock-changes`: what is coming."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Annotated, Any

import typer

from common.errors import InvalidInput
from common.history.density import MAX_AHEAD_DAYS
from common.timing.density import crowded
from common.timing.durations import parse_duration, parse_instant
from common.timing.instants import DAY_S, relative, rfc3339
from minute8.cli import output
from minute8.cli.options import AsJson, Limit
from minute8.cli.output import console, print_json
from minute8.cli.platform import operator_api
from minute8.cli.rest_of_list import listed, say_more
from minute8.cli.session import session

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
        executions = listed(ctx, client.upcoming(until_at=_until(within, now)), limit, "executions")
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
    platform: Annotated[
        bool, typer.Option("--platform", help="Show all tenants; needs an operator key.")
    ] = False,
    max_pages: Annotated[
        int, typer.Option("--most", min=1, help="Read at most this many pages of jobs.")
    ] = 20,
    as_json: AsJson = False,
) -> None:
    """Show how many executions are due by hour, which minutes are crowded, and what would spread them."""
    now = session(ctx).clock.now()
    span = {"from_at": rfc3339(int(now)), "until_at": _until(within, now)}
    with operator_api(ctx) if platform else session(ctx).client() as client:
        pages: list[Mapping[str, Any]] = list(islice(client.densities(**span), max_pages))
    minutes = _merged(pages, "minutes", "minute_at")
    named = {minute["minute_at"]: minute for page in pages for minute in page["crowded"]}
    span_s = parse_instant(span["until_at"], "within") - int(now)
    full = crowded({parse_instant(at, "minute_at"): count for at, count in minutes.items()}, span_s)
    figures = {
        **span,
        "jobs_counted": sum(page["jobs_counted"] for page in pages),
        "executions": minutes.total(),
        "complete": pages[-1]["next_cursor"] is None,
        "minutes": dict(sorted(minutes.items())),
        "paces": _paces(pages),
        "concurrency": _keys(pages),
        "crowded": [
            {**named.get(rfc3339(at), {}), "minute_at": rfc3339(at), "executions": count}
            for at, count in full
        ],
    }
    if platform:
        figures["tenants"] = dict(_merged(pages, "tenants", "tenant_id").most_common(10))
    if not figures["complete"]:
        say_more(ctx, "there are more jobs", "--most", max_pages)
    if as_json:
        print_json(figures)
        return
    _print_density(figures, now)


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
            changed = list(client.tzdata_changes(None if tzdata == "last" else tzdata))
            columns = ("JOB", "ZONE", "WAS TO FIRE", "FIRES")
            rows = [
                (job["job_id"], job["timezone"], job["before_at"] or "-", job["after_at"] or "-")
                for job in changed
            ]
            shown: object = changed
        else:
            moved = sorted(client.clock_changes(), key=lambda job: (job["change_at"], job["job_id"]))
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


def _until(within: str, now: float) -> str:
    """Raises InvalidInput."""
    try:
        span_s = parse_duration(within, "--within")
    except InvalidInput:
        try:
            span_s = parse_instant(within, "--within") - int(now)
        except InvalidInput:
            accepted = f"a duration such as 90m or 24h, at most {MAX_AHEAD_DAYS}d, or a time"
            raise InvalidInput("--within", "is no span of time", value=within, accepted=accepted) from None
    if span_s > MAX_AHEAD_DAYS * DAY_S:
        raise InvalidInput(
            "--within", "is too far ahead", value=within, accepted=f"at most {MAX_AHEAD_DAYS}d"
        )
    return rfc3339(int(now) + span_s)


def _merged(pages: Iterable[Mapping[str, Any]], field: str, key: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for page in pages:
        for entry in page[field]:
            counts[entry[key]] += entry["executions"]
    return counts


def _paces(pages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each pace once. Each page knows its own jobs only, so over several pages these figures are lower bounds."""
    paces: dict[str, dict[str, Any]] = {}
    for pace in (pace for page in pages for pace in page.get("paces", ())):
        total = paces.setdefault(pace["key"], {**pace, "executions": 0, "delayed": 0, "over": 0})
        for name in ("executions", "delayed", "over"):
            total[name] += pace[name]
        total["per_second"] = min(total["per_second"], pace["per_second"])
        total["longest_s"] = max(total["longest_s"], pace["longest_s"])
    return list(paces.values())


def _keys(pages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each concurrency key once; over several pages the crowded ones are a lower bound."""
    keys: dict[str, dict[str, Any]] = {}
    for key in (key for page in pages for key in page.get("concurrency", ())):
        total = keys.setdefault(key["key"], {**key, "executions": 0, "crowded": 0})
        for name in ("executions", "crowded"):
            total[name] += key[name]
        total["limit"] = min(total["limit"], key["limit"])
    return list(keys.values())


def _print_density(figures: Mapping[str, Any], now: float) -> None:
    out = console()
    out.print(f"{figures['executions']} executions of {figures['jobs_counted']} jobs")
    hours: Counter[str] = Counter()
    for minute, count in figures["minutes"].items():
        hours[f"{minute[:13]}:00Z"] += count
    fullest = max(hours.values(), default=1)
    bars = [(hour, count, "#" * max(1, count * 40 // fullest)) for hour, count in hours.items()]
    if bars:
        out.print(output.table(("HOUR", "DUE", ""), bars))
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
    if figures["paces"]:
        names = ("key", "per_second", "executions", "delayed", "longest_s", "over")
        out.print(
            output.table(
                ("PACE", "A SECOND", "DUE", "DELAYED", "BY AT MOST, S", "TOO MANY"),
                [tuple(pace[name] for name in names) for pace in figures["paces"]],
            )
        )
    if figures["concurrency"]:
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
