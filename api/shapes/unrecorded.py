"""Executions that were enqueued and have no record."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from api.shapes.parts import Answer, Instant, Shapes
from common.platform.unrecorded import MAX_RUN


class RunUnrecorded(BaseModel):
    """Which of the executions without a record to send again."""

    model_config = ConfigDict(extra="forbid")

    execution_ids: Annotated[list[str], Field(min_length=1, max_length=MAX_RUN)] = Field(
        description="As the list has them.", examples=[["acme:nightly-report:20261121T013000Z:4"]]
    )


class WithoutRecord(Answer):
    """An execution that was enqueued, and of which nothing is recorded."""

    execution_id: str
    tenant_id: str
    job_id: str
    fire_at: Instant
    due_at: Instant
    found_at: Instant = Field(description="When a tick found that it has no record.")
    sent_at: Instant | None = Field(description="When it was last sent again.")


class UnrecordedPage(Answer):
    """A page of them, by their ids. It may hold fewer than were asked for, and have a cursor all the same."""

    executions: list[WithoutRecord]
    next_cursor: str | None


class RanUnrecorded(Answer):
    """What became of the executions."""

    sent: list[str] = Field(description="They are in the queue again.")
    recorded: list[str] = Field(description="They have a record meanwhile, and were not sent.")


TAKEN: Shapes = (RunUnrecorded,)
GIVEN: Shapes = (UnrecordedPage, RanUnrecorded)
