"""How many executions a tenant has in the next 24 hours, by hour: counted once a day, and added up by each look.

The active jobs are divided into parts by their schedules. The jobs table has the executions of each part by minute for
two days, with a digest of its jobs. A part is counted again after a change of its jobs, or before its time is over.
Dates of calendars are counted. A lost or outdated item costs time alone.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from common.clock import CpuBudget
from common.history.job_directory import ListedJob
from common.jobs.job import ACTIVE
from common.planning.execution import job_key
from common.projection.totals import HOUR_S
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import Item
from common.texts import packed, unpacked
from common.timing.density import MINUTE_S, due_times
from common.timing.instants import DAY_S
from common.timing.schedule import Schedule
from common.timing.zones import TZDATA_VERSION

AHEAD_S: Final = DAY_S
# Of one look: some five of 32 parts of a tenant with ten thousand jobs. A part that is begun may take longer.
_CPU_S: Final = 0.05
_PART_CPU_S: Final = 0.3
_JOBS_OF_PART: Final = 320
_MAX_PARTS: Final = 256
# A part is counted for so long, and once in a look again if it covers less than this beyond a day.
_COUNTED_S: Final = 2 * DAY_S
_MARGIN_S: Final = 6 * HOUR_S
_RETENTION_S: Final = 4 * DAY_S
# Jobs of all tenants that stay in memory, some 5 MB beside the directory.
_REMEMBERED_JOBS: Final = 40_000


@dataclass(frozen=True, slots=True)
class Ahead:
    """How many executions are due in each hour. `jobs`: those that were counted, of all active ones."""

    start: int
    hours: Mapping[int, int]
    jobs: int
    complete: bool


@dataclass(frozen=True, slots=True)
class _Part:
    """The executions of some jobs that are due from `start` on, by minute."""

    digest: str
    start: int
    minutes: Mapping[int, int]

    def covers(self, digest: str, start: int, margin_s: int = 0) -> bool:
        """Whether it is of these jobs, and has the day from `start` on."""
        end = self.start + _COUNTED_S
        return self.digest == digest and self.start <= start and start + AHEAD_S + margin_s <= end

    def to_item(self, key: keys.Key) -> Item:
        minutes = [[(at - self.start) // MINUTE_S, count] for at, count in sorted(self.minutes.items())]
        return {
            **key,
            "digest": self.digest,
            "start": self.start,
            "tzdata": TZDATA_VERSION,
            "data": packed(json.dumps(minutes, separators=(",", ":"))),
            "expires_at": self.start + _RETENTION_S,
        }

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> _Part:
        start = int(item["start"])
        minutes = {start + at * MINUTE_S: count for at, count in json.loads(unpacked(item["data"]))}
        return cls(item["digest"], start, minutes)


@dataclass(slots=True)
class _Tenant:
    """The active jobs of a directory by part, and what is counted of them. `total`: the minutes of all parts."""

    rows: Sequence[ListedJob]
    members: list[list[ListedJob]]
    digests: list[str]
    parts: dict[int, _Part] = field(default_factory=dict)
    total: Counter[int] | None = None

    @classmethod
    def of(cls, rows: Sequence[ListedJob]) -> _Tenant:
        number = min(_MAX_PARTS, 1 << (len(rows) // _JOBS_OF_PART).bit_length())
        members: list[list[ListedJob]] = [[] for _ in range(number)]
        for job in rows:
            if job.state == ACTIVE:
                members[zlib.crc32(job.schedule.encode()) % number].append(job)
        return cls(rows, members, [_digest(jobs) for jobs in members])

    def counted(self, start: int) -> list[int]:
        """The parts with jobs that have the day from `start` on."""
        return [
            number
            for number, part in self.parts.items()
            if self.members[number] and part.covers(self.digests[number], start)
        ]

    @property
    def used(self) -> list[int]:
        """The parts with jobs."""
        return [number for number, jobs in enumerate(self.members) if jobs]


@dataclass(frozen=True, slots=True)
class JobsAhead:
    """The counts, in memory and in the jobs table. The tenant comes from the credential."""

    jobs: Table
    _remembered: dict[str, _Tenant] = field(default_factory=dict)

    def of(self, tenant: str, rows: Sequence[ListedJob], now: float) -> Ahead:
        """What is due in the 24 hours from the next whole minute on, within a budget of processor time."""
        start = int(now) // MINUTE_S * MINUTE_S + MINUTE_S
        known = self._known(tenant, rows)
        if missing := set(known.used) - set(known.counted(start)):
            self._read(tenant, known, missing)
        self._count(tenant, known, start)
        counted = known.counted(start)
        is_complete = len(counted) == len(known.used)
        total = known.total
        if total is None or not is_complete:
            total = _total(known.parts[number] for number in counted)
            known.total = total if is_complete else None
        hours: Counter[int] = Counter()
        for at, count in total.items():
            if start <= at < start + AHEAD_S:
                hours[at - at % HOUR_S] += count
        jobs = sum(len(known.members[number]) for number in counted)
        return Ahead(start, hours, jobs, is_complete)

    def _known(self, tenant: str, rows: Sequence[ListedJob]) -> _Tenant:
        known = self._remembered.pop(tenant, None)
        if known is None or known.rows is not rows:
            parts = known.parts if known else {}
            known = _Tenant.of(rows)
            known.parts = {number: part for number, part in parts.items() if number < len(known.members)}
        self._remembered[tenant] = known
        while sum(len(other.rows) for other in self._remembered.values()) > _REMEMBERED_JOBS:
            del self._remembered[next(iter(self._remembered))]
        return known

    def _read(self, tenant: str, known: _Tenant, missing: Collection[int]) -> None:
        part_keys = {self._key(tenant, known, number)["sk"]: number for number in missing}
        items = self.jobs.get_many([self._key(tenant, known, number) for number in missing], consistent=False)
        for item in items:
            if item["tzdata"] == TZDATA_VERSION:
                known.parts[part_keys[item["sk"]]] = _Part.from_item(item)
        known.total = None

    def _count(self, tenant: str, known: _Tenant, start: int) -> None:
        """Count the parts that are missing, as long as there is time, or one that soon will be."""
        parts, digests, budget = known.parts, known.digests, CpuBudget(_CPU_S)
        counted = set(known.counted(start))
        # Each minute begins with another one: a part that takes too long stops no other.
        used = known.used
        first = start // MINUTE_S % max(1, len(used))
        missing = [number for number in (*used[first:], *used[:first]) if number not in counted]
        ending = (number for number in counted if not parts[number].covers(digests[number], start, _MARGIN_S))
        for number in missing or list(islice(ending, 1)):
            if budget.is_spent:
                return
            begin = start - start % HOUR_S
            minutes = _minutes(tenant, known.members[number], begin, CpuBudget(_PART_CPU_S))
            if minutes is None:
                return
            part = parts[number] = _Part(digests[number], begin, minutes)
            known.total = None
            self.jobs.put(part.to_item(self._key(tenant, known, number)))

    def _key(self, tenant: str, known: _Tenant, number: int) -> keys.Key:
        return keys.job_directory(tenant, f"ahead{len(known.members)}.{number}")


def _minutes(tenant: str, jobs: Iterable[ListedJob], start: int, budget: CpuBudget) -> Counter[int] | None:
    """The executions of jobs that are due in the counted time, by minute; None if the budget is spent.

    Equal schedules are computed once. Pure but for the clock of the processor.
    """
    by_schedule: defaultdict[str, list[str]] = defaultdict(list)
    for job in jobs:
        by_schedule[job.schedule].append(job.job_id)
    minutes: Counter[int] = Counter()
    for text, job_ids in by_schedule.items():
        schedule = Schedule.from_item(json.loads(text))
        delay_s = schedule.jitter_s + schedule.spread_s
        for job_id in job_ids if delay_s else job_ids[:1]:
            if budget.is_spent:
                return None
            times = due_times(schedule, job_key(tenant, job_id), start - delay_s, start + _COUNTED_S)
            for at in times:
                if start <= at < start + _COUNTED_S:
                    minutes[at - at % MINUTE_S] += 1 if delay_s else len(job_ids)
    return minutes


def _total(parts: Iterable[_Part]) -> Counter[int]:
    total: Counter[int] = Counter()
    for part in parts:
        total.update(part.minutes)
    return total


def _digest(jobs: Sequence[ListedJob]) -> str:
    """Which jobs these are, in any order. Jobs with equal schedules differ by their jitter."""
    texts = sorted(f"{job.job_id}\t{job.schedule}" for job in jobs)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]
