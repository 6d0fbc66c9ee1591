"""The next revision of a job that is paused, resumed or deleted. Pure."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from common.jobs.job import ACTIVE, DELETED, NO_PAYLOAD, PAUSED, Job
from common.timing.groups import group_key


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


def deleted(job: Job, now: float) -> Job:
    """The deleted job."""
    return _revised(job, now, state=DELETED, payload=NO_PAYLOAD, note="", group="", shard=0)


def next_second(now: float) -> int:
    """A job fires from the second after its registration on; the current second has already begun."""
    return math.floor(now) + 1


def _revised(job: Job, now: float, **changes: Any) -> Job:
    return replace(job, revision=job.revision + 1, updated_at=int(now), **changes)
