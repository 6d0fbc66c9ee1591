"""The pure part of planning: the executions of a due entry in a window, and its missed fire times."""

from __future__ import annotations

import math
from dataclasses import dataclass

from msgspec.structs import replace

from common.planning.due_entry import CatchUp, DueEntry, Missed
from common.planning.execution import Execution, job_key
from common.timing.excluded_days import NO_DAYS, Excluded
from common.timing.fires import count_fires, due_at, fires, newest_fires, scattered_at
from common.timing.groups import group_can_fire, group_key
from common.timing.windows import MAX_DELAY_S, MISSED_AFTER_S

# `catch_up: all` runs the newest missed executions, up to this many; the others are recorded as skipped.
CATCH_UP_LIMIT = 100
# A job whose next fire time is later has none in a window under planning, even if the clocks of two machines differ by
# minutes or the commit takes long.
_NEAR_S = MAX_DELAY_S + 300


@dataclass(frozen=True, slots=True)
class Plan:
    """The executions and the missed fire times of one entry in a window."""

    executions: list[Execution]
    missed: Missed | None = None


def plan(entry: DueEntry, start: int, end: int, now: float, excluded: Excluded = NO_DAYS) -> Plan:
    """The executions of `entry` with a fire time in [start, end), planned at `now`.

    Fire times of up to ten minutes ago are late and all run. Older ones were missed: the job's catch-up policy says
    which of them still run, with an age that counts from now. `excluded` are local ISO dates on which its calendars
    forbid it to fire.
    """
    start = max(start, entry.effective_at)
    missed_before = min(end, math.ceil(now - MISSED_AFTER_S))
    fire_times = fires(entry.schedule, max(start, missed_before), end, excluded=excluded)
    run = [execution_of(entry, fire_at) for fire_at in fire_times]
    missed = None
    if start < missed_before:
        most = max_caught_up(entry.catch_up)
        newest = newest_fires(entry.schedule, start, missed_before, most + 1, excluded=excluded)
        if len(newest) > most:
            missed = _missed(entry, start, missed_before, newest[0], excluded)
        caught_up = newest[-most:] if most else []
        run = [replace(execution_of(entry, fire_at), first_due_at=int(now)) for fire_at in caught_up] + run
    return Plan(run, missed)


def plan_registered(entry: DueEntry, until: int, excluded: Excluded = NO_DAYS) -> list[Execution]:
    """The executions that a registration enqueues itself: from when it takes effect to the announced end.

    No fire time counts as missed, however late this is. So every process that finishes the registration plans the same.
    """
    planned = plan(entry, 0, until, now=entry.effective_at, excluded=excluded).executions
    return [scattered(entry, execution) for execution in planned]


def scattered(entry: DueEntry, execution: Execution) -> Execution:
    """The execution at a second within its pace's tolerance, chosen by hash. For executions that reserve no second."""
    if not entry.schedule.pace:
        return execution
    key = job_key(entry.tenant, entry.job_id)
    return replace(execution, due_at=scattered_at(entry.schedule, key, execution.fire_at))


def fires_soon(entry: DueEntry, now: float) -> bool:
    """Whether the entry may have a fire time in a window that ticks have planned or are planning.

    Its calendars are not read: without them it fires more often, unless they move its fire times.
    """
    start, end = math.floor(now), math.floor(now) + _NEAR_S
    if entry.schedule.moves:
        return group_can_fire(group_key(entry.schedule), start, end)
    return bool(plan(entry, start, end, now).executions)


def max_caught_up(catch_up: CatchUp) -> int:
    """How many of the newest missed fire times still run."""
    return {"none": 0, "latest": 1, "all": CATCH_UP_LIMIT}[catch_up]


def execution_of(entry: DueEntry, fire_at: int) -> Execution:
    """The execution of a fire time, with its jitter."""
    key = job_key(entry.tenant, entry.job_id)
    return Execution(
        tenant=entry.tenant,
        job_id=entry.job_id,
        fire_at=fire_at,
        due_at=due_at(entry.schedule, key, fire_at),
        schedule_revision=entry.schedule_revision,
    )


def _missed(entry: DueEntry, start: int, end: int, last: int, excluded: Excluded) -> Missed:
    """The missed fire times in [start, end), without the newest ones, which are caught up. There may be millions."""
    return Missed(
        tenant=entry.tenant,
        job_id=entry.job_id,
        schedule_revision=entry.schedule_revision,
        count=count_fires(entry.schedule, start, last + 1, excluded=excluded),
        first_fire_at=next(fires(entry.schedule, start, end, excluded=excluded)),
        last_fire_at=last,
        catch_up=entry.catch_up,
        schedule=entry.schedule,
        excluded=excluded,
    )
