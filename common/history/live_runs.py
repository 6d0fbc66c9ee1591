"""A tenant's executions that the projection does not have yet, and those to be read again: from the log.

Ticks project a window ten to thirty minutes after its end. What is newer is in the log of executions, of which a look
at one tenant reads a sixteenth. Each read is bounded; the answer says if it has not read everything.

Where many runs are newer, a look puts what it has read of ended ones into their windows, as the tick will: so the next
look reads only what has happened since, and counts are of all runs, however many there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from common.planning.execution import Execution, UnreadableMessage
from common.planning.log import PLANNED, ExecutionLog
from common.projection.days import DayTotals
from common.projection.entry import ATTRIBUTES, OPEN, RunEntry, RunKey, window_of
from common.projection.state import ProjectionState
from common.projection.windows import ProjectedRuns, ProjectedWindow
from common.runs.run import Run, readable_runs
from common.storage import keys
from common.storage.metering import in_threads
from common.storage.table import Table
from common.storage.wire import DAMAGE, Item

# Of a sixteenth of the tenants. A chunk has up to 5,000, and costs as much as some when it has one.
_MAX_LOGGED: Final = 200_000
_MIN_RUNS_COUNTED: Final = 50
_FAR_AT: Final = 9_999_999_999
# So few records are simply read, a hundred in a request.
_FEW: Final = 300
# What one look reads of many: half an hour of 20,000 runs an hour, and as many that go on. The next look goes on.
MAX_READ: Final = 20_000
_BATCH: Final = 100
_THREADS: Final = 16
# Of records, days and windows.
_ATTRIBUTES: Final = tuple(
    dict.fromkeys((*ATTRIBUTES, *DayTotals.__struct_fields__, *ProjectedWindow.__struct_fields__))
)


@dataclass(slots=True)
class LiveRuns:
    """The executions by their keys. `planned`: those that are only planned; their runs begin at their fire time."""

    executions: dict[RunKey, Execution] = field(default_factory=dict)
    planned: set[RunKey] = field(default_factory=set)
    complete: bool = True

    def keys_until(self, now: float) -> list[RunKey]:
        """The keys of those that may have a record at `now`, the newest first."""
        return sorted(
            (
                key
                for key, execution in self.executions.items()
                if key not in self.planned or execution.fire_at <= now
            ),
            reverse=True,
        )


@dataclass(frozen=True, slots=True)
class LiveRecords:
    """The records of live runs, by their keys: of all whose window does not say how they have ended.

    Without `complete` there were too many for one look.
    """

    runs: dict[RunKey, Run]
    complete: bool
    # Other items that were read with them.
    other_items: list[Item] = field(default_factory=list)

    def open(self) -> list[Run]:
        """Those that go on, the oldest first."""
        return sorted((run for run in self.runs.values() if run.status in OPEN), key=lambda run: run.run_name)


class LiveReader:
    """Reads them."""

    def __init__(self, due: Table, runs: Table) -> None:
        self._log = ExecutionLog(due)
        self._runs = runs
        self._windows = ProjectedRuns(runs)

    def records(
        self,
        tenant: str,
        state: ProjectionState,
        live: LiveRuns,
        now: float,
        other_keys: Sequence[keys.Key] = (),
    ) -> LiveRecords:
        """The records of a tenant's live runs, and other items of the runs table with these attributes.

        Of many the ended ones are put into their windows. Raises Busy.
        """
        names, since = live.keys_until(now)[::-1], state.until_of(tenant)
        is_many = len(names) > _FEW
        if is_many:
            ended = self._ended(tenant, since, now)
            names = [name for name in names if name not in ended or name not in live.planned]
        read = self._read(tenant, names[:MAX_READ], other_keys)
        if is_many:
            self._put_ended(tenant, since, live, read.runs)
        return replace(read, complete=live.complete and len(names) <= MAX_READ)

    def _ended(self, tenant: str, since: int, now: float) -> set[RunKey]:
        """The runs that have ended by what is in the windows from `since` on."""
        windows = self._windows.between(tenant, since, int(now) + 1)
        runs = (run for window in windows for run in self._windows.runs_of(tenant, window))
        return {run.key for run in runs if not run.is_open}

    def _read(self, tenant: str, names: Sequence[RunKey], other_keys: Sequence[keys.Key]) -> LiveRecords:
        def read(batch: Sequence[keys.Key]) -> list[Item]:
            return list(self._runs.get_many(batch, consistent=False, attributes=_ATTRIBUTES))

        other_places = {(key["pk"], key["sk"]) for key in other_keys}
        item_keys = [*other_keys, *(keys.run(tenant, job_id, run_name) for run_name, job_id in names)]
        batches = [item_keys[at : at + _BATCH] for at in range(0, len(item_keys), _BATCH)]
        items = [item for part in in_threads(read, batches, _THREADS) for item in part]
        runs = readable_runs(item for item in items if (item["pk"], item["sk"]) not in other_places)
        return LiveRecords(
            {(run.run_name, run.job_id): run for run in runs},
            True,
            [item for item in items if (item["pk"], item["sk"]) in other_places],
        )

    def _put_ended(self, tenant: str, since: int, live: LiveRuns, runs: dict[RunKey, Run]) -> None:
        """Put ended runs into the windows that no tick has followed yet: of these nobody keeps anything else."""
        by_window: defaultdict[int, dict[RunKey, RunEntry | None]] = defaultdict(dict)
        expires_at: defaultdict[int, int] = defaultdict(int)
        for key, run in runs.items():
            start = window_of(run.run_name)
            if key in live.planned and start >= since and run.status not in OPEN:
                by_window[start][key] = RunEntry.of_run(run)
                expires_at[start] = max(expires_at[start], run.expires_at)
        for start, ended in by_window.items():
            if len(ended) >= _FEW:
                self._windows.merge(tenant, start, ended, expires_at[start])

    def of_tenant(self, tenant: str, state: ProjectionState) -> LiveRuns:
        """The executions of a tenant that are not projected yet, or are to be read again."""
        live, noted = LiveRuns(), set[RunKey]()
        for kind, execution in self._logged(tenant, state.until_of(tenant), live):
            key = execution.run_name, execution.job_id
            if kind != PLANNED:
                noted.add(key)
            elif key in noted:
                continue
            live.executions[key] = execution
            live.planned.add(key)
        live.planned -= noted
        return live

    def _logged(self, tenant: str, begin: int, live: LiveRuns) -> Iterator[tuple[str, Execution]]:
        of_tenant = f'"tenant":"{tenant}"'
        logged = 0
        for chunk in self._log.chunks(begin, _FAR_AT, keys.log_bucket(tenant)):
            if logged >= _MAX_LOGGED:
                live.complete = False
                return
            logged += _MIN_RUNS_COUNTED
            try:
                bodies = chunk.bodies()
            except DAMAGE:  # a tick reports it
                live.complete = False
                continue
            logged += max(0, len(bodies) - _MIN_RUNS_COUNTED)
            for body in bodies:
                if of_tenant in body:
                    try:
                        execution = Execution.decode(body)
                    except UnreadableMessage:  # of a later version
                        continue
                    if execution.tenant == tenant:
                        yield chunk.kind, execution
