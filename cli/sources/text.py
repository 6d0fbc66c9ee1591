"""Source texts as payload texts, and strict JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from cli.sources.found import NotHere


def literal(text: str) -> str:
    """The text with escaped placeholders: `render` returns it unchanged."""
    return text.replace("{{", "{{{{")


def payload_of(value: Any, written: Callable[[str], str] = literal, where: str = "payload") -> Any:
    """A value of the source as JSON; `written` converts each text for a payload. Raises NotHere."""
    try:
        return _payload_of(value, written, where)
    except RecursionError:
        raise NotHere(f"{where} nests too deeply") from None


def _payload_of(value: Any, written: Callable[[str], str], where: str) -> Any:
    if isinstance(value, str):
        return written(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, list):
        return [_payload_of(inner, written, f"{where}.{n}") for n, inner in enumerate(value)]
    if isinstance(value, Mapping):
        if odd := next((name for name in value if not isinstance(name, str)), None):
            raise NotHere(f"{where} has a field {odd!r}, whose name is not text: quote it")
        return {name: _payload_of(inner, written, f"{where}.{name}") for name, inner in value.items()}
    raise NotHere(f"{where} is a {type(value).__name__}, which JSON does not have: quote it")


def loads(text: str) -> Any:
    """JSON without doubled names, because only one of them would be read. Raises ValueError."""
    try:
        return json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it nests too deeply") from None


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the name {next(name for name in names if names.count(name) > 1)!r} appears twice")
    return fields


def _no_number(text: str) -> None:
    raise ValueError(f"{text} is not a number in JSON")
