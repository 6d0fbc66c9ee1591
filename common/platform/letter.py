"""A dead letter: a message that a function failed on until SQS gave it up, and what it is about. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from common.errors import Minute8Error
from common.planning.execution import Execution, UnreadableMessage, split_execution_id
from common.planning.packs import Pack, is_wake, lines
from common.planning.shares import ShareName, UnreadableShare, decode

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import MessageTypeDef

EXECUTIONS: Final = "executions"
QUEUES: Final = (EXECUTIONS, "planning", "outcomes")


class _NoRecord(Minute8Error):
    """A message of the outcomes queue that no destination sent."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A dead letter. `about` names what it is for; `problem` says why it cannot be read, and then it is not resent.

    `is_garbage`: it carries nothing: no version of Minute8 has written it, or it is a wake. A later version may read
    others with a problem.
    """

    message_id: str
    sent_at: float
    size: int
    about: tuple[str, ...] = ()
    problem: str = ""
    is_garbage: bool = False


def letter_of(queue: str, message: MessageTypeDef) -> Letter:
    """What a received message of the queue is about."""
    body = message["Body"]
    sent_at = int(message.get("Attributes", {}).get("SentTimestamp", 0)) / 1000
    about: tuple[str, ...] = ()
    problem = ""
    try:
        about = _ABOUT[queue](body)
    except (UnreadableMessage, UnreadableShare, _NoRecord) as error:
        problem = str(error)
    size = len(body.encode("utf-8", "replace"))
    is_garbage = bool(problem) and not _is_ours(body, _FIELD[queue])
    return Letter(message["MessageId"], sent_at, size, about, problem, is_garbage)


def _is_ours(body: str, field: str) -> bool:
    """Whether each of its lines is an object with this field, as messages of all versions are."""
    try:
        found = [json.loads(line) for line in body.split("\n")]
    except (ValueError, RecursionError):
        return False
    return all(isinstance(one, dict) and field in one for one in found)


def pack_in(body: str) -> Pack:
    """The executions of a message. Raises UnreadableMessage."""
    if is_wake(body):
        raise UnreadableMessage("a wake, which carries no execution")
    return Pack(tuple(map(Execution.decode, lines(body))))


def _executions(body: str) -> tuple[str, ...]:
    return tuple(execution.execution_id for execution in pack_in(body).executions)


def _work(body: str) -> tuple[str, ...]:
    work = decode(body)
    return (
        (f"share {work.number} of the window until {work.end}",)
        if isinstance(work, ShareName)
        else tuple(work)
    )


def _outcome(body: str) -> tuple[str, ...]:
    """The execution that a destination's record is about; none if it is somebody else's invocation."""
    if not _is_ours(body, _FIELD["outcomes"]):
        raise _NoRecord(f"no record of a destination: {body[:200]!r}")
    try:
        named = json.loads(body)["requestPayload"]["minute8"]["execution_id"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ()
    return (named,) if isinstance(named, str) and split_execution_id(named) else ()


# What each message of a queue has, in every version.
_FIELD: Final[Mapping[str, str]] = {EXECUTIONS: "v", "planning": "v", "outcomes": "requestContext"}
_ABOUT: Final[Mapping[str, Callable[[str], tuple[str, ...]]]] = {
    EXECUTIONS: _executions,
    "planning": _work,
    "outcomes": _outcome,
}
