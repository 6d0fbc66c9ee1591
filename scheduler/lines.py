"""The runs that wait in line for a permit have no message of their own. This chore finds those that were overlooked.

Whoever frees a permit wakes the next run. Who dies in between, a lease that ends without a message, a limit that a
person raises, a job that no longer has the key: each costs a run in line ten minutes at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from msgspec import ValidationError
from msgspec.structs import replace

from common.clock import Clock
from common.jobs.former_jobs import load_jobs, next_message
from common.jobs.job import DELETED, Job
from common.planning.chores import Done, Position
from common.planning.execution import Execution
from common.planning.queue import ExecutionsQueue
from common.runs.holders import Holders, Permit, State, damaged_names
from common.runs.records import Runs
from common.runs.states import QUEUED, RETRYING
from common.storage import keys
from common.storage.expressions import Attribute
from common.storage.table import Query, Tables
from common.storage.wire import Item

_LINES_AT_ONCE: Final = 50
# Who waits too long by then is sent its message, which comes when its wait is over.
_SOON_S: Final = 900
# Its first run may be about to take its place.
_EMPTY_FOR_S: Final = 600
_NO_LIMIT: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of all keys, in the runs table."""

    tables: Tables
    queue: ExecutionsQueue
    clock: Clock

    def steps(self, at: Position | None, done: Done) -> Iterator[Position]:
        """A step looks at some lines."""
        after = at.get("line") if at else None
        while lines := self._listed(after if isinstance(after, str) else ""):
            done.each(lines, partial(self._look, done), lambda line: str(line["sk"]))
            after = lines[-1]["sk"]
            yield {"line": after}
        if after:
            yield {}

    def _listed(self, after: str) -> list[Item]:
        start = {"pk": keys.LINES, "sk": after} if after else None
        return list(self.tables.runs.query(Query(keys.LINES, after=start, limit=_LINES_AT_ONCE)))

    def _look(self, done: Done, line: Item) -> None:
        pk, _, sk = line["sk"].rpartition("|")
        key, runs, now = keys.Key(pk=pk, sk=sk), self.tables.runs, self.clock.now()
        item = runs.get(key) or {}
        state = State.of(item, now)
        if not item.get("waiting"):
            if line.get("at", 0) < now - _EMPTY_FOR_S:
                runs.delete_if(keys.key_of(line), Attribute("at") == line.get("at"))
            return
        tenant = pk.partition("#")[0]
        holders = Holders(runs, self.queue, self.clock)
        _, ended = holders.looked_up(state, tenant)
        jobs = load_jobs(self.tables.jobs, [(tenant, name) for name in _jobs_of(state)])
        permits = {job_id: _permits(jobs.get((tenant, job_id)), sk) for job_id in _jobs_of(state)}
        woken = state.without(ended).with_permits(permits).woken(now)
        holders.wake(woken)
        needless = [each for each in woken if permits[each.job_id] == _NO_LIMIT]
        holders.free((Permit(key, each, 0) for each in needless), is_copy=True, only_places=True)
        names = {execution.execution_id for execution in woken}
        overdue = [each for each in _over_soon(state, now + _SOON_S) if each.execution_id not in names]
        self.queue.send(overdue)
        unplaced = self._unplaced(tenant, item, state)
        holders.wake(unplaced)
        counted: dict[str, Sequence[object]] = {"woken": woken, "overdue": overdue, "unplaced": unplaced}
        counted["damaged"] = damaged_names(item)
        done.counts.update({name: len(listed) for name, listed in counted.items() if listed})

    def _unplaced(self, tenant: str, item: Item, state: State) -> list[Execution]:
        """Those whose places somebody has damaged: their records say whether they still wait."""
        waiting = item["waiting"] if isinstance(item["waiting"], dict) else {}
        unplaced = []
        for name in waiting.keys() - state.waiting.keys():
            job_id, _, run_name = name.partition(":")
            if not job_id or not run_name:
                continue
            with suppress(ValidationError):
                run = Runs(self.tables.runs).named(tenant, job_id, run_name)
                if run and run.status in (QUEUED, RETRYING):
                    unplaced.append(next_message(run))
        return unplaced


def _jobs_of(state: State) -> list[str]:
    return list(dict.fromkeys(name.partition(":")[0] for name in state.in_line()))


def _permits(job: Job | None, sort_key: str) -> int:
    """How many permits of the key the job has now. One that no longer needs any does not wait."""
    if job is None or job.state == DELETED:
        return _NO_LIMIT
    if sort_key == keys.PERMIT:
        return 1 if job.spec.overlap != "allow" else _NO_LIMIT
    concurrency = job.spec.concurrency
    return concurrency.limit if concurrency and concurrency.key == sort_key else _NO_LIMIT


def _over_soon(state: State, until: float) -> Iterator[Execution]:
    """Those whose wait is over by then, each when it is."""
    for place in state.waiting.values():
        if place.until <= until:
            yield replace(Execution.decode(place.message), not_before_at=int(place.until) + 2)
