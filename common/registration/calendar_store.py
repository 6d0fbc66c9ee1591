"""Stores and deletes a tenant's calendars.

When a change of a calendar takes effect:
- An added date stops every execution that has not started yet. Later windows are planned without it. The executor
  checks again when an execution is due, and records it as skipped(excluded).
- A removed date takes effect from the next window to be planned. Windows that are planned already (at most 25 minutes
  ahead) have left out its fire times. Remove a date before its day begins.

A calendar that jobs name cannot be deleted, since it would be unknown whether these jobs fire. So a deletion marks the
calendar, reads the jobs, and deletes the calendar only if the mark is still its own. A job that newly names a calendar
is stored in a transaction that fails if the calendar is marked or missing. Storing the calendar removes the mark.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from itertools import islice

from common.errors import Conflict, NotFound
from common.jobs.calendars import DELETING, Calendar, Calendars
from common.jobs.job import DELETED
from common.registration.calendar_sources import dates_of
from common.registration.schedule_text import check_calendar_name
from common.storage import keys
from common.storage.tables import ConditionFailed, Expression, Item, Table, Transaction
from common.tenants.audit import AuditedCommit

# Each has up to 27 KB, and a page of the list has 200.
MOST_CALENDARS = 100
# How many of the jobs that name the calendar an error shows.
_NAMED_JOBS = 3


class CalendarInUse(Conflict):
    """A calendar cannot be deleted while jobs name it."""

    def __init__(self, name: str, job_ids: list[str]) -> None:
        self.name = name
        self.job_ids = job_ids
        super().__init__(f"calendar {name!r} is named by jobs: {', '.join(job_ids)}")


class CalendarStore(Calendars):
    """Calendars that a tenant can change; `audited` audits each change."""

    def __init__(self, jobs: Table, audited: AuditedCommit) -> None:
        super().__init__(jobs)
        self._audited = audited

    def put(self, tenant: str, name: str, raw: object, now: float) -> Calendar:
        """Store a calendar or replace the whole of it; `raw` is what `calendar_sources.dates_of` takes.

        Raises InvalidInput, Conflict, Busy; nothing is stored then.
        """
        check_calendar_name(name, "name")
        dates, source = dates_of(raw, int(now))
        old = self.table.get(keys.calendar(tenant, name))
        if old is None:
            self._check_room(tenant)
        created_at = old["created_at"] if old else int(now)
        calendar = Calendar(tenant, name, dates, source, created_at, int(now))
        tx = Transaction(self.table.client)
        tx.put(self.table, {**keys.calendar(tenant, name), **calendar.to_item()})
        before = _audit_view(Calendar.from_item(old)) if old else None
        self._audited.commit(
            tx, tenant, "calendar.stored", name, now, before=before, after=_audit_view(calendar)
        )
        return calendar

    def _check_room(self, tenant: str) -> None:
        """Raises Conflict. Calendars that are stored at one instant can be some more."""
        names = self.table.query(
            tenant, sk_prefix=keys.CALENDAR_PREFIX, limit=MOST_CALENDARS, attributes=("name",)
        )
        if sum(1 for _ in names) >= MOST_CALENDARS:
            raise Conflict(f"there are {MOST_CALENDARS} calendars, which are the most; delete one before")

    def delete(self, tenant: str, name: str, now: float) -> None:
        """Delete a calendar that no job names. Reads the tenant's jobs.

        Raises NotFound, CalendarInUse, Busy; Conflict if it is stored, or deleted by another request, meanwhile.
        """
        key, mine = (
            keys.calendar(tenant, name),
            Expression(f"#{DELETING} = :mine", {":mine": secrets.token_hex(8)}),
        )
        try:
            marked = self.table.update(
                key,
                Expression(f"SET #{DELETING} = :mine", mine.values),
                Expression("attribute_exists(pk)", {}),
            )
        except ConditionFailed:
            raise NotFound("calendar", name) from None
        there = Expression("#state <> :deleted", {":deleted": DELETED})
        jobs = self.table.query(tenant, sk_prefix=keys.JOB_PREFIX, where=there)
        naming = (item["job_id"] for item in jobs if name in item["schedule"].get("calendars", ()))
        if job_ids := list(islice(naming, _NAMED_JOBS)):
            with suppress(ConditionFailed):
                self.table.update(key, Expression(f"REMOVE #{DELETING}", {}), mine)
            raise CalendarInUse(name, job_ids)
        tx = Transaction(self.table.client)
        tx.delete(self.table, key, mine)
        before = _audit_view(Calendar.from_item(marked))
        try:
            self._audited.commit(tx, tenant, "calendar.deleted", name, now, before=before)
        except ConditionFailed:
            self.get(tenant, name)
            raise Conflict(f"calendar {name!r} was stored, or is being deleted, by another request") from None


def _audit_view(calendar: Calendar) -> Item:
    return {"dates": list(calendar.dates), "source": dict(calendar.source)}
