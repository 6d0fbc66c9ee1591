"""The next revision of a job that is paused, resumed or deleted. Pure."""

from __future__ import annotations

import math
from typing import Any

from msgspec.structs import replace

from common.jobs.fates import pauses_of
from common.jobs.job import ACTIVE, DELETED, NO_PAYLOAD, PAUSED, Job
from common.timing.fires import count_fires
from common.timing.groups import group_key
from common.timing.max_runs import limited
from common.timing.schedule import Schedule


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
    """The changed job with its pauses. After one the messages of before it are looked at again (`fates.py`)."""
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
