"""One thing done to many jobs or runs: counted first, then asked, then done request by request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from cli.options import ExitCode, Since, Until, Yes, complete_job_ids, complete_states, complete_tags
from cli.output import console, plural, print_json
from cli.session import session
from cli.time_range import range_of
from minute8_client import Client
from minute8_client.shapes import ManyDone

State = Annotated[
    str | None, typer.Option("--state", help="Only active or paused ones.", autocompletion=complete_states)
]
Tag = Annotated[str | None, typer.Option(help="Only those with this tag.", autocompletion=complete_tags)]
Prefix = Annotated[str | None, typer.Option("--prefix", help="Whose id or name begins so.")]
Target = Annotated[str | None, typer.Option(help="Only those with this ARN or URL as target.")]
Error = Annotated[
    str | None, typer.Option("--error", help="Only those that failed with this type of error in 7 days.")
]
Fingerprint = Annotated[
    str | None, typer.Option(help="Only those of this group of failures; failures --groups --json shows it.")
]
All = Annotated[bool, typer.Option("--all", help="All jobs, where no filter is given.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count and list them, and change nothing.")]
Note = Annotated[str, typer.Option(help="Why.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON; does not ask.")]

Call = Callable[..., Iterator[ManyDone]]


def pause_all(
    ctx: typer.Context,
    job_state: State = None,
    tag: Tag = None,
    prefix: Prefix = None,
    target: Target = None,
    error_type: Error = None,
    fingerprint: Fingerprint = None,
    every: All = False,
    note: Note = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Pause the jobs that the filters take. They are counted first."""
    wanted = _jobs(job_state, tag, prefix, target, error_type, fingerprint, every) | {"note": note}
    _do(ctx, "Pause", "job", lambda client: client.pause_jobs, wanted, dry_run, yes, as_json)


def resume_all(
    ctx: typer.Context,
    job_state: State = None,
    tag: Tag = None,
    prefix: Prefix = None,
    target: Target = None,
    error_type: Error = None,
    fingerprint: Fingerprint = None,
    every: All = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Resume the jobs that the filters take, from now on. They are counted first."""
    wanted = _jobs(job_state or "paused", tag, prefix, target, error_type, fingerprint, every)
    _do(ctx, "Resume", "job", lambda client: client.resume_jobs, wanted, dry_run, yes, as_json)


def run_all(
    ctx: typer.Context,
    job_state: State = None,
    tag: Tag = None,
    prefix: Prefix = None,
    target: Target = None,
    error_type: Error = None,
    fingerprint: Fingerprint = None,
    every: All = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Run the jobs that the filters take now, once each. They are counted first."""
    wanted = _jobs(job_state, tag, prefix, target, error_type, fingerprint, every)
    _do(ctx, "Run", "job", lambda client: client.run_jobs, wanted, dry_run, yes, as_json)


def retry_all(
    ctx: typer.Context,
    since: Annotated[str, typer.Option(help="What failed in the last 2h, 7d…, or from a time on.")],
    until: Until = None,
    job_id: Annotated[
        str | None, typer.Option("--job", help="Only of this job.", autocompletion=complete_job_ids)
    ] = None,
    tag: Annotated[str | None, typer.Option(help="Only of jobs that have this tag now.")] = None,
    error_type: Annotated[str | None, typer.Option("--error", help="Only with this type of error.")] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Give each failed run of a time span one more attempt. They are counted first."""
    from_at, until_at = range_of(since, until, session(ctx).clock.now())
    wanted = {
        "from_at": from_at,
        "until_at": until_at,
        "job_id": job_id,
        "tag": tag,
        "error_type": error_type,
    }
    _do(ctx, "Retry", "run", lambda client: client.retry_runs, wanted, dry_run, yes, as_json)


def cancel_all(
    ctx: typer.Context,
    status: Annotated[str, typer.Option(help="Which wait: retrying, or queued.")] = "retrying",
    prefix: Annotated[str | None, typer.Option("--prefix", help="Only of jobs whose id begins so.")] = None,
    since: Since = None,
    until: Until = None,
    note: Note = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Cancel the runs that wait, with fire times of the last 24 hours by default. They are counted first."""
    from_at, until_at = range_of(since, until, session(ctx).clock.now())
    wanted = {"status": status, "job_prefix": prefix, "from_at": from_at, "until_at": until_at, "note": note}
    _do(ctx, "Cancel", "run", lambda client: client.cancel_runs, wanted, dry_run, yes, as_json)


def _jobs(
    job_state: str | None,
    tag: str | None,
    prefix: str | None,
    target: str | None,
    error_type: str | None,
    fingerprint: str | None,
    every: bool,
) -> dict[str, Any]:
    filters = {
        "tag": tag,
        "name_prefix": prefix,
        "target": target,
        "error_type": error_type,
        "fingerprint": fingerprint,
    }
    if not every and not any(filters.values()):
        raise typer.BadParameter(
            "give --tag, --prefix, --target, --error or --fingerprint, or --all for all jobs"
        )
    return filters | {"state": job_state, "all": True if every else None}


def _do(
    ctx: typer.Context,
    verb: str,
    thing: str,
    call: Callable[[Client], Call],
    wanted: dict[str, Any],
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    with session(ctx).client() as client:
        # A failing job can be on several pages.
        found = list(
            dict.fromkeys(name for part in call(client)(dry_run=True, **wanted) for name in part["ids"])
        )
        if dry_run or not found:
            if as_json:
                print_json({"dry_run": True, "matched": len(found), "ids": found})
                return
            for name in found:
                console().print(name, soft_wrap=True, markup=False)
            console().print(plural(len(found), thing))
            return
        if not yes and not as_json:
            typer.confirm(f"{verb} {plural(len(found), thing)}?", abort=True)
        parts = list(call(client)(**wanted))
    refused = [one for part in parts for one in part["refused"]]
    done = len({name for part in parts for name in part["ids"]} - {one["id"] for one in refused})
    if as_json:
        print_json({"dry_run": False, "done": done, "refused": refused})
    else:
        for one in refused:
            console().print(f"{one['id']}: {one['detail']}", soft_wrap=True, markup=False)
        console().print(f"{plural(done, thing)} done, {len(refused)} refused")
    if refused:
        raise typer.Exit(ExitCode.FAILED)
