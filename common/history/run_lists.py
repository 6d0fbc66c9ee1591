"""Lists of runs by time and outcome: of one job, and of all of a tenant's jobs, newest first.

Each call reads a bounded number of records and returns where the next call continues, even if it found nothing yet.

A request over all jobs is one *step*. A step reads the ids of the jobs, makes one query for each job, and further
queries for jobs with many runs. `runs_cursor.py` has the position of the next step. A page reads a run's further
attempts only if it shows the run: a hundred attempts take 160 KB."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final

from common.history.runs_cursor import Rank, RunsCursor
from common.history.summary import Summary
from common.runs.claims import MAX_ATTEMPTS_KEPT
from common.storage import keys
from common.storage.metering import in_threads
from common.storage.table import Query, Table
from common.storage.wire import Expression, Item

MAX_READ_RECORDS: Final = 2_000
# A page ends early after this many retries: each takes up to 1.6 KB, which an answer's JSON can triple, and Lambda's
# answer is limited to 6 MB.
MAX_RETRIES: Final = 800
_RECORDS_IN_QUERY: Final = 200


@dataclass(frozen=True, slots=True)
class RunFilter:
    """A filter of a job's runs: fire times in [from_at, until_at), a status, a trigger. None sets no condition."""

    from_at: int | None = None
    until_at: int | None = None
    status: str = ""
    trigger: str = ""
    # Of the run's job, as it is now; lists over all jobs look at them.
    tag: str = ""
    target: str = ""

    def matches(self, item: Mapping[str, Any]) -> bool:
        """Whether the run has the status and the trigger of the filter."""
        return self.status in ("", item["status"]) and self.trigger in ("", item.get("trigger"))


def retries_in(item: Mapping[str, Any]) -> int:
    """An upper bound of the attempts of a record after the first. The item itself may come without attempts."""
    attempts: int = item.get("attempt", 0)
    return max(0, min(attempts, MAX_ATTEMPTS_KEPT) - 1)


class RunLists:
    """Lists over many records of the runs table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def of_job(
        self, tenant: str, job_id: str, run_filter: RunFilter, *, limit: int, before: str = ""
    ) -> tuple[list[Item], str]:
        """A job's runs, newest fire time first, and the run name after which the next page starts; empty at the end."""
        between = None
        if run_filter.from_at is not None or run_filter.until_at is not None:
            between = keys.runs_between(run_filter.from_at, run_filter.until_at)
            if between[0] >= between[1]:
                return [], ""
        after = keys.run(tenant, job_id, before) if before else None
        items = self._table.query(
            Query(
                keys.runs_of_job(tenant, job_id),
                sk_between=between,
                after=after,
                newest_first=True,
                page=_RECORDS_IN_QUERY,
            )
        )
        runs: list[Item] = []
        last_seen, retries = before, 0
        for seen, item in enumerate(items):
            is_full = len(runs) == limit and run_filter.matches(item)
            if seen == MAX_READ_RECORDS or retries >= MAX_RETRIES or is_full:
                return runs, last_seen
            retries += retries_in(item)
            if run_filter.matches(item):
                runs.append(item)
            last_seen = item["sk"]
        return runs, ""


_THREADS: Final = 32
# A query of up to 4 KB costs the same, and 4 KB hold this many runs.
_MIN_BATCH: Final = 4
_MAX_BATCH: Final = 1_000
# A summary needs these attributes.
_SUMMARISED: Final = ("sk", "fire_at", "status", "reason", "skipped_count", "lateness_s", "duration_s")

# A list shows these attributes. Of the attempts it reads the first alone: most runs have no other.
LISTED: Final = (
    *("pk", "sk", "tenant", "job_id", "status", "reason", "detail", "trigger", "schedule_revision", "fire_at"),
    *("due_at", "started_at", "finished_at", "next_attempt_at", "lateness_s", "duration_s", "skipped_count"),
    *("skipped_from_at", "dead_letter_error", "attempt", "error_type", "error", "lost_calls", "attempts[0]"),
)  # fmt: skip

_Ranked = tuple[str, str, Item]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of one step. It makes a query for each job, and further queries for older runs."""

    jobs: int = 1_000
    further_queries: int = 500
    listed_runs: int = MAX_READ_RECORDS
    summarised_runs: int = 10_000


@dataclass(frozen=True, slots=True)
class _Selection:
    """What a step reads: about `records` records with these attributes, of one job or all, in slices of time or not."""

    records: int
    attributes: Sequence[str]
    only_job: str = ""
    sliced: bool = True


@dataclass(frozen=True, slots=True)
class TenantPage:
    """Some runs, and the cursor of the next page."""

    runs: list[Item]
    next: RunsCursor | None


class _QueriesSpent(Exception):
    """The step has used up its queries."""


@dataclass(slots=True)
class _Budget:
    queries: int

    def take(self) -> None:
        if not self.queries:
            raise _QueriesSpent
        self.queries -= 1


class TenantRuns:
    """Lists and summaries over many jobs. The tenant always comes from the credential."""

    def __init__(self, jobs: Table, runs: Table, bounds: Bounds = Bounds()) -> None:
        self._jobs = jobs
        self._runs = runs
        self._bounds = bounds

    def page(self, tenant: str, cursor: RunsCursor, run_filter: RunFilter, *, limit: int) -> TenantPage:
        """The next runs that match the filter, up to `limit`. The cursor has the range of times."""
        runs: list[Item] = []
        seen = retries = 0

        def take(item: Item) -> bool:
            nonlocal seen, retries
            is_full = len(runs) == limit and run_filter.matches(item)
            if seen == self._bounds.listed_runs or retries >= MAX_RETRIES or is_full:
                return False
            seen += 1
            if run_filter.matches(item):
                retries += retries_in(item)
                runs.append(item)
            return True

        next_cursor = self._step(tenant, cursor, take, _Selection(2 * limit, LISTED))
        return TenantPage(self.with_attempts(runs, run_filter), next_cursor)

    def with_attempts(self, runs: Sequence[Item], run_filter: RunFilter) -> list[Item]:
        """The runs with all attempts, without runs that ended or expired since they were listed."""

        def with_attempts(run: Item) -> Item | None:
            if not retries_in(run):
                return run
            return self._runs.get(keys.run(run["tenant"], run["job_id"], run["sk"]))

        complete = in_threads(with_attempts, runs, _THREADS)
        return [run for run in complete if run and run_filter.matches(run)]

    def summary(self, tenant: str, cursor: RunsCursor, job_id: str = "") -> tuple[Summary, RunsCursor | None]:
        """The summary of the next 10,000 runs at most, of one job or of all jobs."""
        summary, max_runs = Summary(), self._bounds.summarised_runs

        def take(item: Item) -> bool:
            if summary.records == max_runs:
                return False
            summary.add(item)
            return True

        selection = _Selection(max_runs, _SUMMARISED, only_job=job_id, sliced=False)
        next_cursor = self._step(tenant, cursor, take, selection)
        return summary, next_cursor

    def _step(
        self, tenant: str, cursor: RunsCursor, take: Callable[[Item], bool], selection: _Selection
    ) -> RunsCursor | None:
        """Pass the runs after `cursor` to `take`, one by one, until `take` returns False. Returns the next cursor."""
        if cursor.until_at is not None and cursor.until_at <= cursor.from_at:
            return None
        cursor, job_ids = self._open(tenant, cursor, selection)
        last: Rank | None = None
        seen = 0
        try:
            for name, job_id, item in self._merged(tenant, cursor, job_ids, selection):
                if not take(item):
                    break
                last = name, job_id
                seen += 1
            else:
                return cursor.after_chunk(seen)
        except _QueriesSpent:
            pass
        assert last is not None, "the first runs of each job are read whatever is spent"
        return cursor.after_run(last, seen)

    def _open(self, tenant: str, cursor: RunsCursor, selection: _Selection) -> tuple[RunsCursor, list[str]]:
        """The cursor with its chunk opened, and the jobs of that chunk."""
        if selection.only_job:
            job_ids = [selection.only_job]
            return cursor.opened(job_ids, more=False, sliced=selection.sliced), job_ids
        ids = self._job_ids(tenant, cursor)
        if cursor.chunk:
            return cursor, list(ids)
        read_ids = list(islice(ids, self._bounds.jobs + 1))
        job_ids = read_ids[: self._bounds.jobs]
        return cursor.opened(job_ids, more=len(read_ids) > len(job_ids), sliced=selection.sliced), job_ids

    def _job_ids(self, tenant: str, cursor: RunsCursor) -> Iterator[str]:
        """The ids of existing and former jobs, in order, each once."""
        older = Expression("#created_at <= :begun", {":begun": cursor.begun_at})
        sources = ((keys.JOB_PREFIX, older), (keys.FORMER_PREFIX, None))
        last = ""
        for job_id in heapq.merge(*(self._ids(tenant, cursor, prefix, where) for prefix, where in sources)):
            if job_id not in (last, cursor.after_job):
                yield job_id
            last = job_id

    def _ids(self, tenant: str, cursor: RunsCursor, prefix: str, where: Expression | None) -> Iterator[str]:
        between = keys.jobs_between(
            prefix, cursor.after_job, (cursor.chunk.last_job if cursor.chunk else None) or ""
        )
        for item in self._jobs.query(Query(tenant, sk_between=between, where=where, attributes=("sk",))):
            yield item["sk"].removeprefix(prefix)

    def _merged(
        self, tenant: str, cursor: RunsCursor, job_ids: Sequence[str], selection: _Selection
    ) -> Iterator[_Ranked]:
        first = min(max(_MIN_BATCH, selection.records // max(1, len(job_ids))), _MAX_BATCH)
        budget = _Budget(self._bounds.further_queries)
        read = partial(self._read, tenant, cursor, attributes=selection.attributes)
        batches = in_threads(partial(read, limit=first), job_ids, _THREADS)
        runs: Iterable[Iterator[_Ranked]] = (
            _all_runs(job_id, batch, first, partial(read, job_id), budget)
            for job_id, batch in zip(job_ids, batches, strict=True)
        )
        return heapq.merge(*runs, key=_rank, reverse=True)

    def _read(
        self,
        tenant: str,
        cursor: RunsCursor,
        job_id: str,
        *,
        limit: int,
        attributes: Sequence[str],
        before: str = "",
    ) -> list[Item]:
        """A job's next runs, newest first, that come after the run `before`."""
        first, last = keys.runs_between(cursor.slice.from_at, cursor.slice.until_at)
        if not before and cursor.before:
            # Two runs can have the same name. The run of the larger job id comes first.
            last, at_job = cursor.before
            before = last if job_id >= at_job else ""
        return list(
            self._runs.query(
                Query(
                    keys.runs_of_job(tenant, job_id),
                    sk_between=(first, before or last),
                    after=keys.run(tenant, job_id, before) if before else None,
                    newest_first=True,
                    limit=limit,
                    attributes=attributes,
                )
            )
        )


def _rank(ranked: _Ranked) -> Rank:
    return ranked[0], ranked[1]


def _all_runs(
    job_id: str, batch: list[Item], size: int, read: Callable[..., list[Item]], budget: _Budget
) -> Iterator[_Ranked]:
    """A job's runs: `batch`, then the older ones in batches that double in size. Raises _QueriesSpent."""
    while True:
        for item in batch:
            yield item["sk"], job_id, item
        if len(batch) < size:
            return
        budget.take()
        size = min(2 * size, _MAX_BATCH)
        batch = read(limit=size, before=batch[-1]["sk"])
