"""API keys."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from api.shapes.parts import Answer, Instant, Shapes
from common.texts import NAME_CHARS

_Name = Annotated[
    str | None,
    StringConstraints(max_length=NAME_CHARS),
    Field(description="What it is for.", examples=["dashboard"]),
]
_Expiry = Annotated[Instant | None, Field(description="When it expires; never if left out.")]


class NewOperatorKey(BaseModel):
    """A key of the platform's own."""

    model_config = ConfigDict(extra="forbid")

    name: _Name = None
    expires_at: _Expiry = None


class NewKey(NewOperatorKey):
    """A key of a tenant."""

    role: Literal["read", "write", "admin"] = Field(description="Each may do what those before it may.")
    aws: bool = Field(
        default=False, description="A pair with which AWS's SDKs sign requests to the EventBridge endpoint."
    )


class KeyView(Answer):
    """What is known of a key: all but the key."""

    key_id: str
    name: str
    role: Literal["read", "write", "admin", "operator"]
    prefix: str = Field(description="How the key begins.", examples=["m8_0aB1c"])
    access_key_id: str | None = Field(description="Of a pair for AWS's SDKs.")
    state: Literal["active", "expired", "revoked"]
    created_at: Instant
    expires_at: Instant | None = Field(description="When it ends; of a revoked one, when it leaves the list.")
    revoked_at: Instant | None


class MadeKey(KeyView):
    """A new key. It is not stored, and shown in this answer alone."""

    key: str = Field(description="The key; of a pair, its secret access key.", examples=["m8_…"])


class KeyPage(Answer):
    """Some keys, oldest first; revoked ones stay listed for 30 days."""

    keys: list[KeyView]
    next_cursor: str | None


TAKEN: Shapes = (
    NewKey,
    NewOperatorKey,
)
GIVEN: Shapes = (
    KeyView,
    MadeKey,
    KeyPage,
)
