"""DynamoDB's expression language as far as Minute8 uses it: conditions and updates of items in the wire format.

An expression is compiled once to functions of (item, values); the contract test compares both with moto.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

Wire = dict[str, Any]
Values = Mapping[str, Any]
Expression = Callable[[Wire, Values], bool]
Operand = Callable[[Wire, Values], Any]
Change = Callable[[Wire, Wire, Values], None]

_TOKEN = re.compile(r"\s*(:\w+|#?\w+(?:\[\d+\])?|<>|<=|>=|[=<>(),+-])")
# Values of different types are in no order: each comparison of them is false.
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: type(a) is type(b) and a < b,
    "<=": lambda a, b: type(a) is type(b) and a <= b,
    ">": lambda a, b: type(a) is type(b) and a > b,
    ">=": lambda a, b: type(a) is type(b) and a >= b,
}


@lru_cache(maxsize=1024)
def compile_condition(text: str) -> Expression:
    """A condition or filter expression."""
    parser = _Parser(text)
    condition = parser.either()
    parser.end()
    return condition


@lru_cache(maxsize=1024)
def compile_update(text: str) -> Callable[[Wire, Values], Wire]:
    """An update expression: from the old item to the new one."""
    changes = _Parser(text).changes()

    def update(old: Wire, values: Values) -> Wire:
        new = dict(old)
        for change in changes:
            change(old, new, values)
        return new

    return update


def check_placeholders(
    expressions: Iterable[str], names: Mapping[str, str] | None, values: Mapping[str, Any]
) -> None:
    """DynamoDB refuses unused names and values, and names and values that are missing."""
    used = frozenset(word for text in expressions for word in _placeholders(text))
    defined = frozenset(names or ()).union(values)
    assert used == defined, (used - defined, defined - used)
    assert all(name == f"#{stands_for}" for name, stands_for in (names or {}).items()), names


@lru_cache(maxsize=1024)
def _placeholders(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[#:]\w+", text))


class _Parser:
    """Recursive descent, a method for each rule. Names are written `#name`, as in `common/storage/table.py`."""

    def __init__(self, text: str) -> None:
        self.tokens = _TOKEN.findall(text)
        assert "".join(self.tokens) == re.sub(r"\s", "", text), text
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self, *expected: str) -> str:
        token = self.peek()
        assert token and (not expected or token in expected), (token, expected, self.tokens)
        self.at += 1
        return token

    def end(self) -> None:
        assert not self.peek(), self.tokens[self.at :]

    # Conditions

    def either(self) -> Expression:
        parts = [self.all()]
        while self.peek() == "OR":
            self.next()
            parts.append(self.all())
        return parts[0] if len(parts) == 1 else lambda item, values: any(p(item, values) for p in parts)

    def all(self) -> Expression:
        parts = [self.test()]
        while self.peek() == "AND":
            self.next()
            parts.append(self.test())
        return parts[0] if len(parts) == 1 else lambda item, values: all(p(item, values) for p in parts)

    def test(self) -> Expression:
        token = self.peek()
        if token == "NOT":
            self.next()
            inner = self.test()
            return lambda item, values: not inner(item, values)
        if token == "(":
            self.next()
            inner = self.either()
            self.next(")")
            return inner
        if token in ("attribute_exists", "attribute_not_exists", "begins_with"):
            return self.function()
        return self.comparison()

    def function(self) -> Expression:
        kind = self.next()
        self.next("(")
        left_side = self.operand()
        if kind == "begins_with":
            self.next(",")
            right_side = self.operand()
            self.next(")")
            return lambda item, values: _text(left_side(item, values)).startswith(
                _text(right_side(item, values))
            )
        self.next(")")
        must_exist = kind == "attribute_exists"
        return lambda item, values: (left_side(item, values) is not None) == must_exist

    def comparison(self) -> Expression:
        left_side, how = self.operand(), self.next("=", "<>", "<", "<=", ">", ">=", "IN")
        if how == "IN":
            self.next("(")
            options = [self.operand()]
            while self.next(",", ")") == ",":
                options.append(self.operand())
            return lambda item, values: any(_equal(left_side(item, values), o(item, values)) for o in options)
        right_side = self.operand()
        if how == "<>":
            return lambda item, values: not _equal(left_side(item, values), right_side(item, values))
        compare = _COMPARE[how]

        def compared(item: Wire, values: Values) -> bool:
            a, b = left_side(item, values), right_side(item, values)
            return a is not None and b is not None and compare(_comparable(a), _comparable(b))

        return compared

    # Updates

    def changes(self) -> list[Change]:
        changes: list[Change] = []
        while self.peek():
            clause = self.next("SET", "REMOVE", "ADD")
            read_clause = {"SET": self.set, "REMOVE": self.remove, "ADD": self.add}[clause]
            changes.append(read_clause())
            while self.peek() == ",":
                self.next()
                changes.append(read_clause())
        return changes

    def set(self) -> Change:
        name = self.next().removeprefix("#")
        self.next("=")
        value = self.sum()

        name, index = _element(name)

        def change(old: Wire, new: Wire, values: Values) -> None:
            if index is None:
                new[name] = value(old, values)
            else:  # an index beyond the end appends
                listed = list(new[name]["L"])
                listed[index : index + 1] = [value(old, values)]
                new[name] = {"L": listed}

        return change

    def remove(self) -> Change:
        name = self.next().removeprefix("#")

        name, index = _element(name)

        def change(old: Wire, new: Wire, values: Values) -> None:
            if index is None:
                new.pop(name, None)
            elif name in new:
                new[name] = {"L": new[name]["L"][:index] + new[name]["L"][index + 1 :]}

        return change

    def add(self) -> Change:
        name, amount = self.next().removeprefix("#"), self.operand()

        def change(old: Wire, new: Wire, values: Values) -> None:
            new[name] = _plus(old.get(name, {"N": "0"}), amount(old, values), 1)

        return change

    def sum(self) -> Operand:
        left_side = self.operand()
        if self.peek() not in ("+", "-"):
            return left_side
        sign = 1 if self.next() == "+" else -1
        right_side = self.operand()
        return lambda item, values: _plus(left_side(item, values), right_side(item, values), sign)

    def operand(self) -> Operand:
        token = self.next()
        if token.startswith(":"):
            return lambda item, values: values[token]
        if token in ("if_not_exists", "list_append"):
            self.next("(")
            left_side = self.operand()
            self.next(",")
            right_side = self.operand()
            self.next(")")
            if token == "if_not_exists":
                return lambda item, values: left_side(item, values) or right_side(item, values)
            return lambda item, values: {"L": left_side(item, values)["L"] + right_side(item, values)["L"]}
        assert token in ("pk", "sk") or token.startswith("#"), (
            f"{token} may be a reserved word: write #{token}"
        )
        name = token.removeprefix("#")
        return lambda item, values: item.get(name)


def _element(name: str) -> tuple[str, int | None]:
    """The attribute, and the index of `attempts[0]`. One update changes one element of a list and removes another."""
    attribute, bracket, index = name.partition("[")
    return attribute, int(index.removesuffix("]")) if bracket else None


def _comparable(wire: Wire) -> Any:
    ((kind, value),) = wire.items()
    return Decimal(value) if kind == "N" else value


def _equal(a: Wire | None, b: Wire | None) -> bool:
    return a is not None and b is not None and a.keys() == b.keys() and _comparable(a) == _comparable(b)


def _text(wire: Wire | None) -> str:
    return wire.get("S", "\0") if wire else "\0"


def _plus(a: Wire, b: Wire, sign: int) -> Wire:
    return {"N": str(Decimal(a["N"]) + sign * Decimal(b["N"]))}
