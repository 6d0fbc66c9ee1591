"""Calendars: dates that a tenant stores once under a name, and names in the jobs that shall not fire on them.

Stored are ISO dates and nothing else to evaluate: whoever stores a calendar resolves it (`common/calendar_sources.py`),
so that a tick, a registration and an executor read dates only.

When a change of a calendar takes effect:
- a date added stops every execution that has not started yet: the planning of later windows leaves it out, and what is
  in the queue already is recorded as skipped(excluded) by the executor, which asks again when the execution is due;
- a date removed takes effect from the next window to be planned: fire times in a window that is planned already (at
  most 25 minutes ahead) were left out of it, and stay so. Remove a date before its day begins.

A calendar that jobs name cannot be deleted, since nobody could say whether they shall fire then. A registration that
crosses the deletion can still come to name one that is gone: such a job does not fire and says so, in a run
skipped(invalid), until the calendar is stored again or the job names it no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from common import keys
from common.audit import Scribe
from common.errors import Conflict, InvalidInput, Minute8Error, NotFound
from common.job import DELETED
from common.schedule import check_calendar_name
from common.tables import Condition, ConditionFailed, Item, Table, Transaction

# Of the jobs that stand in the way of a deletion, how many an error names.
_NAMED_JOBS = 3


class CalendarInUse(Conflict):
    """A calendar cannot be deleted while jobs name it."""

    def __init__(self, name: str, job_ids: list[str]) -> None:
        self.name = name
        self.job_ids = job_ids
        super().__init__(f"calendar {name!r} is named by jobs: {', '.join(job_ids)}")


class MissingCalendar(Minute8Error):
    """A job names a calendar that is not there: whether it fires on a date cannot be told."""


@dataclass(frozen=True, slots=True)
class Calendar:
    """A stored calendar. `source` says where its dates came from, in the words it was asked for."""

    tenant: str
    name: str
    dates: tuple[str, ...]
    source: Mapping[str, Any] = field(default_factory=dict)
    created_at: int = 0
    updated_at: int = 0

    def to_item(self) -> Item:
        # One text: thousands of attribute values would take a hundred times as long to read.
        return {
            "tenant": self.tenant,
            "name": self.name,
            "dates": ",".join(self.dates),
            "source": dict(self.source),
            "created_at": self.created_at,
            "updated_at": self.updated_at,
        }

    @classmethod
    def from_item(cls, item: Item) -> Calendar:
        return cls(
            tenant=item["tenant"],
            name=item["name"],
            dates=tuple(item["dates"].split(",")) if item["dates"] else (),
            source=item["source"],
            created_at=item["created_at"],
            updated_at=item["updated_at"],
        )


class Calendars:
    """The calendars in the jobs table. Every method takes the tenant from the credential.

    Whoever changes them gives a scribe, which writes that down.
    """

    def __init__(self, jobs: Table, scribe: Scribe | None = None) -> None:
        self._table = jobs
        self._scribe = scribe or Scribe()

    def put(self, tenant: str, name: str, raw: object, now: float) -> Calendar:
        """Store a calendar or replace the whole of it; `raw` is what `calendar_sources.resolved` takes.

        Raises InvalidInput, Busy; nothing is stored then.
        """
        # Here, for the stages read calendars and never store one.
        from common.calendar_sources import resolved

        check_calendar_name(name, "name")
        dates, source = resolved(raw, int(now))
        old = self._table.get(keys.calendar(tenant, name))
        created_at = old["created_at"] if old else int(now)
        calendar = Calendar(tenant, name, dates, source, created_at, int(now))
        tx = Transaction(self._table.client)
        tx.put(self._table, {**keys.calendar(tenant, name), **calendar.to_item()})
        before = _audited(Calendar.from_item(old)) if old else None
        self._scribe.commit(tx, tenant, "calendar.stored", name, now, before=before, after=_audited(calendar))
        return calendar

    def get(self, tenant: str, name: str) -> Calendar:
        """Raises NotFound."""
        item = self._table.get(keys.calendar(tenant, name))
        if item is None:
            raise NotFound("calendar", name)
        return Calendar.from_item(item)

    def list_calendars(self, tenant: str, after_name: str = "", limit: int = 100) -> Iterator[Calendar]:
        """A tenant's calendars in the order of their names, at most `limit`, from behind `after_name`."""
        after = keys.calendar(tenant, after_name) if after_name else None
        items = self._table.query(tenant, sk_prefix=keys.CALENDAR_PREFIX, after=after, limit=limit)
        return (Calendar.from_item(item) for item in items)

    def delete(self, tenant: str, name: str, now: float) -> None:
        """Delete a calendar that no job names. Reads the tenant's jobs. Raises NotFound, CalendarInUse, Busy."""
        calendar = self.get(tenant, name)
        there = Condition("#state <> :deleted", {":deleted": DELETED})
        jobs = self._table.query(tenant, sk_prefix=keys.JOB_PREFIX, where=there)
        naming = (item["job_id"] for item in jobs if name in item["schedule"].get("calendars", ()))
        if job_ids := list(islice(naming, _NAMED_JOBS)):
            raise CalendarInUse(name, job_ids)
        tx = Transaction(self._table.client)
        tx.delete(self._table, keys.calendar(tenant, name), Condition("attribute_exists(pk)", {}))
        try:
            self._scribe.commit(tx, tenant, "calendar.deleted", name, now, before=_audited(calendar))
        except ConditionFailed:  # somebody else was faster
            raise NotFound("calendar", name) from None

    def check_named(self, tenant: str, names: Iterable[str]) -> None:
        """Refuse names of calendars that are not there. Raises InvalidInput."""
        for name in names:
            if self._table.get(keys.calendar(tenant, name)) is None:
                raise InvalidInput(
                    "schedule.exclude.calendars",
                    "no such calendar",
                    value=name,
                    accepted="the name of a stored calendar",
                )

    def excluded(self, tenant: str, names: tuple[str, ...]) -> frozenset[str]:
        """The dates of all these calendars, as they are now. Raises MissingCalendar."""
        return frozenset().union(*(self._dates(tenant, name) for name in names))

    def _dates(self, tenant: str, name: str) -> frozenset[str]:
        item = self._table.get(keys.calendar(tenant, name))
        if item is None:
            raise MissingCalendar(f"it names the calendar {name!r}, which does not exist")
        return frozenset(item["dates"].split(","))


class RememberedCalendars:
    """Calendars as one tick or one answer sees them: each read once, and by every entry alike."""

    def __init__(self, calendars: Calendars) -> None:
        self._calendars = calendars
        self._read: dict[tuple[str, tuple[str, ...]], frozenset[str]] = {}

    def excluded(self, tenant: str, names: tuple[str, ...]) -> frozenset[str]:
        """As `Calendars.excluded`."""
        if not names:
            return frozenset()
        dates = self._read.get((tenant, names))
        if dates is None:
            one_by_one = (self._one(tenant, name) for name in names)
            dates = self._read[tenant, names] = frozenset().union(*one_by_one)
        return dates

    def _one(self, tenant: str, name: str) -> frozenset[str]:
        dates = self._read.get((tenant, (name,)))
        if dates is None:
            dates = self._read[tenant, (name,)] = self._calendars.excluded(tenant, (name,))
        return dates


def _audited(calendar: Calendar) -> Item:
    return {"dates": list(calendar.dates), "source": dict(calendar.source)}
