"""Messages that were given up."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from api.shapes.parts import Answer, Instant, Shapes

_Queue = Literal["executions", "planning", "outcomes"]
_MessageId = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class WhichLetters(BaseModel):
    """Which given-up messages: some by their ids, or `all`, of which a request takes 100."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"all": True}]})

    message_ids: Annotated[list[_MessageId], Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="As the list shows them."
    )
    all: bool = Field(default=False, description="All of the queue, 100 at most; without ids.")


class DeadLetterCount(Answer):
    """How many messages of a queue were given up."""

    queue: _Queue = Field(description="The queue that they were of.")
    letters: int = Field(description="About; those that somebody looks at are included.")


class DeadLetterCounts(Answer):
    """The queues with their given-up messages."""

    queues: list[DeadLetterCount] = Field(description="All of them.")


class DeadLetter(Answer):
    """A given-up message, without its text."""

    message_id: str = Field(description="What SQS calls it.")
    sent_at: Instant = Field(description="When it was sent first.")
    bytes: int = Field(description="The length of its text.")
    about: list[str] = Field(description="Executions, or the share of a window; 10 at most.")
    problem: str | None = Field(description="Why it cannot be read; then it is not sent again.")


class DeadLetterList(Answer):
    """Some given-up messages of a queue, in no order."""

    queue: _Queue = Field(description="The queue that they were of.")
    letters: list[DeadLetter] = Field(description="What they are about.")
    more: bool = Field(description="There may be others.")


class DeadLettersDone(Answer):
    """What became of given-up messages."""

    queue: _Queue = Field(description="The queue that they were of.")
    done: int = Field(description="How many were sent again or deleted.")
    left: list[DeadLetter] = Field(description="Those that cannot be read and stay.")
    more: bool = Field(description="Others may be left.")


TAKEN: Shapes = (WhichLetters,)
GIVEN: Shapes = (DeadLetterCounts, DeadLetterList, DeadLettersDone)
