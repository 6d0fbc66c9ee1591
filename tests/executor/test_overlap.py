"""What the overlap policy does with an execution that does not get the lock: a table of the pure decision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from common.jobs.job import Job
from common.planning.execution import BACKFILL, Execution
from common.timing.schedule import EveryTiming, Schedule
from executor.admission import Skip, Wait, admit_without_lock
from tests.worlds import plain_job

NOW = 1_800_000_000
EXECUTION = Execution("alice", "report", NOW, NOW, 1)
HELD = {"holder": "other", "lease_until": NOW + 40}
ENDED = {"lease_until": NOW - 1}
QUEUED = {"queued": "third", "queued_until": NOW}
ITS_OWN = {"queued": EXECUTION.run_name, "queued_until": NOW}
OVER = {"queued": "third", "queued_until": NOW - 1}


def a_job(overlap: Any) -> Job:
    schedule = Schedule(EveryTiming(60, 0))
    return plain_job("alice", "report", schedule, overlap=overlap)


@pytest.mark.parametrize(
    ("overlap", "lock", "decision"),
    [
        ("skip", HELD, "skip: run other is still going"),
        ("skip", HELD | QUEUED, "skip: run other is still going"),
        ("queue_one", HELD, f"wait until {NOW + 41}, in the place"),
        ("queue_one", HELD | ITS_OWN, f"wait until {NOW + 41}, in the place"),
        ("queue_one", HELD | OVER, f"wait until {NOW + 41}, in the place"),
        ("queue_one", HELD | QUEUED, "skip: run other is still going, and run third waits for it already"),
        ("queue_one", ENDED | QUEUED, "skip: run third is still going, and run third waits for it already"),
        ("queue_one", ENDED, f"wait until {NOW + 11}, in the place"),
    ],
)
def test_a_first_attempt_is_skipped_or_takes_the_one_place(
    overlap: str, lock: dict[str, Any], decision: str
) -> None:
    assert _shown(admit_without_lock(a_job(overlap), EXECUTION, lock, NOW)) == decision


@pytest.mark.parametrize("overlap", ["skip", "queue_one"])
@pytest.mark.parametrize("execution", [replace(EXECUTION, attempt=2), replace(EXECUTION, trigger=BACKFILL)])
def test_a_later_attempt_and_a_backfills_run_are_never_skipped(overlap: str, execution: Execution) -> None:
    assert (
        _shown(admit_without_lock(a_job(overlap), execution, HELD, NOW))
        == f"wait until {NOW + 41}, in the place"
    )
    assert (
        _shown(admit_without_lock(a_job(overlap), execution, HELD | QUEUED, NOW)) == f"wait until {NOW + 41}"
    )


def _shown(step: Skip | Wait) -> str:
    if isinstance(step, Skip):
        assert step.reason == "overlap"
        return f"skip: {step.detail}"
    return f"wait until {step.until}" + (", in the place" if step.queues_up else "")
