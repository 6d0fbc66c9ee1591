"""The executions of an entry in a window, and those that it missed after any time without ticks."""

from __future__ import annotations

import pytest

from common.planning.due_entry import CatchUp, DueEntry
from common.planning.plan import plan
from common.timing.schedule import CronTiming, EveryTiming, Schedule, Timing

CATCH_UP_LIMIT = 100

DAY_S = 86_400
NOW = 1_763_694_480


def entry(timing: Timing, catch_up: CatchUp) -> DueEntry:
    return DueEntry(
        "alice", "job", Schedule.of(timing), effective_at=0, schedule_revision=1, catch_up=catch_up
    )


@pytest.mark.parametrize("timing", [EveryTiming(1, 0), CronTiming("* * * * * *", "Europe/Berlin")])
@pytest.mark.parametrize(("catch_up", "caught_up"), [("none", 0), ("latest", 1), ("all", CATCH_UP_LIMIT)])
def test_an_outage_of_ten_years_of_a_job_of_each_second_is_counted_and_not_listed(
    timing: Timing, catch_up: CatchUp, caught_up: int
) -> None:
    start, end = NOW - 3_660 * DAY_S, NOW + 720
    planned = plan(entry(timing, catch_up), start, end, NOW)
    fire_times = [execution.fire_at for execution in planned.executions]
    assert fire_times == list(range(NOW - 600 - caught_up, end))
    assert planned.missed
    assert planned.missed.first_fire_at == start
    assert planned.missed.last_fire_at == fire_times[0] - 1
    assert planned.missed.count == fire_times[0] - start


def test_nothing_is_missed_where_the_catch_up_takes_all() -> None:
    planned = plan(entry(EveryTiming(3_600, 0), "all"), NOW - DAY_S, NOW + 720, NOW)
    assert planned.missed is None
    assert len(planned.executions) == 24


def test_the_fraction_of_the_second_decides_what_is_missed() -> None:
    for now, missed in ((NOW + 0.0, 0), (NOW + 0.5, 1)):
        planned = plan(entry(EveryTiming(1, 0), "none"), NOW - 600, NOW, now)
        assert (planned.missed.count if planned.missed else 0) == missed
