"""Tests write the numbers that they check: an imported bound would agree with any bound."""

from __future__ import annotations

import ast
import importlib
import math
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
# Pages are compared with the code here, and the benchmarks' model is of the code's own numbers.
COMPARED = {"docs", "benchmarks"}
# What no bound is: units, and masks of all bits.
UNITS = {"DAY_S", "HOUR_S", "WINDOW_S", "LAST_AT", "ALL_DAYS", "ALL_WEEKDAYS"}
PRODUCT = ("common", "scheduler", "executor", "minute8")


def imported_numbers(path: Path) -> Iterator[str]:
    """The product's numeric constants that a test imports by name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] not in PRODUCT:
            continue
        for name in {alias.name for alias in node.names if alias.name.isupper()} - UNITS:
            value = getattr(importlib.import_module(str(node.module)), name, None)
            if type(value) in (int, float) and math.isfinite(value):
                yield f"{path.relative_to(TESTS)}: {name}"


def test_tests_write_the_numbers_that_they_check() -> None:
    paths = [path for path in TESTS.rglob("*.py") if path.relative_to(TESTS).parts[0] not in COMPARED]
    assert [number for path in paths for number in imported_numbers(path)] == []
