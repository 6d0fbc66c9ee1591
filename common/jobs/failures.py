"""The failures in a row of a job, counted in a small item of their own.

The job's item says only that its last run has failed: that is written once for each streak, with the first count. So a
success reads no count unless there is one. Counting moves no revision, since nothing changes that the job does. The
count has the job's revision, and a change of the job starts it anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from common.clock import Clock
from common.events import JOB_NOT_RUNNING, JOB_NOT_RUNNING_OVER, Events
from common.jobs.job import PAUSED, Job, responsible
from common.jobs.not_running import (
    LASTING,
    OTHER_REASON,
    PAUSED_AFTER_FAILURES,
    UNREADABLE,
    NotRunning,
    listing,
)
from common.limits import STREAK_KEPT_S
from common.storage import keys
from common.storage.conflicts import retry_if_changed
from common.storage.expressions import Attribute, Condition, change, unchanged
from common.storage.table import Table
from common.storage.transactions import Transaction
from common.storage.wire import Item


@dataclass(frozen=True, slots=True)
class FailureCounts:
    """The counts in the jobs table; `run_name` names a run among its job's, in the order of their fire times."""

    jobs: Table
    clock: Clock

    def counted(self, jobs: Sequence[Job]) -> list[Job]:
        """The jobs with their failures in a row. Only jobs whose last run has failed cost a read."""
        failing = [job for job in jobs if job.is_failing]
        if not failing:
            return list(jobs)
        items = self.jobs.get_many([keys.failure_streak(job.tenant, job.job_id) for job in failing])
        streaks = {(item["pk"], item["sk"]): item for item in items}
        counted = []
        for job in jobs:
            key = keys.failure_streak(job.tenant, job.job_id)
            streak = streaks.get((key["pk"], key["sk"])) if job.is_failing else None
            counted.append(replace(job, failures_in_row=_count(streak, job.revision)) if streak else job)
        return counted

    def add(self, job: Job, run_name: str) -> int:
        """Count a failed run, once however often this is called. The failures in a row; 0 if the job is deleted."""
        goes_on = (
            (Attribute("revision") == job.revision)
            & (Attribute("failures") > 0)
            & (Attribute("failed_run") != run_name)
        )
        counted = change({"failed_run": run_name, "expires_at": self._expires_at()}, add={"failures": 1})
        key = keys.failure_streak(job.tenant, job.job_id)

        def attempt() -> int:
            streak = self.jobs.update_if(key, counted, goes_on) if job.is_failing else None
            return int(streak["failures"]) if streak else self._start(job, run_name)

        return self._until_done(attempt, job)

    def _start(self, job: Job, run_name: str) -> int:
        """Begin a streak in the same step in which the job's item says so. Raises ConditionFailed."""
        job_key, key = keys.job(job.tenant, job.job_id), keys.failure_streak(job.tenant, job.job_id)
        item, streak = self.jobs.get(job_key), self.jobs.get(key)
        if item is None:
            return 0
        counted = _count(streak, item["revision"])
        if streak and streak.get("revision") == item["revision"] and streak.get("failed_run") == run_name:
            return counted
        began_at = streak["began_at"] if streak and counted else math.floor(self.clock.now())
        started = {
            **{name: value for name, value in (streak or {}).items() if name == "not_running"},
            **key,
            "began_at": began_at,
            "revision": item["revision"],
            "failures": counted + 1,
            "failed_run": run_name,
            "expires_at": self._expires_at(),
        }
        tx = Transaction(self.jobs.client)
        tx.put(self.jobs, started, _as_read(self.jobs, streak, "not_running"))
        tx.update(self.jobs, job_key, change({"is_failing": True}), unchanged(item, "revision"))
        tx.commit()
        return counted + 1

    def end(self, job: Job, run_name: str) -> int:
        """A run has succeeded: count from 0 again.

        Returns how many had failed; 0 if there is nothing to end, or a later run has failed.
        """
        job_key, key = keys.job(job.tenant, job.job_id), keys.failure_streak(job.tenant, job.job_id)

        def attempt() -> int:
            item, streak = self.jobs.get(job_key), self.jobs.get(key)
            if item is None:
                return 0
            counted = _count(streak, item["revision"])
            if not (streak and counted) or streak["failed_run"] >= run_name:
                return 0
            tx = Transaction(self.jobs.client)
            tx.update(self.jobs, job_key, change(remove=["is_failing"]), unchanged(item, "revision"))
            as_read = unchanged(streak, "revision", "failures", "failed_run")
            tx.update(self.jobs, key, change({"failures": 0}), as_read)
            tx.commit()
            return counted

        return self._until_done(attempt, job)

    def _until_done(self, attempt: Callable[[], int], job: Job) -> int:
        subject = f"the failures of job {job.job_id!r}"
        return retry_if_changed(attempt, subject, sleep=self.clock.sleep)

    def _expires_at(self) -> int:
        return math.floor(self.clock.now()) + STREAK_KEPT_S


def _as_read(jobs: Table, streak: Item | None, *names: str) -> Condition:
    """The condition that the streak is as it was read; one that has expired is none."""
    return unchanged(streak, "revision", "failures", "failed_run", *names) if streak else jobs.absent


def _count(streak: Mapping[str, Any] | None, revision: int) -> int:
    """The failures in a row of a job with this revision. A count that cannot be read is 1, which a success ends."""
    if not streak or streak.get("revision") != revision:
        return 0
    failures = streak.get("failures")
    return failures if isinstance(failures, int) else 1


class NotRunningNotes:
    """The notes in the jobs table. Each that begins or ends is published."""

    def __init__(self, jobs: Table, clock: Clock, events: Events) -> None:
        self._jobs = jobs
        self._clock = clock
        self._events = events

    def begin(
        self, tenant: str, job_id: str, noted: NotRunning, schedule_revision: int | None = None
    ) -> bool:
        """Note that the job does not run, whatever its schedule, or if it has this one.

        False: that is known, the schedule has changed, or the job is paused or over anyway. Raises Busy.
        """
        from common.jobs.corrupt import stored_job  # most batches note nothing

        job_key, key = keys.job(tenant, job_id), keys.failure_streak(tenant, job_id)

        def attempt() -> Job | None:
            item, streak = self._jobs.get(job_key), self._jobs.get(key)
            if item is None or not (_may_begin(item, noted.reason) or _is_more(item, streak, noted)):
                return None
            if schedule_revision is not None and item["schedule_revision"] != schedule_revision:
                return None
            job = stored_job(item)
            now, revision = math.floor(self._clock.now()), job.revision
            same = streak if streak and streak["revision"] == revision else {}
            new = {"began_at": now, "failures": 0, "failed_run": "", **same, **key, "revision": revision}
            tx = Transaction(self._jobs.client)
            note = {"not_running": noted.note(now), "expires_at": now + STREAK_KEPT_S}
            tx.put(self._jobs, new | note, _as_read(self._jobs, streak))
            as_read = unchanged(item, "revision", "not_running")
            tx.update(self._jobs, job_key, change({"not_running": noted.reason}), as_read)
            tx.put(self._jobs, listing(tenant, now))
            tx.commit()
            return job

        before = retry_if_changed(attempt, f"why job {job_id!r} does not run", sleep=self._clock.sleep)
        if before is None:
            return False
        if before.not_running:
            self.ended(before, OTHER_REASON)
        about = {"tenant": tenant, "job_id": job_id, "reason": noted.reason, "detail": noted.detail}
        since = {"since_at": math.floor(noted.since_at)}
        self._events.publish(JOB_NOT_RUNNING, {**about, **since, **responsible(before)})
        return True

    def end(self, job: Job, over_by: str) -> None:
        """What is noted of the job is over. Raises Busy."""
        job_key, key = keys.job(job.tenant, job.job_id), keys.failure_streak(job.tenant, job.job_id)

        def attempt() -> bool:
            item, streak = self._jobs.get(job_key), self._jobs.get(key)
            if item is None or item.get("not_running") != job.not_running:
                return False
            tx = Transaction(self._jobs.client)
            as_read = unchanged(item, "revision", "not_running")
            tx.update(self._jobs, job_key, change(remove=["not_running"]), as_read)
            if streak:
                as_read = unchanged(streak, "revision", "not_running")
                tx.update(self._jobs, key, change(remove=["not_running"]), as_read)
            tx.commit()
            return True

        if retry_if_changed(attempt, f"why job {job.job_id!r} does not run", sleep=self._clock.sleep):
            self.ended(job, over_by)

    def ended(self, job: Job, over_by: str) -> None:
        """Publish that what was noted of the job is over."""
        about = {"tenant": job.tenant, "job_id": job.job_id, "reason": job.not_running}
        self._events.publish(JOB_NOT_RUNNING_OVER, {**about, "over_by": over_by, **responsible(job)})

    def of_job(self, tenant: str, job_id: str) -> NotRunning | None:
        """What is noted of a job."""
        streak = self._jobs.get(keys.failure_streak(tenant, job_id))
        return NotRunning.of_item(streak) if streak else None


def _is_more(item: Item, streak: Item | None, noted: NotRunning) -> bool:
    """Whether a share of a job's runs was noted, and now all are skipped. Pure."""
    known = NotRunning.of_item(streak) if streak and item.get("not_running") == noted.reason else None
    return known is not None and known.is_share and not noted.is_share


def _may_begin(item: Item, reason: str) -> bool:
    """Whether a job begins not to run for this reason. A run that was planned before may say another one. Pure."""
    if (item.get("state") == PAUSED) != (reason == PAUSED_AFTER_FAILURES):
        return False
    known = item.get("not_running")
    return known != reason and (known not in LASTING or reason in (*LASTING, UNREADABLE))
