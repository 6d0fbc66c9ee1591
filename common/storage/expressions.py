"""Conditions and updates in DynamoDB's expression language, and the errors of refused writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from common.errors import Busy, ItemTooLarge
from common.storage.keys import Key
from common.storage.wire_format import Item, from_wire, to_wire


class ConditionFailed(Exception):
    """A conditional write lost: a normal outcome. `existing` is the stored item, if the write requested it.

    `nth` is the number of the failed write in its transaction, from 0; if several failed, the first. `key` is its key.
    """

    def __init__(self, existing: Item | None = None, nth: int = 0, key: Key | None = None) -> None:
        super().__init__("the condition did not hold")
        self.existing = existing
        self.nth = nth
        self.key = key


class TransactionConflict(Busy):
    """Another transaction was writing some of the items; nothing was written. `keys` are those that DynamoDB named.

    The same call may succeed next time.
    """

    def __init__(self, keys: Sequence[Key] = ()) -> None:
        super().__init__("another transaction was in the way")
        self.keys = keys


@dataclass(frozen=True, slots=True)
class Expression:
    """A condition or an update in DynamoDB's expression language, with its values. Names are written as `#name`."""

    expression: str
    values: Mapping[str, Any]

    def names(self) -> dict[str, str]:
        """Each `#name` in the text with its attribute's name."""
        return dict(_names(self.expression))


def refused_write(error: Exception) -> ConditionFailed | TransactionConflict | ItemTooLarge | None:
    """Why DynamoDB refused a write, if the reason is a condition, another transaction, or an update's result."""
    # botocore's connection errors also have a response, which is None.
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    match response.get("Error", {}).get("Code"):
        case "ConditionalCheckFailedException":
            return ConditionFailed(from_wire(response["Item"]) if response.get("Item") else None)
        case "TransactionConflictException":
            return TransactionConflict()
        case "ValidationException" if "Item size" in str(response["Error"].get("Message")):
            return ItemTooLarge()
    return None


def expression_arguments(condition: Expression | None, change: Expression | None = None) -> dict[str, Any]:
    """The arguments of a write with a condition, an update or both; a refusal returns the existing item."""
    arguments: dict[str, Any] = {}
    names: dict[str, str] = {}
    values: Item = {}
    if change:
        arguments["UpdateExpression"] = change.expression
        names |= change.names()
        values |= change.values
    if condition:
        arguments["ConditionExpression"] = condition.expression
        arguments["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        names |= condition.names()
        values |= condition.values
    if names:
        arguments["ExpressionAttributeNames"] = names
    if values:
        arguments["ExpressionAttributeValues"] = to_wire(values)
    return arguments


@lru_cache(maxsize=256)  # there are a few dozen expressions, and each run's write has one of 700 characters
def _names(expression: str) -> tuple[tuple[str, str], ...]:
    return tuple((word, word[1:]) for word in _words(expression) if word.startswith("#"))


def _words(expression: str) -> list[str]:
    for separator in "(),=<>+-[]":
        expression = expression.replace(separator, " ")
    return expression.split()
