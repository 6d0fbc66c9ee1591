"""Retrying on a conflict: how often, after which waits, and the final error."""

from __future__ import annotations

import pytest

from common.errors import Busy
from common.storage.conflicts import ConditionFailed, TransactionConflict, retry_on_conflict

MAX_TRIES = 12


class InTheWay:
    """An attempt that raises these errors in turn, and then succeeds."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.attempts = 0

    def __call__(self) -> str:
        self.attempts += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


def longest(low: float, high: float) -> float:
    assert low == 0
    return high


def test_the_waits_double_up_to_half_a_second() -> None:
    waits: list[float] = []
    attempt = InTheWay(*[TransactionConflict()] * 6)
    assert retry_on_conflict(attempt, "it", sleep=waits.append, uniform=longest) == "done"
    assert waits == [0.04, 0.08, 0.16, 0.32, 0.5, 0.5]


@pytest.mark.parametrize(("conflicts", "done"), [(MAX_TRIES - 1, True), (MAX_TRIES, False)])
def test_retries_end_after_so_many_tries_and_name_the_busy_item(conflicts: int, done: bool) -> None:
    waits: list[float] = []
    attempt = InTheWay(*[TransactionConflict()] * conflicts)
    if done:
        assert retry_on_conflict(attempt, "job 'report'", sleep=waits.append) == "done"
    else:
        with pytest.raises(
            Busy, match=r"^job 'report' is being changed by too many writers at once$"
        ) as gave_up:
            retry_on_conflict(attempt, "job 'report'", sleep=waits.append)
        assert not isinstance(gave_up.value, TransactionConflict)
    assert (attempt.attempts, len(waits)) == (MAX_TRIES, MAX_TRIES - 1)


def test_a_condition_that_fails_is_tried_again_only_where_that_is_asked_for() -> None:
    attempt = InTheWay(ConditionFailed())
    with pytest.raises(ConditionFailed):
        retry_on_conflict(attempt, "it", sleep=lambda _: None)
    assert attempt.attempts == 1
    on = (ConditionFailed, TransactionConflict)
    assert retry_on_conflict(InTheWay(ConditionFailed()), "it", on=on, sleep=lambda _: None) == "done"
