"""The tenant."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from api.shapes.parts import Answer, Instant, Shapes


class KeyInUse(Answer):
    """The key that asks."""

    key_id: str
    role: Literal["read", "write", "admin"]


class Tenant(Answer):
    """Whose key it is."""

    tenant_id: str
    name: str
    created_at: Instant
    key: KeyInUse


class WebhookSecret(Answer):
    """What signs calls of HTTP targets, as Standard Webhooks has it."""

    secret: str = Field(examples=["whsec_…"])


TAKEN: Shapes = ()
GIVEN: Shapes = (
    Tenant,
    WebhookSecret,
)
