"""Builds the scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

from common.clock import Clock
from common.events import Events
from common.jobs.calendars import Calendars
from common.planning.due_index import DueIndex
from common.planning.packs import PACK_FROM
from common.planning.postponed import Postponed
from common.planning.quarantine import Quarantine
from common.planning.queue import ExecutionsQueue
from common.storage.aws import on_first_use
from common.storage.table import Table, Tables
from scheduler.pacing import PaceCarryover
from scheduler.planner import FanOut, Planner
from scheduler.tick import Scheduler

if TYPE_CHECKING:
    from common.jobs.ended import EndedJobs
    from common.runs.records import Runs


def scheduler(
    tables: Tables,
    queue: ExecutionsQueue,
    clock: Clock,
    events: Events,
    fan_out: FanOut | None = None,
    patient: bool = False,
    pack_from: int = PACK_FROM,
) -> Scheduler:
    """The scheduler. What records skipped executions is imported by the first tick that skips one."""
    planner = Planner(
        index=DueIndex(tables.due),
        runs=_runs(tables.runs),
        queue=queue,
        clock=clock,
        postponed=Postponed(tables.due, queue, clock),
        calendars=Calendars(tables.jobs),
        events=events,
        quarantine=Quarantine(tables.due),
        ended=_ended_jobs(tables.due, tables.jobs),
        carryover=PaceCarryover(tables.due),
        patient=patient,
        pack_from=pack_from,
    )
    return Scheduler(planner, fan_out)


def _runs(table: Table) -> Runs:
    def build() -> Runs:
        from common.runs.records import Runs

        return Runs(table)

    return on_first_use(build)


def _ended_jobs(due: Table, jobs: Table) -> EndedJobs:
    def build() -> EndedJobs:
        from common.jobs.ended import EndedJobs

        return EndedJobs(due, jobs)

    return on_first_use(build)
