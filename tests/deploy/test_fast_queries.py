"""The embedded AWS's faster queries (`scripts/embedded/patches.py`) answer as ministack's own do."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from ministack.services import dynamodb as stock  # type: ignore[import-untyped]

from scripts.embedded import patches

WITH_PREFIX = "pk = :pk AND begins_with(sk, :one)"
BETWEEN = "pk = :pk AND sk BETWEEN :one AND :two"
ITEMS: list[dict[str, Any]] = [
    {"pk": {"S": pk}, "sk": {"S": sk}, "list": {"L": [{"S": "x"}]}, "map": {"M": {"a": {"N": "1"}}}}
    for pk in ("alice", "bob")
    for sk in ("", "JOB#", "JOB#a", "JOB#b", "JOB#é", "JOBS", "job#a")
]


@pytest.fixture
def calls() -> list[str]:
    """What the faster functions leave to ministack."""
    return []


@pytest.fixture
def fast(calls: list[str]) -> SimpleNamespace:
    def noted(name: str) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            calls.append(name)
            return getattr(stock, name)(*arguments, **named)

        return call

    module = SimpleNamespace(**{name: noted(name) for name in ("_evaluate_condition", "_project_item")})
    patches.parse_conditions_once(module)
    return module


@pytest.mark.parametrize("text", ["pk = :pk", WITH_PREFIX, BETWEEN])
@pytest.mark.parametrize("bounds", [("JOB#", "JOB#b"), ("", "~"), ("JOB#a", "JOB#a"), ("é", "é")])
def test_a_key_condition(fast: SimpleNamespace, calls: list[str], text: str, bounds: tuple[str, str]) -> None:
    values = {":pk": {"S": "alice"}, ":one": {"S": bounds[0]}, ":two": {"S": bounds[1]}}
    slot = {"slot": "KeyConditionExpression"}
    for item in ITEMS:
        expected = stock._evaluate_condition(text, item, values, {}, **slot)
        assert fast._evaluate_condition(text, item, values, {}, **slot) == expected, item
    assert not calls


def test_other_queries_are_left_to_ministack(fast: SimpleNamespace, calls: list[str]) -> None:
    slot = {"slot": "KeyConditionExpression"}
    number = {":pk": {"S": "alice"}, ":one": {"N": "1"}, ":two": {"N": "3"}}
    item: Mapping[str, Any] = {"pk": {"S": "alice"}, "sk": {"N": "2"}}
    assert fast._evaluate_condition(BETWEEN, item, number, {}, **slot)
    assert fast._evaluate_condition("pk = :pk AND sk > :one", item, number, {}, **slot)
    assert fast._evaluate_condition("sk = :one", {"sk": {"N": "1"}}, number, {})
    assert fast._project_item(ITEMS[0], "#l[0]", {"#l": "list"}) == {"list": {"L": [{"S": "x"}]}}
    assert len(calls) == 4
    with pytest.raises(ValueError, match="overlap"):
        fast._project_item(ITEMS[0], "#a, #b", {"#a": "pk", "#b": "pk"})


@pytest.mark.parametrize("names", [("pk",), ("pk", "sk", "missing"), ("list", "map")])
def test_a_projection(fast: SimpleNamespace, calls: list[str], names: tuple[str, ...]) -> None:
    text, aliases = ", ".join(f"#{name}" for name in names), {f"#{name}": name for name in names}
    for item in ITEMS:
        assert fast._project_item(item, text, aliases) == stock._project_item(item, text, aliases)
    assert not calls
