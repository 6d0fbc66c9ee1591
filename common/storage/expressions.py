"""Conditions and updates of items, rendered to DynamoDB's expression language. The only place that knows its words.

    ABSENT | (Attribute("expires_at") <= now)
    (Attribute("state") == ACTIVE) & Attribute("deleting").is_absent
    change({"state": DELETED}, keep={"created_at": now}, remove=["lease_until"], add={"signs": 1})

A placeholder is made of its attribute's name and operator, so the same condition has the same text, which is cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from common.storage.wire import Expression

# The word in the placeholder of each comparison's value.
_OPERATORS: Final = {"=": "is", "<>": "is_not", "<": "below", "<=": "at_most", ">": "above", ">=": "at_least"}


class Condition(Expression):
    """What must be true of the stored item. `&` and `|` combine; a condition has no truth value of its own."""

    __slots__ = ()

    def __and__(self, other: Expression) -> Condition:
        return Condition(f"{self.expression} AND {other.expression}", _joined(self.values, other.values))

    def __or__(self, other: Expression) -> Condition:
        return Condition(f"({self.expression} OR {other.expression})", _joined(self.values, other.values))


@dataclass(frozen=True, slots=True, eq=False)
class Attribute:
    """An attribute of the stored item; comparing it makes a condition. One that does not exist equals nothing."""

    name: str

    def __eq__(self, value: object) -> Condition:  # type: ignore[override]
        return self._compared("=", value)

    def __ne__(self, value: object) -> Condition:  # type: ignore[override]
        return self._compared("<>", value)

    def __lt__(self, value: object) -> Condition:
        return self._compared("<", value)

    def __le__(self, value: object) -> Condition:
        return self._compared("<=", value)

    def __gt__(self, value: object) -> Condition:
        return self._compared(">", value)

    def __ge__(self, value: object) -> Condition:
        return self._compared(">=", value)

    def is_one_of(self, *values: object) -> Condition:
        """The attribute equals one of the values."""
        named = {f":{self.name}_is_{nth}": value for nth, value in enumerate(values)}
        return Condition(f"#{self.name} IN ({', '.join(named)})", named)

    @property
    def exists(self) -> Condition:
        """The item has the attribute."""
        return Condition(f"attribute_exists(#{self.name})", {})

    @property
    def is_absent(self) -> Condition:
        """The item does not have the attribute; also true of an item that does not exist."""
        return Condition(f"attribute_not_exists(#{self.name})", {})

    def _compared(self, operator: str, value: object) -> Condition:
        placeholder = f":{self.name}_{_OPERATORS[operator]}"
        return Condition(f"#{self.name} {operator} {placeholder}", {placeholder: value})


# Every item has a key.
PRESENT: Final = Condition("attribute_exists(pk)", {})
ABSENT: Final = Condition("attribute_not_exists(pk)", {})


def every(conditions: Iterable[Condition]) -> Condition:
    """All of the conditions, of which there is at least one."""
    condition, *further = conditions
    for another in further:
        condition &= another
    return condition


def unchanged(item: Mapping[str, Any] | None, *names: str) -> Condition:
    """These attributes are as they were read; of an item that did not exist: it still does not."""
    if item is None:
        return ABSENT
    terms = [_as_read(item, name) for name in names]
    return every(terms if any(term.values for term in terms) else [PRESENT, *terms])


def _as_read(item: Mapping[str, Any], name: str) -> Condition:
    attribute = Attribute(name)
    if name not in item:
        return attribute.is_absent
    return attribute.exists if item[name] is None else attribute == item[name]  # None: DynamoDB's NULL


def change(
    values: Mapping[str, Any] | None = None,
    *,
    keep: Mapping[str, Any] | None = None,
    remove: Sequence[str] = (),
    add: Mapping[str, float] | None = None,
) -> Expression:
    """An update that writes `values`, and of `keep` what the item does not have; removes attributes; adds numbers.

    A value that is an `Attribute` copies that attribute.
    """
    values, keep, add = values or {}, keep or {}, add or {}
    copied = {name: value.name for name, value in values.items() if isinstance(value, Attribute)}
    written = [f"#{name} = #{copied[name]}" if name in copied else f"#{name} = :{name}" for name in values]
    written += [f"#{name} = if_not_exists(#{name}, :{name})" for name in keep]
    clauses = {
        "SET": written,
        "REMOVE": [f"#{name}" for name in remove],
        "ADD": [f"#{name} :{name}" for name in add],
    }
    words = " ".join(f"{verb} {', '.join(terms)}" for verb, terms in clauses.items() if terms)
    placed = {f":{name}": value for name, value in {**values, **keep, **add}.items() if name not in copied}
    return Expression(words, placed)


def _joined(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    for name in first.keys() & second.keys():
        if first[name] != second[name]:
            raise ValueError(f"{name} is compared with {first[name]!r} and with {second[name]!r}")
    return {**first, **second}
