"""Backfills on a person's command: run the fire times of a past range, look how far that is, cancel it.

`common/jobs/backfill.py` continues them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from common.clock import Clock
from common.errors import Conflict, InvalidInput, NotFound
from common.jobs.backfill import Backfill, first_steps
from common.jobs.calendars import Calendars
from common.jobs.job import Job
from common.jobs.store import JobStore
from common.planning.executions_queue import ExecutionsQueue
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Table, Transaction
from common.storage.wire import Expression
from common.timing.fires import fires, local_date
from common.timing.instants import rfc3339
from common.timing.schedule import Schedule

# The most executions of one backfill. For more, start another one after it.
BACKFILL_LIMIT: Final = 10_000
# The most calendar dates of a backfill. Each of its runs writes its item, which contains them.
BACKFILL_EXCLUDED_DATES: Final = 1_000
# The most backfills of a job that a list shows.
MAX_LISTED: Final = 200


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
        whole = Backfill(
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
            begun=False,
        )
        first, begun = first_steps(whole, now)
        key = keys.backfill(tenant, job_id, backfill_id)
        asked = {name: getattr(whole, name) for name in ("backfill_id", "start_at", "end_at", "total")}
        tx = Transaction(self.store.jobs.client)
        # Stored with the pointer after the first executions, which are sent next and may end at once.
        tx.put(self.store.jobs, {**key, **begun.to_item()}, Expression("attribute_not_exists(pk)", {}))
        try:
            self.store.audited.commit(tx, tenant, "job.backfilled", job_id, now, after=asked)
        except ConditionFailed as before:
            stored = Backfill.from_item(before.existing or begun.to_item())
            if stored.begun or (stored.start_at, stored.end_at) != (start, end):
                raise Conflict(f"backfill {backfill_id!r} of job {job_id!r} exists already") from None
            first, begun = stored.first(now), stored  # the request that began it was interrupted
        self.queue.send(first)
        self.store.jobs.update(key, Expression("SET #begun = :yes", {":yes": True}))
        return replace(begun, begun=True)

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
            if len(times) > BACKFILL_LIMIT:
                raise InvalidInput(
                    "start_at",
                    f"the range holds over {BACKFILL_LIMIT} fire times",
                    value=rfc3339(start),
                    accepted="a shorter range",
                )
        return schedule, times

    def listed(self, tenant: str, job_id: str) -> list[Backfill]:
        """The kept backfills of a job, the newest first, at most MAX_LISTED. Raises NotFound."""
        self.store.get(tenant, job_id)
        items = self.store.jobs.query(tenant, sk_prefix=keys.backfills_of(job_id), limit=MAX_LISTED)
        return sorted(map(Backfill.from_item, items), key=lambda one: one.created_at, reverse=True)


def with_calendars(jobs: Table, job: Job, start: int, end: int) -> Schedule:
    """The schedule with the dates of its calendars in [start, end) as its own exclusions.

    Raises Conflict (a missing calendar), InvalidInput.
    """
    calendars, schedule = Calendars(jobs), job.schedule
    first, last = local_date(schedule, start), local_date(schedule, end)
    dates: set[str] = set()
    for name in schedule.calendars:
        try:
            dates.update(date for date in calendars.get(job.tenant, name).dates if first <= date <= last)
        except NotFound:
            raise Conflict(f"job {job.job_id!r} names the calendar {name!r}, which does not exist") from None
    if len(dates) > BACKFILL_EXCLUDED_DATES:
        raise InvalidInput(
            "start_at",
            f"the range holds over {BACKFILL_EXCLUDED_DATES} dates of calendars",
            value=rfc3339(start),
            accepted="a shorter range",
        )
    excluded = tuple(sorted(dates.union(schedule.exclude_dates)))
    return replace(schedule, exclude_dates=excluded, calendars=())
