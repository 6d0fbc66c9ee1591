"""Deletes ended jobs, and more items of deleted tenants and groups of schedules: three chores.

The first one also tells of jobs that ticks could not plan. Ended jobs have `after_completion: delete`, and their last
run has ended. Jobs of one tenant are deleted several in a transaction. Tenants and groups are removed in slices, one
after the other; each round begins with another one. What there is no time for is left to the next round. Planning is
done by then, so removal cannot delay or undo it.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final, Generic, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from common import telemetry
from common.clock import Clock
from common.errors import Busy
from common.jobs.backfill import Backfill
from common.jobs.ended import EndedJobs, Note, fires_again
from common.jobs.job import ACTIVE, Job, existing
from common.jobs.revisions import deleted
from common.jobs.store import MAX_AT_ONCE, JobStore
from common.planning.chores import Done, Position
from common.planning.execution import BACKFILL, SCHEDULE
from common.platform.deletion import Deletion, Deletions
from common.runs.records import Runs
from common.runs.run import Run
from common.runs.states import ENDED, INVALID, MISSED
from common.storage import keys
from common.storage.expressions import Attribute
from common.storage.table import Query, Table
from common.storage.wire import DAMAGE, Item
from common.timing.excluded_days import Excluded
from common.timing.fires import fires
from common.timing.instants import has_ended
from common.timing.windows import WINDOW_S
from minute8.eventbridge.group_deletion import STEP, GroupDeletions

T = TypeVar("T")

# No slice starts later than this after the tick's start. A slice takes seconds; the function has 300 s.
MAX_REMOVAL_S: Final = 200
# Longer than the function may run (serverless.yml).
_LEASE_S: Final = 310
# The clocks of two machines may differ by so much.
_CLOCKS_S: Final = 600
_NOTES_PAGE: Final = 500
# Only the newest runs of a job are read.
_MAX_RUNS_READ: Final = 100
# A run can be due so long after its fire time. Older fire times need no record.
_MIN_LOOKBACK_S: Final = 7_800


@dataclass(frozen=True, slots=True)
class Completion:
    """Deletes jobs that are over, and notes those that do not run. `store` has Minute8 itself as the author."""

    ended: EndedJobs
    store: JobStore
    runs: Runs

    def steps(self, at: Position | None, done: Done) -> Iterator[Position]:
        """A chore: a page of notes at each step.

        A note of a job that is not over is dropped: the end of its last run brings another note.
        """
        notes = self.ended.noted()
        while page := list(islice(notes, _NOTES_PAGE)):
            self._look_through(page, done)
            yield {}

    def _look_through(self, notes: Sequence[Note], done: Done) -> None:
        newest = {(note.tenant, note.job_id): note for note in notes}  # the last one of each job
        over: defaultdict[str, list[Job]] = defaultdict(list)

        def look(note: Note) -> None:
            if job := self._over(note):
                over[note.tenant].append(job)

        failed = self._tell([note for note in newest.values() if note.not_running], done)
        failed += done.each(list(newest.values()), look, lambda note: f"{note.tenant}/{note.job_id}")
        undone = {(note.tenant, note.job_id) for note in failed}

        def delete(jobs: list[Job]) -> None:
            undone.update(self._delete(jobs, done))

        for jobs in done.each(list(over.values()), delete, lambda jobs: jobs[0].tenant):
            undone.update(_names(jobs))
        self.ended.forget([note for note in notes if (note.tenant, note.job_id) not in undone])
        done.counts["deleted"] += sum(
            (job.tenant, job.job_id) not in undone for jobs in over.values() for job in jobs
        )

    def _tell(self, notes: Sequence[Note], done: Done) -> list[Note]:
        """Note why jobs do not run, one after the other of each tenant. Returns those that are left."""
        of_tenants: defaultdict[str, list[Note]] = defaultdict(list)
        for note in notes:
            of_tenants[note.tenant].append(note)

        def begin(of_tenant: list[Note]) -> None:
            for note in of_tenant:
                self._begin(note)

        failed = done.each(list(of_tenants.values()), begin, lambda of_tenant: of_tenant[0].tenant)
        return [note for of_tenant in failed for note in of_tenant]

    def _begin(self, note: Note) -> None:
        """Note it, unless the newest run is not one that could not be planned: another one tells for itself."""
        newest = next(iter(self.runs.of_job(note.tenant, note.job_id, limit=1)), None)
        if not (note.not_running and newest and newest.reason in (INVALID, MISSED)):
            return
        schedule_revision = newest.schedule_revision or None
        self.store.not_running.begin(note.tenant, note.job_id, note.not_running, schedule_revision)

    def _over(self, note: Note) -> Job | None:
        """The job, if it is over."""
        job = self.store.load_all(note.tenant, [note.job_id]).get(note.job_id)
        if job is None or not _is_to_be_deleted(job):
            return None
        if not note.trigger_id and note.fire_at <= job.created_at:  # of a job that had its name before
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

    def _delete(self, jobs: Sequence[Job], done: Done) -> list[tuple[str, str]]:
        """Delete jobs of one tenant. Returns the jobs that are left to the next round."""
        undone: list[tuple[str, str]] = []
        for first in range(0, len(jobs), MAX_AT_ONCE):
            batch = jobs[first : first + MAX_AT_ONCE]
            undone += _names(batch) if done.is_time_up else self._delete_together(batch, done)
        return undone

    def _delete_together(self, jobs: Sequence[Job], done: Done) -> list[tuple[str, str]]:
        """Delete in one transaction; if a job prevents that, each in its own."""
        try:
            self.store.change_all(
                jobs[0].tenant, {job.job_id: partial(_delete_unless_changed, job) for job in jobs}
            )
        except (BotoCoreError, ClientError, *DAMAGE) as error:
            if len(jobs) > 1 and not isinstance(error, Busy):
                return [name for job in jobs for name in self._delete_together([job], done)]
            done.problem(f"{jobs[0].tenant}/{jobs[0].job_id}", error)
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
    recorded = [(run.skipped_from_at or run.fire_at, run.fire_at) for run in runs if run.trigger == SCHEDULE]
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


@dataclass(frozen=True, slots=True)
class Removal(Generic[T]):
    """A chore that removes a slice of each thing in turn. `move_on` returns the thing if more of it can go now."""

    under_way: Callable[[], Iterable[T]]
    move_on: Callable[[T, Done], T | None]
    name: Callable[[T], str]
    clock: Clock

    def steps(self, at: Position | None, done: Done) -> Iterator[Position]:
        """A step for each slice."""
        waiting = deque(in_turn(list(self.under_way()), self.clock.now()))
        while waiting:
            remaining: list[T] = []

            def move_on(item: T, remaining: list[T] = remaining) -> None:
                if (after := self.move_on(item, done)) is not None:
                    remaining.append(after)

            done.each([waiting.popleft()], move_on, self.name)
            waiting.extend(remaining)
            yield {}


def removal_of_tenants(deletions: Deletions, clock: Clock) -> Removal[Deletion]:
    """The chore of tenants that are being deleted."""

    def move_on(before: Deletion, done: Done) -> Deletion | None:
        after = deletions.move_on(before.tenant_id, clock.now())
        items = sum(after.removed.values()) - sum(before.removed.values())
        is_finished = after.finished_at is not None
        if items or is_finished:
            done.counts.update(items=items, finished=is_finished)
        return after if items > 0 and not is_finished else None  # else it waits

    return Removal(deletions.under_way, move_on, lambda deletion: deletion.tenant_id, clock)


def removal_of_groups(deletions: GroupDeletions, clock: Clock) -> Removal[tuple[str, str]]:
    """The chore of groups of schedules that are being deleted."""

    def move_on(group: tuple[str, str], done: Done) -> tuple[str, str] | None:
        items = deletions.move_on(*group, clock.now())
        is_more = items == STEP
        done.counts.update(items=items, finished=not is_more)
        return group if is_more else None

    return Removal(deletions.under_way, move_on, "/".join, clock)


class RemovalLease:
    """Lets one process at a time remove what is over, by an item in the due table. Each method raises Busy.

    Two removals at a time would only get in each other's way: others leave a mark, and the one that removes begins once
    more. A process that crashed holds the lease until it expires.
    """

    def __init__(self, due: Table) -> None:
        self._due = due

    def take(self, now: float) -> bool:
        """Whether this process may remove. If not, the one that does begins once more."""

        def change(item: Item | None) -> tuple[Item, bool]:
            if item is None or has_ended(item.get("until"), int(now) + 1, _LEASE_S + _CLOCKS_S):
                return {"until": int(now) + _LEASE_S}, True
            return {**item, "again": True}, False

        return self._due.swap(keys.REMOVAL, change)[1]

    def release(self, now: float) -> bool:
        """Give the lease back. Returns False, and keeps it, if others left a mark since it was taken."""
        if self._due.delete_if(keys.REMOVAL, Attribute("again").is_absent):
            return True
        self._due.put({**keys.REMOVAL, "until": int(now) + _LEASE_S})
        return False

    def drop(self) -> None:
        """Give the lease back, whatever others want."""
        self._due.delete(keys.REMOVAL)


def run_alone(lease: RemovalLease, clock: Clock, run: Callable[[], object], until: float) -> None:
    """Run, unless another process does: then that one begins once more. Raises nothing."""
    with telemetry.tolerated("removal left to the next tick"):
        if not lease.take(clock.now()):
            return
        run()
        while not lease.release(clock.now()):
            if clock.now() >= until:
                lease.drop()
                return
            run()


def in_turn(under_way: list[T], began_at: float) -> list[T]:
    """Each tick begins with another one, so that nobody is always the last. Pure."""
    first = int(began_at) // WINDOW_S % max(1, len(under_way))
    return [*under_way[first:], *under_way[:first]]
