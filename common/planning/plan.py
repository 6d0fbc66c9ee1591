"""The pure heart of planning: which executions a due entry has in a window, and which fire times were missed."""

from __future__ import annotations

import json
from collections.abc import Container
from dataclasses import dataclass
from typing import Literal

from common.planning.execution import Execution, job_key
from common.timing.fires import due_at, fires
from common.timing.schedule import Schedule
from common.timing.windows import MISSED_AFTER_S

CatchUp = Literal["none", "latest", "all"]

# How many missed executions `catch_up: all` runs at most, the newest ones; the others are recorded as skipped.
CATCH_UP_LIMIT = 100


@dataclass(frozen=True, slots=True)
class DueEntry:
    """What the tick needs of a job, and no more: a million of them are read where a million are due."""

    tenant: str
    job_id: str
    schedule: Schedule
    effective_at: int
    schedule_revision: int
    catch_up: CatchUp

    def encode(self) -> str:
        """As one JSON text: a map of attributes would take three times as long to read."""
        return json.dumps(
            [
                self.tenant,
                self.job_id,
                self.schedule.to_item(),
                self.effective_at,
                self.schedule_revision,
                self.catch_up,
            ],
            separators=(",", ":"),
        )

    @classmethod
    def decode(cls, text: str) -> DueEntry:
        """The inverse of `encode`. Raises ValueError, KeyError or TypeError on anything else."""
        tenant, job_id, schedule, effective_at, schedule_revision, catch_up = json.loads(text)
        return cls(tenant, job_id, Schedule.from_item(schedule), effective_at, schedule_revision, catch_up)


@dataclass(frozen=True, slots=True)
class Missed:
    """Fire times that will not run, told in one record: how many, from the first to the last."""

    tenant: str
    job_id: str
    schedule_revision: int
    count: int
    first_fire_at: int
    last_fire_at: int
    catch_up: CatchUp


@dataclass(frozen=True, slots=True)
class Plan:
    """What one entry has to run in a window, and what it has missed."""

    executions: list[Execution]
    missed: Missed | None = None


def plan(entry: DueEntry, start: int, end: int, now: float, excluded: Container[str] = ()) -> Plan:
    """The executions of `entry` with a fire time in [start, end), planned at `now`.

    Fire times of up to ten minutes ago are late and all run. Older ones were missed: the job's catch-up policy says
    which of them still run. `excluded` are local ISO dates on which its calendars forbid it to fire.
    """
    missed: list[int] = []
    wanted: list[int] = []
    missed_before = now - MISSED_AFTER_S
    for fire_at in fires(entry.schedule, max(start, entry.effective_at), end, excluded=excluded):
        (missed if fire_at < missed_before else wanted).append(fire_at)
    skipped = missed[: max(0, len(missed) - _caught_up(entry.catch_up))]
    run = missed[len(skipped) :] + wanted
    return Plan([_execution(entry, fire_at) for fire_at in run], _missed(entry, skipped))


def plan_registered(entry: DueEntry, until: int, excluded: Container[str] = ()) -> list[Execution]:
    """What a registration has to hand over by itself: all from when it takes effect to the end of what is announced.

    None of it counts as missed, however late that happens: whoever finishes a cut-off registration plans the same.
    """
    return plan(entry, 0, until, now=entry.effective_at, excluded=excluded).executions


def _caught_up(catch_up: CatchUp) -> int:
    """How many of the newest missed fire times still run."""
    return {"none": 0, "latest": 1, "all": CATCH_UP_LIMIT}[catch_up]


def _execution(entry: DueEntry, fire_at: int) -> Execution:
    key = job_key(entry.tenant, entry.job_id)
    return Execution(
        tenant=entry.tenant,
        job_id=entry.job_id,
        fire_at=fire_at,
        due_at=due_at(entry.schedule, key, fire_at),
        schedule_revision=entry.schedule_revision,
    )


def _missed(entry: DueEntry, fire_times: list[int]) -> Missed | None:
    if not fire_times:
        return None
    return Missed(
        tenant=entry.tenant,
        job_id=entry.job_id,
        schedule_revision=entry.schedule_revision,
        count=len(fire_times),
        first_fire_at=fire_times[0],
        last_fire_at=fire_times[-1],
        catch_up=entry.catch_up,
    )
