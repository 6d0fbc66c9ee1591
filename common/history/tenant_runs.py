"""The runs of all of a tenant's jobs, newest first: `run_walk.py` says where a walk is, this reads what is next.

A step costs a query for each job that it asks, some more for those that have many runs, and reading the definitions of
these jobs, since their ids are kept with them.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Final

from common.history.lists import MOST_SEEN, RunFilter
from common.history.summary import Summary
from common.history.walk import Place, Rank
from common.storage import keys
from common.storage.tables import Expression, Item, Table

_THREADS: Final = 32
# A query of up to 4 KB costs the same, and that is so many runs.
_FEWEST: Final = 4
_LARGEST_BATCH: Final = 1_000
# What a summary takes of a record.
_SUMMARISED: Final = ("sk", "fire_at", "status", "reason", "skipped_count", "lateness_s", "duration_s")

_Ranked = tuple[str, str, Item]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one step may do at most."""

    # How many jobs it asks: each is a query.
    jobs: int = 1_000
    # How many queries it makes beside these, for the older runs of a job.
    more: int = 500
    # How many runs it looks at for a page of a list, and how many it sums up.
    listed: int = MOST_SEEN
    summarised: int = 10_000


@dataclass(frozen=True, slots=True)
class TenantPage:
    """Some runs, and where the list goes on."""

    runs: list[Item]
    next: Place | None


class _Spent(Exception):
    """A step's queries are used up."""


@dataclass(slots=True)
class _Budget:
    queries: int

    def take(self) -> None:
        if not self.queries:
            raise _Spent
        self.queries -= 1


class TenantRuns:
    """Lists and summaries over many jobs. The tenant comes from the credential, always."""

    def __init__(self, jobs: Table, runs: Table, bounds: Bounds = Bounds()) -> None:
        self._jobs = jobs
        self._runs = runs
        self._bounds = bounds

    def page(self, tenant: str, place: Place, wanted: RunFilter, *, limit: int) -> TenantPage:
        """The next runs of a status and a trigger, up to `limit`; the times are the place's."""
        found: list[Item] = []
        seen = 0

        def take(item: Item) -> bool:
            nonlocal seen
            if seen == self._bounds.listed or (len(found) == limit and wanted.takes(item)):
                return False
            seen += 1
            if wanted.takes(item):
                found.append(item)
            return True

        next_place = self._step(tenant, place, take, records=2 * limit)
        return TenantPage(found, next_place)

    def summary(self, tenant: str, place: Place, job_id: str = "") -> tuple[Summary, Place | None]:
        """Of the next 10,000 runs at most, of one job or of all."""
        summary, most = Summary(), self._bounds.summarised

        def take(item: Item) -> bool:
            if summary.records == most:
                return False
            summary.add(item)
            return True

        next_place = self._step(
            tenant, place, take, records=most, attributes=_SUMMARISED, only=job_id, sliced=False
        )
        return summary, next_place

    def _step(
        self,
        tenant: str,
        place: Place,
        take: Callable[[Item], bool],
        *,
        records: int,
        attributes: Sequence[str] = (),
        only: str = "",
        sliced: bool = True,
    ) -> Place | None:
        """Give the runs at `place` one after the other to `take`, until it does not take one; the place behind them.

        `records` is about how many will be taken; `only`: of this job alone.
        """
        if place.until_at is not None and place.until_at <= place.from_at:
            return None
        place, job_ids = self._open(tenant, place, only, sliced)
        last: Rank | None = None
        seen = 0
        try:
            for name, job_id, item in self._merged(tenant, place, job_ids, records, attributes):
                if not take(item):
                    break
                last = name, job_id
                seen += 1
            else:
                return place.onward(seen)
        except _Spent:
            pass
        assert last is not None, "the first runs of each job are read whatever is spent"
        return place.next_place(last, seen)

    def _open(self, tenant: str, place: Place, only: str, sliced: bool) -> tuple[Place, list[str]]:
        """The place with its chunk, and the jobs of that."""
        if only:
            return place.opened([only], more=False, sliced=sliced), [only]
        ids = self._job_ids(tenant, place)
        if place.chunk:
            return place, list(ids)
        some = list(islice(ids, self._bounds.jobs + 1))
        job_ids = some[: self._bounds.jobs]
        return place.opened(job_ids, more=len(some) > self._bounds.jobs, sliced=sliced), job_ids

    def _job_ids(self, tenant: str, place: Place) -> Iterator[str]:
        """Of the jobs that there are and of those that there were, in order, each once."""
        older = Expression("#created_at <= :begun", {":begun": place.begun_at})
        sources = ((keys.JOB_PREFIX, older), (keys.FORMER_PREFIX, None))
        last = ""
        for job_id in heapq.merge(*(self._ids(tenant, place, prefix, where) for prefix, where in sources)):
            if job_id not in (last, place.after_job):
                yield job_id
            last = job_id

    def _ids(self, tenant: str, place: Place, prefix: str, where: Expression | None) -> Iterator[str]:
        between = keys.jobs_between(
            prefix, place.after_job, (place.chunk.last_job if place.chunk else None) or ""
        )
        for item in self._jobs.query(tenant, sk_between=between, where=where, attributes=("sk",)):
            yield item["sk"].removeprefix(prefix)

    def _merged(
        self, tenant: str, place: Place, job_ids: Sequence[str], records: int, attributes: Sequence[str]
    ) -> Iterator[_Ranked]:
        first = min(max(_FEWEST, records // max(1, len(job_ids))), _LARGEST_BATCH)
        budget = _Budget(self._bounds.more)
        read = partial(self._read, tenant, place, attributes=attributes)
        with ThreadPoolExecutor(min(_THREADS, len(job_ids)) or 1) as pool:
            batches = list(pool.map(partial(read, limit=first), job_ids))
        runs: Iterable[Iterator[_Ranked]] = (
            _older(job_id, batch, first, partial(read, job_id), budget)
            for job_id, batch in zip(job_ids, batches, strict=True)
        )
        return heapq.merge(*runs, key=_rank, reverse=True)

    def _read(
        self,
        tenant: str,
        place: Place,
        job_id: str,
        *,
        limit: int,
        attributes: Sequence[str],
        before: str = "",
    ) -> list[Item]:
        """A job's next runs, newest first, from behind the run `before`."""
        first, last = keys.runs_between(place.slice.from_at, place.slice.until_at)
        if not before and place.before:
            # Of two runs of one name that of the larger job id comes first.
            last, at_job = place.before
            before = last if job_id >= at_job else ""
        return list(
            self._runs.query(
                keys.runs_of_job(tenant, job_id),
                sk_between=(first, before or last),
                after=keys.run(tenant, job_id, before) if before else None,
                newest_first=True,
                limit=limit,
                attributes=attributes,
            )
        )


def _rank(ranked: _Ranked) -> Rank:
    return ranked[0], ranked[1]


def _older(
    job_id: str, batch: list[Item], size: int, read: Callable[..., list[Item]], budget: _Budget
) -> Iterator[_Ranked]:
    """A job's runs: `batch`, then as many batches behind it as there are, each twice as large. Raises _Spent."""
    while True:
        for item in batch:
            yield item["sk"], job_id, item
        if len(batch) < size:
            return
        budget.take()
        size = min(2 * size, _LARGEST_BATCH)
        batch = read(limit=size, before=batch[-1]["sk"])
