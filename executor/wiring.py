"""Builds the executor and the completion of dispatched runs."""

from __future__ import annotations

from collections.abc import Mapping

from common.clock import Clock
from common.events import Events
from common.jobs.backfill import Backfills
from common.jobs.ended import EndedJobs
from common.jobs.store import JobStore
from common.planning.executions_queue import ExecutionsQueue
from common.planning.postponed import Postponed
from common.runs.changes import RunChanges
from common.runs.records import Runs
from common.storage.deployed import Tables
from common.tenants.rules_cache import RulesOf
from executor.dead_letters import DeadLetters
from executor.due_jobs import DueJobs
from executor.failure_streak import FailureStreak
from executor.locks import Locks, OverlapPolicy
from executor.pipeline import Executor
from executor.recorder import Recorder
from executor.targets import Kind


def executor(
    tables: Tables,
    queue: ExecutionsQueue,
    clock: Clock,
    store: JobStore,
    events: Events,
    rules: RulesOf,
    kinds: Mapping[str, Kind],
) -> Executor:
    """The executor. `store` pauses jobs, `rules` returns each tenant's rules."""
    runs = Runs(tables.runs)
    postponed = Postponed(tables.due, queue, clock)
    overlap = OverlapPolicy(Locks(tables.runs), runs)
    recorder = Recorder(
        runs=runs,
        changes=RunChanges(tables.runs),
        overlap=overlap,
        failure_streak=FailureStreak(store, events),
        dead_letters=DeadLetters(RunChanges(tables.runs), rules, clock),
        backfills=Backfills(tables.jobs, tables.runs, clock),
        ended_jobs=EndedJobs(tables.due, tables.jobs),
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
