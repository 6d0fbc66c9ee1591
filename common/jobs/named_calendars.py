"""Registrations of jobs that name calendars: a calendar that is newly named stays until they are committed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from common.errors import Conflict
from common.jobs.calendars import DELETING, Calendars
from common.jobs.job import DELETED, Job
from common.storage import keys
from common.storage.table import Transaction
from common.storage.wire import Expression

_KEPT: Final = Expression(f"attribute_exists(pk) AND attribute_not_exists(#{DELETING})", {})


def require_named(calendars: Calendars, tx: Transaction, moved: Sequence[tuple[Job | None, Job]]) -> None:
    """Let `tx` fail if a calendar that a job newly names is deleted or being deleted by then."""
    newly_named = {
        (new.tenant, name)
        for old, new in moved
        for name in new.schedule.calendars
        if old is None or old.state == DELETED or name not in old.schedule.calendars
    }
    for tenant, name in sorted(newly_named):
        tx.check(calendars.table, keys.calendar(tenant, name), _KEPT)


def check_named(calendars: Calendars, failed: keys.Key | None) -> None:
    """Find out why a transaction's check `failed`; returns if it holds now. Raises InvalidInput, Conflict."""
    if failed is None or not failed["sk"].startswith(keys.CALENDAR_PREFIX):
        return
    name = failed["sk"].removeprefix(keys.CALENDAR_PREFIX)
    calendars.check_named(failed["pk"], [name])
    if DELETING in (calendars.table.get(failed) or {}):
        raise Conflict(f"calendar {name!r} is being deleted; to keep it, store it again")
