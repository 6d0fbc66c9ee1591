"""`minute8 redrive`: sends executions from the dead-letter queue back to their queue, also while the API is down."""

from __future__ import annotations

from typing import Annotated

import typer

from common.platform.dead_letters import EXECUTIONS, DeadLetters, HandledDeadLetters, audit_dead_letters
from common.storage import aws
from common.tenants.audit import Audit, AuditedCommit
from minute8.cli.options import AsJson
from minute8.cli.output import console, print_json
from minute8.cli.platform_tables import table
from minute8.cli.session import session


def redrive(
    ctx: typer.Context,
    stage: Annotated[str, typer.Option(help="The deployment's stage.", envvar="MINUTE8_STAGE")] = "dev",
    limit: Annotated[int, typer.Option(min=1, help="Move at most this many.")] = 1_000,
    dry_run: Annotated[bool, typer.Option(help="List the messages, and move nothing.")] = False,
    discard_garbage: Annotated[
        bool, typer.Option("--discard-garbage", help="Delete what no version of Minute8 has written.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Send the executions of the dead-letter queue again; other messages stay there. Needs AWS credentials."""
    sqs = aws.sqs()
    url = sqs.get_queue_url(QueueName=f"minute8-{stage}-{EXECUTIONS}")["QueueUrl"]
    dead_letters, clock = DeadLetters(sqs, url), session(ctx).clock
    if dry_run:
        done = dead_letters.peek(EXECUTIONS, limit)
    else:
        done = dead_letters.redrive(EXECUTIONS, limit, discard_garbage=discard_garbage)
        audit_dead_letters(
            AuditedCommit(Audit(table("tenants", stage)), clock=clock), EXECUTIONS, done, clock.now()
        )
    if as_json:
        print_json(_rows(done))
        return
    for row in _rows(done):
        console().print(f"{row['result']}: {row['what']}", soft_wrap=True)
    discarded = f", {len(done.discarded)} discarded" if done.discarded else ""
    more = "; there may be more: repeat it" if done.more else ""
    console().print(f"{done.count} dead letters, {len(done.moved)} moved{discarded}{more}")


def _rows(done: HandledDeadLetters) -> list[dict[str, str]]:
    """Each dead letter with what became of it; `found` if a dry run would move it."""
    results = [
        *(("moved", dead_letter) for dead_letter in done.moved),
        *(("discarded", dead_letter) for dead_letter in done.discarded),
        *(("left" if dead_letter.problem else "found", dead_letter) for dead_letter in done.remaining),
    ]
    return [
        {"result": result, "what": dead_letter.problem or ", ".join(dead_letter.about)}
        for result, dead_letter in results
    ]
