"""Lists of runs, newest first: of one job from its records, of all jobs of a tenant from the projection.

A page of all jobs' runs costs a few requests. The projection says which runs there are and how they ended; the records
of those on the page are read for the page.
A request reads a bounded number of items. It returns where the next one goes on, even if it has found nothing yet.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from common.history.failed_runs import MAX_READ_RECORDS
from common.history.job_directory import JobDirectory, ListedJob, has_tag
from common.history.live_runs import LiveReader, LiveRecords, LiveRuns
from common.limits import MAX_RETRIES
from common.planning.execution import trigger_of
from common.projection.entry import OPEN, RunKey, fire_time
from common.projection.state import ProjectionState, ProjectionStates
from common.projection.totals import Summary
from common.projection.windows import ProjectedRuns
from common.runs.run import REQUIRED, Run, read_runs, retries_in
from common.runs.states import FAILED
from common.storage import keys
from common.storage.bounded import Instant, Page, RunPosition, bounded
from common.storage.metering import in_threads
from common.storage.table import Query, Table
from common.storage.unreadable import Unreadable
from common.timing.instants import DAY_S, compact_time
from common.timing.windows import WINDOW_S, window_start

# Records that a request for a summary looks at.
MAX_SUMMARISED: Final = 10_000
_RECORDS_IN_QUERY: Final = 200
_SUMMARISED: Final = (*REQUIRED, "reason", "skipped_count", "lateness_s", "duration_s")


@dataclass(frozen=True, slots=True)
class RunFilter:
    """A filter of runs: fire times in [from_at, until_at), a status, a trigger. None and empty set no condition."""

    from_at: int | None = None
    until_at: int | None = None
    status: str = ""
    trigger: str = ""
    # Of the run's job, as it is now; lists over all jobs look at them.
    tag: str = ""
    target: str = ""

    def matches(self, run: Run | Unreadable) -> bool:
        """Whether the run has the status and the trigger of the filter; nobody knows that of a damaged one."""
        if isinstance(run, Unreadable):
            return True
        return self.status in ("", run.status) and self.trigger in ("", run.trigger)


class RunLists:
    """Lists of the runs of a job. The tenant comes from the credential."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def of_job(
        self, tenant: str, job_id: str, run_filter: RunFilter, *, limit: int, before: str | None = None
    ) -> Page[Run, str]:
        """A job's runs that match, newest fire time first, after the run name `before`."""
        runs = self._newest(tenant, job_id, run_filter, before)
        return bounded(
            ((run.key["sk"], run if run_filter.matches(run) else None) for run in runs),
            most=limit,
            most_looked_at=MAX_READ_RECORDS,
            weigh=retries_in,
            most_weight=MAX_RETRIES,
            before=before,
        )

    def summary(
        self, tenant: str, job_id: str, run_filter: RunFilter, before: str | None = None
    ) -> tuple[Summary, str | None]:
        """The totals of a job's next runs by day, and the run name after which the next ones begin; None: the end."""
        runs = self._newest(tenant, job_id, run_filter, before, _SUMMARISED)
        page = bounded(
            ((run.key["sk"], run) for run in runs),
            most=MAX_SUMMARISED,
            most_looked_at=MAX_SUMMARISED,
            before=before,
        )
        return Summary.of_runs(page.items), page.after

    def _newest(
        self,
        tenant: str,
        job_id: str,
        run_filter: RunFilter,
        before: str | None,
        attributes: tuple[str, ...] = (),
    ) -> Iterator[Run | Unreadable]:
        first, last = keys.runs_between(run_filter.from_at, run_filter.until_at)
        if first >= last:
            return iter(())
        items = self._table.query(
            Query(
                keys.runs_of_job(tenant, job_id),
                sk_between=(first, last),
                after=keys.run(tenant, job_id, before) if before else None,
                newest_first=True,
                page=_RECORDS_IN_QUERY,
                attributes=attributes,
            )
        )
        return read_runs(items)


# A request looks at so many runs of the projection, some seven chunks of a large window.
_MAX_SCANNED: Final = 20_000
# And it reads so many batches of a hundred records, of runs and of jobs.
_MAX_BATCHES: Final = 20
_BATCH: Final = 100
_MAX_FAILURES: Final = 1_000
# The first query of windows goes back so far, the next ones four times as far each.
_FIRST_SPAN_S: Final = 2 * 3_600
_AHEAD_S: Final = 400 * DAY_S
_THREADS: Final = 32
# A list shows these attributes. Of the attempts it reads the first alone: most runs have no other.
LISTED: Final = (
    *(*REQUIRED, "reason", "detail", "started_at", "finished_at", "next_attempt_at", "lateness_s", "waited_s"),
    *("duration_s", "skipped_count", "skipped_from_at", "dead_letter_error", "attempt", "error_type", "error"),
    *("lost_calls", "attempts[0]"),
)  # fmt: skip


class TimeRange(NamedTuple):
    """The fire times of a list, and the run after which it goes on."""

    from_at: Instant
    until_at: Instant | None = None
    before: RunPosition | None = None

    @property
    def complete_from_at(self) -> int | None:
        """No later page has runs at or after this; None if that is not known yet."""
        return fire_time(self.before[0]) + 1 if self.before else self.until_at


@dataclass(slots=True)
class _Scan:
    """One request: what it has found, and what it may still read."""

    tenant: str
    run_filter: RunFilter
    limit: int
    runs: list[Run] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)
    last: RunKey | None = None
    retries: int = 0
    scanned: int = 0
    batches: int = 0
    # The jobs whose runs are listed; None: all.
    jobs: frozenset[str] | None = None

    def takes(self, job_id: str) -> bool:
        """Whether runs of this job are listed."""
        return self.jobs is None or job_id in self.jobs

    @property
    def is_full(self) -> bool:
        return len(self.runs) >= self.limit or self.retries >= MAX_RETRIES

    @property
    def is_spent(self) -> bool:
        return self.scanned >= _MAX_SCANNED or self.batches >= _MAX_BATCHES


class RunsByTime:
    """Lists over all jobs. The tenant always comes from the credential."""

    def __init__(self, runs: Table, due: Table, directory: JobDirectory) -> None:
        self._runs = runs
        self._directory = directory
        self.states = ProjectionStates(due)
        self.live = LiveReader(due, runs)
        self.windows = ProjectedRuns(runs)

    def page(
        self, tenant: str, span: TimeRange, run_filter: RunFilter, *, limit: int, now: float
    ) -> Page[Run, TimeRange]:
        """The next runs that match the filter, up to `limit`. Raises Busy."""
        scan = _Scan(tenant, run_filter, limit, jobs=self._jobs_of(tenant, run_filter, now))
        state = self.states.recent(now) or ProjectionState()
        following = self._scan(scan, span, state, now)
        is_cut = bool(following) and len(scan.runs) < limit
        return Page(scan.runs, following, is_cut, tuple(scan.unreadable))

    def records(self, tenant: str, now: float, other_keys: Sequence[keys.Key] = ()) -> LiveRecords:
        """The records of what the projection may lack, and other items that are read with them. Raises Busy."""
        state = self.states.recent(now) or ProjectionState()
        return self.live.records(tenant, state, self.live.of_tenant(tenant, state), now, other_keys)

    def _jobs_of(self, tenant: str, run_filter: RunFilter, now: float) -> frozenset[str] | None:
        """The jobs that have the tag and the target of the filter; None without these. Raises Busy."""
        if not (run_filter.tag or run_filter.target):
            return None
        listed = self._directory.listed(tenant, now)
        return frozenset(job.job_id for job in listed if is_job_of(job, run_filter))

    def _scan(self, scan: _Scan, span: TimeRange, state: ProjectionState, now: float) -> TimeRange | None:
        """Collect runs; returns where the next page goes on, None at the end."""
        pending: list[RunKey] = []
        # A look at the first fifty reads fifty records, not a hundred.
        size = min(_BATCH, max(scan.limit, 1))
        for key in self._candidates(scan, span, state, now):
            pending.append(key)
            if len(pending) == size:
                self._read(scan, pending)
                pending, size = [], _BATCH
                if scan.is_full or scan.is_spent:
                    break
        else:
            self._read(scan, pending)
            if not scan.is_spent and not scan.is_full:
                return None
        return span._replace(before=scan.last or span.before)

    def _candidates(
        self, scan: _Scan, span: TimeRange, state: ProjectionState, now: float
    ) -> Iterator[RunKey]:
        """The keys of runs that may match, the newest first, each once."""
        status = scan.run_filter.status
        live = LiveRuns() if status == FAILED else self.live.of_tenant(scan.tenant, state)
        newest = self._failures(scan.tenant, state) if status == FAILED else live.keys_until(now)
        stored: Iterable[RunKey] = ()
        if status not in OPEN:  # what is open is looked at again, and so is in `live`
            stored = self._stored(scan, span, live, now)
        last: RunKey | None = span.before
        for key in heapq.merge(self._in_range(newest, span), stored, reverse=True):
            if last is not None and key >= last:
                continue
            scan.scanned += 1
            last = key
            if scan.takes(key[1]) and scan.run_filter.trigger in ("", trigger_of(key[0])):
                yield key
            else:
                scan.last = key
            if scan.is_spent:
                return

    def _in_range(self, newest: Sequence[RunKey], span: TimeRange) -> list[RunKey]:
        first = compact_time(span.from_at)
        end = compact_time(span.until_at) if span.until_at is not None else keys.LAST
        return [key for key in newest if first <= key[0] < end]

    def _failures(self, tenant: str, state: ProjectionState) -> list[RunKey]:
        """The runs that failed since the projection's end: the index has them before a tick does."""
        query = Query(
            tenant,
            index=keys.FAILURES,
            since=float(state.until_of(tenant)),
            newest_first=True,
            limit=_MAX_FAILURES,
            attributes=("sk", "job_id"),
        )
        return sorted(((item["sk"], item["job_id"]) for item in self._runs.query(query)), reverse=True)

    def _stored(self, scan: _Scan, span: TimeRange, live: LiveRuns, now: float) -> Iterator[RunKey]:
        """The projected runs that may match and are not live, the newest first."""
        first, status = compact_time(span.from_at), scan.run_filter.status
        end = keys.LAST if span.until_at is None else compact_time(span.until_at)
        for start, until in _spans(span, now):
            for window in self.windows.between(scan.tenant, start, until, newest_first=True):
                if status and not window.totals.statuses.get(status):
                    continue
                for entry in self.windows.runs_of(scan.tenant, window):
                    scan.scanned += 1
                    if not first <= entry.run_name < end or entry.key in live.executions:
                        continue
                    if status in ("", entry.status):
                        yield entry.key

    def _read(self, scan: _Scan, pending: Sequence[RunKey]) -> None:
        """Read the records of some runs, and keep those that match, until the page is full."""
        if not pending:
            return
        scan.batches += 1
        run_keys = [keys.run(scan.tenant, job_id, run_name) for run_name, job_id in pending]
        read = list(read_runs(self._runs.get_many(run_keys, attributes=LISTED)))
        scan.unreadable += (run for run in read if isinstance(run, Unreadable))
        runs = {(run.run_name, run.job_id): run for run in read if isinstance(run, Run)}
        matching = [runs[key] for key in pending if key in runs and scan.run_filter.matches(runs[key])]
        for run in self._with_attempts(matching[: scan.limit - len(scan.runs)], scan.run_filter):
            if isinstance(run, Unreadable):
                scan.unreadable.append(run)
                continue
            scan.runs.append(run)
            scan.retries += retries_in(run)
            scan.last = run.run_name, run.job_id
            if scan.is_full:
                return
        if not scan.is_full:
            scan.last = pending[-1]

    def _with_attempts(self, runs: Sequence[Run], run_filter: RunFilter) -> list[Run | Unreadable]:
        """The runs with all attempts, without runs that ended or expired since they were listed."""

        def with_attempts(run: Run) -> Run | Unreadable | None:
            if not retries_in(run):
                return run
            item = self._runs.get(run.key)
            return next(read_runs([item])) if item else None

        complete = in_threads(with_attempts, runs, _THREADS)
        return [run for run in complete if run and run_filter.matches(run)]


def is_job_of(job: ListedJob, run_filter: RunFilter) -> bool:
    """Whether a job has the tag and the target (kind, ARN or address) of a filter. Pure."""
    return (not run_filter.tag or has_tag(job.tags, run_filter.tag)) and (
        run_filter.target in ("", job.kind, job.address)
    )


def _spans(span: TimeRange, now: float) -> Iterator[tuple[int, int]]:
    """The windows to ask for, the newest first, in longer and longer spans. Pure."""
    top = span.until_at if span.until_at is not None else int(now) + _AHEAD_S
    recent = min(top, int(now))
    if span.before:
        top = min(top, fire_time(span.before[0]) + 1)
        recent = top
    end, width = window_start(top - 1) + WINDOW_S, _FIRST_SPAN_S
    bottom = window_start(span.from_at)
    start = window_start(recent - width)
    while end > bottom:
        yield max(start, bottom), end
        end, width = start, width * 4
        start = end - width
