"""The eras of a job: what its times were, from when to when. Rebuilt from the job and the audit. Pure.

The job says what is in force now. Each audit entry of a change of its times says what was in force before it. Entries
that an older version wrote may not say that; what was before them is then unknown.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from common.jobs.job import ACTIVE, PAUSED, Job
from common.jobs.times import Times, decode_times
from common.tenants.audit import Entry
from common.timing.fires import due_at, fires

CHANGES: Final = frozenset({"job.created", "job.changed", "job.paused", "job.resumed", "job.deleted"})
ALWAYS: Final = -math.inf
# How far ahead windows can be planned already: they keep to the calendars as they were.
_CALENDAR_SETTLES_S: Final = 1_500
# Takes names of calendars, returns their dates, and the time at which one of them changed last.
CalendarDates = Callable[[tuple[str, ...]], tuple[Container[str], float]]
# Takes authors as the audit has them, returns the names of their keys.
NamesOf = Callable[[Iterable[str]], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Era:
    """The times in force during [from_at, until_at); None: there was no such job.

    `began_by` is the change that began it, None if that is too old. If a change ended it, ticks had then planned
    everything before `planned_until`.
    """

    from_at: float
    until_at: float
    times: Times | None
    began_by: Entry | None
    planned_until: float = math.inf


@dataclass(frozen=True, slots=True)
class Due:
    """An instant at which a job was or is due. `planned_until`: as in its era."""

    fire_at: int
    due_at: int
    schedule_revision: int
    planned_until: float = math.inf
    # How much its pace may delay it.
    tolerance_s: int = 0


@dataclass(frozen=True, slots=True)
class Eras:
    """The eras of one job, oldest first, and from when on they are known."""

    job_key: str
    eras: Sequence[Era]
    known_from_at: float
    # Whether a change of a calendar is why they are not known before.
    by_calendar: bool = False

    def at(self, instant: float) -> Era | None:
        """The era at an instant; None if it is not known."""
        return next((era for era in self.eras if era.from_at <= instant < era.until_at), None)

    def with_author(self, instant: float, names_of: NamesOf) -> Eras:
        """The same, with the name of who began the era at an instant."""
        era = self.at(instant)
        if era is None or era.began_by is None:
            return self
        by = era.began_by.by
        began_by = replace(era.began_by, by_name=names_of([by]).get(by, ""))
        return replace(
            self, eras=[replace(one, began_by=began_by) if one is era else one for one in self.eras]
        )

    def due(self, start: int, end: int, calendars: CalendarDates) -> Iterator[Due]:
        """The due set of [start, end), in order: what ticks plan, from the times that were in force at each instant."""
        for era in self.eras:
            yield from self._of_era(era, start, end, calendars)

    def _of_era(self, era: Era, start: int, end: int, calendars: CalendarDates) -> Iterator[Due]:
        times = era.times
        if times is None or times.state != ACTIVE:
            return
        first = max(start, times.effective_at, _ceil(era.from_at, start))
        last = min(end, _ceil(era.until_at, end))
        if first >= last:
            return
        excluded, _ = calendars(times.schedule.calendars)
        for fire_at in fires(times.schedule, first, last, excluded=excluded):
            due = due_at(times.schedule, self.job_key, fire_at)
            yield Due(fire_at, due, times.schedule_revision, era.planned_until, times.schedule.tolerance_s)


def eras_of(
    job_key: str, job: Job | None, entries: Iterable[Entry], read_from_at: float, calendars: CalendarDates
) -> Eras:
    """The eras of a job. `entries` are its audit entries since `read_from_at`, the latest first."""
    found: list[Era] = []
    current, until_at, planned_until = Times.of(job), math.inf, math.inf
    known_from_at = read_from_at
    for entry in entries:
        if entry.action not in CHANGES or not _moves(entry):
            continue
        found.append(Era(entry.at, until_at, current, entry, planned_until))
        until_at = entry.at
        before = _before(entry, current)
        if before is None:
            known_from_at = entry.at
            break
        current, planned_until = before
    else:
        if current is None:  # nothing was before it was created
            known_from_at = ALWAYS
        found.append(Era(known_from_at, until_at, current, None, planned_until))
    return _with_calendars(Eras(job_key, found[::-1], known_from_at), calendars)


def _moves(entry: Entry) -> bool:
    """Whether the change moved the job's times. Older entries show it by what they moved."""
    shown = {*entry.before, *entry.after}
    return bool(entry.times or entry.action != "job.changed" or "schedule_revision" in shown)


def _before(entry: Entry, after: Times | None) -> tuple[Times | None, float] | None:
    """The times before a change, and up to where ticks had planned; None if that is unknown."""
    if entry.times:
        return decode_times(entry.times)
    if entry.action == "job.created":
        return None, math.inf
    if entry.action in ("job.paused", "job.resumed") and after is not None:
        return replace(after, state=ACTIVE if entry.action == "job.paused" else PAUSED), math.inf
    return None


def _with_calendars(eras: Eras, calendars: CalendarDates) -> Eras:
    """Only what is known of the calendars, too: their former dates are not kept."""
    known_from_at = eras.known_from_at
    for era in eras.eras:
        if era.times and era.times.schedule.calendars and era.times.state == ACTIVE:
            changed_at = calendars(era.times.schedule.calendars)[1]
            # A job that was registered since then was planned with the present dates from its beginning.
            is_newer = era.began_by is not None and changed_at + 1 <= era.from_at
            since = changed_at + _CALENDAR_SETTLES_S
            if since > era.from_at and not is_newer:
                known_from_at = max(known_from_at, min(since, era.until_at))
    kept = [
        replace(era, from_at=max(era.from_at, known_from_at))
        for era in eras.eras
        if era.until_at > known_from_at
    ]
    return Eras(eras.job_key, kept, known_from_at, known_from_at > eras.known_from_at)


def _ceil(instant: float, otherwise: int) -> int:
    return math.ceil(instant) if math.isfinite(instant) else otherwise
