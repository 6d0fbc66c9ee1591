"""`minute8 jobs`: a tenant's jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final
from zoneinfo import ZoneInfo

import typer
from rich.text import Text

from common.timing.instants import relative, when
from minute8.cli import output
from minute8.cli.commands.many import change_each
from minute8.cli.options import AsJson, JobId, JobIds, complete_states, complete_tags, with_options
from minute8.cli.output import (
    SUSPENDED,
    console,
    field_text,
    print_json,
    say,
    schedule_words,
    seconds,
    state,
    target_words,
    why,
)
from minute8.cli.rest_of_list import listed
from minute8.cli.session import session
from minute8.client import Client
from minute8.client.shapes import CorruptJob, Fire, Job, JobHealth

app = typer.Typer(no_args_is_help=True, help="A tenant's jobs.")

# A page with health takes a query for each job.
_LISTED_JOBS: Final = 100
_MAX_PAGE_JOBS: Final = 200
_SCHEDULE_WORD_FIELDS = ("cron", "every", "at", "timezone")
Revision = Annotated[int | None, typer.Option(help="Only if this is still the current revision.")]


@dataclass(frozen=True, slots=True)
class JobFilters:
    """Which jobs."""

    job_state: Annotated[
        str | None,
        typer.Option("--state", help="Only active or only paused jobs.", autocompletion=complete_states),
    ] = None
    tag: Annotated[
        str | None, typer.Option(help="Only jobs with this tag.", autocompletion=complete_tags)
    ] = None
    name_prefix: Annotated[
        str | None, typer.Option("--prefix", help="Only jobs whose id or name begins with this.")
    ] = None
    target: Annotated[str | None, typer.Option(help="Only jobs with this ARN or URL as target.")] = None
    kind: Annotated[str | None, typer.Option(help="Only jobs with a target of this kind, such as http.")] = (
        None
    )
    search: Annotated[
        str | None, typer.Option("--search", "-q", help="Words of id, name and tags, or their beginnings.")
    ] = None
    failing: Annotated[bool, typer.Option("--failing", help="Only jobs whose last run failed.")] = False
    not_running: Annotated[bool, typer.Option("--not-running", help="Only jobs that do not run.")] = False
    sort: Annotated[str | None, typer.Option(help="By id, name, next, last or failures.")] = None

    def query(self) -> dict[str, Any]:
        return {
            "q": self.search,
            "kind": self.kind,
            "failing": self.failing,
            "not_running": self.not_running,
            "sort": self.sort,
            "state": self.job_state,
            "tag": self.tag,
            "name_prefix": self.name_prefix,
            "target": self.target,
        }


@app.command("list")
@with_options
def list_jobs(
    ctx: typer.Context,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="List at most this many; else 100, with --json all."),
    ] = None,
    *,
    filters: JobFilters,
    health: Annotated[
        bool | None,
        typer.Option(
            help="Show the last outcomes, the newest last: . succeeded, x failed, s skipped, o other."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the jobs: the next fire time or how late it is, and the last outcomes."""
    now = session(ctx).clock.now()
    with_health = not as_json if health is None else health
    jobs: list[tuple[Job, JobHealth | None]]
    limit = limit or (None if as_json else _LISTED_JOBS)
    query = filters.query() | ({"limit": min(limit + 1, _MAX_PAGE_JOBS)} if limit else {})
    with session(ctx).client() as client:
        corrupt: list[CorruptJob] = []
        read = _pages(client, query, with_health, corrupt)
        jobs = listed(ctx, read, limit, "jobs") if limit else list(read)
    for damaged in corrupt:
        text = f"{damaged['job_id']} is corrupt: {damaged['problem']}; put it again, or delete it"
        say(f"minute8: {text}")
    if as_json:
        print_json([{**job, "health": job_health} if job_health else job for job, job_health in jobs])
        return
    rows = [_row(job, job_health, now) for job, job_health in jobs]
    columns = ("JOB", "STATE", "NEXT", *(("LAST", "OUTCOMES") if with_health else ()), "SCHEDULE", "")
    console().print(output.table(columns, rows) if rows else "no jobs")


def _pages(
    client: Client, query: Mapping[str, Any], with_health: bool, corrupt: list[CorruptJob]
) -> Iterator[tuple[Job, JobHealth | None]]:
    """The jobs with their health, page by page; `corrupt` gets those that cannot be read."""
    cursor = None
    while True:
        page = client.list_jobs_page(cursor=cursor, health=with_health, **{"limit": _MAX_PAGE_JOBS, **query})
        if cursor is None and page["suspended"]:
            say(SUSPENDED)
        corrupt += page["corrupt"]
        yield from ((job, page["health"][job["job_id"]] if with_health else None) for job in page["jobs"])
        if (cursor := page["next_cursor"]) is None:
            return


def _row(job: Job, health: JobHealth | None, now: float) -> tuple[Any, ...]:
    """The cells of a job in the list of jobs."""
    return (
        job["job_id"],
        state(job["state"]),
        next_or_late(job, health, now),
        *((last_outcome(health, now), outcomes(health)) if health else ()),
        schedule_words(job["schedule"]),
        job["note"] or job["name"],
    )


@app.command()
def show(ctx: typer.Context, job_id: JobId, as_json: AsJson = False) -> None:
    """Show a job, its next fire time and its latest run."""
    now = session(ctx).clock.now()
    with session(ctx).client() as client:
        job = client.get_job(job_id)
        health = None if as_json else client.job_health(job_id)
    if as_json:
        print_json(job)
        return
    out = console()
    out.print(
        job["job_id"], state(job["state"]), *([f"- {job['note']}"] if job["note"] else []), soft_wrap=True
    )
    rows = [
        ("next", next_or_late(job, health, now, when)),
        *_health_rows(health, now),
        ("schedule", schedule_words(job["schedule"])),
        ("in words", job.get("schedule_words", "")),
        *(
            (name, field_text(value))
            for name, value in job["schedule"].items()
            if name not in _SCHEDULE_WORD_FIELDS
        ),
        ("target", target_words(job["target"])),
        ("payload", field_text(job["payload"])),
        ("time limit", output.seconds(job["timeout_s"])),
        (
            "completion",
            f"by a callback within {output.seconds(job['callback_timeout_s'])}"
            if job.get("completion") == "callback"
            else "",
        ),
        ("retry", ", ".join(f"{name} {value}" for name, value in job["retry"].items())),
        ("start deadline", output.seconds(job["start_deadline_s"])),
        ("catch-up", job["catch_up"]),
        ("overlap", job["overlap"]),
        ("pause after", f"{job['pause_after_failures']} failures" if job["pause_after_failures"] else "-"),
        ("alert", _part_words(job.get("alert"))),
        ("concurrency", _part_words(job.get("concurrency"))),
        ("on crash", job["on_crash"]),
        ("after completion", job["after_completion"]),
        ("dead letter", job["dead_letter"] or ""),
        ("owner", job["owner"]),
        ("runbook", job["runbook"]),
        ("name", job["name"]),
        ("tags", ", ".join(job["tags"])),
        ("created", when(job["created_at"], now)),
        ("revision", f"{job['revision']}, changed {when(job['updated_at'], now)}"),
    ]
    out.print(output.table(("", ""), [row for row in rows if str(row[1]) not in ("", "-")]))


def _part_words(part: Mapping[str, object] | None) -> str:
    """The fields of an object that a job may have."""
    return ", ".join(f"{name} {value}" for name, value in (part or {}).items() if value)


def _health_rows(health: JobHealth | None, now: float) -> list[tuple[str, object]]:
    if health is None:
        return []
    last = health["last_run"]
    words = f"{last['status']} {relative(last['fire_at'], now)} {why(last)}".strip() if last else "none"
    return [
        ("last run", words),
        ("outcomes", outcomes(health) if last else ""),
        ("failures in a row", health["failures_in_row"] or ""),
        ("not running", health["not_running"] or ""),
    ]


@app.command()
def pause(
    ctx: typer.Context,
    job_ids: JobIds,
    note: Annotated[str, typer.Option(help="The reason; shown with the job and each skipped run.")] = "",
    as_json: AsJson = False,
) -> None:
    """Pause jobs: none of their executions starts, not even queued ones."""
    show = partial(print_done, ctx, done="paused")
    change_each(ctx, job_ids, lambda client, job_id: client.pause_job(job_id, note), show, as_json)


@app.command()
def resume(ctx: typer.Context, job_ids: JobIds, as_json: AsJson = False) -> None:
    """Let paused jobs run again, from now on."""
    show = partial(print_done, ctx, done="resumed")
    change_each(ctx, job_ids, lambda client, job_id: client.resume_job(job_id), show, as_json)


@app.command()
def delete(
    ctx: typer.Context,
    job_ids: JobIds,
    revision: Revision = None,
    yes: Annotated[bool, typer.Option("--yes", help="For scripts: nothing is asked anyway.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete jobs. Their runs stay to be looked at, until they expire."""
    if revision is not None and len(job_ids) > 1:
        raise typer.BadParameter("--revision goes with one job")

    def deleted(client: Client, job_id: str) -> dict[str, Any]:
        client.delete_job(job_id, revision)
        return {"job_id": job_id, "deleted": True}

    change_each(
        ctx,
        job_ids,
        deleted,
        lambda answer: console().print(f"{answer['job_id']} deleted", soft_wrap=True),
        as_json,
    )


@app.command("next")
def next_fires(
    ctx: typer.Context,
    job_id: JobId,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, max=100, help="The number of fire times.")
    ] = 5,
    as_json: AsJson = False,
) -> None:
    """Show when a job fires next."""
    now = session(ctx).clock.now()
    with session(ctx).client() as client:
        coming = client.next_fires(job_id, count)
    if as_json:
        print_json(coming)
        return
    if not coming["fires"]:
        console().print("it is paused" if coming["state"] == "paused" else "never again")
        return
    zone = [] if coming["timezone"] == "UTC" else [coming["timezone"]]
    rows = [
        (
            relative(fire["due_at"], now),
            fire["due_at"],
            *([local_time(fire, coming["timezone"])] if zone else []),
            "skipped" if fire["skipped"] else "",
        )
        for fire in coming["fires"]
    ]
    console().print(output.table(("IN", "UTC", *zone, ""), rows))


def local_time(fire: Fire, zone: str) -> str:
    """When it is due, on the clock of a zone."""
    return datetime.fromisoformat(fire["due_at"]).astimezone(ZoneInfo(zone)).isoformat()


def print_done(ctx: typer.Context, job: Job, done: str, as_json: bool = False) -> None:
    """Print the changed job: a line, with its warnings and what the change ends."""
    if as_json:
        print_json(job)
        return
    coming = f", next {when(job['next_due_at'], session(ctx).clock.now())}" if job["next_due_at"] else ""
    line = f"{job['job_id']} {done}: revision {job['revision']}, {job['state']}{coming}"
    console().print(line, soft_wrap=True)
    for line in (*job.get("warnings", ()), *(end["detail"] for end in job.get("ends", ()))):
        console().print(f"! {line}", soft_wrap=True)


_MARKS = {
    "succeeded": (".", "green"),
    "dispatched": (".", "green"),
    "failed": ("x", "bold red"),
    "skipped": ("s", "yellow"),
}


def next_or_late(
    job: Job,
    health: JobHealth | None,
    now: float,
    shown: Callable[[str | int | None, float], str] = relative,
) -> Text:
    """When it fires next; or how late it is, if a due instant has passed without a run."""
    if health and (overdue := health["overdue"]):
        return Text(f"late by {seconds(overdue['late_s'])}, due {overdue['due_at']}", style="bold red")
    if health and health["not_running"]:
        return Text(f"not running: {health['not_running']}", style="bold red")
    return Text(shown(job["next_due_at"], now))


def last_outcome(health: JobHealth, now: float) -> str:
    """Such as `failed 3 min ago (4 in a row)`."""
    if not (last := health["last_run"]):
        return "-"
    in_row = f" ({health['failures_in_row']} in a row)" if health["failures_in_row"] > 1 else ""
    return f"{last['status']} {relative(last['fire_at'], now)}{in_row}"


def outcomes(health: JobHealth) -> Text:
    """One character for each of the newest runs, the newest last."""
    marks = [_MARKS.get(run["status"], ("o", "cyan")) for run in reversed(health["outcomes"])]
    return Text.assemble(*marks)
