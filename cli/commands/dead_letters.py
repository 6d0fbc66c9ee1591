"""`minute8 dead-letters`: messages that were given up, over the API."""

from __future__ import annotations

from typing import Annotated

import typer

from cli import output
from cli.options import AsJson
from cli.output import console, print_json, relative
from cli.platform import operator_api
from cli.session import session
from minute8_client.shapes import DeadLetter, DeadLettersDone

app = typer.Typer(no_args_is_help=True, help="Messages that were given up; needs an operator key.")

Queue = Annotated[str, typer.Argument(help="executions, planning or outcomes.")]
Ids = Annotated[list[str] | None, typer.Argument(help="Ids of the list; without them all, 100 at a time.")]


@app.command("list")
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
    _print(ctx, found["letters"])
    if found["more"]:
        typer.echo("minute8: there may be more", err=True)


@app.command()
def redrive(ctx: typer.Context, queue: Queue, message_ids: Ids = None, as_json: AsJson = False) -> None:
    """Send them to their queue again; those that cannot be read stay."""
    with operator_api(ctx) as api:
        _told(ctx, api.redrive(queue, message_ids or None), as_json)


@app.command()
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
    _print(ctx, done["left"])
    more = "; call it again for more" if done["more"] else ""
    console().print(f"{done['done']} done, {len(done['left'])} left{more}")


def _print(ctx: typer.Context, letters: list[DeadLetter]) -> None:
    now = session(ctx).clock.now()
    rows = [
        (one["message_id"], relative(one["sent_at"], now), one["problem"] or ", ".join(one["about"]))
        for one in letters
    ]
    if rows:
        console().print(output.table(("MESSAGE", "SENT", "ABOUT"), rows))
