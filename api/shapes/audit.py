"""The audit."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from api.shapes.parts import Answer, Instant, Shapes


class AuditEntry(Answer):
    """One change."""

    entry_id: str
    at: Instant
    by: str = Field(
        description="The key's id; `operator:` and a key's id; `aws`: with AWS credentials; `minute8`: Minute8 itself."
    )
    by_name: str | None = Field(
        default=None, description="The name of that key, if it has one and is listed."
    )
    action: str = Field(examples=["job.paused"])
    subject: str = Field(description="The id of what was changed; of a run, its job's.")
    before: dict[str, Any] = Field(description="What it was, of what differs; long values as size and hash.")
    after: dict[str, Any] = Field(description="What it became, of what differs.")


class AuditPage(Answer):
    """Some changes, newest first."""

    entries: list[AuditEntry]
    next_cursor: str | None


TAKEN: Shapes = ()
GIVEN: Shapes = (AuditEntry, AuditPage)
