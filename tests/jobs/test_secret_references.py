"""References to secrets in texts and in JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.jobs.placeholders import PayloadTooLarge, json_with_secrets, with_secrets

RENDERED_BYTES = 229_376

VALUES = {"token": 'a"b\\c\nd', "other": "secret://token", "a.b-c_1": "é"}


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ("secret://token", VALUES["token"]),
        ("Bearer secret://token", f"Bearer {VALUES['token']}"),
        ("secret://token,secret://a.b-c_1", f"{VALUES['token']},é"),
        ("postgres://u:secret://token@host", f"postgres://u:{VALUES['token']}@host"),
        ({"secret://token": "kept"}, {"secret://token": "kept"}),
        ({"a": [{"b": "secret://token"}, 1, None]}, {"a": [{"b": VALUES["token"]}, 1, None]}),
        # What a value contains is no reference.
        ("secret://other", "secret://token"),
        ("SECRET://token secret:/token", "SECRET://token secret:/token"),
        ('"secret://token"', f'"{VALUES["token"]}"'),
    ],
)
def test_values_take_the_place_of_references(payload: object, expected: object) -> None:
    text = json.dumps(payload, separators=(",", ":"), ensure_ascii=False)
    assert json.loads(json_with_secrets(text, VALUES.__getitem__)) == expected


@given(st.text(), st.text())
def test_any_value_comes_out_as_it_is(before: str, value: str) -> None:
    text = json.dumps([f"{before} secret://x"], ensure_ascii=False)
    marked = f"{before} secret://x".count("secret://")
    if marked == 1:
        assert json.loads(json_with_secrets(text, lambda name: value)) == [f"{before} {value}"]


def test_what_becomes_too_large_is_refused() -> None:
    with pytest.raises(PayloadTooLarge):
        json_with_secrets('["secret://x"]', lambda name: "x" * RENDERED_BYTES)


def test_a_text_without_references_is_not_touched() -> None:
    assert with_secrets("secret:x", VALUES.__getitem__) == "secret:x"
