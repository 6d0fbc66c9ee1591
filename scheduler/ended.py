"""The tick's step after planning: deletes the jobs with `after_completion: delete` whose last run has ended.

Jobs of one tenant are deleted several in a transaction. What is left when the time is up stays noted for the next tick,
and so does a job whose deletion fails.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

from common import telemetry
from common.errors import Busy
from common.jobs.backfill import Backfill
from common.jobs.ended import EndedJobs, Note, fires_again
from common.jobs.job import ACTIVE, Job, existing
from common.jobs.revisions import deleted
from common.jobs.store import MAX_AT_ONCE, JobStore
from common.planning.execution import BACKFILL, SCHEDULE
from common.runs.records import Runs
from common.runs.states import ENDED
from common.storage import keys
from common.storage.table import Query
from common.timing.fires import fires
from scheduler.concurrently import for_each

# The latest start of another transaction, after the tick's start. The function has 300 s (serverless.yml).
WORKS_FOR_S: Final = 150
# How many notes are read before the jobs that they name are deleted.
_A_PAGE: Final = 500
# How many runs of a job are looked at, the newest.
_LOOKED_AT: Final = 100
_SEEN: Final = ("status", "trigger", "fire_at", "schedule_revision", "skipped_from_at")
# Fire times of the last hours are looked at, or as long as a run can be due after its fire time.
_LOOKED_BACK_S: Final = 7_800


@dataclass(frozen=True, slots=True)
class Completion:
    """Deletes jobs that are over. `store` has Minute8 itself as the author of changes."""

    ended: EndedJobs
    store: JobStore
    runs: Runs

    def delete_ended(self, began_at: float) -> int:
        """Look at what is noted, until the time of the tick is up. Returns how many jobs were deleted. Raises nothing.

        A note of a job that is not over is dropped: the end of its last run brings another one.
        """
        until, done = began_at + WORKS_FOR_S, 0
        try:
            notes = self.ended.noted()
            while self._now() < until and (page := list(islice(notes, _A_PAGE))):
                done += self._look_through(page, until)
        except Exception as error:  # noqa: BLE001  the tick stands, whatever this is
            telemetry.logger().error("ended jobs left to the next tick", error=repr(error))
        return done

    def _look_through(self, notes: Sequence[Note], until: float) -> int:
        newest = {(note.tenant, note.job_id): note for note in notes}  # the last one of each job
        over: defaultdict[str, list[Job]] = defaultdict(list)
        left: set[tuple[str, str]] = set()

        def look(note: Note) -> None:
            try:
                if job := self._over(note):
                    over[note.tenant].append(job)
            except Exception as error:  # noqa: BLE001  the others continue after any error
                left.add((note.tenant, note.job_id))
                _log(note.tenant, [note.job_id], error)

        for_each(list(newest.values()), look)
        for_each(list(over.values()), lambda jobs: left.update(self._delete(jobs, until)))
        self.ended.forget([note for note in notes if (note.tenant, note.job_id) not in left])
        return sum((job.tenant, job.job_id) not in left for jobs in over.values() for job in jobs)

    def _over(self, note: Note) -> Job | None:
        """The job, if it is over."""
        job = self.store.load_all(note.tenant, [note.job_id]).get(note.job_id)
        if job is None or job.schedule_revision != note.schedule_revision or not _asks(job):
            return None
        now = max(int(self._now()), note.fire_at)
        excluded = self.ended.excluded(job)
        if fires_again(job.schedule, now, excluded):
            return None
        runs = self.runs.of_job(job.tenant, job.job_id, limit=_LOOKED_AT, attributes=_SEEN)
        if not all_ended(job, runs, now, excluded):
            return None
        may_be_filled = len(runs) == _LOOKED_AT or any(run.get("trigger") == BACKFILL for run in runs)
        return None if may_be_filled and self._is_backfilled(job) else job

    def _is_backfilled(self, job: Job) -> bool:
        items = self.store.jobs.query(Query(job.tenant, sk_prefix=keys.backfills_of(job.job_id)))
        return any(one.is_under_way for one in map(Backfill.from_item, items))

    def _delete(self, jobs: Sequence[Job], until: float) -> list[tuple[str, str]]:
        """Delete jobs of one tenant. Returns those that are left to the next tick."""
        left: list[tuple[str, str]] = []
        for first in range(0, len(jobs), MAX_AT_ONCE):
            some = jobs[first : first + MAX_AT_ONCE]
            left += self._delete_at_once(some) if self._now() < until else _names(some)
        return left

    def _delete_at_once(self, jobs: Sequence[Job]) -> list[tuple[str, str]]:
        """Delete in one transaction; if a job prevents that, one by one."""
        try:
            self.store.change_all(
                jobs[0].tenant, {job.job_id: partial(_delete_unless_changed, job) for job in jobs}
            )
        except Exception as error:  # noqa: BLE001  the others continue after any error
            if len(jobs) > 1 and not isinstance(error, Busy):
                return [name for job in jobs for name in self._delete_at_once([job])]
            _log(jobs[0].tenant, [job.job_id for job in jobs], error)
            return _names(jobs)
        return []

    def _now(self) -> float:
        return self.store.clock.now()


def all_ended(job: Job, runs: Sequence[Mapping[str, Any]], now: int, excluded: Container[str]) -> bool:
    """Whether no run of a job is under way, or waits in the queue: each fire time until now has its record. Pure.

    `runs` are its newest ones, the newest first; a missed one also stands for those since `skipped_from_at`.
    """
    if any(run["status"] not in ENDED for run in runs):
        return False
    due_within_s = job.schedule.jitter_s + job.schedule.spread_s + job.schedule.tolerance_s
    since = max(job.effective_at, now - max(_LOOKED_BACK_S, due_within_s))
    if len(runs) == _LOOKED_AT:
        since = max(since, runs[-1]["fire_at"] + 1)
    recorded = [
        (run.get("skipped_from_at", run["fire_at"]), run["fire_at"])
        for run in runs
        if run.get("trigger", SCHEDULE) == SCHEDULE and run["schedule_revision"] == job.schedule_revision
    ]
    due = fires(job.schedule, since, now + 1, excluded=excluded)
    return all(any(first <= at <= last for first, last in recorded) for at in due)


def _asks(job: Job) -> bool:
    return job.after_completion == "delete" and job.state == ACTIVE


def _delete_unless_changed(looked_at: Job, old: Job | None, now: float) -> Job:
    """A change of the job store; the job stays if its times or its state have changed since."""
    if old and (not _asks(old) or old.schedule_revision != looked_at.schedule_revision):
        return old
    return deleted(existing(old, looked_at.job_id, None), now)


def _names(jobs: Iterable[Job]) -> list[tuple[str, str]]:
    return [(job.tenant, job.job_id) for job in jobs]


def _log(tenant: str, job_ids: Sequence[str], error: Exception) -> None:
    telemetry.logger().error(
        "not deleted after its completion", tenant=tenant, jobs=job_ids, error=repr(error)
    )
