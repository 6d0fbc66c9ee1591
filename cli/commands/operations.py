"""What the platform's operator looks at and sends again: `planning`, `holds`, `unrecorded` and `dead-letters`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Annotated

import typer

from cli import output
from cli.options import AsJson, Yes
from cli.output import console, print_json, relative, seconds, when
from cli.platform import Platform, Stage, operator_api, platform
from cli.session import session
from cli.time_range import since_at
from common.timing.instants import rfc3339
from minute8_client.shapes import DeadLetter, DeadLettersDone, Hold, PlatformPlanning, RanUnrecorded


def planning(
    ctx: typer.Context,
    windows: Annotated[int, typer.Option(min=1, max=144, help="How many of the last windows.")] = 12,
    as_json: AsJson = False,
) -> None:
    """Show up to when all is planned, how the last windows went, and what is set aside. Needs an operator key."""
    with operator_api(ctx) as api:
        found = api.planning(windows=windows)
    if as_json:
        print_json(found)
        return
    _print_planning(found, session(ctx).clock.now())


def _print_planning(found: PlatformPlanning, now: float) -> None:
    out = console()
    rows = [
        (
            one["start_at"],
            seconds(one["took_s"]),
            f"{seconds(one['ahead_s'])} before"
            if one["ahead_s"] >= 0
            else f"{seconds(-one['ahead_s'])} late",
            one["executions"],
            one["missed"],
            one["planners"] or "-",
        )
        for one in found["windows"]
    ]
    for finding in found["findings"]:
        out.print(f"{finding['level']}: {finding['found']}", markup=False, soft_wrap=True)
        if finding["remedy"]:
            out.print(f"→ {finding['remedy']}", markup=False, soft_wrap=True)
    if rows:
        out.print(output.table(("WINDOW", "TOOK", "READY", "EXECUTIONS", "MISSED", "PLANNERS"), rows))
    for aside in found["set_aside"]:
        line = f"{aside['kind']} {aside['name']}, {when(aside['seen_at'], now)}: {aside['reason']}"
        out.print(line, markup=False, soft_wrap=True)


holds_app = typer.Typer(
    no_args_is_help=True, help="Targets that no tenant's run calls; needs an operator key."
)

Pattern = Annotated[str, typer.Argument(help="A pattern of ARNs or hosts, in quotes; '*' is everything.")]


@holds_app.command("list")
def list_holds(ctx: typer.Context, stage: Stage = None, as_json: AsJson = False) -> None:
    """List what is held."""
    with platform(ctx, stage) as here:
        _print_holds(ctx, here.holds(), as_json)


@holds_app.command()
def add(
    ctx: typer.Context,
    pattern: Pattern,
    note: Annotated[str, typer.Option(help="Why; the skipped runs show it.")] = "",
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """Skip the runs of all tenants that would call a target, everywhere within seconds."""
    with platform(ctx, stage) as here:
        _print_holds(ctx, here.hold_target(pattern, note), as_json)


@holds_app.command()
def release(ctx: typer.Context, pattern: Pattern, stage: Stage = None, as_json: AsJson = False) -> None:
    """Let a held target be called again."""
    with platform(ctx, stage) as here:
        _print_holds(ctx, here.release_target(pattern), as_json)


def _print_holds(ctx: typer.Context, holds: list[Hold], as_json: bool) -> None:
    if as_json:
        print_json(holds)
        return
    now = session(ctx).clock.now()
    rows = [(one["pattern"], relative(one["held_at"], now), one["by"], one["note"]) for one in holds]
    console().print(output.table(("HELD", "SINCE", "BY", "NOTE"), rows) if rows else "nothing is held")


unrecorded_app = typer.Typer(
    no_args_is_help=True,
    help="Executions that were enqueued and have no record; needs an operator key or AWS credentials.",
)
# What one request runs; common/platform/unrecorded.py.
_AT_ONCE = 100

Since = Annotated[str | None, typer.Option(help="Only those due in the last 2h, 7d…, or since a time.")]


@unrecorded_app.command("list")
def list_unrecorded(
    ctx: typer.Context, since: Since = None, stage: Stage = None, as_json: AsJson = False
) -> None:
    """List what ticks have found without a record, and what has none now."""
    now = session(ctx).clock.now()
    with platform(ctx, stage) as here:
        found = list(here.unrecorded(from_at=_from(since, now)))
    if as_json:
        print_json(found)
        return
    rows = [
        (one["due_at"], relative(one["due_at"], now), relative(one["sent_at"], now), one["execution_id"])
        for one in found
    ]
    console().print(
        output.table(("DUE", "", "SENT AGAIN", "EXECUTION"), rows)
        if rows
        else "every planned execution has a record"
    )


@unrecorded_app.command()
def run(
    ctx: typer.Context,
    execution_ids: Annotated[list[str] | None, typer.Argument(help="Ids of the list.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Run all that are listed.")] = False,
    since: Since = None,
    stage: Stage = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Send executions again that have no record. They are the same executions: each runs once."""
    now = session(ctx).clock.now()
    if bool(execution_ids) == everything:
        raise typer.BadParameter("give the ids of executions, or --all")
    with platform(ctx, stage) as here:
        wanted = list(execution_ids or ())
        if everything:
            wanted = [one["execution_id"] for one in here.unrecorded(from_at=_from(since, now))]
            if wanted and not yes and not as_json:
                typer.confirm(f"Run {len(wanted)} executions that have no record?", abort=True)
        done = list(run_all(here, wanted))
    sent = [one for part in done for one in part["sent"]]
    recorded = [one for part in done for one in part["recorded"]]
    if as_json:
        print_json({"sent": sent, "recorded": recorded})
        return
    for one in recorded:
        console().print(f"has a record meanwhile: {one}", soft_wrap=True, markup=False)
    for one in sent:
        console().print(f"sent again: {one}", soft_wrap=True, markup=False)
    console().print(f"{len(sent)} executions are in the queue again")


def run_all(here: Platform, execution_ids: Sequence[str]) -> Iterator[RanUnrecorded]:
    """Run them in as many requests as it takes."""
    left = iter(execution_ids)
    while some := list(islice(left, _AT_ONCE)):
        yield here.run_unrecorded(some)


def _from(since: str | None, now: float) -> str | None:
    return rfc3339(since_at(since, now)) if since else None


dead_letters_app = typer.Typer(
    no_args_is_help=True, help="Messages that were given up; needs an operator key."
)

Queue = Annotated[str, typer.Argument(help="executions, planning or outcomes.")]
Ids = Annotated[list[str] | None, typer.Argument(help="Ids of the list; without them all, 100 at a time.")]


@dead_letters_app.command("list")
def list_letters(
    ctx: typer.Context,
    queue: Annotated[
        str | None, typer.Argument(help="executions, planning or outcomes; else all are counted.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Count the given-up messages, or list what those of a queue are about."""
    with operator_api(ctx) as api:
        if queue is None:
            counts = api.dead_letter_counts()
            if as_json:
                print_json(counts)
                return
            console().print(
                output.table(("QUEUE", "LETTERS"), [(one["queue"], one["letters"]) for one in counts])
            )
            return
        found = api.dead_letters(queue)
    if as_json:
        print_json(found)
        return
    _print_letters(ctx, found["letters"])
    if found["more"]:
        typer.echo("minute8: there may be more", err=True)


@dead_letters_app.command()
def redrive(ctx: typer.Context, queue: Queue, message_ids: Ids = None, as_json: AsJson = False) -> None:
    """Send them to their queue again; those that cannot be read stay."""
    with operator_api(ctx) as api:
        _told(ctx, api.redrive(queue, message_ids or None), as_json)


@dead_letters_app.command()
def discard(
    ctx: typer.Context,
    queue: Queue,
    message_ids: Ids = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete them; asks first."""
    if not yes:
        typer.confirm(f"Delete {len(message_ids) if message_ids else 'all'} of {queue}?", abort=True)
    with operator_api(ctx) as api:
        _told(ctx, api.discard(queue, message_ids or None), as_json)


def _told(ctx: typer.Context, done: DeadLettersDone, as_json: bool) -> None:
    if as_json:
        print_json(done)
        return
    _print_letters(ctx, done["left"])
    more = "; call it again for more" if done["more"] else ""
    console().print(f"{done['done']} done, {len(done['left'])} left{more}")


def _print_letters(ctx: typer.Context, letters: list[DeadLetter]) -> None:
    now = session(ctx).clock.now()
    rows = [
        (one["message_id"], relative(one["sent_at"], now), one["problem"] or ", ".join(one["about"]))
        for one in letters
    ]
    if rows:
        console().print(output.table(("MESSAGE", "SENT", "ABOUT"), rows))
