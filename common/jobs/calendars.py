"""Calendars: dates that a tenant stores once under a name, and names in the jobs that shall not fire on them.

Stored are ISO dates and nothing else to evaluate: `common/registration/calendar_store.py` resolves and stores them,
so that a tick, a registration and an executor read dates only.

"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import InvalidInput, Minute8Error, NotFound
from common.storage import keys
from common.storage.tables import Item, Table


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
    """The calendars in the jobs table. Every method takes the tenant from the credential."""

    def __init__(self, jobs: Table) -> None:
        self._table = jobs

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
