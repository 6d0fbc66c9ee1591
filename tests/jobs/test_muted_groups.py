"""When a muted group of failures ends."""

from __future__ import annotations

import pytest

from common.jobs.muted_groups import MutedGroup

MAX_MUTED_S = 2_592_000

MUTED_AT = 1_800_000_000
RUN = "20261121T031200Z"


@pytest.mark.parametrize(
    ("until_s", "streak", "after_s", "muted"),
    [
        (None, None, 0, True),
        (None, (3, -60), 60, True),
        (None, (0, -60), 60, True),
        (None, (1, 30), 60, False),
        (None, (0, 30), 60, True),
        (None, (1, 0), 60, True),
        (None, (3, -60), MAX_MUTED_S - 1, True),
        (None, (3, -60), MAX_MUTED_S, False),
        (100, (1, 30), 99, True),
        (100, (1, 30), 100, False),
        (100, None, 100, False),
    ],
    ids=[
        "no failure in a row is known",
        "it fails on",
        "it has succeeded",
        "it succeeded, and fails again",
        "it failed and succeeded again",
        "it was muted in the second of its first failure",
        "30 days less a second",
        "30 days",
        "until a time it may change",
        "the time is over",
        "the time is over, without a failure",
    ],
)
def test_a_group_is_muted_until_a_time_or_until_it_changes(
    until_s: int | None, streak: tuple[int, int] | None, after_s: int, muted: bool
) -> None:
    group = MutedGroup("alice", "report", "0" * 12, MUTED_AT, until_s and MUTED_AT + until_s)
    item = None
    if streak:
        failures, began_s = streak
        item = {"failures": failures, "failed_run": RUN, "began_at": MUTED_AT + began_s}
    assert group.in_force(item, MUTED_AT + after_s) is muted
