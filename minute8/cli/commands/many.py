"""Changes of many jobs or runs: named ones one by one; of filters they are counted first, then confirmed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import typer

from minute8.cli.options import (
    ExitCode,
    Since,
    Until,
    Yes,
    complete_job_ids,
    complete_states,
    complete_tags,
    with_options,
)
from minute8.cli.output import confirm, console, plural, print_json, problem_lines, say
from minute8.cli.session import session
from minute8.cli.time_range import range_of
from minute8.client import Client, Minute8Problem
from minute8.client.shapes import ManyDone

Tag = Annotated[str | None, typer.Option(help="Only jobs with this tag.", autocompletion=complete_tags)]
Error = Annotated[
    str | None,
    typer.Option("--error", help="Only jobs that failed with this type of error in the last 7 days."),
]
Note = Annotated[str, typer.Option(help="The reason.")]

T = TypeVar("T")
Operation = Callable[[Client], Callable[..., ManyDone]]


@dataclass(frozen=True, slots=True)
class JobFilters:
    """Which jobs. At least one filter or `--all` is needed; the state alone is not enough."""

    job_state: Annotated[
        str | None,
        typer.Option("--state", help="Only active or only paused jobs.", autocompletion=complete_states),
    ] = None
    tag: Tag = None
    name_prefix: Annotated[
        str | None, typer.Option("--prefix", help="Only jobs whose id or name begins with this.")
    ] = None
    target: Annotated[str | None, typer.Option(help="Only jobs with this ARN or URL as target.")] = None
    error_type: Error = None
    fingerprint: Annotated[
        str | None,
        typer.Option(
            help="Only jobs in the group of failures with this fingerprint; see failures --groups --json."
        ),
    ] = None
    every: Annotated[bool, typer.Option("--all", help="All jobs, without a filter.")] = False

    def query(self, state: str | None = None) -> dict[str, Any]:
        """The fields of the request; `state` is the default. Raises typer.BadParameter without a filter."""
        names = ("tag", "name_prefix", "target", "error_type", "fingerprint")
        filters = {name: getattr(self, name) for name in names}
        if not self.every and not any(filters.values()):
            raise typer.BadParameter(
                "give --tag, --prefix, --target, --error or --fingerprint, or --all for all jobs"
            )
        return filters | {"state": self.job_state or state, "all": True if self.every else None}


@dataclass(frozen=True, slots=True)
class FailedRuns:
    """Which failed runs."""

    since: Annotated[str, typer.Option(help="Only runs that failed in the last 2h, 7d…, or since a time.")]
    until: Until = None
    job_id: Annotated[
        str | None, typer.Option("--job", help="Only runs of this job.", autocompletion=complete_job_ids)
    ] = None
    tag: Annotated[str | None, typer.Option(help="Only runs of jobs that have this tag now.")] = None
    error_type: Annotated[
        str | None, typer.Option("--error", help="Only runs that failed with this type of error.")
    ] = None


@dataclass(frozen=True, slots=True)
class WaitingRuns:
    """Which runs that wait."""

    status: Annotated[str, typer.Option(help="Only runs with this status: retrying or queued.")] = "retrying"
    prefix: Annotated[
        str | None, typer.Option("--prefix", help="Only runs of jobs whose id begins with this.")
    ] = None
    since: Since = None
    until: Until = None


@dataclass(frozen=True, slots=True)
class Confirmation:
    """Whether to change anything, and whether to ask before."""

    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count and list them, and change nothing.")] = (
        False
    )
    yes: Yes = False
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON; does not ask.")] = False


def change_each(
    ctx: typer.Context,
    job_ids: Sequence[str],
    change: Callable[[Client, str], T],
    show: Callable[[T], None],
    as_json: bool,
) -> None:
    """Change the jobs one by one and show each. A refused one does not stop the others.

    As JSON: the answer of a single job, or the list of those of several. Raises the last refusal, after all jobs.
    """
    answers: list[T] = []
    refused: Minute8Problem | None = None
    with session(ctx).client() as client:
        for job_id in dict.fromkeys(job_ids):
            try:
                answer = change(client, job_id)
            except Minute8Problem as problem:
                if refused:
                    say(f"minute8: {'; '.join(problem_lines(refused))}")
                refused = problem
                continue
            answers.append(answer)
            if not as_json:
                show(answer)
    if as_json and answers:
        print_json(answers[0] if len(job_ids) == 1 else answers)
    if refused:
        raise refused


@with_options
def pause_all(ctx: typer.Context, jobs: JobFilters, note: Note = "", *, confirmation: Confirmation) -> None:
    """Pause the jobs that match the filters. They are counted first."""
    _change_many(
        ctx, "Pause", "job", lambda client: client.pause_jobs, jobs.query() | {"note": note}, confirmation
    )


@with_options
def resume_all(ctx: typer.Context, jobs: JobFilters, confirmation: Confirmation) -> None:
    """Resume the jobs that match the filters, from now on. They are counted first."""
    _change_many(ctx, "Resume", "job", lambda client: client.resume_jobs, jobs.query("paused"), confirmation)


@with_options
def delete_all(ctx: typer.Context, jobs: JobFilters, confirmation: Confirmation) -> None:
    """Delete the jobs that match the filters. They are counted first."""
    _change_many(ctx, "Delete", "job", lambda client: client.delete_jobs, jobs.query(), confirmation)


@with_options
def run_all(ctx: typer.Context, jobs: JobFilters, confirmation: Confirmation) -> None:
    """Run the jobs that match the filters now, once each. They are counted first."""
    _change_many(ctx, "Run", "job", lambda client: client.run_jobs, jobs.query(), confirmation)


@with_options
def retry_all(ctx: typer.Context, runs: FailedRuns, confirmation: Confirmation) -> None:
    """Give each failed run of a time span one more attempt. They are counted first."""
    from_at, until_at = range_of(runs.since, runs.until, session(ctx).clock.now())
    query = {
        "from_at": from_at,
        "until_at": until_at,
        "job_id": runs.job_id,
        "tag": runs.tag,
        "error_type": runs.error_type,
    }
    _change_many(ctx, "Retry", "run", lambda client: client.retry_runs, query, confirmation)


@with_options
def cancel_all(ctx: typer.Context, runs: WaitingRuns, note: Note = "", *, confirmation: Confirmation) -> None:
    """Cancel waiting runs with fire times of the last 24 hours by default. They are counted first."""
    from_at, until_at = range_of(runs.since, runs.until, session(ctx).clock.now())
    query = {
        "status": runs.status,
        "job_prefix": runs.prefix,
        "from_at": from_at,
        "until_at": until_at,
        "note": note,
    }
    _change_many(ctx, "Cancel", "run", lambda client: client.cancel_runs, query, confirmation)


def _change_many(
    ctx: typer.Context,
    verb: str,
    noun: str,
    operation: Operation,
    query: dict[str, Any],
    confirmation: Confirmation,
) -> None:
    """Count what the query takes, ask, then do it request by request."""
    as_json = confirmation.as_json
    with session(ctx).client() as client:
        ids = operation(client)(dry_run=True, **query)["ids"]
        if confirmation.dry_run or not ids:
            _print_count(ids, noun, as_json)
            return
        if not confirmation.yes and not as_json:
            confirm(f"{verb} {plural(len(ids), noun)}?", abort=True)
        result = operation(client)(**query)
    _print_done(result, noun, as_json)


def _print_count(ids: list[str], noun: str, as_json: bool) -> None:
    if as_json:
        print_json({"dry_run": True, "matched": len(ids), "ids": ids})
        return
    for name in ids:
        console().print(name, soft_wrap=True)
    console().print(plural(len(ids), noun))


def _print_done(result: ManyDone, noun: str, as_json: bool) -> None:
    done, refused = result["done"], result["refused"]
    if as_json:
        print_json({"dry_run": False, "done": done, "refused": refused})
    else:
        for refusal in refused:
            console().print(f"{refusal['id']}: {refusal['detail']}", soft_wrap=True)
        console().print(f"{plural(done, noun)} done, {len(refused)} refused")
    if refused:
        raise typer.Exit(ExitCode.FAILED)
