"""Reads what `schedule_history.py` and `expected.py` need: jobs, their audit, calendars, the mark, and runs.

A call looks at a bounded number of due instants, records, jobs and audit entries, and returns where the next call
continues. The times before the oldest audit entry that it could read are reported as unknown.

A query finds all runs of a range. If only the due instants can be recorded there, their runs are read by name, a
hundred in a request: for many jobs with few runs each that takes a tenth of the requests."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from common.history.expected import AsOf, InstantOutcome, Record, count_by_status, outcomes
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
from common.jobs.job import DELETED, WITHOUT_PAYLOAD, Job
from common.jobs.skips import MAX_SKIPPED
from common.planning.due_index import DueIndex
from common.planning.execution import Execution, job_key
from common.runs.claims import RETENTION_S
from common.storage import keys
from common.storage.table import Query, Table
from common.storage.wire import Expression
from common.tenants.audit import Audit, Entry, EntryFilter
from common.timing.instants import DAY_S

ATTRIBUTES: Final = (
    *("sk", "tenant", "job_id", "fire_at", "due_at", "schedule_revision", "trigger", "status", "reason", "detail"),
    *("lateness_s", "started_at", "finished_at", "attempt", "error_type", "skipped_count", "skipped_from_at"),
)  # fmt: skip
WITH_ERRORS: Final = (*ATTRIBUTES, "error", "attempts")
# Up to this many runs are read by name: a query costs as much as more reads, or less.
FEW: Final = 4
# No tick plans this far ahead, so no run planned before a change of a job comes later after it.
SETTLED_S: Final = 3_600
# How many records after a range are read, to find one that counts missed fire times of the range.
_MAX_AFTER: Final = 200


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
    ) -> Iterator[Record]:
        """All runs with fire times in [start, end), in order."""
        between = keys.runs_between(start, end)
        if between[0] >= between[1]:
            return iter(())
        partition = keys.runs_of_job(tenant, job_id)
        return self._runs.query(
            Query(partition, sk_between=between, page=page, attributes=attributes, consistent=False)
        )

    def after(
        self,
        tenant: str,
        job_id: str,
        until: int,
        due: list[DueInstant],
        records: Iterable[Record],
        as_of: AsOf,
    ) -> list[Record]:
        """A record after the range that counts missed fire times of the range, if one may."""
        named = {(record["fire_at"], record["schedule_revision"]) for record in records}
        unrecorded = any(
            record.due_at <= as_of.now and (record.fire_at, record.schedule_revision) not in named
            for record in due
        )
        if not unrecorded or until > as_of.now:
            return []
        following = islice(self.between(tenant, job_id, until, None, _MAX_AFTER), _MAX_AFTER)
        return [record for record in following if record.get("skipped_from_at", until) < until][:1]

    def by_name(
        self, tenant: str, due: Mapping[str, Sequence[DueInstant]], as_of: AsOf
    ) -> dict[str, list[Record]]:
        """The records of these due instants by job. A job is left out if one of its past instants has none."""
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
        by_job: dict[str, list[Record]] = {job_id: [] for job_id in due}
        for item in self._runs.get_many(run_keys, consistent=False, attributes=ATTRIBUTES):
            by_job[item["job_id"]].append(item)
            del named[item["job_id"]][item["sk"]]
        unexplained = (
            job_id
            for job_id, names in named.items()
            if any(instant.fire_at <= as_of.now for instant in names.values())
        )
        for job_id in unexplained:
            del by_job[job_id]
        return by_job


def few_named(
    job: Job, history: ScheduleHistory, due: Sequence[DueInstant], start: int, now: float
) -> list[DueInstant] | None:
    """The due instants from `start` on that may have a record; None if other runs may have one, or they are many.

    A coming instant has a record only if it is cancelled, which the job notes.
    """
    is_settled = job.updated_at + SETTLED_S <= start and history.known_from_at <= start
    if not is_settled or len(job.skips) >= MAX_SKIPPED:
        return None
    named = [instant for instant in due if instant.fire_at <= now or instant.fire_at in job.skips]
    return named if len(named) <= FEW else None


# The most audit entries, records of runs and jobs of one call; and jobs whose runs need queries of their own.
MAX_ENTRIES: Final = 2_000
MAX_RECORDS: Final = 10_000
MAX_JOBS: Final = 1_000
MAX_QUERIED: Final = 200
_LOOK_AHEAD_S: Final = 366 * DAY_S


@dataclass(frozen=True, slots=True)
class JobPage:
    """What became of a job's due instants in [from_at, until_at); the rest of the range begins at `next_at`.

    `known_from_at` is from when on the due set is known. Runs before that are listed as not due.
    """

    job_id: str
    instants: list[InstantOutcome]
    known_from_at: float
    next_at: int | None

    @property
    def counts(self) -> dict[str, int]:
        """How many instants have each status."""
        return count_by_status(self.instants)


@dataclass(frozen=True, slots=True)
class ExpectedCursor:
    """Where a list over many jobs continues: after a job, or within one from an instant on."""

    job_id: str
    at: int | None = None


@dataclass(frozen=True, slots=True)
class ExplainedInstant:
    """An explained instant, the schedule version in force then, and the first due instant after it within a year."""

    job: Job | None
    version: ScheduleVersion | None
    explanation: Explanation
    following: DueInstant | None


@dataclass(frozen=True, slots=True)
class _Look:
    """What is due of a job from `start` on."""

    job: Job
    history: ScheduleHistory
    start: int
    due: list[DueInstant]


class ExpectedRuns:
    """Expected against actual. The tenant always comes from the credential."""

    def __init__(self, jobs: Table, runs: Table, audit: Audit, index: DueIndex) -> None:
        self._jobs = jobs
        self._runs = ScheduledRuns(runs)
        self._audit = audit
        self._index = index

    def of_job(
        self, tenant: str, job_id: str, start: int, end: int, now: float, kept_s: int, limit: int
    ) -> JobPage:
        """What became of the next due instants in [start, end), at most `limit`. `kept_s`: how long runs are kept."""
        item = self._jobs.get(keys.job(tenant, job_id))
        job = Job.from_item(item) if item else None
        audited = self.audited(tenant, min(start, now), kept_s)
        calendars = CalendarReader(Calendars(self._jobs), tenant)
        history = self.history(tenant, job_id, job, audited, calendars)
        due = list(islice(history.due(start, end, calendars), limit + 1))
        return self._page(tenant, job_id, history, due, start, end, self.as_of(now, audited), limit)

    def of_tenant(
        self,
        tenant: str,
        cursor: ExpectedCursor | None,
        start: int,
        end: int,
        now: float,
        kept_s: int,
        limit: int,
    ) -> tuple[list[JobPage], ExpectedCursor | None]:
        """The same for the tenant's jobs by their ids, and where the list continues.

        At most MAX_JOBS, and MAX_QUERIED of them with queries of their own.
        """
        jobs = list(self._jobs_from(tenant, cursor))
        audited = self.audited(tenant, min(start, now), kept_s)
        as_of = self.as_of(now, audited)
        calendars = CalendarReader(Calendars(self._jobs), tenant)
        looks: list[_Look] = []
        named: dict[str, list[DueInstant]] = {}
        room = limit
        for job in jobs[:MAX_JOBS]:
            within = cursor is not None and cursor.job_id == job.job_id and cursor.at is not None
            begin = cursor.at if within and cursor and cursor.at is not None else start
            history = self.history(tenant, job.job_id, job, audited, calendars)
            due = list(islice(history.due(begin, end, calendars), room + 1))
            looks.append(_Look(job, history, begin, due))
            if (few := few_named(job, history, due, begin, now)) is not None:
                named[job.job_id] = few
            room -= len(due)
            if room <= 0 or len(looks) - len(named) == MAX_QUERIED:
                break
        known = self._runs.by_name(tenant, named, as_of)
        pages: list[JobPage] = []
        instants_left, queries_left = limit, MAX_QUERIED
        for look in looks:
            job_id = look.job.job_id
            if job_id not in known:
                if not queries_left:
                    break
                queries_left -= 1
            page = self._page(
                tenant,
                job_id,
                look.history,
                look.due,
                look.start,
                end,
                as_of,
                instants_left,
                known.get(job_id),
            )
            pages.append(page)
            instants_left -= len(page.instants)
            if page.next_at is not None:
                return pages, ExpectedCursor(job_id, page.next_at)
            if instants_left <= 0:
                break
        is_last = len(pages) == len(jobs)
        return pages, None if is_last else ExpectedCursor(pages[-1].job_id)

    def explain(
        self,
        tenant: str,
        job_id: str,
        at: int,
        now: float,
        kept_s: int,
        blocks: Callable[[Job | None], list[Reason]],
        names_of: NamesOf,
    ) -> ExplainedInstant:
        """Why the job is or is not due at an instant, from the newest MAX_ENTRIES entries of the audit."""
        item = self._jobs.get(keys.job(tenant, job_id))
        job = Job.from_item(item) if item else None
        audited = self.audited(tenant, 0, kept_s)
        calendars = CalendarReader(Calendars(self._jobs), tenant)
        history = self.history(tenant, job_id, job, audited, calendars).with_author(at, names_of)
        as_of = self.as_of(now, audited)
        due = list(history.due(at, at + 1, calendars))
        page = self._page(tenant, job_id, history, due, at, at + 1, as_of, 1, attributes=WITH_ERRORS)
        explanation = explain(
            history, at, page.instants, now, lambda name: calendars((name,))[0], blocks(job)
        )
        following = next(history.due(at + 1, at + _LOOK_AHEAD_S, calendars), None)
        return ExplainedInstant(job, history.at(at), explanation, following)

    def _jobs_from(self, tenant: str, cursor: ExpectedCursor | None) -> Iterator[Job]:
        """The existing jobs from the place on, one more than a call takes."""
        first = cursor.job_id if cursor else ""
        existing = Expression("#state <> :deleted", {":deleted": DELETED})
        items = self._jobs.query(
            Query(
                tenant,
                sk_between=keys.jobs_between(keys.JOB_PREFIX, first, ""),
                where=existing,
                page=MAX_JOBS + 2,
                attributes=WITHOUT_PAYLOAD,
            )
        )
        jobs = (Job.from_item(item) for item in items)
        remaining = (
            job for job in jobs if cursor is None or cursor.at is not None or job.job_id != cursor.job_id
        )
        return islice(remaining, MAX_JOBS + 1)

    def as_of(self, now: float, audited: AuditedChanges) -> AsOf:
        """The time of a question at `now`, with the mark as it is stored."""
        mark = self._index.mark()
        planned_until = mark.planned_until if mark else -math.inf
        return AsOf(now, planned_until, now - audited.kept_s)

    def audited(self, tenant: str, from_at: float, kept_s: int) -> AuditedChanges:
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
            changes, read_from_at, min(RETENTION_S, kept_s, *(days * DAY_S for days in kept_days))
        )

    def history(
        self,
        tenant: str,
        job_id: str,
        job: Job | None,
        audited: AuditedChanges,
        calendars: CalendarReader,
    ) -> ScheduleHistory:
        """The schedule history of a job, as far back as the audit was read."""
        entries, known_from_at = audited.of_job(job_id, job), audited.read_from_at
        if job and not entries:  # it has not changed since, however far the audit was read
            known_from_at = min(known_from_at, job.updated_at + 1)
        return schedule_history(job_key(tenant, job_id), job, entries, known_from_at, calendars)

    def _page(
        self,
        tenant: str,
        job_id: str,
        history: ScheduleHistory,
        due: list[DueInstant],
        start: int,
        end: int,
        as_of: AsOf,
        limit: int,
        known: list[Record] | None = None,
        attributes: Sequence[str] = ATTRIBUTES,
    ) -> JobPage:
        """`due` has one more than `limit` if there are more; `known` are their records, if no others are needed."""
        due = due[: limit + 1]
        until = due.pop().fire_at if len(due) > limit else end
        if known is None:
            read = self._runs.between(tenant, job_id, start, until, attributes=attributes)
            records = list(islice(read, MAX_RECORDS + 1))
            if len(records) > MAX_RECORDS:
                until = max(start + 1, records[-1]["fire_at"])
                records = [record for record in records if record["fire_at"] < until]
                due = [record for record in due if record.fire_at < until]
            records += self._runs.after(tenant, job_id, until, due, records, as_of)
        else:
            records = known
        instants = [record for record in outcomes(due, records, as_of) if start <= record.fire_at < until]
        return JobPage(job_id, instants, history.known_from_at, until if until < end else None)
