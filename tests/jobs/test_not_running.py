"""The notes of jobs that do not run."""

from __future__ import annotations

from typing import Literal

import pytest

from common.jobs.not_running import NotRunning, skipped
from common.runs.run import Run

NOW = 1_795_219_200
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


def run(nth: int, status: Literal["skipped", "succeeded"]) -> Run:
    """The nth newest run of a job that fires each minute."""
    reason = {"reason": "misfire"} if status == "skipped" else {}
    return Run(
        tenant="acme",
        job_id="job",
        run_name=f"{nth}",
        fire_at=NOW - 60 * nth,
        due_at=NOW - 60 * nth,
        status=status,
        schedule_revision=1,
        trigger="schedule",
        **reason,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("due", "skips", "is_told"),
    [(20, 2, True), (19, 2, False), (20, 1, False), (30, 3, True), (30, 2, False)],
)
def test_a_tenth_of_at_least_twenty_that_were_due_in_a_day_is_told(
    due: int, skips: int, is_told: bool
) -> None:
    # No two skips in a row: three would be told by themselves.
    newest = [run(nth, "skipped" if nth % 2 and nth < 2 * skips else "succeeded") for nth in range(due)]
    noted = skipped(newest, NOW)
    assert (noted is not None and noted.is_share) == is_told


@pytest.mark.parametrize(("row", "is_told"), [(2, False), (3, True)])
def test_three_skips_in_a_row_are_told(row: int, is_told: bool) -> None:
    noted = skipped([run(nth, "skipped" if nth < row else "succeeded") for nth in range(5)], NOW)
    assert (noted is not None) == is_told
