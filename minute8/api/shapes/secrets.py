"""Secrets."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from minute8.api.shapes.base import Instant, RequestBody, ResponseBody, Revision


class NewSecret(RequestBody):
    """A secret's value."""

    # No type of its own: a refusal of it would show the value.
    value: Annotated[
        Any,
        Meta(
            description="8 characters or more beside backslashes, and 4,096 bytes at most in UTF-8. "
            "It is never returned.",
            examples=["a-token-of-another-service"],
            extra_json_schema={"type": "string", "writeOnly": True},
        ),
    ]


class SecretView(ResponseBody):
    """What may be known of a secret."""

    name: Annotated[str, Meta(description="The secret's name; jobs name it as `secret://name`.")]
    revision: Revision
    created_at: Instant
    updated_at: Instant


class SecretList(ResponseBody):
    """All secrets of the tenant, in the order of their names."""

    secrets: Annotated[list[SecretView], Meta(description="At most 100.")]
