"""The last step of a tick: deletes ended jobs, and more items of tenants and groups of schedules that are deleted.

Ended jobs have `after_completion: delete`, and their last run has ended. Jobs of one tenant are deleted several in a
transaction. Tenants and groups are removed in slices, one after the other. Jobs, groups and tenants have a third of the
time each, and what the others leave. When the time is up, the next tick continues, and begins with another group and
tenant. Errors are logged and left to the next tick. Planning is done by then, so removal cannot delay or undo it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Final, TypeVar

from common import telemetry
from common.clock import Clock
from common.errors import Busy
from common.jobs.backfill import Backfill
from common.jobs.ended import EndedJobs, Note, fires_again
from common.jobs.job import ACTIVE, Job, existing
from common.jobs.revisions import deleted
from common.jobs.store import MAX_AT_ONCE, JobStore, job_store
from common.planning.concurrently import for_each
from common.planning.due_index import DueIndex
from common.planning.execution import BACKFILL, SCHEDULE
from common.planning.queue import ExecutionsQueue
from common.platform.deletion import Deletion, Deletions
from common.runs.records import Runs
from common.runs.run import Run
from common.runs.states import ENDED
from common.storage import keys
from common.storage.table import Query, Tables
from common.tenants.rules_cache import KnownTenants
from common.timing.excluded_days import Excluded
from common.timing.fires import fires
from common.timing.windows import WINDOW_S
from eventbridge.group_deletion import STEP, GroupDeletions
from eventbridge.guard import schedule_guard
from scheduler.removal_lease import RemovalLease

T = TypeVar("T")

# No transaction starts later than this after the tick's start. The function has 300 s (serverless.yml).
MAX_COMPLETION_S: Final = 150
# No slice starts later than this after the tick's start. A slice takes seconds.
MAX_REMOVAL_S: Final = 180
_NOTES_PAGE: Final = 500
# Only the newest runs of a job are read.
_MAX_RUNS_READ: Final = 100
# A run can be due so long after its fire time. Older fire times need no record.
_MIN_LOOKBACK_S: Final = 7_800


@dataclass(frozen=True, slots=True)
class Completion:
    """Deletes jobs that are over. `store` has Minute8 itself as the author of changes."""

    ended: EndedJobs
    store: JobStore
    runs: Runs

    def delete_ended(self, began_at: float, until: float = math.inf) -> int:
        """Delete the jobs that are noted and over, until the time is up. Returns how many. Raises nothing.

        A note of a job that is not over is dropped: the end of its last run brings another note.
        """
        until, count = min(until, began_at + MAX_COMPLETION_S), 0
        try:
            notes = self.ended.noted()
            while self._now() < until and (page := list(islice(notes, _NOTES_PAGE))):
                count += self._look_through(page, until)
        except Exception as error:  # noqa: BLE001  the tick stands, whatever this is
            telemetry.logger().error("ended jobs left to the next tick", error=repr(error))
        return count

    def _look_through(self, notes: Sequence[Note], until: float) -> int:
        newest = {(note.tenant, note.job_id): note for note in notes}  # the last one of each job
        over: defaultdict[str, list[Job]] = defaultdict(list)
        undone: set[tuple[str, str]] = set()

        def look(note: Note) -> None:
            try:
                if job := self._over(note):
                    over[note.tenant].append(job)
            except Exception as error:  # noqa: BLE001  the others continue after any error
                undone.add((note.tenant, note.job_id))
                _log_undeleted(note.tenant, [note.job_id], error)

        for_each(list(newest.values()), look)
        for_each(list(over.values()), lambda jobs: undone.update(self._delete(jobs, until)))
        self.ended.forget([note for note in notes if (note.tenant, note.job_id) not in undone])
        return sum((job.tenant, job.job_id) not in undone for jobs in over.values() for job in jobs)

    def _over(self, note: Note) -> Job | None:
        """The job, if it is over."""
        job = self.store.load_all(note.tenant, [note.job_id]).get(note.job_id)
        if job is None or job.schedule_revision != note.schedule_revision or not _is_to_be_deleted(job):
            return None
        now = max(int(self._now()), note.fire_at)
        excluded = self.ended.excluded(job)
        if fires_again(job.schedule, now, excluded):
            return None
        runs = self.runs.of_job(job.tenant, job.job_id, limit=_MAX_RUNS_READ, attributes=("skipped_from_at",))
        if not all_ended(job, runs, now, excluded):
            return None
        may_be_filled = len(runs) == _MAX_RUNS_READ or any(run.trigger == BACKFILL for run in runs)
        return None if may_be_filled and self._is_backfilled(job) else job

    def _is_backfilled(self, job: Job) -> bool:
        items = self.store.jobs.query(Query(job.tenant, sk_prefix=keys.backfills_of(job.job_id)))
        return any(backfill.is_under_way for backfill in map(Backfill.from_item, items))

    def _delete(self, jobs: Sequence[Job], until: float) -> list[tuple[str, str]]:
        """Delete jobs of one tenant. Returns the jobs that are left to the next tick."""
        undone: list[tuple[str, str]] = []
        for first in range(0, len(jobs), MAX_AT_ONCE):
            batch = jobs[first : first + MAX_AT_ONCE]
            undone += self._delete_together(batch) if self._now() < until else _names(batch)
        return undone

    def _delete_together(self, jobs: Sequence[Job]) -> list[tuple[str, str]]:
        """Delete in one transaction; if a job prevents that, each in its own."""
        try:
            self.store.change_all(
                jobs[0].tenant, {job.job_id: partial(_delete_unless_changed, job) for job in jobs}
            )
        except Exception as error:  # noqa: BLE001  the others continue after any error
            if len(jobs) > 1 and not isinstance(error, Busy):
                return [name for job in jobs for name in self._delete_together([job])]
            _log_undeleted(jobs[0].tenant, [job.job_id for job in jobs], error)
            return _names(jobs)
        return []

    def _now(self) -> float:
        return self.store.clock.now()


def all_ended(job: Job, runs: Sequence[Run], now: int, excluded: Excluded) -> bool:
    """Whether no run of a job is under way, or waits in the queue: each fire time until now has its record. Pure.

    `runs` are its newest ones, the newest first; a missed one also stands for those since `skipped_from_at`.
    """
    if any(run.status not in ENDED for run in runs):
        return False
    due_within_s = job.schedule.jitter_s + job.schedule.spread_s + job.schedule.tolerance_s
    since = max(job.effective_at, now - max(_MIN_LOOKBACK_S, due_within_s))
    if len(runs) == _MAX_RUNS_READ:
        since = max(since, runs[-1].fire_at + 1)
    recorded = [
        (run.skipped_from_at or run.fire_at, run.fire_at)
        for run in runs
        if run.trigger == SCHEDULE and run.schedule_revision == job.schedule_revision
    ]
    due = fires(job.schedule, since, now + 1, excluded=excluded)
    return all(any(first <= at <= last for first, last in recorded) for at in due)


def _is_to_be_deleted(job: Job) -> bool:
    return job.spec.after_completion == "delete" and job.state == ACTIVE


def _delete_unless_changed(looked_at: Job, old: Job | None, now: float) -> Job:
    """A change of the job store; the job stays if its times or its state have changed since."""
    if old and (not _is_to_be_deleted(old) or old.schedule_revision != looked_at.schedule_revision):
        return old
    return deleted(existing(old, looked_at.job_id, None), now)


def _names(jobs: Iterable[Job]) -> list[tuple[str, str]]:
    return [(job.tenant, job.job_id) for job in jobs]


def _log_undeleted(tenant: str, job_ids: Sequence[str], error: Exception) -> None:
    telemetry.logger().error(
        "not deleted after its completion", tenant=tenant, jobs=job_ids, error=repr(error)
    )


@dataclass(slots=True)
class Removed:
    """The result: how many tenants had something to remove, how many items were removed, and what was finished."""

    tenants: int = 0
    items: int = 0
    finished: int = 0
    problems: list[dict[str, Any]] = field(default_factory=list)
    is_cut_off: bool = False
    """Its time was up before everything was removed."""


@dataclass(frozen=True, slots=True)
class Removal:
    """Deletes ended jobs, groups of schedules and tenants."""

    completion: Completion
    groups: GroupDeletions
    tenants: Deletions
    lease: RemovalLease
    clock: Clock

    def run_alone(self, began_at: float) -> None:
        """`run`, unless another process does it: then that one begins once more. Raises nothing."""
        try:
            if not self.lease.take(self.clock.now()):
                return
            self.run(began_at)
            while not self.lease.release(self.clock.now()):
                if self.clock.now() >= began_at + MAX_REMOVAL_S:
                    self.lease.drop()
                    return
                self.run(began_at)
        except Exception as error:  # noqa: BLE001  the next tick removes what is left
            telemetry.logger().error("removal left to the next tick", error=repr(error))

    def run(self, began_at: float) -> None:
        """Delete what there is time for since the tick began, and log it. Raises nothing."""
        now = self.clock.now()
        share_s = max(0.0, began_at + MAX_REMOVAL_S - now) / 3
        self._delete_ended(began_at, now + share_s)
        is_more_over = self.clock.now() >= now + share_s
        are_more_groups = self._remove_groups(began_at, self.clock.now() + share_s)
        _log_removed(remove_tenants(self.tenants, self.clock, began_at), "removal")
        if are_more_groups:
            self._remove_groups(began_at, math.inf)
        if is_more_over:
            self._delete_ended(began_at, math.inf)

    def _delete_ended(self, began_at: float, until: float) -> None:
        if deleted_jobs := self.completion.delete_ended(began_at, until):
            telemetry.logger().info("deleted after their completion", jobs=deleted_jobs)

    def _remove_groups(self, began_at: float, until: float) -> bool:
        """Returns whether more is left than there was time for."""
        removed = remove_groups(self.groups, self.clock, began_at, until)
        _log_removed(removed, "schedules of deleted groups")
        return removed.is_cut_off


def removal(tables: Tables, queue: ExecutionsQueue, clock: Clock) -> Removal:
    """The removal of a deployment."""
    index = DueIndex(tables.due)
    store = job_store(
        tables, queue, clock, KnownTenants(tables.tenants), guards=[schedule_guard(tables.jobs)]
    )
    return Removal(
        Completion(EndedJobs(tables.due, tables.jobs), store, Runs(tables.runs)),
        GroupDeletions(store),
        Deletions(tables.tenants, tables.jobs, tables.runs, index),
        RemovalLease(tables.due),
        clock,
    )


def remove_tenants(deletions: Deletions, clock: Clock, began_at: float, until: float = math.inf) -> Removed:
    """Continue each deletion while it has items to remove, and time is left. Raises nothing."""
    removed, until = Removed(), min(until, began_at + MAX_REMOVAL_S)
    try:
        under_way = in_turn(list(deletions.under_way()), began_at)
    except Exception as error:  # noqa: BLE001  the tick stands, whatever this is
        removed.problems.append({"error": repr(error)})
        return removed
    removed.tenants = len(under_way)
    while under_way and clock.now() < until:
        before = under_way.pop(0)
        try:
            after = deletions.move_on(before.tenant_id, clock.now())
        except Exception as error:  # noqa: BLE001  the other tenants' go on
            removed.problems.append({"tenant": before.tenant_id, "error": repr(error)})
            continue
        items = _items(after) - _items(before)
        removed.items += items
        removed.finished += after.finished_at is not None
        if items > 0 and after.finished_at is None:  # else it waits
            under_way.append(after)
    removed.is_cut_off = bool(under_way)
    return removed


def remove_groups(
    deletions: GroupDeletions, clock: Clock, began_at: float, until: float = math.inf
) -> Removed:
    """Continue each deletion of a group of schedules until it is done, or time is up. Raises nothing."""
    removed, until = Removed(), min(until, began_at + MAX_REMOVAL_S)
    try:
        under_way = in_turn(list(deletions.under_way()), began_at)
    except Exception as error:  # noqa: BLE001  the tick stands, whatever this is
        removed.problems.append({"error": repr(error)})
        return removed
    while under_way and clock.now() < until:
        tenant, name = under_way.pop(0)
        try:
            items = deletions.move_on(tenant, name, clock.now())
        except Exception as error:  # noqa: BLE001  the other groups go on
            removed.problems.append({"tenant": tenant, "group": name, "error": repr(error)})
            continue
        removed.items += items
        if items == STEP:
            under_way.append((tenant, name))
        else:
            removed.finished += 1
    removed.is_cut_off = bool(under_way)
    return removed


def in_turn(under_way: list[T], began_at: float) -> list[T]:
    """Each tick begins with another one, so that nobody is always the last. Pure."""
    first = int(began_at) // WINDOW_S % max(1, len(under_way))
    return [*under_way[first:], *under_way[:first]]


def _log_removed(removed: Removed, message: str) -> None:
    """Log what was removed, and the errors."""
    logger = telemetry.logger()
    for problem in removed.problems:
        logger.error("removal left to the next tick", **problem)
    if removed.tenants or removed.items:
        logger.info(message, tenants=removed.tenants, items=removed.items, finished=removed.finished)


def _items(deletion: Deletion) -> int:
    return sum(deletion.removed.values())
