"""`minute8 redrive`: sends executions from the dead-letter queue back to their queue.

It receives, sends and deletes messages: StartMessageMoveTask does not say what it moves, and is not available
everywhere. A message that is sent twice is the same execution: its id is derived, and it runs once.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cli.output import console, print_json
from cli.session import session
from cli.tables import table
from common.planning.execution import Execution, UnreadableMessage
from common.planning.packs import Pack, lines
from common.storage import aws, keys
from common.storage.tables import Transaction
from common.tenants.audit import Audit, AuditedCommit

_BATCH = 10
_HIDDEN_S = 60


def redrive(
    ctx: typer.Context,
    stage: Annotated[str, typer.Option(help="The deployment's stage.", envvar="MINUTE8_STAGE")] = "dev",
    limit: Annotated[int, typer.Option(min=1, help="Move at most this many.")] = 1_000,
    dry_run: Annotated[bool, typer.Option(help="List the messages, and move nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Send the executions of the dead-letter queue again; other messages stay there. Needs AWS credentials."""
    sqs = aws.sqs()
    queue = sqs.get_queue_url(QueueName=f"minute8-{stage}-executions")["QueueUrl"]
    dead = sqs.get_queue_url(QueueName=f"minute8-{stage}-executions-dead")["QueueUrl"]
    found: list[dict[str, Any]] = []
    seen: set[str] = set()
    while len(found) < limit:
        room = min(_BATCH, limit - len(found))
        # Hidden only for a while: a message that is not moved becomes visible again.
        answer = sqs.receive_message(QueueUrl=dead, MaxNumberOfMessages=room, VisibilityTimeout=_HIDDEN_S)
        messages = [m for m in answer.get("Messages", []) if m["MessageId"] not in seen]
        if not messages:
            break
        for message in messages:
            seen.add(message["MessageId"])
            found.append(_moved(sqs, queue, dead, message, dry_run))
            if not as_json:
                console().print(f"{found[-1]['result']}: {found[-1]['what']}", soft_wrap=True, markup=False)
    moved = sum(one["result"] == "moved" for one in found)
    if moved:
        _write_down(stage, moved, session(ctx).clock.now())
    if as_json:
        print_json(found)
        return
    console().print(f"{len(found)} dead letters, {moved} moved")


def _write_down(stage: str, moved: int, now: float) -> None:
    tenants = table("tenants", stage)
    tx = Transaction(tenants.client)
    AuditedCommit(Audit(tenants)).commit(
        tx, keys.OPERATORS, "dead_letters.redriven", stage, now, after={"moved": moved}
    )


def _moved(sqs: Any, queue: str, dead: str, message: Any, dry_run: bool) -> dict[str, Any]:
    try:
        pack = Pack(tuple(map(Execution.decode, lines(message["Body"]))))
    except UnreadableMessage as error:
        return {"result": "left", "what": str(error)}
    what = ", ".join(execution.execution_id for execution in pack.executions)
    if dry_run:
        return {"result": "found", "what": what}
    sqs.send_message(QueueUrl=queue, MessageBody=message["Body"], MessageGroupId=pack.group)
    sqs.delete_message(QueueUrl=dead, ReceiptHandle=message["ReceiptHandle"])
    return {"result": "moved", "what": what}
