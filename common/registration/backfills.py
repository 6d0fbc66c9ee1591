"""Backfills of past ranges: how many executions they have, and their begin, progress and end."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Final

from msgspec import structs

from common.clock import Clock
from common.errors import Conflict, InvalidInput, NotFound
from common.jobs.backfill import Backfill, first_steps
from common.jobs.calendars import Calendars, MissingCalendar
from common.jobs.job import Job
from common.jobs.store import JobStore
from common.limits import (
    BACKFILL_EXCLUDED_DATES,
    BACKFILL_FIRES,
    BACKFILLS_LISTED,
)
from common.planning.queue import ExecutionsQueue
from common.storage import keys
from common.storage.aws import readable
from common.storage.conflicts import ConditionFailed
from common.storage.expressions import change
from common.storage.table import Query, Table
from common.storage.transactions import Transaction
from common.storage.wire import Expression
from common.timing.excluded_days import MAX_MOVE_DAYS, SimpleExcluded, of_parts
from common.timing.fires import fires, local_date
from common.timing.instants import rfc3339
from common.timing.schedule import SKIP, Schedule
from common.timing.zones import iso_date

# A list of a job's backfills looks at so many.
MAX_READ: Final = 2_000


@dataclass(frozen=True, slots=True)
class BackfillCommands:
    """A tenant's backfills; the tenant comes from the credential."""

    store: JobStore
    queue: ExecutionsQueue
    clock: Clock

    def count(self, tenant: str, job_id: str, start: int, end: int) -> int:
        """The number of executions of a backfill of [start, end). Raises NotFound, InvalidInput, Conflict."""
        return len(self._backfilled(self.store.get(tenant, job_id), start, end)[1])

    def start(
        self, tenant: str, job_id: str, start: int, end: int, concurrency: int, backfill_id: str
    ) -> Backfill:
        """Run the fire times of [start, end) again, `concurrency` at a time; when one ends, the next starts.

        The same `backfill_id` always means the same backfill. Raises NotFound, InvalidInput, Conflict.
        """
        job = self.store.get(tenant, job_id)
        schedule, times = self._backfilled(job, start, end)
        now = math.floor(self.clock.now())
        backfill = Backfill(
            tenant=tenant,
            job_id=job_id,
            backfill_id=backfill_id,
            start_at=start,
            end_at=end,
            schedule=schedule,
            schedule_revision=job.schedule_revision,
            concurrency=concurrency,
            total=len(times),
            next_at=times[0] if times else end,
            created_at=now,
            is_started=False,
        )
        first, started = first_steps(backfill, now)
        key = keys.backfill(tenant, job_id, backfill_id)
        command = {name: getattr(backfill, name) for name in ("backfill_id", "start_at", "end_at", "total")}
        tx = Transaction(self.store.jobs.client)
        # Stored with the pointer after the first executions, which are sent next and may end at once.
        tx.put(self.store.jobs, {**key, **started.to_item()}, Expression("attribute_not_exists(pk)", {}))
        try:
            self.store.audited.commit(tx, tenant, "job.backfilled", job_id, now, after=command)
        except ConditionFailed as before:
            stored = Backfill.from_item(before.existing or started.to_item())
            if stored.is_started or (stored.start_at, stored.end_at) != (start, end):
                raise Conflict(f"backfill {backfill_id!r} of job {job_id!r} exists already") from None
            first, started = stored.first(now), stored  # the request that began it was interrupted
        self.store.index.log.note(first, now)
        self.queue.send(first)
        self.store.jobs.update(key, change({"is_started": True}))
        return structs.replace(started, is_started=True)

    def progress(self, tenant: str, job_id: str, backfill_id: str) -> Backfill:
        """The progress of a backfill. Raises NotFound."""
        item = self.store.jobs.get(keys.backfill(tenant, job_id, backfill_id))
        if item is None:
            raise NotFound("backfill", backfill_id)
        return Backfill.from_item(item)

    def cancel(self, tenant: str, job_id: str, backfill_id: str, note: str) -> Backfill:
        """Enqueue no more of its fire times, and skip those that have not started. Running ones end as they do.

        Repeating it changes nothing. Raises NotFound.
        """
        backfill, now = self.progress(tenant, job_id, backfill_id), math.floor(self.clock.now())
        if backfill.cancelled_at:
            return backfill
        tx = Transaction(self.store.jobs.client)
        tx.update(
            self.store.jobs,
            keys.backfill(tenant, job_id, backfill_id),
            Expression("SET #next_at = :end, #cancelled_at = :now", {":end": backfill.end_at, ":now": now}),
            Expression("attribute_exists(pk)", {}),
        )
        after = {"backfill_id": backfill_id, "note": note or None}
        self.store.audited.commit(tx, tenant, "job.backfill_cancelled", job_id, now, after=after)
        return self.progress(tenant, job_id, backfill_id)

    def _backfilled(self, job: Job, start: int, end: int) -> tuple[Schedule, list[int]]:
        """The schedule with the current dates of its calendars, and its fire times in [start, end)."""
        now = math.floor(self.clock.now())
        if not start < end:
            raise InvalidInput(
                "end_at", "must be after start_at", value=rfc3339(end), accepted="a later instant"
            )
        if end > now:
            raise InvalidInput(
                "end_at", "is in the future", value=rfc3339(end), accepted="a range that is past"
            )
        schedule = with_calendars(self.store.jobs, job, start, end)
        times: list[int] = []
        for fire_at in fires(schedule, start, end):
            times.append(fire_at)
            if len(times) > BACKFILL_FIRES:
                raise InvalidInput(
                    "start_at",
                    f"the range holds over {BACKFILL_FIRES} fire times",
                    value=rfc3339(start),
                    accepted="a shorter range",
                )
        return schedule, times

    def listed(self, tenant: str, job_id: str) -> tuple[list[Backfill], bool]:
        """The newest BACKFILLS_LISTED backfills of a job, and whether there are more. Raises NotFound.

        They are stored by their ids: of more than MAX_READ, those with the first ids are looked at.
        """
        self.store.get(tenant, job_id)
        query = Query(tenant, sk_prefix=keys.backfills_of(job_id), limit=MAX_READ)
        backfills = readable(self.store.jobs.query(query), Backfill.from_item)
        newest = sorted(backfills, key=lambda backfill: backfill.created_at, reverse=True)
        return newest[:BACKFILLS_LISTED], len(newest) > BACKFILLS_LISTED


def with_calendars(jobs: Table, job: Job, start: int, end: int) -> Schedule:
    """The schedule with the dates that calendars exclude around [start, end) as its own exclusions.

    Raises Conflict (a missing calendar), InvalidInput.
    """
    schedule = job.schedule
    if not schedule.named_calendars:
        return schedule
    try:
        excluded = Calendars(jobs).excluded(job.tenant, schedule)
    except MissingCalendar as missing:
        raise Conflict(f"job {job.job_id!r} cannot be planned: {missing}") from None
    parts = tuple(_with_dates(part, days, start, end) for part, days in of_parts(schedule, excluded))
    before = sum(len(part.exclude_dates) for part in schedule.parts)
    if sum(len(part.exclude_dates) for part in parts) - before > BACKFILL_EXCLUDED_DATES:
        raise InvalidInput(
            "start_at",
            f"the range holds over {BACKFILL_EXCLUDED_DATES} dates of calendars",
            value=rfc3339(start),
            accepted="a shorter range",
        )
    return parts[0] if schedule.schedules is None else structs.replace(schedule, schedules=parts)


def _with_dates(schedule: Schedule, excluded: SimpleExcluded, start: int, end: int) -> Schedule:
    """A single schedule with the dates as its own exclusions: at most one more than a backfill may have."""
    around = 0 if schedule.on_excluded == SKIP else MAX_MOVE_DAYS
    first, last = (date.fromisoformat(local_date(schedule, at)).toordinal() for at in (start, end))
    days = map(iso_date, range(first - around, last + around + 1))
    new = (day for day in days if day in excluded and day not in schedule.exclude_dates)
    all_dates = tuple(sorted((*islice(new, BACKFILL_EXCLUDED_DATES + 1), *schedule.exclude_dates)))
    return structs.replace(schedule, exclude_dates=all_dates, calendars=(), include_calendars=())
