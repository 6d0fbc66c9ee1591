"""The statements of the roles in a template."""

from __future__ import annotations

from typing import Any


def as_list(value: Any) -> list[Any]:
    """Actions or resources: where there is one, a statement may have it without a list."""
    return value if isinstance(value, list) else [value]


def logical_name(resource: dict[str, Any] | str) -> str | None:
    """The name of a resource that the template makes, or the pattern of a statement for many."""
    match resource:
        case str():
            return resource
        case {"Fn::GetAtt": [name, "Arn"]}:
            return str(name)
    return None
