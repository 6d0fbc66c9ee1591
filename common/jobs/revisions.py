"""The next revision of a job that is paused, resumed or deleted, and what then becomes of a planned fire time. Pure.

An execution is its job and its fire time, whichever revision of the schedule planned it. It runs if the job was active
at its fire time, and the schedule as it is now contains that, whenever this schedule took effect. What only a later
version contains is never planned.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, Literal, NamedTuple

from msgspec import Meta, Struct
from msgspec.structs import replace

from common.jobs.job import ACTIVE, DELETED, NO_PAYLOAD, PAUSED, Job, Pause, exists
from common.planning.execution import SCHEDULE, Execution
from common.runs import states
from common.timing.excluded_days import Excluded
from common.timing.fires import count_fires, due_at, fires, limited
from common.timing.groups import group_key
from common.timing.instants import LAST_AT, rfc3339
from common.timing.schedule import Schedule

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


def paused(job: Job, note: str, now: float) -> Job:
    """The paused job: it has no due entry. The same object if it is paused with this note already."""
    if job.state == PAUSED and job.note == note:
        return job
    return _revised(job, now, state=PAUSED, note=note, group="", shard=0)


def resumed(job: Job, now: float) -> Job:
    """The active job, which fires from the next second on. The same object if it is active already."""
    if job.state == ACTIVE:
        return job
    group = group_key(job.schedule)
    return _revised(job, now, state=ACTIVE, note="", effective_at=next_second(now), group=group)


def with_pauses(old: Job | None, new: Job, now: float) -> Job:
    """The changed job with its pauses. After one the messages of before it are looked at again."""
    new = replace(new, pauses=pauses_of(old, new, now))
    has_resumed = old is not None and old.state == PAUSED and new.state == ACTIVE
    if has_resumed and old and new.schedule_revision == old.schedule_revision:
        return replace(new, schedule_revision=new.schedule_revision + 1)
    return new


def deleted(job: Job, now: float) -> Job:
    """The deleted job."""
    return _revised(job, now, state=DELETED, payload=NO_PAYLOAD, note="", group="", shard=0)


def counted_on(old: Job | None, new: Job, now: float) -> Job:
    """The new job with the end that its `max_runs` sets. The fire times of the old one that have come count.

    A paused job has none that come. The count ends with `max_runs`, or the job.
    """
    if new.spec.schedule.get("max_runs") is None:
        return replace(new, runs_before=0) if new.runs_before else new
    before = old if old and old.state != DELETED and old.spec.schedule.get("max_runs") is not None else None
    if before and _times(before) == _times(new):
        return replace(new, runs_before=before.runs_before)
    counted = before.runs_before if before else 0
    if before and before.state == ACTIVE:
        counted += count_fires(before.schedule, before.effective_at, next_second(now))
    return replace(
        new,
        runs_before=counted,
        schedule=limited(new.schedule, new.spec.schedule, counted, new.effective_at),
    )


def next_second(now: float) -> int:
    """A job fires from the second after its registration on; the current second has already begun."""
    return math.floor(now) + 1


def _times(job: Job) -> tuple[str, int, Schedule]:
    return job.state, job.effective_at, job.schedule


def _revised(job: Job, now: float, **changes: Any) -> Job:
    return replace(job, revision=job.revision + 1, updated_at=int(now), **changes)
