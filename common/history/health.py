"""The health of jobs at a glance: the last run, the last outcomes, failures in a row, and whether a run is overdue.

It costs one query for each job, a second one if only manual runs are among its newest, and a read of the last run's
error.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Final

from common.history.eras import Due
from common.history.expected import NO_RECORD, OVERDUE, Expected, Moment, Record, expected
from common.jobs.calendars import MissingCalendar, RememberedCalendars
from common.jobs.job import ACTIVE, Job
from common.planning.execution import SCHEDULE
from common.runs.records import SUCCEEDED
from common.storage import keys
from common.storage.tables import Expression, Table
from common.timing.fires import due_at, fires
from common.timing.instants import DAY_S

OUTCOMES: Final = 20
# How many records the second query looks at.
_MAX_SEEN: Final = 200
_THREADS: Final = 32
_ATTRIBUTES: Final = (
    *("sk", "tenant", "job_id", "fire_at", "due_at", "schedule_revision", "trigger", "status", "reason", "detail"),
    *("lateness_s", "duration_s", "started_at", "attempt", "error_type", "error", "skipped_count"),
    "skipped_from_at",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Health:
    """The newest runs first. `overdue` is the earliest due instant since the last scheduled run that lacks a record."""

    outcomes: Sequence[Record]
    failures_in_row: int
    overdue: Expected | None


class JobHealth:
    """Reads the health of some jobs of one tenant."""

    def __init__(self, runs: Table) -> None:
        self._runs = runs

    def of_jobs(
        self, jobs: Sequence[Job], moment: Moment, calendars: RememberedCalendars
    ) -> dict[str, Health]:
        """The health of each job by its id; at most a page of jobs."""
        with ThreadPoolExecutor(min(_THREADS, len(jobs)) or 1) as pool:
            read = list(pool.map(lambda job: self._newest(job, moment), jobs))
        found = {}
        for job, (newest, since) in zip(jobs, read, strict=True):
            try:
                excluded = calendars.excluded(job.tenant, job.schedule.calendars)
                late = overdue(job, since, moment, excluded)
            except MissingCalendar:  # whether it is due is not known
                late = None
            found[job.job_id] = Health(newest, job.failures_in_row, late)
        return found

    def _newest(self, job: Job, moment: Moment) -> tuple[list[Record], int]:
        """The newest runs, and the fire time from which none of its schedule is recorded."""
        between = keys.runs_between(None, math.floor(moment.now) + 1)
        partition = keys.runs_of_job(job.tenant, job.job_id)

        def runs(page: int, where: Expression | None = None) -> list[Record]:
            items = self._runs.query(
                partition,
                sk_between=between,
                newest_first=True,
                page=page,
                where=where,
                attributes=_ATTRIBUTES,
                consistent=False,
            )
            return list(islice(items, page))

        newest = runs(OUTCOMES)
        seen = newest
        if len(newest) == OUTCOMES and not any(map(_is_scheduled, newest)):
            seen = runs(_MAX_SEEN)
        day_ago = math.ceil(moment.now) - DAY_S  # as long as any record is kept
        since = next((run["fire_at"] + 1 for run in seen if _is_scheduled(run)), day_ago)
        return newest, max(since, seen[-1]["fire_at"]) if len(seen) == _MAX_SEEN else since

    def with_errors(self, runs: Sequence[Record]) -> list[Record]:
        """The runs, with the last attempt of those that did not succeed: it holds the error.

        A hundred attempts take 160 KB, so only these are read with their attempts.
        """

        def with_error(run: Record) -> Record:
            if run["status"] == SUCCEEDED or not run.get("attempt"):
                return run
            item = self._runs.get(keys.run(run["tenant"], run["job_id"], run["sk"]), consistent=False) or {}
            return {**run, "attempts": item.get("attempts", [])[-1:]}

        with ThreadPoolExecutor(min(_THREADS, len(runs)) or 1) as pool:
            return list(pool.map(with_error, runs))


def overdue(job: Job, since: int, moment: Moment, excluded: Container[str]) -> Expected | None:
    """The earliest due instant from `since` on, if it has passed. None of these instants has a record. Pure."""
    if job.state != ACTIVE:
        return None
    start = max(since, job.effective_at)
    first = next(fires(job.schedule, start, math.floor(moment.now) + 1, excluded=excluded), None)
    if first is None:
        return None
    due_time = due_at(job.schedule, job.key, first)
    due = Due(first, due_time, job.schedule_revision, tolerance_s=job.schedule.tolerance_s)
    (one,) = expected([due], [], moment)
    return one if one.status in (OVERDUE, NO_RECORD) else None


def _is_scheduled(run: Record) -> bool:
    return bool(run.get("trigger", SCHEDULE) == SCHEDULE)
