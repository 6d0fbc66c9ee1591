"""Manual commands: run now, retry, cancel, backfill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from common.limits import BACKFILLS_LISTED
from common.timing.instants import relative, rfc3339
from minute8.cli.commands.many import change_each
from minute8.cli.job_options import read_json
from minute8.cli.options import AsJson, ExitCode, JobId, JobIds, Yes, with_options
from minute8.cli.output import confirm, console, plural, print_json, say, show_list, why
from minute8.cli.platform import operator_api
from minute8.cli.session import session
from minute8.cli.time_range import since_at
from minute8.client import Client
from minute8.client.operations import UNSET
from minute8.client.runs import ENDED
from minute8.client.shapes import Backfill, RestoredFires, SkippedFires

_POLL_S = 1.0

ExecutionId = Annotated[str, typer.Argument(help="The run's execution id.")]


def run_now(
    ctx: typer.Context,
    job_id: JobId,
    payload: Annotated[
        str | None, typer.Option(help="JSON or @file.json: a payload for this run in place of the job's.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for its end; exit code 1 if it failed or was skipped.")
    ] = False,
    wait_s: Annotated[
        float, typer.Option("--wait-for", min=1, help="Wait for at most this many seconds.")
    ] = 300,
    as_json: AsJson = False,
) -> None:
    """Run a job now, paused or not."""
    sent_payload = UNSET if payload is None else read_json(payload, "--payload")
    with session(ctx).client() as client:
        started = client.run_job(job_id, payload=sent_payload)
        if not wait:
            _print_done(started, "is queued", as_json)
            return
        try:
            ended = client.wait_for_run(started["execution_id"], wait_s)
        except KeyboardInterrupt:
            say(f"it goes on; minute8 runs show {started['execution_id']}")
            raise
    status = ended["status"]
    _print_done(
        ended, f"{status if status in ENDED else f'has not ended: {status}'} {why(ended)}".strip(), as_json
    )
    if status not in ("succeeded", "dispatched"):
        raise typer.Exit(ExitCode.FAILED)


def skip(
    ctx: typer.Context,
    job_ids: JobIds,
    number: Annotated[
        int,
        typer.Option(
            "--count", "-n", min=1, max=50, help="The number of fire times to skip, within 366 days."
        ),
    ] = 1,
    note: Annotated[str, typer.Option(help="The reason.")] = "",
    as_json: AsJson = False,
) -> None:
    """Cancel jobs' next fire times beforehand; they stay active. Repeated, it skips the same fire times."""

    def show(skipped: SkippedFires) -> None:
        of_job = f"{skipped['job_id']} " if len(job_ids) > 1 else ""
        for run in skipped["runs"]:
            console().print(f"{of_job}{run['fire_at']} {run['status']} {why(run)}".strip(), soft_wrap=True)

    change_each(ctx, job_ids, lambda client, job_id: client.skip_fires(job_id, number, note), show, as_json)


def unskip(ctx: typer.Context, job_ids: JobIds, as_json: AsJson = False) -> None:
    """Undo skips: let the fire times run that were cancelled beforehand, the next 50 at most."""

    def show(restored: RestoredFires) -> None:
        of_job = f"{restored['job_id']} " if len(job_ids) > 1 else ""
        lines = [f"{of_job}{at} runs" for at in restored["fires"]]
        nothing = f"{of_job}nothing to undo: no skipped fire time is more than a minute away"
        console().print(*(lines or [nothing]), sep="\n", soft_wrap=True)

    change_each(ctx, job_ids, lambda client, job_id: client.unskip_fires(job_id), show, as_json)


def retry(ctx: typer.Context, execution_id: ExecutionId, as_json: AsJson = False) -> None:
    """Give a failed run one more attempt, also beyond its policy's."""
    with session(ctx).client() as client:
        _print_done(client.retry_run(execution_id), "is tried again", as_json)


def cancel(
    ctx: typer.Context,
    execution_id: ExecutionId,
    note: Annotated[str, typer.Option(help="The reason.")] = "",
    as_json: AsJson = False,
) -> None:
    """End an execution at once: it does not start, is not tried again, or nobody waits for its target any more."""
    with session(ctx).client() as client:
        run = client.cancel_run(execution_id, note)
    done = "is cancelled"
    if until := run.get("work_until"):
        done += f"; nothing can tell its target, which may go on until {until}"
    elif "stop" in run:
        done += (
            "; what it started in AWS is stopped, and a target that calls back hears it with its next sign"
        )
    _print_done(run, done, as_json)


def end(
    ctx: typer.Context,
    execution_id: ExecutionId,
    note: Annotated[str, typer.Option(help="The reason.")] = "",
    operator: Annotated[
        bool, typer.Option("--operator", help="With the operator key: any tenant's run.")
    ] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """End a run by force, and free its permits, though its work may go on. For administrators and operators."""
    if not yes and not as_json:
        question = f"End {execution_id}? If its work goes on, the next run runs beside it."
        confirm(question, abort=True)
    if operator:
        with operator_api(ctx) as platform:
            done = platform.end_run_of_tenant(execution_id.partition(":")[0], execution_id, note)
    else:
        with session(ctx).client() as client:
            done = client.end_run(execution_id, note)
    if as_json:
        print_json(done)
        return
    status, freed = done["run"]["status"], ", ".join(done["freed"])
    was = f"is {status}" if done["was_open"] else f"had ended before ({status})"
    line = f"{execution_id} {was}; {f'freed: {freed}' if freed else 'it held nothing'}"
    console().print(line, soft_wrap=True, markup=False)


def erase(
    ctx: typer.Context,
    execution_id: ExecutionId,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Erase a run's payload, answer, log and error texts; the record stays. For admins."""
    if not yes:
        confirm(f"Erase the texts of {execution_id}?", abort=True)
    with session(ctx).client() as client:
        done = client.erase_run(execution_id)
    if as_json:
        print_json(done)
        return
    console().print(f"erased: {', '.join(done['erased'])}", soft_wrap=True)
    console().print(f"not covered: {', '.join(done['not_covered'])}", soft_wrap=True)


Url = Annotated[str, typer.Option(envvar="MINUTE8_CALLBACK_URL", help="The callback's, from the event.")]
Token = Annotated[str, typer.Option(envvar="MINUTE8_CALLBACK_TOKEN", help="The callback's, from the event.")]


def call_back(
    status: Annotated[str, typer.Argument(help="running, succeeded or failed.")],
    *,
    url: Url,
    token: Token,
    percent: Annotated[int | None, typer.Option(help="How far it is, if it goes on.")] = None,
    text: Annotated[str | None, typer.Option(help="What it does, or the result or error of its end.")] = None,
) -> None:
    """Tell Minute8, as the target of a run with callbacks, that it goes on or how it ended. Needs no key.

    Exits with 1 if the work is to stop.
    """
    address, _, rest = url.partition("/v1/runs/")
    names = {"running": "text", "succeeded": "result", "failed": "error"}
    fields: dict[str, Any] = {names.get(status, "text"): text, "percent": percent}
    with Client(address, "") as client:
        answer = client.call_back(
            rest.removesuffix("/callback"),
            token,
            status,
            **{name: value for name, value in fields.items() if value is not None},
        )
    stops = ", and is to stop" if answer["stop"] else ""
    # An end that was told is recorded within seconds; until then the run's own status is `running`.
    outcome = answer["status"] if answer["stop"] else status
    console().print(f"{answer['execution_id']} is {outcome}{stops}", soft_wrap=True)
    if answer["stop"]:
        raise typer.Exit(ExitCode.FAILED)


@dataclass(frozen=True, slots=True)
class BackfillRange:
    """The fire times to run, and how many at a time."""

    from_at: Annotated[str, typer.Option("--from", help="The first fire time of the range.")]
    to_at: Annotated[str, typer.Option("--to", help="The end of the range; not part of it.")]
    concurrency: Annotated[int, typer.Option(min=1, max=100, help="Run this many at a time.")] = 1

    def request(self, now: float) -> dict[str, Any]:
        """The body of the request. Raises InvalidInput."""
        return {
            "start_at": rfc3339(since_at(self.from_at, now, "--from")),
            "end_at": rfc3339(since_at(self.to_at, now, "--to")),
            "concurrency": self.concurrency,
        }


@with_options
def backfill(
    ctx: typer.Context,
    job_id: JobId,
    span: BackfillRange,
    dry_run: Annotated[bool, typer.Option(help="Only count; start nothing.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Run the fire times of a past range. They are counted first; Ctrl-C ends the watching, not the backfill."""
    request = span.request(session(ctx).clock.now())
    with session(ctx).client() as client:
        counted = client.start_backfill(job_id, request | {"dry_run": True})
        if dry_run or not counted["total"]:
            print_json(counted) if as_json else console().print(plural(counted["total"], "execution"))
            return
        if not yes and not as_json:
            question = f"Run {job_id} {counted['total']} times, {span.concurrency} at a time?"
            confirm(question, abort=True)
        started = client.start_backfill(job_id, request)
        if as_json:
            print_json(started)
            return
        line = f"backfill {started['backfill_id']} of {job_id} has begun; jobs cancel-backfill ends it"
        console().print(line, soft_wrap=True)
        _watch(ctx, job_id, started)


def backfills(ctx: typer.Context, job_id: JobId, as_json: AsJson = False) -> None:
    """List a job's backfills of the last 90 days, the newest first."""
    now = session(ctx).clock.now()
    with session(ctx).client() as client:
        listed = client.list_backfills(job_id)["backfills"]
    show_list(
        listed,
        as_json,
        ("BACKFILL", "BEGUN", "FROM", "TO", "ENQUEUED", ""),
        lambda backfill: (
            backfill["backfill_id"],
            relative(backfill["created_at"], now),
            backfill["start_at"],
            backfill["end_at"],
            f"{backfill['sent']} of {backfill['total']}",
            "cancelled" if backfill["cancelled_at"] else "",
        ),
        "no backfills",
    )
    if not as_json and len(listed) >= BACKFILLS_LISTED:
        rest = f"minute8 runs list {job_id} --trigger backfill"
        say(f"minute8: there may be more backfills; the runs of all: {rest}")


def cancel_backfill(
    ctx: typer.Context,
    job_id: JobId,
    backfill_id: Annotated[str, typer.Argument(help="The backfill's id.")],
    note: Annotated[str, typer.Option(help="The reason.")] = "",
    as_json: AsJson = False,
) -> None:
    """Cancel the rest of a backfill. Its runs that have started go on to their end."""
    with session(ctx).client() as client:
        cancelled = client.cancel_backfill(job_id, backfill_id, note)
    if as_json:
        print_json(cancelled)
    else:
        console().print(f"backfill {backfill_id} of {job_id} is cancelled", soft_wrap=True)


def _watch(ctx: typer.Context, job_id: str, started: Backfill) -> None:
    """Wait until all are enqueued and have ended, or Ctrl-C."""
    run_suffix = f"b-{started['backfill_id']}"
    ended: dict[str, str] = {}
    try:
        from rich.progress import Progress  # only a backfill that is watched needs it

        with session(ctx).client() as client, Progress(console=console()) as progress:
            bar = progress.add_task(f"backfill {started['backfill_id']}", total=started["total"])
            while len(ended) < started["total"]:
                session(ctx).clock.sleep(_POLL_S)
                for run in client.list_runs_of_job(job_id, trigger="backfill"):
                    if run["execution_id"].endswith(run_suffix) and run["status"] in ENDED:
                        ended[run["execution_id"]] = run["status"]
                progress.update(bar, completed=len(ended))
    except KeyboardInterrupt:
        console().print(f"it goes on by itself: {len(ended)} of {started['total']} have ended")
        return
    failed = sum(status == "failed" for status in ended.values())
    console().print(f"{plural(len(ended), 'run')} ended, {failed} of them failed")


def _print_done(run: Any, done: str, as_json: bool) -> None:
    print_json(run) if as_json else console().print(f"{run['execution_id']} {done}", soft_wrap=True)
