"""What it means that some tables of a stage were restored to an earlier instant: docs/restore.md, with figures.

Nothing here sends anything. What had a record, or was called, as the projection, the audit or the executor's log know,
is only recorded anew.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import Final, Literal, NamedTuple

from common.clock import Clock
from common.errors import Minute8Error
from common.jobs.corrupt import readable
from common.jobs.job import ACTIVE
from common.planning.execution import Execution
from common.planning.log import ExecutionLog
from common.planning.queue import ExecutionsQueue
from common.platform.run_again import MAX_RUN, OfJob, RunAgain, by_job
from common.projection.state import PROJECTION, ProjectionStates, had_records
from common.projection.windows import ProjectedRuns
from common.runs.records import Runs
from common.runs.run import Run, readable_runs
from common.runs.unrecorded import Unrecorded, UnrecordedExecution
from common.storage import keys
from common.storage.table import Query, Table, Tables
from common.storage.wire import DAMAGE
from common.tenants.audit import Audit, Entry, EntryFilter
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S, window_start
from common.truth.unplanned import Unplanned


class Restorable(StrEnum):
    """The tables that a person can restore."""

    RUNS = "runs"
    JOBS = "jobs"
    DUE = "due"
    TENANTS = "tenants"
    AUDIT = "audit"


Fate = Literal["called again", "only recorded", "lost"]

# Of the changes since that the audit has, by action or kind: what becomes of them if their table is restored.
_CHANGES: Final[Sequence[tuple[Restorable, Fate, str, str]]] = (
    (Restorable.JOBS, "lost", "job", "jobs are as they were: put them again as the audit has them"),
    (Restorable.JOBS, "called again", "job.deleted", "jobs that were deleted run again"),
    (Restorable.JOBS, "called again", "job.paused", "jobs that were paused run again"),
    (
        *(Restorable.JOBS, "only recorded", "job.created"),
        "jobs that were created are gone: what is queued of them is `skipped` as `deleted`",
    ),
    *(
        (Restorable.JOBS, "lost", kind, f"changes of this kind, which the audit has: {kind}")
        for kind in ("calendar", "group", "subscription", "failures")
    ),
    (Restorable.TENANTS, "lost", "key.revoked", "keys that were revoked are valid again"),
    *(
        (Restorable.TENANTS, "lost", kind, f"changes of this kind, which the audit has: {kind}")
        for kind in ("tenant", "key", "secret", "webhook_secret")
    ),
    (Restorable.RUNS, "lost", "job.run", "jobs were run by hand: the audit has these runs"),
    (Restorable.RUNS, "lost", "job.backfilled", "jobs were backfilled: the audit has these runs"),
)
# What else is lost, and nobody can count.
_LOST: Final[Mapping[Restorable, str]] = {
    Restorable.RUNS: "what became of all other runs since: attempts, errors, progress",
    Restorable.DUE: "what was set aside, listed or kept for later ticks: `minute8 check` finds retries that are due",
    Restorable.AUDIT: "all entries since: never restore it; `minute8 check` names jobs that are newer than their audit",
}
_APART: Final = (
    "a job without its due entry never fires: restore `jobs` and `due` to one second, or check --fix"
)


class Effect(NamedTuple):
    """What becomes of something because a table was restored. `total` is None if nobody can count it."""

    table: Restorable
    fate: Fate
    total: int | None
    words: str
    jobs: tuple[OfJob, ...] = ()


@dataclass(frozen=True)
class Restored:
    """Tables that were restored to `to_at`, beside the others as they are.

    `logged`: the ids of executions that the executor's log since then names as failed or skipped. `former`: the runs
    table as it was before, under another name.
    """

    tables: Tables
    queue: ExecutionsQueue
    clock: Clock
    names: Collection[Restorable]
    to_at: int
    logged: Collection[str] = ()
    former: Table | None = None

    def effects(self) -> Iterator[Effect]:
        """What is called again, only recorded, or lost. Reads the log, the audit and the jobs; changes nothing."""
        planned_by = {Restorable.JOBS, Restorable.DUE} & set(self.names)
        if planned_by:
            yield self._planned_anew()
        if Restorable.RUNS in self.names:
            yield from self._of_runs()
        for table, fate, action, words in _CHANGES:
            if table in self.names:
                changed = self._changed(action)
                yield Effect(table, fate, len(changed), _named(words, changed))
        for name in self.names:
            if name in _LOST:
                yield Effect(name, "lost", None, _LOST[name])
        if len(planned_by) == 1:
            yield Effect(planned_by.pop(), "lost", None, _APART)

    def record(self, by: str) -> int:
        """List what has no record, and record anew what is known to have had one. Returns how many that are.

        What the former table has is copied from there.
        """
        former, now = self._former, self.clock.now()
        missing = [each for each in self.without_record if each.execution.execution_id not in former]
        Runs(self.tables.runs).note((run.execution for run in former.values()), now)
        for run in former.values():
            self.tables.runs.create(run.to_item())
        known_by = {each.execution.execution_id: each.known_by for each in missing if each.known_by}
        self._unrecorded.add([each.execution for each in missing], now, known_by)
        self._unrecorded.learn(known_by)
        again = RunAgain(self._unrecorded, self.queue, self.tables.tenants, self.clock)
        ids = list(known_by)
        for first in range(0, len(ids), MAX_RUN):
            again.run(ids[first : first + MAX_RUN], by, dry_run=False)
        return len(ids) + len(former)

    # Runs

    @cached_property
    def without_record(self) -> list[UnrecordedExecution]:
        """The executions that were due since then and have no record, each with what knows that it had one."""
        state, log = ProjectionStates(self.tables.due).read(), ExecutionLog(self.tables.due)
        begin, ends = window_start(self.to_at), state.until if state else {}
        missing = {run.execution_id for run in self._missing}
        known_by: dict[str, str] = {}
        for bucket, end in ends.items():
            known_by |= dict.fromkeys(had_records(log, bucket, begin, end, missing), PROJECTION)
        # Ticks look for a day at what they listed, and then the log no longer tells it from the others.
        known_by |= {name: each.known_by for name, each in self._listed.items()}
        known_by |= dict.fromkeys(self._former, "former table")
        return [
            UnrecordedExecution(
                run, int(self.clock.now()), known_by=known_by.get(name) or self._told_by(name)
            )
            for name, run in sorted((run.execution_id, run) for run in self._missing)
        ]

    @cached_property
    def _unrecorded(self) -> Unrecorded:
        return Unrecorded(self.tables.due, self.tables.runs)

    @cached_property
    def _listed(self) -> dict[str, UnrecordedExecution]:
        """What ticks have listed already, by ids."""
        return {each.execution.execution_id: each for each in self._unrecorded.all()}

    @cached_property
    def _missing(self) -> list[Execution]:
        """What is listed or was enqueued since, is due, and has no record."""
        executions = chain((each.execution for each in self._listed.values()), self._planned())
        return self._unrecorded.missing([run for run in executions if run.tenant in self._tenants])

    @cached_property
    def _former(self) -> dict[str, Run]:
        """What the former table has of these, by their ids."""
        if self.former is None:
            return {}
        run_keys = [keys.run(run.tenant, run.job_id, run.run_name) for run in self._missing]
        return {run.execution_id: run for run in readable_runs(self.former.get_many(run_keys))}

    def _planned(self) -> Iterator[Execution]:
        """What ticks enqueued since then and is due."""
        now = int(self.clock.now())
        for chunk in ExecutionLog(self.tables.due).planned(window_start(self.to_at), now + 1):
            with suppress(*DAMAGE):  # of a later version, or damaged: ticks report it
                executions = map(Execution.decode, chunk.bodies())
                yield from (run for run in executions if run.visible_at <= now)

    def _told_by(self, execution_id: str) -> str:
        """What beside the projection says that it was called or changed by a person; empty: nothing."""
        if execution_id in self._changed_runs:
            return "audit"
        return "log" if execution_id in self.logged else ""

    @cached_property
    def _changed_runs(self) -> set[str]:
        entries = chain.from_iterable(self._audit.values())
        return {entry.after.get("execution_id", "") for entry in entries if entry.action.startswith("run.")}

    def _of_runs(self) -> Iterator[Effect]:
        known = [each for each in self.without_record if each.known_by]
        unknown = [each for each in self.without_record if not each.known_by]
        waiting = sum(self.queue.waiting())
        words = "executions without a record, of which nothing knows whether they were called"
        words += f"; {waiting} messages in the queue may be some of them" if waiting else ""
        yield Effect(Restorable.RUNS, "called again", len(unknown), words, tuple(by_job(unknown)))
        words = (
            "executions that had a record or were called: without a former record each becomes `dispatched`"
        )
        yield Effect(Restorable.RUNS, "only recorded", len(known), words, tuple(by_job(known)))
        stuck = self._stuck()
        words = "runs that wait for what may have been long ago: `minute8 runs cancel` ends them"
        yield Effect(Restorable.RUNS, "lost", len(stuck), _named(words, stuck))

    def _stuck(self) -> list[str]:
        """The ids of runs that were open at that instant, and should have gone on since."""
        windows, now = ProjectedRuns(self.tables.runs), self.clock.now()
        run_keys = [
            keys.run(tenant, entry.job_id, entry.run_name)
            for tenant in self._tenants
            for window in windows.between(tenant, self.to_at - DAY_S, self.to_at + WINDOW_S)
            for entry in windows.runs_of(tenant, window)
            if entry.is_open
        ]
        runs = readable_runs(self.tables.runs.get_many(run_keys))
        return [run.execution_id for run in runs if run.is_stuck(now)]

    # Jobs, their due entries, and all other changes

    def _planned_anew(self) -> Effect:
        """What the next tick plans, since no record and no log has it."""
        unplanned, now = Unplanned(self.tables, self.queue, self.clock), int(self.clock.now())
        executions: list[UnrecordedExecution] = []
        missed, unknown = 0, 0
        for tenant in self._tenants:
            for job in readable(self.tables.jobs.query(Query(tenant, sk_prefix=keys.JOB_PREFIX))):
                if job.state != ACTIVE:
                    continue
                try:
                    work = unplanned.work(job, now + 1)
                except Minute8Error:
                    unknown += 1
                    continue
                missed += len(work.missed)
                executions += [
                    UnrecordedExecution(run, 0, known_by=self._told_by(run.execution_id))
                    for run in work.executions
                    if run.fire_at <= now
                ]
        words = "fire times that the next tick plans: those of the last ten minutes, and older ones as `catch_up` says"
        words += f"; {missed} others are recorded as missed" if missed else ""
        words += f"; {unknown} jobs cannot be read" if unknown else ""
        return Effect(Restorable.DUE, "called again", len(executions), words, tuple(by_job(executions)))

    def _changed(self, action: str) -> list[str]:
        """What was changed since by this action, or any of this kind: tenant/subject."""
        changes = EntryFilter(action=action)
        return sorted(
            {
                f"{owner}/{entry.subject}"
                for owner, entries in self._audit.items()
                for entry in entries
                if changes.matches(entry)
            }
        )

    @cached_property
    def _tenants(self) -> list[str]:
        return [item["sk"] for item in self.tables.tenants.query(Query(keys.TENANTS, attributes=("sk",)))]

    @cached_property
    def _audit(self) -> dict[str, list[Entry]]:
        """The entries since then by owner. What was deleted since is not among restored tenants: its audit is asked for
        by who knows its name."""
        audit, since = Audit(self.tables.tenants), EntryFilter(from_at=self.to_at)
        return {owner: list(audit.all(owner, since)) for owner in [*self._tenants, keys.OPERATORS]}


def _named(words: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:5]) + ("…" if len(names) > 5 else "")
    return f"{words}: {shown}" if names else words
