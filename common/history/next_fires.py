"""When the jobs of a directory fire next: each schedule is computed once until it has fired.

What was computed is kept in memory, and with the tenant's directory for other functions. It is the same whoever
computes it, so a lost or outdated item costs time alone.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from common.clock import CpuBudget
from common.history.job_directory import ListedJob
from common.jobs.calendars import Calendars, MissingCalendar, RememberedCalendars
from common.storage import keys
from common.storage.table import Table
from common.texts import packed, unpacked
from common.timing.excluded_days import Excluded
from common.timing.fires import next_fires
from common.timing.instants import DAY_S
from common.timing.schedule import Schedule
from common.timing.zones import TZDATA_VERSION

# Schedules whose next fire time stays in memory, some 10 MB.
_KNOWN_SCHEDULES: Final = 20_000
# So many of a tenant are stored, 200 KB; and again once so many were computed.
_MAX_STORED: Final = 10_000
_STORED_AFTER: Final = 100
_RETENTION_S: Final = 30 * DAY_S
_PORTION: Final = "next"
_NEVER: Final = 0

# By the schedule's text: from when on, and the time.
Known = dict[str, tuple[int, int | None]]


@dataclass(slots=True)
class _Tenant:
    """What one request needs. `computed`: the number of schedules that were computed for it."""

    stored: dict[str, int] | None = None
    as_of: int = 0
    computed: int = 0
    used: Known = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NextFires:
    """The next fire times, in memory and in the jobs table. Schedules with calendars are not kept."""

    jobs: Table
    _known: Known = field(default_factory=dict)

    def of(
        self, tenant: str, now: float, budget: CpuBudget | None = None
    ) -> tuple[Callable[[ListedJob], int | None], Callable[[], None]]:
        """The next fire time of a job; None if it has none, or the budget of processor time is spent.

        The second function stores what was computed for other functions, if that is much.
        """
        start, budget = math.ceil(now), budget or CpuBudget()
        calendars, looked_up = RememberedCalendars(Calendars(self.jobs)), _Tenant()

        def next_fire(job: ListedJob) -> int | None:
            known = self._known.get(job.schedule) or self._stored(tenant, job.schedule, looked_up)
            if known and known[0] <= start and (known[1] is None or known[1] >= start):
                looked_up.used[job.schedule] = self._known[job.schedule] = known
                return known[1]
            if budget.is_spent:
                return None
            schedule = Schedule.from_item(json.loads(job.schedule))
            excluded: Excluded = frozenset()
            with suppress(MissingCalendar):
                excluded = calendars.excluded(tenant, schedule)
            next_at = next(iter(next_fires(schedule, start, 1, excluded=excluded)), None)
            if not schedule.named_calendars:
                if len(self._known) >= _KNOWN_SCHEDULES:
                    self._known.clear()
                self._known[job.schedule] = looked_up.used[job.schedule] = start, next_at
                looked_up.computed += 1
            return next_at

        def keep() -> None:
            if looked_up.computed >= _STORED_AFTER:
                self._store(tenant, looked_up.used, start)

        return next_fire, keep

    def _stored(self, tenant: str, schedule: str, looked_up: _Tenant) -> tuple[int, int | None] | None:
        if looked_up.stored is None:
            item = self.jobs.get(keys.job_directory(tenant, _PORTION)) or {}
            is_ours = item.get("tzdata") == TZDATA_VERSION
            looked_up.stored = json.loads(unpacked(item["data"])) if is_ours else {}
            looked_up.as_of = int(item["as_of"]) if is_ours else 0
        next_at = looked_up.stored.get(_name(schedule)) if looked_up.stored else None
        return None if next_at is None else (looked_up.as_of, None if next_at == _NEVER else next_at)

    def _store(self, tenant: str, used: Known, now: int) -> None:
        by_name = {_name(schedule): used[schedule][1] or _NEVER for schedule in list(used)[:_MAX_STORED]}
        item = {**keys.job_directory(tenant, _PORTION), "as_of": now, "tzdata": TZDATA_VERSION}
        data = packed(json.dumps(by_name, separators=(",", ":")))
        self.jobs.put({**item, "data": data, "expires_at": now + _RETENTION_S})


def _name(schedule: str) -> str:
    return hashlib.sha256(schedule.encode()).hexdigest()[:16]
