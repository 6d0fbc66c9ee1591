"""`minute8 redrive`: sends executions from the dead-letter queue back to their queue.

It receives, sends and deletes messages: StartMessageMoveTask does not say what it moves, and is not available
everywhere. A message that is sent twice is the same execution: its id is derived, and it runs once.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import typer

from cli.dead_letters import DISCARDED, MOVED, dead_letters_of, write_down
from cli.output import console, print_json
from cli.session import session
from cli.tables import table
from common.storage import aws


def redrive(
    ctx: typer.Context,
    stage: Annotated[str, typer.Option(help="The deployment's stage.", envvar="MINUTE8_STAGE")] = "dev",
    limit: Annotated[int, typer.Option(min=1, help="Move at most this many.")] = 1_000,
    dry_run: Annotated[bool, typer.Option(help="List the messages, and move nothing.")] = False,
    discard_garbage: Annotated[
        bool, typer.Option("--discard-garbage", help="Delete what no version of Minute8 has written.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Send the executions of the dead-letter queue again; other messages stay there. Needs AWS credentials."""
    letters = dead_letters_of(aws.sqs(), stage, "executions")
    found: list[dict[str, Any]] = []
    for message in letters.messages(limit):
        result, what = (
            letters.judged(message["Body"]) if dry_run else letters.sort_out(message, discard=discard_garbage)
        )
        found.append({"result": result, "what": what})
        if not as_json:
            console().print(f"{result}: {what}", soft_wrap=True, markup=False)
    counts = Counter(one["result"] for one in found)
    write_down(table("tenants", stage), stage, dict(counts), session(ctx).clock.now())
    if as_json:
        print_json(found)
        return
    discarded = f", {counts[DISCARDED]} discarded" if counts[DISCARDED] else ""
    console().print(f"{len(found)} dead letters, {counts[MOVED]} moved{discarded}")
