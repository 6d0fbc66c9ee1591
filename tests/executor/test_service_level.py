"""What counts for the service level, and what of it is good."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from common.planning.execution import Execution
from common.runs.claims import Claim
from common.runs.holders import Permit
from executor.recorder import Report, service_level

DUE = Execution("alice", "report", 1_000, 1_000, 1)
WAITED = structs.replace(DUE, not_before_at=1_090)


@pytest.mark.parametrize(
    ("report", "good", "total"),
    [
        (Report("succeeded", DUE, 0.2), 1, 1),
        (Report("succeeded", DUE, 1.0), 1, 1),
        (Report("succeeded", DUE, 1.001), 0, 1),
        (Report("dispatched", DUE, 0.2), 1, 1),
        # The target's own failure is not Minute8's.
        (Report("failed", DUE, 0.2, "ValueError"), 1, 1),
        (Report("retrying", DUE, 0.2, "TimedOut"), 1, 1),
        (Report("failed", DUE, 0.2, "ExecutorDied"), 0, 1),
        (Report("retrying", DUE, 0.2, "ExecutorDied"), 0, 1),
        (Report("unrecorded", DUE, detail="ClientError"), 0, 1),
        # Rules of the job, the tenant or the platform.
        (Report("skipped", DUE, detail="paused"), 0, 0),
        (Report("skipped", DUE, detail="blocked"), 0, 0),
        (Report("failed", structs.replace(DUE, attempt=2), detail="paused"), 0, 0),
        (Report("queued", DUE, detail="waits"), 0, 0),
        (Report("duplicate", DUE), 0, 0),
        (Report("sent_on", DUE), 0, 0),
        # Too late to start: ours, unless it waited for its turn.
        (Report("skipped", DUE, detail="misfire"), 0, 1),
        (Report("failed", structs.replace(DUE, attempt=2), detail="misfire"), 0, 1),
        (Report("skipped", WAITED, detail="misfire"), 0, 0),
    ],
)
def test_each_outcome_counts_as_documented(report: Report, good: int, total: int) -> None:
    assert service_level([report], within_s=1.0) == (good, total)


def test_a_batch_is_counted_together_and_within_the_stages_lateness() -> None:
    batch = [Report("succeeded", DUE, late_s) for late_s in (0.1, 1.5, 4.0)]
    assert service_level(batch, within_s=2.0) == (2, 3)
    assert service_level([], within_s=2.0) == (0, 0)


@pytest.mark.parametrize(
    ("execution", "starts_at", "waited", "late"),
    [
        (DUE, 1_090.25, 0, 90.25),
        (WAITED, 1_090.25, 90.25, 0),
        (WAITED, 1_092.5, 91, 1.5),
        (structs.replace(WAITED, due_at=1_090), 1_092.5, 0, 2.5),
    ],
)
def test_waiting_for_another_run_is_no_lateness(
    execution: Execution, starts_at: float, waited: float, late: float
) -> None:
    permits = (Permit({}, execution, 1),)
    claim = Claim(execution, "m", starts_at, starts_at + 60, permits=permits)
    assert claim.start[1:] == (waited, late)
    assert replace(claim, permits=()).start.lateness_s == starts_at - execution.due_at
