"""The versions of a job's schedule, rebuilt from the job, its audit and its calendars. Pure.

The job says what is in force now. Each audit entry of a change of its times says what was in force before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from common.jobs.calendars import Calendars, stored_dates
from common.jobs.job import ACTIVE, Job
from common.jobs.ledger import JobTimes, read_times
from common.storage.wire import DAMAGE
from common.tenants.audit import Entry
from common.timing.excluded_days import Dates, DaysOfEach, ExcludedDays, calendar_days
from common.timing.fires import due_at, fires
from common.timing.schedule import Schedule

CHANGES: Final = frozenset({"job.created", "job.changed", "job.paused", "job.resumed", "job.deleted"})
ALWAYS: Final = -math.inf
# How far ahead windows can be planned already: they keep to the calendars as they were.
_CALENDAR_SETTLES_S: Final = 1_500
# Takes names of calendars, returns their dates and the time of the latest change of any of them.
CalendarDates = Callable[[Schedule], tuple[ExcludedDays | DaysOfEach, float]]
# Takes authors as the audit has them, returns the names of their keys.
NamesOf = Callable[[Iterable[str]], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class ScheduleVersion:
    """The times in force during [from_at, until_at); None: there was no such job.

    `began_by` is the change that began it, None if that is too old.
    """

    from_at: float
    until_at: float
    times: JobTimes | None
    began_by: Entry | None


@dataclass(frozen=True, slots=True)
class DueInstant:
    """An instant at which a job was or is due."""

    fire_at: int
    due_at: int
    schedule_revision: int
    # How much its pace may delay it.
    tolerance_s: int = 0


@dataclass(frozen=True, slots=True)
class ScheduleHistory:
    """The schedule versions of one job, oldest first, and from when on they are known."""

    job_key: str
    versions: Sequence[ScheduleVersion]
    known_from_at: float
    # Earlier versions are unknown because a calendar changed.
    by_calendar: bool = False

    def at(self, instant: float) -> ScheduleVersion | None:
        """The version in force at an instant; None if it is not known."""
        return next(
            (version for version in self.versions if version.from_at <= instant < version.until_at), None
        )

    def with_author(self, instant: float, names_of: NamesOf) -> ScheduleHistory:
        """The same, with the name of the author of the version in force at an instant."""
        version = self.at(instant)
        if version is None or version.began_by is None:
            return self
        by = version.began_by.by
        began_by = replace(version.began_by, by_name=names_of([by]).get(by, ""))
        return replace(
            self,
            versions=[
                replace(other, began_by=began_by) if other is version else other for other in self.versions
            ],
        )

    def due(self, start: int, end: int, calendars: CalendarDates) -> Iterator[DueInstant]:
        """The due set of [start, end), in order: what ticks plan, from the times that were in force at each instant."""
        for version in self.versions:
            yield from self._of_version(version, start, end, calendars)

    def _of_version(
        self, version: ScheduleVersion, start: int, end: int, calendars: CalendarDates
    ) -> Iterator[DueInstant]:
        times = version.times
        if times is None or times.state != ACTIVE:
            return
        first = max(start, times.effective_at, _ceil(version.from_at, start))
        last = min(end, _ceil(version.until_at, end))
        if first >= last:
            return
        excluded, _ = calendars(times.schedule)
        for fire_at in fires(times.schedule, first, last, excluded=excluded):
            due = due_at(times.schedule, self.job_key, fire_at)
            yield DueInstant(fire_at, due, times.schedule_revision, times.schedule.tolerance_s)


def schedule_history(
    job_key: str, job: Job | None, entries: Iterable[Entry], read_from_at: float, calendars: CalendarDates
) -> ScheduleHistory:
    """The schedule history of a job. `entries` are its audit entries since `read_from_at`, the latest first."""
    versions: list[ScheduleVersion] = []
    current, until_at = JobTimes.of(job), math.inf
    known_from_at = read_from_at
    for entry in entries:
        if entry.action not in CHANGES or not entry.times:
            continue
        versions.append(ScheduleVersion(entry.at, until_at, current, entry))
        try:
            until_at, current = entry.at, read_times(entry.times)
        except DAMAGE:  # what was before is not known
            return _with_calendars(ScheduleHistory(job_key, versions[::-1], entry.at), calendars)
    if current is None:  # nothing was before it was created
        known_from_at = ALWAYS
    versions.append(ScheduleVersion(known_from_at, until_at, current, None))
    return _with_calendars(ScheduleHistory(job_key, versions[::-1], known_from_at), calendars)


def _with_calendars(versions: ScheduleHistory, calendars: CalendarDates) -> ScheduleHistory:
    """Only what is known of the calendars, too: their former dates are not kept."""
    known_from_at = versions.known_from_at
    for version in versions.versions:
        if version.times and version.times.schedule.named_calendars and version.times.state == ACTIVE:
            changed_at = calendars(version.times.schedule)[1]
            # A job that was registered since then was planned with the present dates from its beginning.
            is_newer = version.began_by is not None and changed_at + 1 <= version.from_at
            since = changed_at + _CALENDAR_SETTLES_S
            if since > version.from_at and not is_newer:
                known_from_at = max(known_from_at, min(since, version.until_at))
    kept = [
        replace(version, from_at=max(version.from_at, known_from_at))
        for version in versions.versions
        if version.until_at > known_from_at
    ]
    return ScheduleHistory(versions.job_key, kept, known_from_at, known_from_at > versions.known_from_at)


def _ceil(instant: float, otherwise: int) -> int:
    return math.ceil(instant) if math.isfinite(instant) else otherwise


@dataclass(frozen=True, slots=True)
class AuditedChanges:
    """Each job's changes since `read_from_at` by the audit, the latest first, and for how long records were kept."""

    changes: Mapping[str, list[Entry]]
    read_from_at: float
    retention_s: int

    def of_job(self, job_id: str, job: Job | None) -> list[Entry]:
        """The changes of a job that had been made when the job was read, the latest first."""
        changes = [
            entry for entry in self.changes.get(job_id, ()) if job is None or _revision(entry) <= job.revision
        ]
        # Entries of one millisecond are stored in any order.
        return sorted(changes, key=lambda entry: (entry.at, _revision(entry)), reverse=True)


@dataclass(slots=True)
class CalendarReader:
    """The calendars of one tenant for one answer. Each is read once, with the time of its last change."""

    calendars: Calendars
    tenant: str
    _read: dict[str, tuple[Dates, float]] = field(default_factory=dict)

    def __call__(self, schedule: Schedule) -> tuple[ExcludedDays | DaysOfEach, float]:
        changed = [self._dates_of(name)[1] for name in schedule.named_calendars]
        return calendar_days(schedule, self.dates), max(changed, default=-math.inf)

    def dates(self, name: str) -> Dates:
        """The dates of one calendar; none if it is missing."""
        return self._dates_of(name)[0]

    def _dates_of(self, name: str) -> tuple[Dates, float]:
        if name not in self._read:
            self._read[name] = self._load(name)
        return self._read[name]

    def _load(self, name: str) -> tuple[Dates, float]:
        item = self.calendars.find(self.tenant, name)
        if item is None:  # whether it fires is not known
            return Dates(()), math.inf
        return stored_dates(item), float(item["updated_at"])


def _revision(entry: Entry) -> int:
    """The revision that a change of a job made. The entry of a deletion shows only the revision before it."""
    if "revision" in entry.after:
        return int(entry.after["revision"])
    return int(entry.before.get("revision", 0)) + 1
