"""docs/limits.md is written from common/limits.py. tests/api/test_limits.py tries its bounds."""

from __future__ import annotations

import re

import pytest

from common import limits
from scripts.limits import PAGE, tables, written


def test_the_page_has_the_tables_as_they_are_now() -> None:
    assert written(PAGE.read_text()) == PAGE.read_text(), "run: python -m scripts.limits"


def test_a_changed_bound_changes_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BODY_BYTES", 513 * 1024)
    monkeypatch.setattr(limits, "BULK_LINES", 1_001)
    assert "| lines of a bulk request | 1,001, each at most 513 KiB |" in written(PAGE.read_text())


def test_a_table_that_the_page_does_not_have_is_missed() -> None:
    with pytest.raises(KeyError, match="Planning"):
        written(PAGE.read_text().replace("## Planning", "## Plans"))


def test_every_bound_has_a_row() -> None:
    """A constant without one only tunes something: it belongs to its code."""
    source = (PAGE.parents[1] / "common" / "limits.py").read_text()
    named = set(re.findall(r"\{(\w+)", source))
    assert {name for name in vars(limits) if re.fullmatch(r"[A-Z][A-Z_]+", name)} == named
    assert sum(map(len, tables().values())) > 100
