"""The runs of all jobs of a tenant, newest first, from the projection: a page costs a few requests.

The projection says which runs there are and how they ended; the records of those on the page are read for the page.
Fire times before the projection began are read from the jobs' runs, as `run_lists.py` does.

A request reads a bounded number of items. It returns where the next one goes on, even if it has found nothing yet.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from common.history.job_directory import JobDirectory, ListedJob, has_tag
from common.history.live_runs import LiveReader, LiveRuns
from common.history.run_lists import LISTED, MAX_RETRIES, RunFilter, TenantRuns, retries_in
from common.history.runs_cursor import RunsCursor
from common.ids import JOB_ID_CHARS, is_id
from common.planning.execution import split_run_name, trigger_of
from common.projection.entry import OPEN, RunKey, fire_time
from common.projection.state import ProjectionState, ProjectionStates
from common.projection.windows import ProjectedRuns
from common.runs.states import FAILED
from common.storage import keys
from common.storage.table import Query, Table
from common.storage.wire import Item
from common.timing.instants import DAY_S, compact_time
from common.timing.windows import WINDOW_S, window_start

# A request looks at so many runs of the projection, some seven portions of a large window.
_MAX_SCANNED: Final = 20_000
# And it reads so many batches of a hundred records, of runs and of jobs.
_MAX_BATCHES: Final = 20
_BATCH: Final = 100
_MAX_FAILURES: Final = 1_000
# The first query of windows goes back so far, the next ones four times as far each.
_FIRST_SPAN_S: Final = 2 * 3_600
_AHEAD_S: Final = 400 * DAY_S
_LATEST: Final = 10**11


@dataclass(frozen=True, slots=True)
class TimeCursor:
    """Where a list goes on: after the run `before`, down to the fire time `from_at`."""

    begun_at: int
    from_at: int
    until_at: int | None
    before: RunKey | None = None

    @property
    def complete_from_at(self) -> int | None:
        """No later page has runs at or after this; None if that is not known yet."""
        return fire_time(self.before[0]) + 1 if self.before else self.until_at

    def to_text(self) -> str:
        """The cursor as a JSON list."""
        return json.dumps([self.begun_at, self.from_at, self.until_at, self.before], separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> TimeCursor | RunsCursor:
        """The inverse of `to_text`, here and of the list before the projection. Raises ValueError, TypeError."""
        values = json.loads(text)
        if not isinstance(values, list) or len(values) != 4:
            return RunsCursor.of_text(text)
        begun_at, from_at, until_at, before = values
        for instant in (begun_at, from_at, until_at if until_at is not None else 0):
            if type(instant) is not int or not 0 <= instant < _LATEST:
                raise ValueError(text)
        if before is not None:
            run_name, job_id = before
            if split_run_name(run_name) is None or not is_id(job_id, JOB_ID_CHARS):
                raise ValueError(text)
            before = run_name, job_id
        return cls(begun_at, from_at, until_at, before)


ListCursor = TimeCursor | RunsCursor


@dataclass(frozen=True, slots=True)
class TimePage:
    """Some runs, and the cursor of the next page. `job_by_job`: they were read without the projection."""

    runs: list[Item]
    next: ListCursor | None
    job_by_job: bool = False


@dataclass(slots=True)
class _Scan:
    """One request: what it has found, and what it may still read."""

    tenant: str
    run_filter: RunFilter
    limit: int
    runs: list[Item] = field(default_factory=list)
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

    def __init__(self, jobs: Table, runs: Table, due: Table, directory: JobDirectory) -> None:
        self._runs = runs
        self._directory = directory
        self.states = ProjectionStates(due, runs)
        self.live = LiveReader(due)
        self.windows = ProjectedRuns(runs)
        self._before = TenantRuns(jobs, runs)

    def since(self, tenant: str, state: ProjectionState | None, from_at: int) -> int | None:
        """From when on the tenant's runs are projected, if that matters for `from_at`; None: not at all."""
        if state is None:
            return None
        if from_at >= state.since:
            return state.since
        rebuilt = self.states.rebuilt_since(tenant)
        return state.since if rebuilt is None else min(rebuilt, state.since)

    def page(
        self, tenant: str, cursor: ListCursor, run_filter: RunFilter, *, limit: int, now: float
    ) -> TimePage:
        """The next runs that match the filter, up to `limit`. The cursor has the range of times. Raises Busy."""
        scan = _Scan(tenant, run_filter, limit, jobs=self._jobs_of(tenant, run_filter, now))
        if isinstance(cursor, RunsCursor):
            return self._page_before(scan, cursor)
        state = self.states.recent(now)
        since = self.since(tenant, state, cursor.from_at)
        if state is None or since is None or (cursor.until_at is not None and cursor.until_at <= since):
            return self._page_before(scan, _before_projection(cursor, cursor.until_at))
        projected = replace(cursor, from_at=max(cursor.from_at, since))
        following = self._scan(scan, projected, state, now)
        if following is not None:
            return TimePage(scan.runs, replace(following, from_at=cursor.from_at))
        if cursor.from_at >= since:
            return TimePage(scan.runs, None)
        older = _before_projection(cursor, since)
        if scan.runs:
            return TimePage(scan.runs, older)
        return self._page_before(scan, older)

    def _page_before(self, scan: _Scan, cursor: RunsCursor) -> TimePage:
        page = self._before.page(scan.tenant, cursor, scan.run_filter, limit=scan.limit)
        return TimePage([run for run in page.runs if scan.takes(run["job_id"])], page.next, True)

    def _jobs_of(self, tenant: str, run_filter: RunFilter, now: float) -> frozenset[str] | None:
        """The jobs that have the tag and the target of the filter; None without these. Raises Busy."""
        if not (run_filter.tag or run_filter.target):
            return None
        listed = self._directory.listed(tenant, now)
        return frozenset(job.job_id for job in listed if is_job_of(job, run_filter))

    def _scan(self, scan: _Scan, cursor: TimeCursor, state: ProjectionState, now: float) -> TimeCursor | None:
        """Collect runs; returns where the next page goes on, None at the end."""
        pending: list[RunKey] = []
        # A look at the first fifty reads fifty records, not a hundred.
        size = min(_BATCH, max(scan.limit, 1))
        for key in self._candidates(scan, cursor, state, now):
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
        return replace(cursor, before=scan.last or cursor.before)

    def _candidates(
        self, scan: _Scan, cursor: TimeCursor, state: ProjectionState, now: float
    ) -> Iterator[RunKey]:
        """The keys of runs that may match, the newest first, each once."""
        status = scan.run_filter.status
        live = LiveRuns() if status == FAILED else self.live.of_tenant(scan.tenant, state)
        newest = self._failures(scan.tenant, state) if status == FAILED else live.keys_until(now)
        stored: Iterable[RunKey] = ()
        if status not in OPEN:  # what is open is looked at again, and so is in `live`
            stored = self._stored(scan, cursor, live, now)
        last: RunKey | None = cursor.before
        for key in heapq.merge(self._in_range(newest, cursor), stored, reverse=True):
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

    def _in_range(self, newest: Sequence[RunKey], cursor: TimeCursor) -> list[RunKey]:
        first = compact_time(cursor.from_at)
        end = compact_time(cursor.until_at) if cursor.until_at is not None else keys.LAST
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

    def _stored(self, scan: _Scan, cursor: TimeCursor, live: LiveRuns, now: float) -> Iterator[RunKey]:
        """The projected runs that may match and are not live, the newest first."""
        first, status = compact_time(cursor.from_at), scan.run_filter.status
        end = keys.LAST if cursor.until_at is None else compact_time(cursor.until_at)
        for start, until in _spans(cursor, now):
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
        items = self._runs.get_many(run_keys, attributes=LISTED)
        records = {(item["sk"], item["job_id"]): item for item in items}
        matching = [
            records[key] for key in pending if key in records and scan.run_filter.matches(records[key])
        ]
        for run in self._before.with_attempts(matching[: scan.limit - len(scan.runs)], scan.run_filter):
            scan.runs.append(run)
            scan.retries += retries_in(run)
            scan.last = run["sk"], run["job_id"]
            if scan.is_full:
                return
        if not scan.is_full:
            scan.last = pending[-1]


def is_job_of(job: ListedJob, run_filter: RunFilter) -> bool:
    """Whether a job has the tag and the target (kind, ARN or address) of a filter. Pure."""
    return (not run_filter.tag or has_tag(job.tags, run_filter.tag)) and (
        run_filter.target in ("", job.kind, job.address)
    )


def _before_projection(cursor: TimeCursor, until_at: int | None) -> RunsCursor:
    return RunsCursor.start(cursor.begun_at, cursor.from_at, until_at)


def _spans(cursor: TimeCursor, now: float) -> Iterator[tuple[int, int]]:
    """The windows to ask for, the newest first, in longer and longer spans. Pure."""
    top = cursor.until_at if cursor.until_at is not None else int(now) + _AHEAD_S
    recent = min(top, int(now))
    if cursor.before:
        top = min(top, fire_time(cursor.before[0]) + 1)
        recent = top
    end, width = window_start(top - 1) + WINDOW_S, _FIRST_SPAN_S
    bottom = window_start(cursor.from_at)
    start = window_start(recent - width)
    while end > bottom:
        yield max(start, bottom), end
        end, width = start, width * 4
        start = end - width
