"""Values in refusals: whatever a request sends is shown shortly, or by its type."""

from __future__ import annotations

import pytest

from common.errors import shown


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, ""), ("a", "'a'"), (10**5000, "<int>"), ([10**5000], "<list>"), (nested(100_000), "<list>")],
    ids=["nothing", "text", "number", "numbers", "levels"],
)
def test_a_value_that_python_cannot_write_is_shown_by_its_type(value: object, text: str) -> None:
    assert shown(value) == text
