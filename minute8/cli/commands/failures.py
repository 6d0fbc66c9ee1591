"""`minute8 failures`: failed runs of all jobs, their groups by error, and which of these are muted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from common.timing.instants import relative, rfc3339
from minute8.cli import output
from minute8.cli.options import AsJson, Limit, Since, complete_job_ids, with_options
from minute8.cli.output import console, print_json, why
from minute8.cli.rest_of_list import listed
from minute8.cli.session import session
from minute8.cli.time_range import since_at, time_ahead
from minute8.client.shapes import FailureGroup, Mute, MutedGroup

app = typer.Typer(no_args_is_help=False)
_Fingerprint = Annotated[
    str, typer.Argument(help="The group's fingerprint; minute8 failures --groups shows it.")
]


@dataclass(frozen=True, slots=True)
class FailureFilters:
    """Which failures."""

    since: Since = None
    job_id: Annotated[str | None, typer.Option("--job", help="Only runs of this job.")] = None
    tag: Annotated[str | None, typer.Option(help="Only runs of jobs that have this tag now.")] = None

    def query(self, now: float) -> dict[str, str | None]:
        """The parameters of the request. Raises InvalidInput."""
        from_at = rfc3339(since_at(self.since, now)) if self.since else None
        return {"from_at": from_at, "job_id": self.job_id, "tag": self.tag}


@app.callback(invoke_without_command=True)
@with_options
def failures(
    ctx: typer.Context,
    limit: Limit = 20,
    *,
    filters: FailureFilters,
    groups: Annotated[
        bool,
        typer.Option("--groups", help="Group the failures by job and error; of the last 7 days by default."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List the failed runs of all jobs, latest failure first."""
    if ctx.invoked_subcommand is not None:
        return
    now = session(ctx).clock.now()
    query = filters.query(now)
    columns: tuple[str, ...]
    rows: list[tuple[object, ...]]
    with session(ctx).client() as client:
        if groups:
            by_error = listed(ctx, client.list_failure_groups(**query), limit, "groups")
            shown: object = by_error
            columns = ("TIMES", "LAST", "FIRST", "JOB", "ERROR", "GROUP", "MUTED")
            rows = [_group_row(group, now) for group in by_error]
        else:
            runs = listed(ctx, client.list_failures(**query), limit, "failures")
            shown = runs
            columns = ("FAILED", "JOB", "WHY", "RUN")
            rows = [
                (relative(run.get("finished_at"), now), run["job_id"], why(run), run["execution_id"])
                for run in runs
            ]
        if filters.job_id and not rows:
            # Raises NotFound: a mistyped id must not look as if all went well.
            client.get_job(filters.job_id)
    if as_json:
        print_json(shown)
        return
    console().print(output.table(columns, rows) if rows else "no failures")


def _group_row(group: FailureGroup, now: float) -> tuple[object, ...]:
    return (
        group["count"],
        relative(group["last_at"], now),
        relative(group["first_at"], now),
        group["job_id"],
        error_words(group),
        group["fingerprint"],
        _muted_words(group["muted"]),
    )


@app.command()
def mute(
    ctx: typer.Context,
    job_id: Annotated[str, typer.Argument(help="The job's id.", autocompletion=complete_job_ids)],
    fingerprint: _Fingerprint,
    note: Annotated[str, typer.Option(help="Why, for people.")] = "",
    until: Annotated[
        str | None,
        typer.Option(
            help="A duration from now, or a time; 30 days at most. Otherwise until the group changes."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Mute a group of failures: it no longer counts as needing attention, and subscriptions are silent about it.

    Without --until it ends when the job, having succeeded or having been changed, fails again.
    """
    until_at = time_ahead(until, session(ctx).clock.now(), "until", 7) if until else None
    with session(ctx).client() as client:
        group = client.mute_failures(job_id, fingerprint, note, until_at)
    print_json(group) if as_json else console().print(
        f"{job_id} {fingerprint} is muted {_muted_words(group)}"
    )


@app.command()
def unmute(
    ctx: typer.Context,
    job_id: Annotated[str, typer.Argument(help="The job's id.", autocompletion=complete_job_ids)],
    fingerprint: _Fingerprint,
) -> None:
    """Unmute a group of failures."""
    with session(ctx).client() as client:
        client.unmute_failures(job_id, fingerprint)
    console().print(f"{job_id} {fingerprint} is not muted any more")


@app.command()
def muted(ctx: typer.Context, as_json: AsJson = False) -> None:
    """List the muted groups of failures."""
    with session(ctx).client() as client:
        groups = client.list_muted_groups()
    output.show_list(
        groups,
        as_json,
        ("JOB", "ERROR", "GROUP", "MUTED", "NOTE"),
        lambda group: (
            group["job_id"],
            error_words(group),
            group["fingerprint"],
            _muted_words(group),
            group["note"],
        ),
        "nothing is muted",
    )


def error_words(group: FailureGroup | MutedGroup) -> str:
    """The first line of a group's error, after its type."""
    return f"{group['error_type']}: {group['error']}".strip(": ").partition("\n")[0]


def _muted_words(mute: Mute | None) -> str:
    if mute is None:
        return ""
    return f"until {mute['until_at'] or 'it changes'}"
