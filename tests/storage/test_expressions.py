"""How conditions and updates are rendered; tests/storage/test_table.py and test_swap.py send them."""

from __future__ import annotations

import pytest

from common.storage.expressions import ABSENT, PRESENT, Attribute, Condition, change, every, unchanged

STATE, UNTIL = Attribute("state"), Attribute("until")


@pytest.mark.parametrize(
    ("condition", "words", "values"),
    [
        (STATE == "on", "#state = :state_is", {":state_is": "on"}),
        (STATE != "on", "#state <> :state_is_not", {":state_is_not": "on"}),
        (UNTIL < 3, "#until < :until_below", {":until_below": 3}),
        (UNTIL <= 3, "#until <= :until_at_most", {":until_at_most": 3}),
        (UNTIL > 3, "#until > :until_above", {":until_above": 3}),
        (UNTIL >= 3, "#until >= :until_at_least", {":until_at_least": 3}),
        (STATE.is_one_of("a", "b"), "#state IN (:state_is_0, :state_is_1)", {":state_is_0": "a", ":state_is_1": "b"}),
        (STATE.exists & UNTIL.is_absent, "attribute_exists(#state) AND attribute_not_exists(#until)", {}),
        (
            PRESENT & (ABSENT | (UNTIL <= 3)) & (UNTIL > 1),
            "attribute_exists(pk) AND (attribute_not_exists(pk) OR #until <= :until_at_most) AND #until > :until_above",
            {":until_at_most": 3, ":until_above": 1},
        ),
        (every([PRESENT]), "attribute_exists(pk)", {}),
        (unchanged(None, "state"), "attribute_not_exists(pk)", {}),
        (unchanged({"n": 1}, "n", "until"), "#n = :n_is AND attribute_not_exists(#until)", {":n_is": 1}),
        (unchanged({}, "until"), "attribute_exists(pk) AND attribute_not_exists(#until)", {}),
    ],
)  # fmt: skip
def test_a_condition_in_dynamodbs_words(condition: Condition, words: str, values: dict[str, object]) -> None:
    assert (condition.expression, condition.values) == (words, values)


def test_an_update_sets_keeps_removes_and_adds() -> None:
    update = change({"a": 1}, keep={"b": 2}, remove=["c", "d"], add={"n": 3})
    assert update.expression == "SET #a = :a, #b = if_not_exists(#b, :b) REMOVE #c, #d ADD #n :n"
    assert update.values == {":a": 1, ":b": 2, ":n": 3}
    assert update.names() == {f"#{name}": name for name in "abcdn"}
    assert change(remove=["c"]).expression == "REMOVE #c"


def test_a_condition_has_no_truth_value() -> None:
    with pytest.raises(TypeError, match=r"only DynamoDB knows whether this holds: #state = :state_is"):
        bool(STATE == "on")
    with pytest.raises(TypeError, match="only DynamoDB knows"):
        assert STATE == "on" and UNTIL < 3


def test_one_placeholder_has_one_value() -> None:
    assert ((STATE == "on") & (STATE == "on")).values == {":state_is": "on"}
    with pytest.raises(ValueError, match=r":state_is is compared with 'on' and with 'off'"):
        (STATE == "on") | (STATE == "off")
