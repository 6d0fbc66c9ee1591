"""Calendars: dates that a tenant stores under a name. Jobs that name one fire never on these dates, or only on them.

Only ISO dates are stored. `common/registration/calendar_store.py` resolves and stores them, so ticks, registrations and
executors only read dates.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import cache, partial
from typing import Any

from msgspec import Struct, field

from common.cache import convert
from common.errors import InvalidInput, Minute8Error, NotFound
from common.storage import keys
from common.storage.aws import readable
from common.storage.stored import read
from common.storage.table import Query, Table
from common.storage.wire import DAMAGE, Item
from common.timing.excluded_days import (
    NO_DAYS,
    Dates,
    DaysOfEach,
    ExcludedDays,
    calendar_days,
    days_of,
    single_days,
)
from common.timing.schedule import Schedule


class MissingCalendar(Minute8Error):
    """A job names a calendar that is missing or unreadable, so it is unknown whether the job fires on a date."""


class Calendar(Struct, frozen=True, kw_only=True):
    """A stored calendar. `source` describes where its dates came from, as the request did.

    Its dates are one text: reading thousands of attribute values would take a hundred times as long.
    """

    tenant: str
    name: str
    text: str = field(name="dates")
    source: dict[str, Any]
    created_at: int
    updated_at: int
    revision: int = 1

    @property
    def dates(self) -> tuple[str, ...]:
        return tuple(self.text.split(",")) if self.text else ()


class Calendars:
    """The calendars in the jobs table. Every method takes the tenant from the credential."""

    def __init__(self, jobs: Table) -> None:
        self.table = jobs

    def get(self, tenant: str, name: str) -> Calendar:
        """Raises NotFound."""
        item = self.find(tenant, name)
        if item is None:
            raise NotFound("calendar", name)
        return read(item, Calendar)

    def find(self, tenant: str, name: str) -> Item | None:
        """The stored item of a calendar, or None."""
        return self.table.get(keys.calendar(tenant, name))

    def list_calendars(self, tenant: str, after_name: str = "", limit: int = 100) -> Iterator[Calendar]:
        """A tenant's calendars after `after_name`, in the order of their names, at most `limit`."""
        after = keys.calendar(tenant, after_name) if after_name else None
        items = self.table.query(Query(tenant, sk_prefix=keys.CALENDAR_PREFIX, after=after, limit=limit))
        return readable(items, lambda stored: convert(stored, Calendar))

    def check_named(
        self, tenant: str, names: Iterable[str], named_in: str = "schedule.exclude.calendars"
    ) -> None:
        """Refuse names of calendars that do not exist. Raises InvalidInput."""
        for name in names:
            if self.table.get(keys.calendar(tenant, name)) is None:
                raise InvalidInput(
                    named_in,
                    "no such calendar",
                    value=name,
                    accepted="the name of a stored calendar",
                )

    def excluded(self, tenant: str, schedule: Schedule) -> ExcludedDays | DaysOfEach:
        """The dates that a schedule's calendars exclude now. Raises MissingCalendar."""
        return calendar_days(schedule, cache(partial(self.dates, tenant)))  # several schedules may name one

    def dates(self, tenant: str, name: str) -> Dates:
        """One calendar's dates. Raises MissingCalendar."""
        item = self.table.get(keys.calendar(tenant, name))
        if item is None:
            raise MissingCalendar(f"it names the calendar {name!r}, which does not exist")
        try:
            return stored_dates(item)
        except DAMAGE as error:
            raise MissingCalendar(
                f"it names the calendar {name!r}, which cannot be read: {error!r}"
            ) from error


def stored_dates(item: Item) -> Dates:
    """The dates of a stored calendar."""
    return Dates(item["dates"].split(",") if item["dates"] else ())


class RememberedCalendars:
    """The calendars for one tick or one answer: each is read once, also a missing one.

    At most MAX_DATES are kept. The least recently used calendars are then read again. Jobs that name the same calendars
    share the merged dates.
    """

    MAX_DATES = 4_000_000
    MAX_COMBINATIONS = 1_000

    def __init__(self, calendars: Calendars) -> None:
        self._calendars = calendars
        self._read: OrderedDict[tuple[str, str], Dates | MissingCalendar] = OrderedDict()
        self._merged: dict[tuple[str, frozenset[str], frozenset[str]], ExcludedDays] = {}
        self._weight = 0

    def excluded(self, tenant: str, schedule: Schedule) -> ExcludedDays | DaysOfEach:
        """As `Calendars.excluded`."""
        return days_of(schedule, lambda part: self._excluded(tenant, part))

    def _excluded(self, tenant: str, schedule: Schedule) -> ExcludedDays:
        if not schedule.calendars and not schedule.include_calendars:
            return NO_DAYS
        combination = tenant, frozenset(schedule.calendars), frozenset(schedule.include_calendars)
        days = self._merged.get(combination)
        if days is None:
            days = single_days(schedule, lambda name: self._dates_of(tenant, name))
            if len(self._merged) == self.MAX_COMBINATIONS:
                self._merged.clear()
            self._merged[combination] = days
        else:
            for calendar in ((tenant, name) for name in schedule.named_calendars):
                if calendar in self._read:
                    self._read.move_to_end(calendar)
        return days

    def _dates_of(self, tenant: str, name: str) -> Dates:
        dates = self._read.get((tenant, name))
        if dates is None:
            dates = self._remember(tenant, name)
        self._read.move_to_end((tenant, name))
        if isinstance(dates, MissingCalendar):
            raise dates
        return dates

    def _remember(self, tenant: str, name: str) -> Dates | MissingCalendar:
        dates: Dates | MissingCalendar
        try:
            dates = self._calendars.dates(tenant, name)
        except MissingCalendar as missing:
            dates = missing.with_traceback(None)
        self._read[tenant, name] = dates
        self._weight += _weight(dates)
        while self._weight > self.MAX_DATES and len(self._read) > 1:
            _, forgotten = self._read.popitem(last=False)
            self._weight -= _weight(forgotten)
            self._merged.clear()  # they hold its dates
        return dates


def _weight(remembered: Dates | MissingCalendar) -> int:
    """The weight of a calendar: the number of its dates, plus a constant for its entry."""
    return 100 + (0 if isinstance(remembered, MissingCalendar) else len(remembered))
