"""What decides when a job fires, as the audit keeps it: the history of a job's times. Pure.

Each change of a job's times stores, in its own audit entry, what was in force before. So the due set of the past is
known, and not guessed from the job as it is now.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from common.jobs.job import DELETED, Job
from common.timing.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Times:
    """A job's state (`active` or `paused`) and schedule. Nothing fires before `effective_at`."""

    state: str
    schedule: Schedule
    effective_at: int
    schedule_revision: int

    @classmethod
    def of(cls, job: Job | None) -> Times | None:
        """None if there is no such job."""
        if job is None or job.state == DELETED:
            return None
        return cls(job.state, job.schedule, job.effective_at, job.schedule_revision)


def encode_times(old: Job | None, new: Job, planned_until: int) -> str:
    """What an audit entry keeps: the times before a change, and up to where ticks had planned. Empty: no change."""
    before = Times.of(old)
    if before == Times.of(new):
        return ""
    item = before and [
        before.state,
        before.schedule.to_item(),
        before.effective_at,
        before.schedule_revision,
    ]
    return json.dumps([item, planned_until], separators=(",", ":"))


def decode_times(text: str) -> tuple[Times | None, int]:
    """The inverse of `encode_times`: the times before the change, and up to where everything was planned."""
    item, planned_until = json.loads(text)
    if item is None:
        return None, planned_until
    state, schedule, effective_at, schedule_revision = item
    return Times(state, Schedule.from_item(schedule), effective_at, schedule_revision), planned_until
