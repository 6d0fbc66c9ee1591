"""Builds the executor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from common.clock import Clock
from common.events import Events
from common.planning.queue import ExecutionsQueue
from common.runs.holders import Holders
from common.runs.records import Runs
from common.storage.aws import on_first_use
from common.storage.table import Table, Tables
from common.tenants.rules_cache import RulesOf
from executor.due_jobs import DueJobs, Payloads
from executor.permits import Permits
from executor.pipeline import Executor
from executor.recorder import Recorder
from executor.run_end import DeadLetters, RunEnd
from executor.targets import Kind
from minute8.eventbridge.schedule_input import PAYLOAD_FORMATS

if TYPE_CHECKING:
    from common.jobs.backfill import Backfills
    from common.jobs.ended import EndedJobs
    from common.jobs.large_texts import LargeTexts
    from common.jobs.store import JobStore
    from common.planning.postponed import Postponed
    from common.planning.removal_requests import RemovalRequests
    from common.tenants.secrets import SecretKey
    from executor.durable import DurableExecutions
    from executor.failure_streak import FailureStreak
    from executor.secrets import JobSecrets
    from executor.stops import Stops


def executor(
    tables: Tables,
    queue: ExecutionsQueue,
    clock: Clock,
    store: JobStore,
    events: Events,
    rules: RulesOf,
    kinds: Mapping[str, Kind],
    removals: RemovalRequests,
    secret_key: Callable[[], SecretKey | None],
    api_url: str = "",
    stage: str = "",
) -> Executor:
    """The executor. `store` pauses jobs, `rules` returns each tenant's rules.

    `secret_key` is asked for the key if a job names a secret. Targets reach the API at `api_url`. The modules of
    retries, backfills, secrets and last runs are imported on first use: most batches do not need them.
    """
    runs, payloads = Runs(tables.runs), Payloads(_large_texts(tables.jobs))
    due_jobs = DueJobs(tables.jobs, clock)
    postponed = _postponed(tables.due, queue, clock)
    permits = Permits(Holders(tables.runs, queue, clock))
    run_end = RunEnd(
        failure_streak=_failure_streak(store, events),
        dead_letters=DeadLetters(runs, rules, PAYLOAD_FORMATS, payloads.of, due_jobs.as_scheduled, clock),
        backfills=_backfills(tables.jobs, tables.runs, clock),
        ended_jobs=_ended_jobs(tables.due, tables.jobs),
        removals=removals,
        events=events,
        queue=queue,
        clock=clock,
    )
    recorder = Recorder(
        runs=runs,
        permits=permits,
        run_end=run_end,
        queue=queue,
        postponed=postponed,
        stops=_stops(rules, clock),
        durables=_durables(rules, clock),
        clock=clock,
    )
    return Executor(
        due_jobs=due_jobs,
        runs=runs,
        permits=permits,
        recorder=recorder,
        clock=clock,
        kinds=kinds,
        payload_formats=PAYLOAD_FORMATS,
        payload_of=payloads.of,
        secrets=_secrets(tables.tenants, secret_key, clock),
        tenants=rules,
        api_url=api_url,
        stage=stage,
    )


def _postponed(due: Table, queue: ExecutionsQueue, clock: Clock) -> Postponed:
    def build() -> Postponed:
        from common.planning.postponed import Postponed

        return Postponed(due, queue, clock)

    return on_first_use(build)


def _failure_streak(store: JobStore, events: Events) -> FailureStreak:
    def build() -> FailureStreak:
        from executor.failure_streak import FailureStreak

        return FailureStreak(store, events)

    return on_first_use(build)


def _stops(rules: RulesOf, clock: Clock) -> Stops:
    def build() -> Stops:
        from executor.stops import Stops

        return Stops(rules, clock)

    return on_first_use(build)


def _durables(rules: RulesOf, clock: Clock) -> DurableExecutions:
    def build() -> DurableExecutions:
        from executor.durable import DurableExecutions

        return DurableExecutions(rules, clock)

    return on_first_use(build)


def _secrets(tenants: Table, key: Callable[[], SecretKey | None], clock: Clock) -> JobSecrets:
    def build() -> JobSecrets:
        from common.tenants.secrets import SecretValues
        from executor.secrets import JobSecrets

        known = key()
        return JobSecrets(SecretValues(tenants, known) if known else None, clock)

    return on_first_use(build)


def _large_texts(jobs: Table) -> LargeTexts:
    def build() -> LargeTexts:
        from common.jobs.large_texts import LargeTexts

        return LargeTexts(jobs)

    return on_first_use(build)


def _backfills(jobs: Table, runs: Table, clock: Clock) -> Backfills:
    def build() -> Backfills:
        from common.jobs.backfill import Backfills

        return Backfills(jobs, runs, clock)

    return on_first_use(build)


def _ended_jobs(due: Table, jobs: Table) -> EndedJobs:
    def build() -> EndedJobs:
        from common.jobs.ended import EndedJobs

        return EndedJobs(due, jobs)

    return on_first_use(build)
