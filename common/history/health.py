"""The health of jobs at a glance: the last run, the last outcomes, failures in a row, and whether a run is overdue.

It costs one query for each job, a second one if only manual runs are among its newest, and a read of the last run's
error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from msgspec.structs import replace

from common.history.expected import NO_RECORD, OVERDUE, AsOf, InstantOutcome, outcomes
from common.history.schedule_history import DueInstant
from common.jobs.calendars import MissingCalendar, RememberedCalendars
from common.jobs.job import ACTIVE, Job
from common.planning.execution import SCHEDULE
from common.runs.run import REQUIRED, Run, readable_runs
from common.runs.states import SUCCEEDED
from common.storage import keys
from common.storage.metering import in_threads
from common.storage.table import Query, Table
from common.timing.excluded_days import Excluded
from common.timing.fires import due_at, fires
from common.timing.instants import DAY_S

OUTCOMES: Final = 20
# The second query reads so many records.
_MAX_SECOND_READ: Final = 200
_THREADS: Final = 32
# Attempts that are read with the last runs of a page for their errors, some 1.6 KB each.
_MAX_ATTEMPTS: Final = 200
# What is read of each run.
HEALTH_ATTRIBUTES: Final = (
    *(
        *REQUIRED,
        "reason",
        "detail",
        "lateness_s",
        "duration_s",
        "started_at",
        "attempt",
        "error_type",
        "error",
    ),
    *("skipped_count", "skipped_from_at", "first_started_at", "finished_at"),
)


@dataclass(frozen=True, slots=True)
class Health:
    """The newest runs first. `overdue` is the earliest due instant since the last scheduled run that lacks a record."""

    outcomes: Sequence[Run]
    failures_in_row: int
    overdue: InstantOutcome | None
    not_running: str = ""


class JobHealth:
    """Reads the health of some jobs of one tenant."""

    def __init__(self, runs: Table) -> None:
        self._runs = runs

    def of_jobs(self, jobs: Sequence[Job], as_of: AsOf, calendars: RememberedCalendars) -> dict[str, Health]:
        """The health of each job by its id; at most a page of jobs."""
        read = in_threads(lambda job: self._newest(job, as_of), jobs, _THREADS)
        by_job = {}
        for job, (newest, since) in zip(jobs, read, strict=True):
            by_job[job.job_id] = Health(
                newest, job.failures_in_row, overdue_of(job, since, as_of, calendars), job.not_running
            )
        return by_job

    def _newest(self, job: Job, as_of: AsOf) -> tuple[list[Run], int]:
        """The newest runs, and the fire time from which none of its schedule is recorded."""
        between = keys.runs_between(None, math.floor(as_of.now) + 1)
        partition = keys.runs_of_job(job.tenant, job.job_id)

        def runs(page: int) -> list[Run]:
            items = self._runs.query(
                Query(
                    partition,
                    sk_between=between,
                    newest_first=True,
                    page=page,
                    attributes=HEALTH_ATTRIBUTES,
                    consistent=False,
                )
            )
            return list(readable_runs(islice(items, page)))

        newest = runs(OUTCOMES)
        seen = newest
        if len(newest) == OUTCOMES and not any(run.trigger == SCHEDULE for run in newest):
            seen = runs(_MAX_SECOND_READ)
        day_ago = math.ceil(as_of.now) - DAY_S  # as long as any record is kept
        since = next((run.fire_at + 1 for run in seen if run.trigger == SCHEDULE), day_ago)
        return newest, max(since, seen[-1].fire_at) if len(seen) == _MAX_SECOND_READ else since

    def with_errors(self, runs: Sequence[Run]) -> list[Run]:
        """The runs. A run that did not succeed has its last attempt, which holds the error.

        A hundred attempts take 160 KB, so only these are read with their attempts, and no more than fit a page: of the
        runs with the most attempts the error can be missing.
        """
        run_keys: list[keys.Key] = []
        attempts = 0
        for run in sorted(runs, key=lambda run: run.attempt):
            if run.status != SUCCEEDED and run.attempt:
                attempts += run.attempt
                if not run_keys or attempts <= _MAX_ATTEMPTS:
                    run_keys.append(run.key)
        items = self._runs.get_many(run_keys, consistent=False, attributes=(*REQUIRED, "attempts"))
        last = {run.key["pk"]: run.attempts[-1:] for run in readable_runs(items)}
        return [replace(run, attempts=last.get(run.key["pk"], ())) for run in runs]


def overdue_of(job: Job, since: int, as_of: AsOf, calendars: RememberedCalendars) -> InstantOutcome | None:
    """The same as `overdue`; None without a calendar that the job names: whether it is due is not known then."""
    try:
        return overdue(job, since, as_of, calendars.excluded(job.tenant, job.schedule))
    except MissingCalendar:
        return None


def overdue(job: Job, since: int, as_of: AsOf, excluded: Excluded) -> InstantOutcome | None:
    """The earliest due instant from `since` on, if it has passed. None of these instants has a record. Pure."""
    if job.state != ACTIVE:
        return None
    start = max(since, job.effective_at)
    first = next(fires(job.schedule, start, math.floor(as_of.now) + 1, excluded=excluded), None)
    if first is None:
        return None
    due_time = due_at(job.schedule, job.key, first)
    due = DueInstant(first, due_time, job.schedule_revision, tolerance_s=job.schedule.tolerance_s)
    (outcome,) = outcomes([due], [], as_of)
    return outcome if outcome.status in (OVERDUE, NO_RECORD) else None
