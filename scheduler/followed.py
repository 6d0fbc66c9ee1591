"""What a round of the projector follows of a bucket's log. It holds a bounded number of executions.

A tenant may have a million in ten minutes. Beyond the bound the tenants with the most wait: their other executions are
noted again, so many for each of the next ticks that these have room for what is new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from typing import Final

from common.limits import MAX_HELD
from common.planning.execution import Execution
from common.planning.log import AGAIN, AGAIN_PLANNED, AGAIN_RECORDED, CHANGED, PLANNED, Chunk
from common.projection.state import Again
from common.timing.windows import WINDOW_S, window_start

# One batch read; common/storage/table.py.
_BATCH_SIZE: Final = 100
# Each record that is read by its key costs at least half a unit; a query of a job's costs that for 8 KB of them.
QUERIED_FROM: Final = 5


@dataclass(slots=True)
class Work:
    """The runs of one bucket: those of the plan, those that changed or are looked at again, and the notes of these.

    `enqueued`: the ids of those that must have a record. `recorded`: of those that had one.
    """

    # The log before this was read by earlier ticks, and that from `end` on is left to later ones.
    begin: int
    end: int
    planned: dict[str, Execution] = field(default_factory=dict)
    noted: dict[str, Execution] = field(default_factory=dict)
    looks: list[Chunk] = field(default_factory=list)
    enqueued: set[str] = field(default_factory=set)
    recorded: set[str] = field(default_factory=set)
    # How many executions are left to later ticks, and the tenants of which no more are taken.
    left_runs: int = 0
    tenants: set[str] = field(default_factory=set)

    @property
    def is_full(self) -> bool:
        """Whether no further window is to be followed."""
        return self.left_runs > 0 or len(self.planned) >= MAX_HELD // 2

    def all(self) -> Iterable[Execution]:
        """Each of them once, after those of the plan that are also noted are taken out."""
        return chain(self.planned.values(), self.noted.values())

    def again(self, at: int, execution: Execution) -> Again:
        """A look at one of them."""
        name = execution.execution_id
        if name not in self.enqueued:
            return Again(at, execution)
        return Again(at, execution, AGAIN_RECORDED if name in self.recorded else AGAIN_PLANNED)

    def add(self, chunk: Chunk, executions: Sequence[Execution], now: float) -> list[Again]:
        """Add a chunk's executions. Returns what is left to later ticks."""
        named = {execution.execution_id: execution for execution in executions}
        if chunk.kind == PLANNED:
            self.planned |= named
        else:
            self.noted |= named
        if chunk.kind not in (CHANGED, AGAIN):
            self.enqueued |= named.keys()
        if chunk.kind == AGAIN_RECORDED:
            self.recorded |= named.keys()
        if named and chunk.kind.startswith(AGAIN):
            self.looks.append(chunk)
        over = len(self.planned) + len(self.noted) - MAX_HELD
        if over <= 0:
            return [self._leave(run, now) for run in executions if run.tenant in self.tenants]
        self._take_no_more()
        of_largest = (run for run in self.all() if run.tenant in self.tenants)
        return [self._leave(run, now) for run in list(islice(of_largest, over + MAX_HELD // 2))]

    def _take_no_more(self) -> None:
        """Of the tenants that have the most, together half of all."""
        counts = Counter(execution.tenant for execution in self.all())
        half = counts.total() // 2
        for tenant, count in counts.most_common():
            if half <= 0:
                break
            self.tenants.add(tenant)
            half -= count

    def _leave(self, execution: Execution, now: float) -> Again:
        at = next_tick(now) + self.left_runs // (MAX_HELD // 2) * WINDOW_S
        look, name = self.again(at, execution), execution.execution_id
        self.left_runs += 1
        self.planned.pop(name, None)
        self.noted.pop(name, None)
        self.enqueued.discard(name)
        self.recorded.discard(name)
        return look


def batches(executions: Sequence[Execution], noted: Mapping[str, Execution]) -> list[list[Execution]]:
    """What is read together: planned runs of a job, a hundred other planned ones, or a hundred noted ones. Pure.

    The executions are in the order of their jobs.
    """
    together: list[list[Execution]] = []
    planned_singly: list[Execution] = []
    consistent: list[Execution] = []
    for _, of_job in groupby(executions, key=lambda run: (run.tenant, run.job_id)):
        planned: list[Execution] = []
        for run in of_job:
            (consistent if run.execution_id in noted else planned).append(run)
        if len(planned) >= QUERIED_FROM:
            together.append(planned)
        else:
            planned_singly += planned
    for rest in (planned_singly, consistent):
        together += [rest[at : at + _BATCH_SIZE] for at in range(0, len(rest), _BATCH_SIZE)]
    return together


def next_tick(now: float) -> int:
    """When the next tick may look: later than all that this one has looked at."""
    return window_start(int(now)) + WINDOW_S
