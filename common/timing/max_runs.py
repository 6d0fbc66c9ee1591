"""The end of a schedule that fires a number of times: an instant, found when the job is stored.

So nothing is counted while the job runs: whatever happens to a tick, a message or an executor, the same fire times are
planned.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from common.timing.durations import parse_instant
from common.timing.fires import next_fires
from common.timing.instants import DAY_S
from common.timing.schedule import Schedule

MAX_RUNS: Final = 1_000
_HORIZON_S: Final = 41 * 366 * DAY_S


def limited(schedule: Schedule, schedule_given: Mapping[str, Any], counted: int, from_at: int) -> Schedule:
    """The schedule with the end that its `max_runs` sets, if it has any, or its `end_at` if that is earlier.

    `schedule_given` is what the client wrote; `counted` are its fire times before `from_at`.
    """
    if schedule_given.get("max_runs") is None:
        return schedule
    end_at = (
        parse_instant(schedule_given["end_at"], "schedule.end_at")
        if schedule_given.get("end_at") is not None
        else None
    )
    runs = int(schedule_given["max_runs"]) - counted
    limit_at = _end_after(replace(schedule, end_at=end_at), runs, from_at)
    return replace(schedule, end_at=end_at if limit_at is None else limit_at)


def _end_after(schedule: Schedule, runs: int, from_at: int) -> int | None:
    """An instant between the last of so many fire times and the one that would follow; None if none follows.

    It is in the middle, so that a later change of the zone's rules, by an hour or so, changes nothing.
    """
    if runs <= 0:
        return from_at
    fire_times = next_fires(schedule, from_at, runs + 1, from_at + _HORIZON_S)
    if len(fire_times) <= runs:
        return None
    return (fire_times[-2] + fire_times[-1]) // 2 + 1
