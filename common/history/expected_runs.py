"""Expected against actual, read from the tables. The decisions are in `schedule_history.py` and `expected.py`.

A call looks at a bounded number of due instants, records, jobs and audit entries, and returns where the next call
continues. The times before the oldest audit entry that it could read are reported as unknown.

A query finds all runs of a range. If only the due instants can be recorded there, their runs are read by name, a
hundred in a request: for many jobs with few runs each that takes a tenth of the requests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple

from common.clock import CpuBudget
from common.history.expected import AsOf, InstantOutcome, count_by_status, outcomes
from common.history.explain import Explanation, Reason, explain
from common.history.schedule_history import (
    CHANGES,
    AuditedChanges,
    CalendarReader,
    DueInstant,
    NamesOf,
    ScheduleHistory,
    ScheduleVersion,
    schedule_history,
)
from common.jobs.calendars import Calendars
from common.jobs.corrupt import readable
from common.jobs.delivery import delivery_of
from common.jobs.former_jobs import load_jobs
from common.jobs.job import Job, exists
from common.jobs.revisions import end_of
from common.limits import MAX_SKIPPED, UNSTARTED_KEPT_S
from common.planning.due_index import DueIndex
from common.planning.execution import Execution, job_key
from common.runs.run import REQUIRED, Run, readable_runs
from common.storage import keys
from common.storage.bounded import Instant, JobId
from common.storage.table import Query, Table
from common.tenants.audit import Audit, Entry, EntryFilter
from common.timing.excluded_days import calendar_days
from common.timing.instants import DAY_S

ATTRIBUTES: Final = (
    *(*REQUIRED, "reason", "detail", "lateness_s", "started_at", "finished_at", "attempt", "error_type"),
    *("skipped_count", "skipped_from_at"),
)
WITH_ERRORS: Final = (
    *ATTRIBUTES,
    "error",
    "attempts",
    "waited_s",
    "accepted_attempt",
    "lease_until",
    "progress",
    "durable",
    "lost_calls",
)
# Up to this many runs of a job are read by name. More reads cost as much as a query.
MAX_READ_BY_NAME: Final = 4
# No tick plans this far ahead. So every run that was planned before a change is due within this time after it.
SETTLED_S: Final = 3_600
# A record after a range can count missed fire times of the range.
_MAX_RECORDS_AFTER: Final = 200


class ScheduledRuns:
    """The reads are eventually consistent: half the price, and a run of the last second may be missing."""

    def __init__(self, runs: Table) -> None:
        self._runs = runs

    def between(
        self,
        tenant: str,
        job_id: str,
        start: int,
        end: int | None,
        page: int = 1_000,
        attributes: Sequence[str] = ATTRIBUTES,
    ) -> Iterator[Run]:
        """All runs with fire times in [start, end), in order."""
        between = keys.runs_between(start, end)
        if between[0] >= between[1]:
            return iter(())
        partition = keys.runs_of_job(tenant, job_id)
        query = Query(partition, sk_between=between, page=page, attributes=attributes, consistent=False)
        return readable_runs(self._runs.query(query))

    def after(
        self,
        tenant: str,
        job_id: str,
        until: int,
        due: list[DueInstant],
        runs: Iterable[Run],
        as_of: AsOf,
    ) -> list[Run]:
        """A record after the range that counts missed fire times of the range, if such a record may exist."""
        recorded = {run.fire_at for run in runs}
        unrecorded = any(instant.due_at <= as_of.now and instant.fire_at not in recorded for instant in due)
        if not unrecorded or until > as_of.now:
            return []
        following = islice(self.between(tenant, job_id, until, None, _MAX_RECORDS_AFTER), _MAX_RECORDS_AFTER)
        return [run for run in following if 0 < run.skipped_from_at < until][:1]

    def by_name(
        self, tenant: str, due: Mapping[str, Sequence[DueInstant]], as_of: AsOf
    ) -> dict[str, list[Run]]:
        """The records of these due instants by job, without jobs that have a past instant without a record."""
        named = {
            job_id: {
                Execution(
                    tenant, job_id, instant.fire_at, instant.due_at, instant.schedule_revision
                ).run_name: instant
                for instant in instants
            }
            for job_id, instants in due.items()
        }
        run_keys = [keys.run(tenant, job_id, name) for job_id, names in named.items() for name in names]
        by_job: dict[str, list[Run]] = {job_id: [] for job_id in due}
        items = self._runs.get_many(run_keys, consistent=False, attributes=ATTRIBUTES)
        for run in readable_runs(items):
            by_job[run.job_id].append(run)
            del named[run.job_id][run.run_name]
        unexplained = (
            job_id
            for job_id, names in named.items()
            if any(instant.fire_at <= as_of.now for instant in names.values())
        )
        for job_id in unexplained:
            del by_job[job_id]
        return by_job


def due_to_read_by_name(
    job: Job, history: ScheduleHistory, due: Sequence[DueInstant], start: int, now: float
) -> list[DueInstant] | None:
    """The due instants from `start` on whose records are read by name. None: a query reads them with other runs.

    A coming instant has a record only if it is cancelled, and the job lists its cancelled instants.
    """
    is_settled = job.updated_at + SETTLED_S <= start and history.known_from_at <= start
    if not is_settled or len(job.skips) >= MAX_SKIPPED:
        return None
    named = [instant for instant in due if instant.fire_at <= now or instant.fire_at in job.skips]
    return named if len(named) <= MAX_READ_BY_NAME else None


# Bounds of one call. MAX_QUERIED jobs may need a query of their own.
MAX_ENTRIES: Final = 2_000
MAX_RECORDS: Final = 10_000
MAX_JOBS: Final = 1_000
MAX_QUERIED: Final = 200
_LOOK_AHEAD_S: Final = 366 * DAY_S


@dataclass(frozen=True, slots=True)
class JobPage:
    """What became of a job's due instants in a range. The rest of the range begins at `next_at`.

    The due set is known from `known_from_at` on. Runs before that instant are listed as not due.
    """

    job_id: str
    instants: list[InstantOutcome]
    known_from_at: float
    next_at: int | None

    @property
    def counts(self) -> dict[str, int]:
        """How many instants have each status."""
        return count_by_status(self.instants)


class ExpectedPosition(NamedTuple):
    """Where a list over many jobs continues: after a job, or within one from an instant on."""

    job_id: JobId
    at: Instant | None = None


@dataclass(frozen=True, slots=True)
class ExplainedInstant:
    """An explained instant, the schedule version in force then, and the first due instant after it within a year."""

    job: Job | None
    version: ScheduleVersion | None
    explanation: Explanation
    following: DueInstant | None


@dataclass(frozen=True, slots=True)
class ExpectedQuery:
    """A tenant's due instants in [start, end), at most `limit`, at the time `now`. Runs are kept for `retention_s`."""

    tenant: str
    start: int
    end: int
    now: float
    retention_s: int
    limit: int = 1


@dataclass(frozen=True, slots=True)
class _TenantPast:
    """The tenant's data that an answer reads once: its audit, its calendars, and planned_until."""

    tenant: str
    audited: AuditedChanges
    calendars: CalendarReader
    as_of: AsOf

    def history(self, job_id: str, job: Job | None) -> ScheduleHistory:
        """The schedule history of a job, as far back as the audit was read."""
        entries, known_from_at = self.audited.of_job(job_id, job), self.audited.read_from_at
        if job and not entries:  # the job has not changed since, however far the audit was read
            known_from_at = min(known_from_at, job.updated_at + 1)
        return schedule_history(job_key(self.tenant, job_id), job, entries, known_from_at, self.calendars)


@dataclass(frozen=True, slots=True)
class _DueOfJob:
    """The due instants of a job from `start` on, one more than a page shows if there are more."""

    job_id: str
    history: ScheduleHistory
    start: int
    instants: list[DueInstant]


def _fate(job: Job | None, at: int, calendars: CalendarReader) -> Iterator[Reason]:
    """Why a run that waits does not start, as the job is now."""
    if job and exists(job) and (end := end_of(job, at, calendar_days(job.schedule, calendars.dates))):
        yield Reason(end.reason, f"{end.detail[0].upper()}{end.detail[1:]}.")


class ExpectedRuns:
    """Expected against actual. The tenant always comes from the credential."""

    def __init__(self, jobs: Table, runs: Table, audit: Audit, index: DueIndex) -> None:
        self._jobs = jobs
        self._runs = ScheduledRuns(runs)
        self._audit = audit
        self._index = index

    def of_job(self, query: ExpectedQuery, job_id: str) -> JobPage:
        """What became of the next due instants of a job."""
        past = self._past(query, query.start)
        history = past.history(job_id, self._job(query.tenant, job_id))
        due = list(islice(history.due(query.start, query.end, past.calendars), query.limit + 1))
        return self._page(past, _DueOfJob(job_id, history, query.start, due), query.end, query.limit)

    def of_tenant(
        self, query: ExpectedQuery, cursor: ExpectedPosition | None
    ) -> tuple[list[JobPage], ExpectedPosition | None]:
        """The same for the tenant's jobs by their ids, and where the list continues.

        At most MAX_JOBS, and MAX_QUERIED of them with queries of their own.
        """
        jobs = list(self._jobs_from(query.tenant, cursor))
        past = self._past(query, query.start)
        due_of_jobs, named = self._due_of_jobs(query, past, jobs, cursor)
        records = self._runs.by_name(query.tenant, named, past.as_of)
        pages: list[JobPage] = []
        instants_left, queries_left = query.limit, MAX_QUERIED
        for due in due_of_jobs:
            if due.job_id not in records:
                if not queries_left:
                    break
                queries_left -= 1
            page = self._page(past, due, query.end, instants_left, records.get(due.job_id))
            pages.append(page)
            instants_left -= len(page.instants)
            if page.next_at is not None:
                return pages, ExpectedPosition(due.job_id, page.next_at)
            if instants_left <= 0:
                break
        is_last = len(pages) == len(jobs)
        return pages, None if is_last else ExpectedPosition(pages[-1].job_id)

    def _due_of_jobs(
        self, query: ExpectedQuery, past: _TenantPast, jobs: list[Job], cursor: ExpectedPosition | None
    ) -> tuple[list[_DueOfJob], dict[str, list[DueInstant]]]:
        """The due instants of as many jobs as a call shows and has time for.

        And by job, the instants that can be read by name.
        """
        due_of_jobs: list[_DueOfJob] = []
        named: dict[str, list[DueInstant]] = {}
        remaining = query.limit
        budget = CpuBudget()
        for job in jobs[:MAX_JOBS]:
            start = query.start
            if cursor is not None and cursor.job_id == job.job_id and cursor.at is not None:
                start = cursor.at
            history = past.history(job.job_id, job)
            due = list(islice(history.due(start, query.end, past.calendars), remaining + 1))
            due_of_jobs.append(_DueOfJob(job.job_id, history, start, due))
            if (due_by_name := due_to_read_by_name(job, history, due, start, query.now)) is not None:
                named[job.job_id] = due_by_name
            remaining -= len(due)
            if remaining <= 0 or len(due_of_jobs) - len(named) == MAX_QUERIED or budget.is_spent:
                break
        return due_of_jobs, named

    def explain(
        self,
        query: ExpectedQuery,
        job_id: str,
        blocks: Callable[[Job | None], list[Reason]],
        names_of: NamesOf,
    ) -> ExplainedInstant:
        """Why the job is or is not due at `query.start`, from the newest MAX_ENTRIES entries of the audit."""
        at, job = query.start, self._job(query.tenant, job_id)
        past = self._past(query, 0)
        history = past.history(job_id, job).with_author(at, names_of)
        due = list(history.due(at, at + 1, past.calendars))
        page = self._page(past, _DueOfJob(job_id, history, at, due), at + 1, 1, attributes=WITH_ERRORS)
        delivery = delivery_of(job.spec.target) if job and job.spec.target else None  # else it is damaged
        stops = [*blocks(job), *_fate(job, at, past.calendars)]
        explanation = explain(history, at, page.instants, query.now, past.calendars.dates, stops, delivery)
        following = next(history.due(at + 1, at + _LOOK_AHEAD_S, past.calendars), None)
        return ExplainedInstant(job, history.at(at), explanation, following)

    def _job(self, tenant: str, job_id: str) -> Job | None:
        return load_jobs(self._jobs, [(tenant, job_id)]).get((tenant, job_id))

    def _jobs_from(self, tenant: str, cursor: ExpectedPosition | None) -> Iterator[Job]:
        """The existing jobs from the cursor on, one more than a call takes."""
        first = cursor.job_id if cursor else ""
        items = self._jobs.query(
            Query(
                tenant,
                sk_between=keys.jobs_between(keys.JOB_PREFIX, first, ""),
                page=MAX_JOBS + 2,
            )
        )
        jobs = readable(items)
        remaining = (
            job for job in jobs if cursor is None or cursor.at is not None or job.job_id != cursor.job_id
        )
        return islice(remaining, MAX_JOBS + 1)

    def _past(self, query: ExpectedQuery, from_at: int) -> _TenantPast:
        """The tenant's past since `from_at`, and planned_until as it is stored."""
        audited = self._audited(query.tenant, min(from_at, query.now), query.retention_s)
        progress = self._index.progress()
        planned_until = progress.surely_until if progress else -math.inf
        as_of = AsOf(query.now, planned_until, query.now - audited.retention_s)
        return _TenantPast(query.tenant, audited, CalendarReader(Calendars(self._jobs), query.tenant), as_of)

    def _audited(self, tenant: str, from_at: float, retention_s: int) -> AuditedChanges:
        """The tenant's audit since `from_at`, or as far back as a call reads."""
        since = EntryFilter(from_at=max(0, math.floor(from_at)))
        entries, more = self._audit.page(tenant, since, limit=MAX_ENTRIES)
        read_from_at = entries[-1].at if more and entries else from_at
        # Some records are kept for 30 days, whatever the tenant's retention is.
        kept_days = [
            shown["retention_days"]
            for entry in entries
            for shown in (entry.before, entry.after)
            if isinstance(shown.get("retention_days"), int)
        ]
        changes: dict[str, list[Entry]] = {}
        for entry in entries:
            if entry.action in CHANGES:
                changes.setdefault(entry.subject, []).append(entry)
        return AuditedChanges(
            changes, read_from_at, min(UNSTARTED_KEPT_S, retention_s, *(days * DAY_S for days in kept_days))
        )

    def _page(
        self,
        past: _TenantPast,
        due: _DueOfJob,
        end: int,
        limit: int,
        known: list[Run] | None = None,
        attributes: Sequence[str] = ATTRIBUTES,
    ) -> JobPage:
        """What became of up to `limit` instants. `known` are their runs, if no others are needed."""
        instants, start = due.instants[: limit + 1], due.start
        until = instants.pop().fire_at if len(instants) > limit else end
        if known is None:
            read = self._runs.between(past.tenant, due.job_id, start, until, attributes=attributes)
            runs = list(islice(read, MAX_RECORDS + 1))
            if len(runs) > MAX_RECORDS:
                until = max(start + 1, runs[-1].fire_at)
                runs = [run for run in runs if run.fire_at < until]
                instants = [instant for instant in instants if instant.fire_at < until]
            runs += self._runs.after(past.tenant, due.job_id, until, instants, runs, past.as_of)
        else:
            runs = known
        shown = [
            outcome for outcome in outcomes(instants, runs, past.as_of) if start <= outcome.fire_at < until
        ]
        return JobPage(due.job_id, shown, due.history.known_from_at, until if until < end else None)
