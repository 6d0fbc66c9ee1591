"""Items and expressions: as plain values, and in DynamoDB's wire format."""

from __future__ import annotations

import json
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from msgspec import MsgspecError

from common.errors import ItemTooLarge, Minute8Error
from common.limits import MAX_ITEM_BYTES, MAX_LEVELS

Item = dict[str, Any]

MAX_NUMBER: Final = 10**38
# What reading a damaged text or item raises.
DAMAGE: Final = (
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError),
    *(MsgspecError, Minute8Error, zlib.error),
)


@dataclass(frozen=True, slots=True)
class Foreign:
    """A value of a type that Minute8 never writes: binary, or a set. It is written back as it is."""

    wire: Mapping[str, Any]


class NotStorable(TypeError):
    """DynamoDB does not accept the value; the caller must check it before."""


# A float holds a number of so many characters exactly.
_EXACT_CHARS: Final = 16


def to_wire(item: Mapping[str, Any]) -> dict[str, Any]:
    """A plain dict as DynamoDB's attribute values. None is left out, a float is rounded to 3 places, a Decimal is not.

    Values that DynamoDB refuses are refused here, since moto accepts them. Raises NotStorable.
    boto3's serializer takes four times as long on every read and write, and 50 ms to import.
    """
    return _wire_map(item, MAX_LEVELS)


def item_to_wire(item: Mapping[str, Any]) -> dict[str, Any]:
    """As `to_wire`, for a whole item. Raises NotStorable, and ItemTooLarge above DynamoDB's 400 KB."""
    wire = to_wire(item)
    # The JSON is longer than the item, and is made in a fifth of the time.
    try:
        may_be_small = len(json.dumps(wire)) <= MAX_ITEM_BYTES
    except TypeError:  # a foreign value
        may_be_small = False
    if not may_be_small and (size := item_bytes(wire)) > MAX_ITEM_BYTES:
        raise ItemTooLarge(size)
    return wire


def item_bytes(wire: Mapping[str, Any]) -> int:
    """The size of an item as DynamoDB counts it; numbers are estimated.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    return sum(_text_bytes(name) + _value_bytes(value) for name, value in wire.items())


def _value_bytes(wire: Mapping[str, Any]) -> int:
    if "S" in wire:
        return _text_bytes(wire["S"])
    if "N" in wire:
        return 2 + len(wire["N"]) // 2
    if "M" in wire:
        return 3 + len(wire["M"]) + item_bytes(wire["M"])
    if "L" in wire:
        return 3 + len(wire["L"]) + sum(map(_value_bytes, wire["L"]))
    return 1


def _text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _wire_map(item: Mapping[str, Any], deepest: int) -> dict[str, Any]:
    wire: dict[str, Any] = {}
    for name, value in item.items():
        # Most values are texts and numbers: a call for each would cost more.
        kind = type(value)
        if kind is str:
            wire[name] = {"S": value}
        elif kind is int and -MAX_NUMBER < value < MAX_NUMBER:
            wire[name] = {"N": str(value)}
        elif kind is float and math.isfinite(value):
            wire[name] = {"N": str(round(value, 3))}
        elif value is not None:
            wire[name] = _wire_value(value, deepest)
    return wire


def _wire_value(value: Any, deepest: int) -> dict[str, Any]:
    if isinstance(value, str):
        return {"S": value}
    if isinstance(value, bool):
        return {"BOOL": value}
    if isinstance(value, int):
        if not -MAX_NUMBER < value < MAX_NUMBER:
            raise NotStorable(f"a number of more than 38 digits: {str(value)[:50]}…")
        return {"N": str(value)}
    if isinstance(value, float) and math.isfinite(value):
        return {"N": str(round(value, 3))}
    if isinstance(value, Decimal):
        return {"N": str(value)}
    if isinstance(value, Foreign):
        return dict(value.wire)
    return _wire_container(value, deepest)


def _wire_container(value: Any, deepest: int) -> dict[str, Any]:
    if deepest == 1:
        raise NotStorable(f"an item nests more than {MAX_LEVELS} levels deep")
    if isinstance(value, Mapping):
        if "" in value:
            raise NotStorable("a field without a name")
        return {"M": _wire_map(value, deepest - 1)}
    if isinstance(value, list | tuple):
        return {
            "L": [{"NULL": True} if inner is None else _wire_value(inner, deepest - 1) for inner in value]
        }
    raise NotStorable(f"DynamoDB holds no {type(value).__name__}: {value!r}")


def from_wire(wire: Mapping[str, Any]) -> Item:
    """The inverse, of any item: whole numbers become int, others float; what Minute8 never writes is Foreign."""
    item: Item = {}
    for name, value in wire.items():
        # In the order of their frequency: a tick reads tens of thousands of values.
        if "S" in value:
            item[name] = value["S"]
        elif "N" in value:
            text = value["N"]
            item[name] = int(text) if text.isdecimal() else _plain_number(text)
        else:
            item[name] = _plain_value(value)
    return item


def _plain_value(wire: Mapping[str, Any]) -> Any:
    if "S" in wire:
        return wire["S"]
    if "N" in wire:
        return _plain_number(wire["N"])
    if "M" in wire:
        return from_wire(wire["M"])
    if "L" in wire:
        return [_plain_value(inner) for inner in wire["L"]]
    if "BOOL" in wire:
        return wire["BOOL"]
    if "NULL" in wire:
        return None
    return Foreign(wire)


def _plain_number(text: str) -> int | float:
    if (
        "." in text and len(text) <= _EXACT_CHARS and "E" not in text
    ):  # a third of the time that a Decimal takes
        value = float(text)
        return int(value) if value.is_integer() else value
    try:
        return int(text)
    except ValueError:
        number = Decimal(text)
        return int(number) if number == number.to_integral_value() else float(number)


@dataclass(frozen=True, slots=True)
class Expression:
    """A condition or an update in DynamoDB's expression language, with its values. Names are written as `#name`."""

    expression: str
    values: Mapping[str, Any]

    def __bool__(self) -> bool:
        raise TypeError(f"only DynamoDB knows whether this holds: {self.expression}")

    def names(self) -> dict[str, str]:
        """Each `#name` in the text with its attribute's name."""
        return _names(self.expression).copy()


def expression_arguments(condition: Expression | None, change: Expression | None = None) -> dict[str, Any]:
    """The arguments of a write with a condition, an update or both; a refusal returns the existing item."""
    arguments: dict[str, Any] = {}
    names: dict[str, str] = {}
    values: Item = {}
    if change is not None:
        arguments["UpdateExpression"] = change.expression
        names |= _names(change.expression)
        values |= change.values
    if condition is not None:
        arguments["ConditionExpression"] = condition.expression
        arguments["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
        names |= _names(condition.expression)
        values |= condition.values
    if names:
        arguments["ExpressionAttributeNames"] = names
    if values:
        arguments["ExpressionAttributeValues"] = to_wire(values)
    return arguments


@lru_cache(maxsize=256)  # there are a few dozen expressions, and each run's write has one of 700 characters
def _names(expression: str) -> dict[str, str]:
    return {word: word[1:] for word in re.findall(r"#\w+", expression)}
