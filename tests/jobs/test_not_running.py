"""The notes of jobs that do not run."""

from __future__ import annotations

import pytest

from common.jobs.not_running import NotRunning

NOTE = {"reason": "misfire", "since_at": 5, "detail": "late", "is_share": False, "noted_at": 6}


def of_item(note: object) -> NotRunning | None:
    return NotRunning.of_item({"sk": "STREAK#job", "not_running": note})


@pytest.mark.parametrize(
    "note",
    [
        None,
        {},
        {"reason": "misfire"},
        NOTE | {"reason": ["misfire"]},
        NOTE | {"reason": "unknown"},
        NOTE | {"since_at": "yesterday"},
    ],
)
def test_a_damaged_note_is_none(note: object) -> None:
    assert of_item(note) is None


def test_a_note_of_a_later_version_is_read() -> None:
    noted = of_item(NOTE | {"new": 1})
    assert noted is not None
    assert (noted.reason, noted.since_at, noted.detail, noted.noted_at) == ("misfire", 5, "late", 6)
