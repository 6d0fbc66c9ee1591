"""The removal of a tenant."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from api.shapes.parts import Answer, Instant, Shapes


class Removed(Answer):
    """How many items went, at least."""

    keys: int
    jobs: int
    runs: int
    others: int = Field(description="Calendars, backfills, the audit, the webhook secret, counters.")


class TenantDeletion(Answer):
    """How far the removal of a tenant is."""

    tenant_id: str
    state: Literal["waiting", "removing", "finished"] = Field(
        description="`waiting`: stopped; a minute passes until every process knows, and only keys go before."
    )
    by: str = Field(description="Who began it, as the audit names them.")
    started_at: Instant
    finished_at: Instant | None
    jobs_registered: int = Field(description="How many were registered when it began.")
    removed: Removed


TAKEN: Shapes = ()
GIVEN: Shapes = (TenantDeletion,)
