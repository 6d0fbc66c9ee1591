"""A nightmare makes what can be noticed and told apart, and judges by the stated time."""

from __future__ import annotations

import pytest

from tests.chaos.nightmare import ARRIVAL_S, MAX_TIMES, NIGHTMARES, Happened, choices, stated_s, table
from tests.runbook.faults import Fault

BY_PAGE = {fault.page: fault for fault in NIGHTMARES}
QUIET = dict.fromkeys(BY_PAGE, "OK")
DEAD = BY_PAGE["dead-letters"]


def pages(faults: list[Fault]) -> set[str]:
    return {fault.page for fault in faults}


def test_a_fault_has_to_fit_the_time_that_is_left() -> None:
    assert pages(choices([], QUIET, 24 * 3600)) == set(BY_PAGE)
    assert pages(choices([], QUIET, 60 + ARRIVAL_S)) == {
        "dead-letters",
        "planning-dead-letters",
        "outcomes-dead-letters",
    }
    assert choices([], QUIET, 60 + ARRIVAL_S - 1) == []


def test_each_page_has_one_fault() -> None:
    assert len(BY_PAGE) == len(NIGHTMARES)


@pytest.mark.parametrize(
    ("remaining", "followed", "is_over"),
    [(None, 0, False), ("", 1, True), ("1 messages", 1, False), ("1 messages", MAX_TIMES, True)],
)
def test_a_page_is_followed_until_its_fault_is_gone(
    remaining: str | None, followed: int, is_over: bool
) -> None:
    assert Happened(DEAD, 0.0, 60.0, remaining, followed).is_over is is_over


def test_of_a_part_one_fault_is_open_at_a_time() -> None:
    possible = pages(choices([Happened(BY_PAGE["overdue"], 0.0)], QUIET, 24 * 3600))
    assert not {"overdue", "canary", "burn-fast", "executor-throttles"} & possible
    assert not {"no-tick", "tick-errors", "planning-lag"} & possible, (
        "its repair would not show without ticks"
    )
    assert "api-errors" in possible


def test_without_ticks_nothing_is_broken_that_needs_executions() -> None:
    possible = pages(choices([Happened(BY_PAGE["no-tick"], 0.0)], QUIET, 24 * 3600))
    assert not {"overdue", "canary", "burn-fast", "executor-throttles", "tick-errors"} & possible
    assert {"dead-letters", "api-errors", "outcomes-lag"} <= possible


def test_an_alarm_that_rings_notices_nothing_new() -> None:
    assert "dead-letters" not in pages(choices([], {**QUIET, "dead-letters": "ALARM"}, 24 * 3600))


def test_what_was_made_least_comes_next() -> None:
    incidents = [Happened(fault, 0.0, 1.0, "") for fault in NIGHTMARES if fault is not DEAD]
    assert choices(incidents, QUIET, 24 * 3600) == [DEAD]


@pytest.mark.parametrize(
    ("noticed_after", "remaining", "well"),
    [
        (180.0, "", True),
        (180.1, "", False),
        (None, "", False),
        (60.0, "dead letters: 1", False),
        (9.0, None, False),
    ],
)
def test_a_fault_is_well_that_was_noticed_in_time_and_repaired(
    noticed_after: float | None, remaining: str | None, well: bool
) -> None:
    assert stated_s(DEAD) == 60
    incident = Happened(DEAD, 1000.0, None if noticed_after is None else 1000.0 + noticed_after, remaining)
    assert incident.is_well is well
    assert f"| `{DEAD.page}` |" in table([incident])
