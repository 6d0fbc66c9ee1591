"""Reads what `eras.py` and `expected.py` need: jobs, their audit, their calendars, the mark, and their runs.

A call looks at a bounded number of due instants, records, jobs and audit entries, and returns where the next call
continues. What lies before the audit entries that it could read is reported as unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from common.history.eras import CHANGES, Due, Era, Eras, NamesOf, eras_of
from common.history.expected import Expected, Moment, Record, counts, expected
from common.history.explain import Reason
from common.history.explanation import Explanation, explain
from common.history.past import CalendarReader, History
from common.history.scheduled_runs import ATTRIBUTES, WITH_ERRORS, ScheduledRuns, few_named
from common.jobs.calendars import Calendars
from common.jobs.job import DELETED, WITHOUT_PAYLOAD, Job
from common.planning.due_index import DueIndex
from common.planning.execution import job_key
from common.runs.records import RETENTION_S
from common.storage import keys
from common.storage.tables import Expression, Table
from common.tenants.audit import Audit, Entry, EntryFilter
from common.timing.instants import DAY_S

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
    found: list[Expected]
    known_from_at: float
    next_at: int | None

    @property
    def counts(self) -> dict[str, int]:
        """How many instants have each status."""
        return counts(self.found)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a list over many jobs continues: after a job, or within one from an instant on."""

    job_id: str
    at: int | None = None


@dataclass(frozen=True, slots=True)
class Explained:
    """An explained instant, the era that it is in, and the first due instant after it within a year."""

    job: Job | None
    era: Era | None
    explanation: Explanation
    following: Due | None


@dataclass(frozen=True, slots=True)
class _Look:
    """What is due of a job from `start` on."""

    job: Job
    eras: Eras
    start: int
    due: list[Due]


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
        history = self.history(tenant, min(start, now), kept_s)
        calendars = CalendarReader(Calendars(self._jobs), tenant)
        eras = self.eras(tenant, job_id, job, history, calendars)
        due = list(islice(eras.due(start, end, calendars), limit + 1))
        return self._page(tenant, job_id, eras, due, start, end, self.moment(now, history), limit)

    def of_tenant(
        self, tenant: str, place: Place | None, start: int, end: int, now: float, kept_s: int, limit: int
    ) -> tuple[list[JobPage], Place | None]:
        """The same for the tenant's jobs by their ids, and where the list continues.

        At most MAX_JOBS, and MAX_QUERIED of them with queries of their own.
        """
        jobs = list(self._jobs_from(tenant, place))
        history = self.history(tenant, min(start, now), kept_s)
        moment = self.moment(now, history)
        calendars = CalendarReader(Calendars(self._jobs), tenant)
        looks: list[_Look] = []
        named: dict[str, list[Due]] = {}
        room = limit
        for job in jobs[:MAX_JOBS]:
            within = place is not None and place.job_id == job.job_id and place.at is not None
            begin = place.at if within and place and place.at is not None else start
            eras = self.eras(tenant, job.job_id, job, history, calendars)
            due = list(islice(eras.due(begin, end, calendars), room + 1))
            looks.append(_Look(job, eras, begin, due))
            if (few := few_named(job, eras, due, begin, now)) is not None:
                named[job.job_id] = few
            room -= len(due)
            if room <= 0 or len(looks) - len(named) == MAX_QUERIED:
                break
        known = self._runs.by_name(tenant, named, moment)
        pages: list[JobPage] = []
        left, queries_left = limit, MAX_QUERIED
        for one in looks:
            job_id = one.job.job_id
            if job_id not in known:
                if not queries_left:
                    break
                queries_left -= 1
            page = self._page(
                tenant, job_id, one.eras, one.due, one.start, end, moment, left, known.get(job_id)
            )
            pages.append(page)
            left -= len(page.found)
            if page.next_at is not None:
                return pages, Place(job_id, page.next_at)
            if left <= 0:
                break
        is_last = len(pages) == len(jobs)
        return pages, None if is_last else Place(pages[-1].job_id)

    def explain(
        self,
        tenant: str,
        job_id: str,
        at: int,
        now: float,
        kept_s: int,
        blocks: Callable[[Job | None], list[Reason]],
        names_of: NamesOf,
    ) -> Explained:
        """Why the job is or is not due at an instant, from the newest MAX_ENTRIES entries of the audit."""
        item = self._jobs.get(keys.job(tenant, job_id))
        job = Job.from_item(item) if item else None
        history = self.history(tenant, 0, kept_s)
        calendars = CalendarReader(Calendars(self._jobs), tenant)
        eras = self.eras(tenant, job_id, job, history, calendars).with_author(at, names_of)
        moment = self.moment(now, history)
        due = list(eras.due(at, at + 1, calendars))
        page = self._page(tenant, job_id, eras, due, at, at + 1, moment, 1, attributes=WITH_ERRORS)
        explanation = explain(eras, at, page.found, now, lambda name: calendars((name,))[0], blocks(job))
        following = next(eras.due(at + 1, at + _LOOK_AHEAD_S, calendars), None)
        return Explained(job, eras.at(at), explanation, following)

    def _jobs_from(self, tenant: str, place: Place | None) -> Iterator[Job]:
        """The existing jobs from the place on, one more than a call takes."""
        first = place.job_id if place else ""
        there = Expression("#state <> :deleted", {":deleted": DELETED})
        items = self._jobs.query(
            tenant,
            sk_between=keys.jobs_between(keys.JOB_PREFIX, first, ""),
            where=there,
            page=MAX_JOBS + 2,
            attributes=WITHOUT_PAYLOAD,
        )
        jobs = (Job.from_item(item) for item in items)
        wanted = (job for job in jobs if place is None or place.at is not None or job.job_id != place.job_id)
        return islice(wanted, MAX_JOBS + 1)

    def moment(self, now: float, history: History) -> Moment:
        """The time of a question at `now`, with the mark as it is stored."""
        mark = self._index.mark()
        planned_until = mark.planned_until if mark else -math.inf
        return Moment(now, planned_until, now - history.kept_s)

    def history(self, tenant: str, from_at: float, kept_s: int) -> History:
        """The tenant's audit since `from_at`, or as far back as a call reads."""
        wanted = EntryFilter(from_at=max(0, math.floor(from_at)))
        entries, more = self._audit.page(tenant, wanted, limit=MAX_ENTRIES)
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
        return History(changes, read_from_at, min(RETENTION_S, kept_s, *(days * DAY_S for days in kept_days)))

    def eras(
        self,
        tenant: str,
        job_id: str,
        job: Job | None,
        history: History,
        calendars: CalendarReader,
    ) -> Eras:
        """The eras of a job, as far as the history goes back."""
        entries, known_from_at = history.of_job(job_id, job), history.read_from_at
        if job and not entries:  # it has not changed since, however far the audit was read
            known_from_at = min(known_from_at, job.updated_at + 1)
        return eras_of(job_key(tenant, job_id), job, entries, known_from_at, calendars)

    def _page(
        self,
        tenant: str,
        job_id: str,
        eras: Eras,
        due: list[Due],
        start: int,
        end: int,
        moment: Moment,
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
                records = [one for one in records if one["fire_at"] < until]
                due = [one for one in due if one.fire_at < until]
            records += self._runs.after(tenant, job_id, until, due, records, moment)
        else:
            records = known
        found = [one for one in expected(due, records, moment) if start <= one.fire_at < until]
        return JobPage(job_id, found, eras.known_from_at, until if until < end else None)
