"""Placeholders in the payload: replaced, never evaluated, bounded."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidInput
from common.jobs.placeholders import (
    MAX_VALUE_CHARS,
    PayloadTooLarge,
    check_payload,
    has_placeholders,
    render,
    values_for,
)
from common.jobs.stored_text import StoredText
from common.planning.execution import Execution
from tests.worlds import at

RENDERED_BYTES = 229_376

EXECUTION = Execution("alice", "report", at("2026-11-21T03:00:00Z"), at("2026-11-21T03:00:30Z"), 4, attempt=2)
VALUES = values_for(EXECUTION, "America/New_York")


def rendered_value(payload: Any, values: Mapping[str, str]) -> Any:
    """What the text that a target gets means."""
    return json.loads(render(StoredText.of(payload).text or "", values))


@pytest.mark.parametrize(
    ("payload", "rendered"),
    [
        ("{{fire_time}}", "2026-11-21T03:00:00Z"),
        ("{{fire_date}}", "2026-11-20"),
        ("{{due_time}}", "2026-11-21T03:00:30Z"),
        ("{{execution_id}}", "alice:report:20261121T030000Z"),
        ("{{ job_id }}/{{tenant}}#{{attempt}}", "report/alice#2"),
        ("{{{{fire_time}}", "{{fire_time}}"),
        ("{{{{{{tenant}}", "{{alice"),
        ("{fire_time} {{{{ }} {", "{fire_time} {{ }} {"),
        (
            {"{{tenant}}": ["{{tenant}}", 1, None, True, {"a": "x{{tenant}}y"}]},
            {"{{tenant}}": ["alice", 1, None, True, {"a": "xalicey"}]},
        ),
        ([], []),
        (7, 7),
    ],
)
def test_replaced(payload: Any, rendered: Any) -> None:
    check_payload(payload)
    assert rendered_value(payload, VALUES) == rendered


@pytest.mark.parametrize(
    ("payload", "field", "position"),
    [
        ("{{now}}", "payload", 0),
        ({"a": ["ok", "at {{ fire_time | upper }}"]}, "payload.a.1", 3),
        ("{{fire_time.__class__}}", "payload", 0),
        ("{{7*7}}", "payload", 0),
        ("{{}}", "payload", 0),
        ("{{", "payload", 0),
        ("{{tenant}} {{Tenant}}", "payload", 11),
        ("{{fire_time", "payload", 0),
        ("{{fire_time\n\n\n\n\n\n\n\n\n}}", "payload", 0),
    ],
)
def test_an_unknown_placeholder_is_refused_with_its_position(payload: Any, field: str, position: int) -> None:
    with pytest.raises(InvalidInput) as caught:
        check_payload(payload)
    assert (caught.value.field, caught.value.position) == (field, position)
    assert "{{fire_time}}" in caught.value.accepted


def test_a_value_brings_in_no_placeholder() -> None:
    assert (
        rendered_value("{{tenant}}", {"tenant": "{{execution_id}}", "execution_id": "x"})
        == "{{execution_id}}"
    )


def test_a_stored_payload_with_an_unknown_placeholder_is_left_alone() -> None:
    assert rendered_value("{{gone}} {{", VALUES) == "{{gone}} {{"


def test_a_payload_that_could_grow_too_large_is_refused_at_registration() -> None:
    bomb = "{{execution_id}}" * (RENDERED_BYTES // 300)
    with pytest.raises(InvalidInput, match="after replacement"):
        check_payload(bomb)
    with pytest.raises(PayloadTooLarge):
        rendered_value(bomb, VALUES | {"execution_id": "x" * 400})


def test_how_many_placeholders_a_payload_may_have() -> None:
    check_payload({"a": ["{{attempt}} {{{{"] * 500})
    with pytest.raises(InvalidInput, match="at most 1000 in a payload") as refused:
        check_payload({"a": ["{{attempt}} {{{{"] * 500, "b": "x {{attempt}}"})
    assert (refused.value.field, refused.value.position) == ("payload.b", 2)


def test_no_value_is_longer_than_it_is_counted() -> None:
    longest = Execution(
        "t" * 64,
        "j" * 128,
        at("2026-11-21T03:00:00Z"),
        at("2026-11-21T03:00:30Z"),
        10**18,
        10**9,
        "manual",
        "x" * 128,
    )
    for name, value in values_for(longest, "UTC").items():
        assert len(value) <= MAX_VALUE_CHARS[name], name


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet="ab{} fire_time", max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(json_values)
def test_an_accepted_payload_renders_without_unescaped_braces(payload: Any) -> None:
    try:
        check_payload(payload)
    except InvalidInput:
        return
    blank = dict.fromkeys(MAX_VALUE_CHARS, "")
    assert rendered_value(payload, blank) == rendered_value(payload, blank | {"unknown": "never"})


@given(st.text(alphabet="ab}x ", max_size=20))
def test_text_without_double_braces_is_not_changed(text: str) -> None:
    assert rendered_value({"a": text}, VALUES) == {"a": text}


@pytest.mark.parametrize("payload", ["{{tenant}}", [1, {"a": ["{{{{"]}], {"a": {"b": "x {{"}}])
def test_a_payload_that_rendering_changes_has_placeholders(payload: object) -> None:
    assert has_placeholders(StoredText.of(payload).text or "")


@pytest.mark.parametrize("payload", [None, 1, "a { {", {"a": {"{": {}}}, [[{}], "{"]])
def test_a_payload_without_placeholders_renders_to_itself(payload: object) -> None:
    assert not has_placeholders(StoredText.of(payload).text or "")
    assert rendered_value(payload, VALUES) == payload


def replaced_in_values(payload: Any, values: Mapping[str, str]) -> Any:
    """The reference: a walk through the parsed payload, which replaces in each string that is no name of a field."""
    if isinstance(payload, str):
        return re.sub(
            r"\{\{\{\{|\{\{\s{0,8}([a-z_]{1,32})\s{0,8}\}\}|\{\{",
            lambda match: "{{" if match[0] == "{{{{" else values.get(match[1] or "", match[0]),
            payload,
        )
    if isinstance(payload, list):
        return [replaced_in_values(item, values) for item in payload]
    if isinstance(payload, dict):
        return {name: replaced_in_values(value, values) for name, value in payload.items()}
    return payload


HOSTILE_TEXTS = json.loads(r"""
    ["{{tenant}}", "{{", "}}", "{", "tenant", ":", "\"", "\\", ",", "{{\ttenant}}", "{{\u000btenant\u001f}}", "{{{{",
     "{{\ftenant\u0085}}", "{{\u2028tenant\u00a0}}", "u0009", "\u001b", "ü", "\ufffe", "t", " ", "\n"]
""")
hostile_texts = st.lists(st.sampled_from(HOSTILE_TEXTS), max_size=8).map("".join)
hostile_payloads = st.recursive(
    hostile_texts | st.none() | st.floats(allow_nan=False) | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(hostile_texts, inner, max_size=4),
    max_leaves=12,
)


@given(hostile_payloads, hostile_texts)
def test_replacing_in_the_text_is_replacing_in_each_value(payload: Any, value: str) -> None:
    values = {"tenant": value}
    assert rendered_value(payload, values) == replaced_in_values(payload, values)
