"""What becomes of a planned fire time: the one rule. Pure.

An execution is its job and its fire time, whichever revision of the schedule planned it. It runs if the job was active
at its fire time, and the schedule as it is now contains that, whenever this schedule took effect. What only a later
version contains is never planned.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Annotated, Final, Literal, NamedTuple

from msgspec import Meta, Struct
from msgspec.structs import replace

from common.jobs.job import ACTIVE, PAUSED, Job, Pause, exists
from common.planning.execution import SCHEDULE, Execution
from common.runs import states
from common.timing.excluded_days import Excluded
from common.timing.fires import due_at, fires
from common.timing.instants import LAST_AT, rfc3339

# The pauses that a job keeps. Only executions that are late by all the later ones could miss an older one.
MAX_PAUSES: Final = 10


class End(NamedTuple):
    """Why a fire time does not run: a word of `states.py`, and a sentence."""

    reason: str
    detail: str


Wait = Literal["due time", "turn", "retry", "skip"]
_ENDS: Final[dict[Wait, str]] = {
    "due time": "the run of {} does not start",
    "turn": "the run of {} that waits for its turn ends",
    "retry": "the run of {} is not tried again",
    "skip": "the skip of {} has nothing left to skip",
}


class EndedFire(Struct, frozen=True):
    """A fire time that an edit ends, though something of it waited."""

    fire_at: Annotated[str, Meta(description="The fire time.")]
    waited_for: Annotated[
        Wait,
        Meta(
            description="What it waited for: its due time, its turn, its next attempt; or skip: it was to be skipped."
        ),
    ]
    reason: Annotated[str, Meta(description="Why it does not run, as its run will say.")]
    detail: Annotated[str, Meta(description="What ends, and why, in a sentence.")]


def ended_by(
    old: Job, new: Job, waiting: Iterable[tuple[int, Wait]], excluded: tuple[Excluded, Excluded]
) -> Iterator[EndedFire]:
    """Which of the waiting fire times run by the old job, but not by the new one; `excluded` is of both."""
    for fire_at, waited_for in waiting:
        end = end_of(new, fire_at, excluded[1])
        if end and end_of(old, fire_at, excluded[0]) is None:
            name = rfc3339(fire_at)
            yield EndedFire(name, waited_for, end.reason, f"{_ENDS[waited_for].format(name)}: {end.detail}")


def end_of(job: Job, fire_at: int, excluded: Excluded) -> End | None:
    """Why a fire time that was planned does not run, as the job is now. None: it runs."""
    if fire_at <= job.created_at:
        return End(states.DELETED_JOB, "the job was deleted, and created again, after this fire time")
    if any(pause.from_at <= fire_at < pause.until_at for pause in job.pauses):
        return End(states.PAUSED_JOB, "the job was paused at this fire time")
    if next(fires(job.schedule, fire_at, fire_at + 1, excluded=excluded), None) is None:
        return End(states.RESCHEDULED, "the job's schedule no longer has this fire time")
    return None


def as_planned_now(execution: Execution, job: Job, excluded: Excluded) -> Execution | End:
    """The execution as the job's present schedule has it, or why it ends."""
    if end := end_of(job, execution.fire_at, excluded):
        return end
    return replace(execution, due_at=due_now(execution, job), schedule_revision=job.schedule_revision)


def due_now(execution: Execution, job: Job) -> int:
    """When the attempt is due: a first one when the present schedule says so, if that is later.

    Its place in a pace is kept.
    """
    is_as_planned = execution.schedule_revision == job.schedule_revision
    if execution.attempt > 1 or execution.trigger != SCHEDULE or is_as_planned:
        return execution.due_at
    return max(execution.due_at, due_at(job.schedule, job.key, execution.fire_at))


def pauses_of(old: Job | None, new: Job, now: float) -> tuple[Pause, ...]:
    """The last pauses of the changed job. A pause begins and ends with the next second; one that holds none is none."""
    before = old.pauses if old and exists(old) else ()
    was_paused, next_second = bool(before) and before[-1].until_at == LAST_AT, math.floor(now) + 1
    if new.state == PAUSED and not was_paused:
        if before and before[-1].until_at >= next_second:  # it goes on
            return (*before[:-1], Pause(min(before[-1].from_at, next_second), LAST_AT))
        return (*before, Pause(next_second, LAST_AT))[-MAX_PAUSES:]
    if new.state == ACTIVE and was_paused:
        pause = Pause(before[-1].from_at, next_second)
        return (*before[:-1], pause) if pause.from_at < pause.until_at else before[:-1]
    return before
