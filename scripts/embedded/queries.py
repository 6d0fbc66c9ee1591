"""Queries of large partitions in a tenth of the time, with the same answers.

For each item of a partition ministack parses the key condition again, and for each item that it returns the projection.
Ten items of a partition of 10,000 took 0.4 s of a processor. Here each text is parsed once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

Wire = Mapping[Any, Any]

# The key conditions of common/storage/table.py, for keys of text.
_CONDITION = re.compile(
    r"pk = (?P<pk>:\w+)"
    r"(?: AND begins_with\(sk, (?P<prefix>:\w+)\)| AND sk BETWEEN (?P<first>:\w+) AND (?P<last>:\w+))?"
)


def install(dynamodb: Any) -> None:
    """Into the server's module ministack.services.dynamodb. What is not known here, stock ministack evaluates."""
    evaluate, project = dynamodb._evaluate_condition, dynamodb._project_item

    def evaluated(
        text: str, item: Wire, values: Wire, names: Wire, slot: str = "ConditionExpression"
    ) -> bool:
        if slot == "KeyConditionExpression" and (parsed := _parsed(text)):
            try:
                return _holds(parsed, item, values)
            except KeyError:  # other keys than texts
                pass
        return bool(evaluate(text, item, values, names, slot=slot))

    def projected(item: Wire, text: str, names: Wire) -> Any:
        attributes = [(names or {}).get(path) for path in _placeholders(text)]
        if not attributes or None in attributes or len(set(attributes)) < len(attributes):
            return project(item, text, names)
        return {name: item[name] for name in attributes if name in item}

    dynamodb._evaluate_condition = evaluated
    dynamodb._project_item = projected


@lru_cache(maxsize=256)
def _parsed(text: str) -> dict[str, str | None] | None:
    condition = _CONDITION.fullmatch(text)
    return condition and condition.groupdict()


def _holds(parsed: Mapping[str, str | None], item: Wire, values: Wire) -> bool:
    if item["pk"]["S"] != values[parsed["pk"]]["S"]:
        return False
    if prefix := parsed["prefix"]:
        return bool(item["sk"]["S"].startswith(values[prefix]["S"]))
    if first := parsed["first"]:
        return bool(values[first]["S"] <= item["sk"]["S"] <= values[parsed["last"]]["S"])
    return True


@lru_cache(maxsize=256)
def _placeholders(text: str) -> tuple[str, ...]:
    """Those of a projection of whole attributes; empty for another projection."""
    paths = tuple(path.strip() for path in text.split(","))
    return paths if all(re.fullmatch(r"#\w+", path) for path in paths) else ()
