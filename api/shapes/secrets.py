"""Secrets."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from api.shapes.base import Instant, RequestBody, ResponseBody, Revision


class NewSecret(RequestBody):
    """A secret's value."""

    # No type of its own: pydantic's errors contain the value.
    value: Any = Field(
        description="8 characters or more beside backslashes, and 4,096 bytes at most in UTF-8. It is never returned.",
        examples=["a-token-of-another-service"],
        json_schema_extra={"type": "string", "writeOnly": True},
    )


class SecretView(ResponseBody):
    """What may be known of a secret."""

    name: str = Field(description="The secret's name; jobs name it as `secret://name`.")
    revision: Revision
    created_at: Instant
    updated_at: Instant


class SecretList(ResponseBody):
    """All secrets of the tenant, in the order of their names."""

    secrets: list[SecretView] = Field(description="At most 100.")
