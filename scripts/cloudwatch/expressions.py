"""Metric math, as far as deploy/alarms.yml uses it. Pure.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from scripts.cloudwatch.metrics import Series

# A number, a series, or an array of series.
Value = float | Series | list[Series]
_OPERATORS: Final[dict[type[ast.AST], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.And: lambda a, b: bool(a) and bool(b),
    ast.Or: lambda a, b: bool(a) or bool(b),
}


class UnknownExpression(ValueError):
    """This module does not know a part of the expression."""


def evaluate(expression: str, metrics: Mapping[str, Series], starts: Sequence[int]) -> Series:
    """The value of an expression at each of the periods' starts; a missing one has no value.

    Raises:
        UnknownExpression
    """
    words = re.sub(r"\b(AND|OR)\b", lambda word: word[0].lower(), expression)
    value = _Evaluation(metrics, starts).value(ast.parse(words, mode="eval").body)
    if isinstance(value, list):
        raise UnknownExpression(f"{expression!r} gives several series")
    return value if isinstance(value, dict) else dict.fromkeys(starts, value)


class _Evaluation:
    def __init__(self, metrics: Mapping[str, Series], starts: Sequence[int]) -> None:
        self._metrics = metrics
        self._starts = starts

    def value(self, node: ast.AST) -> Value:
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.Name(id=name) if name in self._metrics:
                return self._metrics[name]
            case ast.BinOp(first, kind, second):
                return _combined(_OPERATORS[type(kind)], self._operand(first), self._operand(second))
            case ast.Compare(first, [kind], [second]):
                return _combined(_OPERATORS[type(kind)], self._operand(first), self._operand(second))
            case ast.BoolOp(kind, parts):
                value = self._operand(parts[0])
                for part in parts[1:]:
                    value = _combined(_OPERATORS[type(kind)], value, self._operand(part))
                return value
            case ast.Call(ast.Name(id=function), arguments):
                return self._called(function, arguments)
        raise UnknownExpression(ast.unparse(node))

    def _operand(self, node: ast.AST) -> float | Series:
        value = self.value(node)
        if isinstance(value, list):
            raise UnknownExpression(f"{ast.unparse(node)} is an array")
        return value

    def _called(self, function: str, arguments: list[Any]) -> Value:
        match function, arguments:
            case "METRICS", []:
                return list(self._metrics.values())
            case "FILL", [operand, ast.Constant(value=int() | float() as number)]:
                value = self.value(operand)
                if isinstance(value, list):
                    return [self._filled(series, number) for series in value]
                return self._filled(value, number) if isinstance(value, dict) else value
            case "SUM", [operand]:
                array = self.value(operand)
                assert isinstance(array, list), "SUM of a series is a scalar, which no alarm here uses"
                present = {start for series in array for start in series}
                return {start: sum(series.get(start, 0.0) for series in array) for start in present}
            case "IF", [condition, then, otherwise]:
                return self._chosen(
                    self._operand(condition),
                    self._operand(then),
                    self._operand(otherwise),
                )
        raise UnknownExpression(function)

    def _filled(self, series: Series, number: float) -> Series:
        return {start: series.get(start, float(number)) for start in self._starts}

    def _chosen(self, condition: float | Series, then: float | Series, otherwise: float | Series) -> Series:
        chosen: Series = {}
        for start in self._starts:
            holds = _at(condition, start)
            if holds is not None and (value := _at(then if holds else otherwise, start)) is not None:
                chosen[start] = value
        return chosen


def _combined(
    function: Callable[[float, float], float], first: float | Series, second: float | Series
) -> float | Series:
    """Period by period. Without a value on one side, and for a division by zero, there is none."""
    if not isinstance(first, dict) and not isinstance(second, dict):
        return float(function(first, second))
    starts = {start for side in (first, second) if isinstance(side, dict) for start in side}
    result: Series = {}
    for start in starts:
        a, b = _at(first, start), _at(second, start)
        if a is not None and b is not None and not (function is operator.truediv and b == 0):
            result[start] = float(function(a, b))
    return result


def _at(value: float | Series, start: int) -> float | None:
    return value.get(start) if isinstance(value, dict) else value
