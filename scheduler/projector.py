"""Writes down what became of the executions of past windows, for readers across jobs, and finds those without a record.

It follows the log of executions (common/planning/log.py) up to ten minutes ago, and the runs that it noted there to
read again (common/projection/state.py). It reads their records, and merges them into the windows of their fire times
(common/projection/windows.py). Runs that are not over, and executions without a record, are noted for later; of the
latter the comparison says which are lost (`comparison.py`).

The order makes each step safe to lose, to repeat, or to cut off: what is to be read again is written first, then the
windows, and only then are the old notes and the part of the log done. Merging a run again changes nothing.

The tenants are in buckets, and each bucket has a share of the time. In a bucket the tenants with few runs come first.
What there is no time for is noted for the next tick, and what there is no room for, for later ones
(`followed.py`). An error with one tenant's items leaves its runs to the next tick.
"""

from __future__ import annotations

import threading
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from common.clock import Clock
from common.errors import Busy, Damaged
from common.planning.chores import Done, Position, for_each
from common.planning.due_index import DueIndex
from common.planning.execution import Execution, UnreadableMessage
from common.planning.log import AGAIN, PLANNED, Chunk
from common.planning.queue import ExecutionsQueue
from common.projection.days import ProjectedDays, day_start
from common.projection.entry import ATTRIBUTES, RunEntry, RunKey
from common.projection.state import (
    NO_RECORD_AFTER_S,
    Again,
    ProjectionState,
    ProjectionStates,
    had_records,
    next_look,
)
from common.projection.tenants import ProjectedTenants
from common.projection.windows import LateRuns, ProjectedRuns, ProjectedWindow, late_changes
from common.runs.run import MAX_STUCK, Run
from common.runs.states import DISPATCHED
from common.runs.unrecorded import Unrecorded
from common.storage import keys
from common.storage.table import Query, Table, Tables
from common.storage.wire import DAMAGE
from common.timing.instants import DAY_S, rfc3339
from common.timing.windows import WINDOW_S, followed_from, window_start
from common.truth.contradiction import RUN_STUCK, Contradiction, FoundContradictions, Subject
from scheduler.comparison import Comparison, LivingTenants, recently_due
from scheduler.followed import QUERIED_FROM, Work, batches, next_tick
from scheduler.gaps import REOPENED, LogRead, reopen_gap
from scheduler.open_runs import OpenRuns

# A window is read so long after its end, as the comparison does.
_SETTLED_AFTER_S: Final = WINDOW_S
# Of the round's time: the rest is for what was due lately, and for days.
_BUCKETS_SHARE: Final = 0.8
# Of a bucket's time: the rest is for writing.
_READING_SHARE: Final = 0.6
# A service can refuse an event that was recorded as dispatched just before.
_SENT_S: Final = 900
_READS_BETWEEN_CLOCK_READS: Final = 1_600
# Days are rolled up from an hour after their end on, each tenant at its own time.
_FIRST_ROLL_UP_TICK: Final = 6
_ROLL_UP_TICKS: Final = 132
_ROLLED_UP_DAYS: Final = 2
# Executions of the newest part of a bucket's log that are looked at: of all buckets half a second of work to decode.
_MAX_RECENT: Final = 5_000


@dataclass(slots=True)
class _Round:
    """What the buckets of a round share. `recent`: the newest part of the log, up to now.

    `windows_until`: what each bucket's windows have. It is later than where the log is read from, if a round was cut
    off before it said how far runs were followed.
    """

    done: Done
    living: LivingTenants
    comparison: Comparison
    windows_until: Mapping[int, int]
    # No state is stored.
    is_new: bool
    # Up to where a bucket's log was followed, if not to its end.
    followed: dict[int, int] = field(default_factory=dict)
    recent: list[Execution] = field(default_factory=list)
    log: LogRead = field(default_factory=LogRead)


@dataclass(slots=True)
class _Findings:
    """What the records say: changes by tenant and window, what to look at again, and what has no record."""

    changes: defaultdict[str, defaultdict[int, dict[RunKey, RunEntry | None]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )
    expires_at: dict[tuple[str, int], int] = field(default_factory=dict)
    again: list[Again] = field(default_factory=list)
    missing: list[Execution] = field(default_factory=list)
    # The ids of executions that should have gone on.
    stuck: list[str] = field(default_factory=list)

    def runs_of(self, tenant: str) -> int:
        """How many changes of a tenant there are: the largest windows take some 30 s to write, and come last."""
        return sum(map(len, self.changes[tenant].values()))


@dataclass(frozen=True, slots=True)
class Projector:
    """Follows the logs. `steps` is its chore."""

    index: DueIndex
    due: Table
    runs: Table
    tenants: Table
    states: ProjectionStates
    windows: ProjectedRuns
    late: LateRuns
    days: ProjectedDays
    platform: ProjectedTenants
    open_runs: OpenRuns
    queue: ExecutionsQueue
    clock: Clock

    @classmethod
    def of(cls, tables: Tables, queue: ExecutionsQueue, clock: Clock) -> Projector:
        """The projector of a deployment."""
        return cls(
            DueIndex(tables.due),
            tables.due,
            tables.runs,
            tables.tenants,
            ProjectionStates(tables.due),
            ProjectedRuns(tables.runs),
            LateRuns(tables.runs),
            ProjectedDays(tables.runs),
            ProjectedTenants(tables.runs),
            OpenRuns(tables, queue, clock),
            queue,
            clock,
        )

    def steps(self, at: Position | None, done: Done) -> Iterator[Position]:
        """A chore: a step for each bucket, then what was due lately, and the days before."""
        now = self.clock.now()
        end = window_start(int(now) - _SETTLED_AFTER_S)
        state = ProjectionState.stored(at) or self._begin(end)
        known = {bucket: followed_from(state.until.get(bucket), end) for bucket in range(keys.LOG_BUCKETS)}
        # The bucket that is furthest behind comes first.
        is_new, read_until = at is None, self._read_until()
        begins = self._begins(known, end, read_until, is_new=is_new)
        buckets = sorted(begins, key=lambda bucket: (begins[bucket], bucket))
        living = LivingTenants(self.tenants, self.clock)
        unrecorded = Unrecorded(self.due, self.runs)
        comparison = Comparison(unrecorded, self.due, self.queue, living, self.clock, done)
        this_round = _Round(done, living, comparison, known, is_new)
        done.each(["the list"], lambda _: comparison.begin())
        self._note_open(read_until, end, state, this_round)
        ends, followed = known.copy(), begins.copy()
        for nth, bucket in enumerate(buckets):
            before = self.clock.now()
            until = before + (done.until - before) * _BUCKETS_SHARE / (len(buckets) - nth)
            follow = partial(self._follow, bucket, begins[bucket], end, until, this_round)
            step = f"bucket {bucket}", follow
            counted = done.counts.total()
            if not done.each([step], lambda step: done.step(*step), lambda step: step[0]):
                followed[bucket] = this_round.followed.get(bucket, end)
                ends[bucket] = end if followed[bucket] == end else max(followed[bucket], known[bucket])
            if done.counts.total() > counted or done.tries:
                yield ProjectionState(state.since, ends.copy()).position
        done.each(["gaps"], lambda _: self._reopen_gap(max(begins.values()), this_round))
        done.each(["what was due lately"], lambda _: self._look_at_recent(this_round))
        done.each(["days"], lambda _: self._roll_up(state, now, this_round))
        self.runs.put({**keys.FOLLOWED, "until": min(followed.values())})
        yield ProjectionState(state.since, ends).position

    def _read_until(self) -> object:
        """Up to where ticks have read the runs, by the runs table."""
        return (self.runs.get(keys.FOLLOWED) or {}).get("until")

    def _begins(
        self, known: Mapping[int, int], end: int, read_until: object, *, is_new: bool
    ) -> dict[int, int]:
        """From where to read each bucket's log: a restored runs table does not have all that the state says."""
        followed = end if is_new else followed_from(read_until, end)
        return {bucket: min(until, followed) for bucket, until in known.items()}

    def _note_open(self, read_until: object, end: int, state: ProjectionState, this_round: _Round) -> None:
        """Note the open runs if the log of them is lost.

        It is in a first round, until what was planned has run, and if the due table was restored: then the runs table
        knows of later rounds.
        """
        living, done = this_round.living, this_round.done
        known_until = max(this_round.windows_until.values())
        is_restored = isinstance(read_until, int) and known_until < read_until <= end
        if this_round.is_new or end <= state.since or is_restored:
            done.each(["open runs"], lambda _: self.open_runs.note(living.listed(), read_until, done))

    def _begin(self, end: int) -> ProjectionState:
        since = self.states.new_since()
        if since is None:
            since = followed_from(None, end)
        return ProjectionState(since, dict.fromkeys(range(keys.LOG_BUCKETS), min(since, end)))

    def _follow(self, bucket: int, begin: int, end: int, until: float, this_round: _Round) -> None:
        work = self._work(bucket, begin, end, this_round)
        if not work.planned and not work.noted:
            self.index.log.forget(work.looks)
            return
        this_round.done.counts["planned"] += len(work.planned)
        if begin < this_round.windows_until[bucket]:  # the runs table was restored
            until_known = min(work.end, this_round.windows_until[bucket])
            work.recorded |= had_records(self.index.log, bucket, begin, until_known, work.enqueued)
        now = self.clock.now()
        tenants = this_round.living.of(
            {execution.tenant for execution in work.all()}, this_round.done.problems
        )
        findings = self._read(work, tenants, now + (until - now) * _READING_SHARE, this_round.done)
        self.index.log.look_again(findings.again)
        this_round.comparison.compare(findings.missing, work.recorded)
        self._suspect(findings.stuck)
        self._merge(bucket, work, findings, this_round)
        self.index.log.forget(work.looks)
        this_round.followed[bucket] = work.end

    def _reopen_gap(self, begin: int, this_round: _Round) -> None:
        """Have planned again what was planned and is not in the log; the handler begins with it at once."""
        now, done = self.clock.now(), this_round.done
        gap_at = reopen_gap(self.index, this_round.log, min(begin, _recent_from(now)), now)
        if gap_at is not None:
            done.counts[REOPENED] = 1
            done.errors.append(
                f"the log of planning has a gap from {rfc3339(gap_at)} on, which is planned again"
            )
            self.open_runs.note(this_round.living.listed(), begin, done)

    def _look_at_recent(self, this_round: _Round) -> None:
        self._suspect(this_round.comparison.look_at_recent(this_round.recent))

    def _suspect(self, stuck: Sequence[str]) -> None:
        """Have the truth checker look at runs that should have gone on."""
        contradictions = [
            Contradiction(RUN_STUCK, Subject("run", name), "it should have gone on")
            for name in stuck[:MAX_STUCK]
        ]
        if contradictions:
            FoundContradictions(self.due).suspect(contradictions, self.clock.now())

    def _work(self, bucket: int, begin: int, end: int, this_round: _Round) -> Work:
        work, done, recent = Work(begin, end), this_round.done, 0
        now = self.clock.now()
        now_window, recent_from, window = window_start(int(now)), _recent_from(now), begin
        # A look's window is not before `begin`: the tick that goes on from there has done those before.
        for chunk in self.index.log.chunks(min(begin, recent_from), now_window + 1, bucket):
            if window < chunk.window < work.end and work.is_full:
                work.end = chunk.window
                done.problems.append(f"the log of bucket {bucket} is left from {rfc3339(work.end)} on")
            window = chunk.window
            if chunk.kind == PLANNED:
                this_round.log.add(chunk)
                if chunk.window >= recent_from and recent < _MAX_RECENT:
                    executions = self._decoded(chunk, done)
                    recent += len(executions)
                    this_round.recent += recently_due(executions, now)
            if begin <= chunk.window < work.end or chunk.kind.startswith(AGAIN):
                self.index.log.look_again(work.add(chunk, self._decoded(chunk, done), now))
        this_round.log.buckets.add(bucket)
        if work.left_runs:
            done.counts["left"] += work.left_runs
            done.problems.append(
                f"{work.left_runs} runs of {', '.join(sorted(work.tenants))} are left to later ticks"[:500]
            )
        for execution_id in work.noted:
            work.planned.pop(execution_id, None)
        return work

    def _decoded(self, chunk: Chunk, done: Done) -> list[Execution]:
        """A chunk's executions; of a damaged one none."""
        executions: list[Execution] = []
        try:
            bodies = chunk.bodies()
        except DAMAGE as error:  # the other chunks go on
            done.problem(f"the log of {chunk.window}", error)
            return executions
        for body in bodies:
            with suppress(UnreadableMessage):  # of a later version, which goes on from here
                executions.append(Execution.decode(body))
        return executions

    def _read(self, work: Work, living: set[str], until: float, done: Done) -> _Findings:
        """Read the records, those of tenants with few runs first. What there is no time for is to be read again."""
        findings, now = _Findings(), self.clock.now()
        counts: defaultdict[str, int] = defaultdict(int)
        for execution in work.all():
            counts[execution.tenant] += 1
        executions = sorted(
            (execution for execution in work.all() if execution.tenant in living),
            key=lambda run: (counts[run.tenant], run.tenant, run.job_id, run.fire_at),
        )
        lock = threading.Lock()

        def read(batch: Sequence[Execution]) -> None:
            records = self._records(batch, consistent=batch[0].execution_id in work.noted)
            with lock:
                for execution, record in zip(batch, records, strict=True):
                    try:
                        self._note(findings, work, execution, record, now)
                    except DAMAGE:  # the truth checker reports it; the others go on
                        findings.stuck.append(execution.execution_id)

        for first in range(0, len(executions), _READS_BETWEEN_CLOCK_READS):
            if self.clock.now() >= until:
                unread = executions[first:]
                findings.again += [work.again(next_tick(now), execution) for execution in unread]
                done.problems.append(f"no time to read {len(unread)} runs")
                break
            part = executions[first : first + _READS_BETWEEN_CLOCK_READS]
            done.counts["read"] += len(part)
            for_each(batches(part, work.noted), read)
        return findings

    def _records(self, executions: Sequence[Execution], *, consistent: bool) -> list[dict[str, Any] | None]:
        """The record of each: of runs of one job with a query, of others by their keys."""
        places = [
            (keys.runs_of_job(execution.tenant, execution.job_id), execution.run_name)
            for execution in executions
        ]
        if not consistent and len(executions) >= QUERIED_FROM and len({pk for pk, _ in places}) == 1:
            (partition, first), (_, last) = min(places), max(places)
            query = Query(partition, sk_between=(first, last), attributes=ATTRIBUTES, consistent=False)
            records: Iterable[dict[str, Any]] = self.runs.query(query)
        else:
            run_keys: list[keys.Key] = [{"pk": pk, "sk": sk} for pk, sk in dict.fromkeys(places)]
            records = self.runs.get_many(run_keys, consistent=consistent, attributes=ATTRIBUTES)
        by_place = {(record["pk"], record["sk"]): record for record in records}
        return [by_place.get(place) for place in places]

    def _note(
        self,
        findings: _Findings,
        work: Work,
        execution: Execution,
        record: dict[str, Any] | None,
        now: float,
    ) -> None:
        """What one record means for the projection, and whether to look again."""
        key = execution.run_name, execution.job_id
        window = window_start(execution.fire_at)
        if record is None:
            execution_id = execution.execution_id
            if execution_id in work.enqueued:
                findings.missing.append(execution)
            if execution_id not in work.planned:
                findings.changes[execution.tenant][window][key] = None
            if now - execution.visible_at < NO_RECORD_AFTER_S:
                findings.again.append(work.again(next_look(execution, 0, now), execution))
            return
        work.recorded.add(execution.execution_id)
        run = Run.from_item(record)
        entry = RunEntry.of_run(run)
        findings.changes[execution.tenant][window][key] = entry
        place = execution.tenant, window
        findings.expires_at[place] = max(findings.expires_at.get(place, 0), run.expires_at)
        is_just_sent = entry.status == DISPATCHED and run.started_at > now - _SENT_S
        if entry.is_open and run.is_stuck(now):
            findings.stuck.append(execution.execution_id)
        if entry.is_open or is_just_sent:
            findings.again.append(work.again(next_look(execution, run.stuck_since, now), execution))

    def _merge(self, bucket: int, work: Work, findings: _Findings, this_round: _Round) -> None:
        """Put what was found into the windows. If that took long, a tenant's state is read once more."""
        merged: dict[tuple[str, int], ProjectedWindow] = {}
        living, done = this_round.living, this_round.done
        today = day_start(int(self.clock.now()))

        def merge(tenant: str) -> None:
            if done.is_time_up:
                raise Busy("no time to write its runs down")
            if self.clock.now() > living.trusted_until and not living.now({tenant}, []):
                return
            if late := late_changes(findings.changes[tenant], this_round.windows_until[bucket]):
                self.late.note(tenant, late, self.clock.now())
            for start, changes in findings.changes[tenant].items():
                expires_at = findings.expires_at.get((tenant, start), 0)
                is_new = start >= this_round.windows_until[bucket]
                try:
                    window = self.windows.merge(tenant, start, changes, expires_at, likely_new=is_new)
                except Damaged as error:  # the repair reads all its runs
                    done.errors.append(str(error))
                else:
                    merged[tenant, start] = window
            for day in {day_start(start) for start in findings.changes[tenant]}:
                if day < today:
                    with suppress(Damaged):
                        self.days.roll_up(tenant, day, only_again=True)

        failed = done.each(sorted(findings.changes, key=findings.runs_of), merge)
        done.counts["windows"] += len(merged)
        if failed:
            at = next_tick(self.clock.now())
            self.index.log.look_again(work.again(at, run) for run in work.all() if run.tenant in failed)
        damaged = self.platform.set(bucket, merged)
        done.errors += [
            f"the totals {name} are damaged: minute8 check --fix makes them anew" for name in damaged
        ]

    def _roll_up(self, state: ProjectionState, now: float, this_round: _Round) -> None:
        """Roll up the days before, of the tenants whose turn it is."""
        turn = int(now) % DAY_S // WINDOW_S - _FIRST_ROLL_UP_TICK
        if not 0 <= turn < _ROLL_UP_TICKS:
            return
        tenants = [
            name for name in this_round.living.listed() if zlib.crc32(name.encode()) % _ROLL_UP_TICKS == turn
        ]
        today = day_start(int(now))
        for day in range(today - _ROLLED_UP_DAYS * DAY_S, today, DAY_S):
            if day < state.since:  # its first runs may be missing
                continue

            def roll_up(tenant: str, day: int = day) -> None:
                if not this_round.done.is_time_up:
                    self.days.roll_up(tenant, day)

            this_round.done.each(list(self.days.missing(tenants, day)), roll_up)


def _recent_from(now: float) -> int:
    """Each round reads the log from here on."""
    return window_start(int(now)) - WINDOW_S
