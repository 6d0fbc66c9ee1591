"""Builds the executor and the completion of dispatched runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from common.clock import Clock
from common.events import Events
from common.planning.executions_queue import ExecutionsQueue
from common.runs.changes import RunChanges
from common.runs.records import Runs
from common.storage.aws import on_first_use
from common.storage.deployed import Tables
from common.tenants.rules_cache import RulesOf
from executor.dead_letters import DeadLetters
from executor.due_jobs import DueJobs
from executor.failure_streak import FailureStreak
from executor.locks import Locks, OverlapPolicy
from executor.pipeline import Executor
from executor.recorder import Recorder
from executor.targets import Kind

if TYPE_CHECKING:
    from common.jobs.backfill import Backfills
    from common.jobs.ended import EndedJobs
    from common.jobs.store import JobStore
    from common.planning.postponed import Postponed


def executor(
    tables: Tables,
    queue: ExecutionsQueue,
    clock: Clock,
    store: JobStore,
    events: Events,
    rules: RulesOf,
    kinds: Mapping[str, Kind],
) -> Executor:
    """The executor. `store` pauses jobs, `rules` returns each tenant's rules.

    What is for retries, backfills and last runs is imported by the first of them: it computes times, and most batches
    have none of them.
    """
    runs = Runs(tables.runs)
    postponed = on_first_use(lambda: _postponed(tables, queue, clock))
    overlap = OverlapPolicy(Locks(tables.runs), runs)
    recorder = Recorder(
        runs=runs,
        changes=RunChanges(tables.runs),
        overlap=overlap,
        failure_streak=FailureStreak(store, events),
        dead_letters=DeadLetters(RunChanges(tables.runs), rules, clock),
        backfills=on_first_use(lambda: _backfills(tables, clock)),
        ended_jobs=on_first_use(lambda: _ended_jobs(tables)),
        events=events,
        queue=queue,
        postponed=postponed,
        clock=clock,
    )
    return Executor(
        due_jobs=DueJobs(tables.jobs, postponed, clock),
        runs=runs,
        overlap=overlap,
        recorder=recorder,
        clock=clock,
        kinds=kinds,
        tenants=rules,
    )


def _postponed(tables: Tables, queue: ExecutionsQueue, clock: Clock) -> Postponed:
    from common.planning.postponed import Postponed

    return Postponed(tables.due, queue, clock)


def _backfills(tables: Tables, clock: Clock) -> Backfills:
    from common.jobs.backfill import Backfills

    return Backfills(tables.jobs, tables.runs, clock)


def _ended_jobs(tables: Tables) -> EndedJobs:
    from common.jobs.ended import EndedJobs

    return EndedJobs(tables.due, tables.jobs)
