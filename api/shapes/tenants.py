"""The tenant."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from api.shapes.parts import Answer, Instant, Shapes


class KeyInUse(Answer):
    """The key that asks."""

    key_id: str
    role: Literal["read", "write", "admin"]


class Usage(Answer):
    """What the tenant's jobs take of its quotas."""

    jobs: int
    executions_per_day: int = Field(description="At most so many by the schedules, not what has run.")


class QuotaView(Answer):
    """How much the platform allows."""

    jobs: int
    executions_per_day: int
    shortest_interval_s: int
    payload_bytes: int
    requests_per_minute: int


class Tenant(Answer):
    """Whose key it is, what the platform allows, and how much of it is used."""

    tenant_id: str
    name: str
    created_at: Instant
    state: Literal["active", "suspended"]
    note: str = Field(description="Why it is suspended.")
    usage: Usage
    quotas: QuotaView
    allowed_targets: list[str] = Field(description="Patterns; none allows nothing.")
    retention_days: int = Field(description="How long runs are kept.")
    key: KeyInUse


class WebhookSecret(Answer):
    """What signs calls of HTTP targets, as Standard Webhooks has it."""

    secret: str = Field(examples=["whsec_…"])


TAKEN: Shapes = ()
GIVEN: Shapes = (
    Tenant,
    WebhookSecret,
)
