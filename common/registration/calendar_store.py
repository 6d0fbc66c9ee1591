"""A tenant's calendars: what a client may write, and how it is stored and deleted.

When a change of a calendar takes effect:
- An added date stops every execution that has not started yet. Later windows are planned without it. The executor
  checks again when an execution is due, and records it as skipped(excluded).
- A removed date takes effect from the next window to be planned. Windows that are planned already (at most 25 minutes
  ahead) have left out its fire times. Remove a date before its day begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct, to_builtins
from msgspec.structs import replace

from common.declared import Check
from common.errors import NONE_YET, Conflict, InvalidInput, NotFound, RevisionMismatch
from common.ids import check_id
from common.jobs.calendars import Calendar, Calendars
from common.jobs.preconditions import DELETING, NamedDeletion, named_calendars
from common.jobs.store import JobStore
from common.limits import CALENDAR_NAME_CHARS, MAX_DATES, MAX_SOURCE_CHARS, MAX_TENANT_CALENDARS
from common.registration.schedule_definition import LocalDate
from common.storage import keys
from common.storage.conflicts import retry_if_changed
from common.storage.expressions import unchanged
from common.storage.stored import read
from common.storage.table import Query, Table
from common.storage.transactions import Addition, Transaction
from common.storage.wire import Item
from common.tenants.audit import AuditedCommit

_JOBS_AT_ONCE = 100


class CalendarStore(Calendars):
    """Calendars that a tenant can change; `audited` audits each change."""

    def __init__(self, jobs: Table, audited: AuditedCommit) -> None:
        super().__init__(jobs)
        self._audited = audited

    def put(
        self,
        tenant: str,
        name: str,
        definition: Mapping[str, Any],
        now: float,
        expected_revision: int | None = None,
    ) -> Calendar:
        """Store a calendar or replace the whole of it; `definition` has the fields of a CalendarDefinition.

        Nothing is stored if nothing changes. With the expected revision NONE_YET it only creates.
        Raises InvalidInput, Conflict, Busy; with an expected revision RevisionMismatch and NotFound. Nothing is stored
        then.
        """
        check_id("name", name, CALENDAR_NAME_CHARS)
        dates = tuple(sorted(set(definition["dates"])))
        noted = definition.get("source") or {}
        source = {key: value for key, value in noted.items() if value is not None} or {"kind": "dates"}

        def attempt() -> Calendar:
            addition = Addition(self.table, keys.additions(tenant, "calendars"))
            item = self.find(tenant, name)
            old = read(item, Calendar) if item else None
            _check_revision(old, name, expected_revision)
            if old and (old.dates, old.source) == (dates, source) and item and DELETING not in item:
                return old
            calendar = Calendar(
                tenant=tenant,
                name=name,
                text=",".join(dates),
                source=source,
                created_at=int(now),
                updated_at=int(now),
            )
            tx = Transaction(self.table.client)
            if old is None:
                self._check_room(tenant)
                addition.note(tx)
            else:
                calendar = replace(calendar, created_at=old.created_at, revision=old.revision + 1)
            tx.put(
                self.table,
                {**keys.calendar(tenant, name), **to_builtins(calendar)},
                unchanged(item, "revision"),
            )
            before = _audit_view(old) if old else None
            after = _audit_view(calendar)
            self._audited.commit(tx, tenant, "calendar.stored", name, now, before=before, after=after)
            return calendar

        return retry_if_changed(attempt, f"calendar {name!r}", sleep=self._audited.clock.sleep)

    def _check_room(self, tenant: str) -> None:
        """Raises Conflict."""
        names = self.table.query(
            Query(tenant, sk_prefix=keys.CALENDAR_PREFIX, limit=MAX_TENANT_CALENDARS, attributes=("name",))
        )
        if sum(1 for _ in names) >= MAX_TENANT_CALENDARS:
            raise Conflict(
                f"there are {MAX_TENANT_CALENDARS} calendars, which are the most; delete one before"
            )

    def delete(self, tenant: str, name: str, now: float) -> None:
        """Delete a calendar that no job names. Reads the tenant's jobs.

        Raises what `NamedDeletion.delete` raises.
        """
        deletion = NamedDeletion(
            of=named_calendars(self.table),
            jobs=self.table,
            read=("schedule",),
            is_named=_is_named,
            audit_view=lambda item: _audit_view(read(item, Calendar)),
            advice="change them before",
        )
        deletion.delete(tenant, name, now, self._audited)


def jobs_that_end(store: JobStore, tenant: str, calendar: str) -> dict[str, str]:
    """Note the active jobs that fire never again by a calendar as it is now. Returns why, in words, by their ids.

    Reads the tenant's jobs.
    """
    items = store.jobs.query(Query(tenant, sk_prefix=keys.JOB_PREFIX, attributes=("job_id", "schedule")))
    named = [item["job_id"] for item in items if "schedule" in item and _is_named(item, calendar)]
    whys: dict[str, str] = {}
    for first in range(0, len(named), _JOBS_AT_ONCE):
        jobs = store.load_all(tenant, named[first : first + _JOBS_AT_ONCE])
        whys |= {job_id: why for job_id, job in jobs.items() if (why := store.note_if_over(job))}
    return whys


def _is_named(job: Item, calendar: str) -> bool:
    schedule = job["schedule"]
    return any(
        calendar in single.get(kind, ())
        for single in schedule.get("schedules", [schedule])
        for kind in ("calendars", "include_calendars")
    )


def _check_revision(old: Calendar | None, name: str, expected: int | None) -> None:
    if expected is None:
        return
    if old is None:
        if expected == NONE_YET:
            return
        raise NotFound("calendar", name)
    if old.revision != expected:
        raise RevisionMismatch(name, expected, old.revision, kind="calendar")


def _audit_view(calendar: Calendar) -> Item:
    return {"dates": list(calendar.dates), "source": calendar.source}


def _check_source(path: str, source: dict[str, Any]) -> None:
    if (
        not all(key and _is_small(value) for key, value in source.items())
        or len(str(source)) > MAX_SOURCE_CHARS
    ):
        accepted = f"an object of at most {MAX_SOURCE_CHARS} characters with names, text and whole numbers below 2^53"
        raise InvalidInput(path, "must be a small object", value=source, accepted=accepted)


def _is_small(value: object) -> bool:
    return value is None or isinstance(value, str) or (isinstance(value, int) and abs(value) < 1 << 53)


class CalendarDefinition(Struct, forbid_unknown_fields=True):
    """A calendar's dates. The command `minute8` makes them of iCalendar files and countries."""

    dates: Annotated[
        list[LocalDate],
        Meta(
            max_length=MAX_DATES,
            description="Local dates. A job that names the calendar does not fire on them, in its own time zone.",
            examples=[["2026-12-24"]],
        ),
    ]
    source: Annotated[
        Annotated[dict[str, Any], Check(_check_source)] | None,
        Meta(description="A small note of where the dates are from."),
    ] = None
