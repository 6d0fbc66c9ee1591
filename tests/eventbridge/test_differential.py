"""A part of the differential fuzzer, with a fixed seed: `python -m tests.eventbridge.differential` runs more."""

from __future__ import annotations

from pathlib import Path

from tests.eventbridge.differential import EXPLAINED, Difference, compared, explanation_of


def test_no_difference_is_unexplained(tmp_path: Path) -> None:
    counts, unexplained = compared(120, 7, tmp_path / "aws")
    assert not unexplained, unexplained[:3]
    assert {each.system for each in EXPLAINED} == {why.partition(":")[0] for why in counts}


def test_a_new_difference_is_not_explained() -> None:
    """Refusing a valid request, or another status, is nothing that the table knows."""
    valid = {"Name": "a", "ScheduleExpression": "rate(1 day)", "FlexibleTimeWindow": {"Mode": "OFF"}}
    for answer in (
        (400, "ValidationException"),
        (500, "InternalServerException"),
        (409, "ConflictException"),
    ):
        assert explanation_of(Difference("embedded", "create_schedule", valid, answer, {})) is None
    described = {"Description": "a"}, {"Description": "b", "Target": {}}
    assert (
        explanation_of(
            Difference("embedded", "get_schedule", {}, {**described[0], "Target": {}}, described[1])
        )
        is None
    )
