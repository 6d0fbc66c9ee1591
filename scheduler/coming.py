"""While operators ask what is coming on the whole platform, ticks count it, so that the answer is read at once.

Each partition of the due index is counted once an hour, for a day and a little more. A tick takes those whose turn it
is, as long as there is time; each tick begins with another one. What is not done in time is left to later ticks, and
read from the index by those who ask (common/planning/platform_density.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from common.clock import Clock
from common.planning.due_index import DueIndex
from common.planning.platform_density import PARTITIONS, DensityCursor, PlatformDensity, count_step
from common.projection.coming import ComingCounts
from common.projection.state import ASKED_FOR_S
from common.storage.table import Tables
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S, window_start

# Counted again after so long.
_INTERVAL_S: Final = 3_600 - WINDOW_S // 2
# So far ahead: a day, until the next counting.
_AHEAD_S: Final = DAY_S + 3 * 3_600
# Of a tick, which has 300 s (serverless.yml); projection and comparison begin no read later than 150 s.
_MAX_COUNTING_S: Final = 60
_STOP_AFTER_S: Final = 200


@dataclass(slots=True)
class Counted:
    """The result: which partitions were counted, for how many there was no time, and what went wrong."""

    partitions: list[int] = field(default_factory=list)
    remaining: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class ComingCounter:
    """Counts what is coming. `count` is one step."""

    index: DueIndex
    counts: ComingCounts
    clock: Clock

    @classmethod
    def of(cls, tables: Tables, clock: Clock) -> ComingCounter:
        """The counter of a deployment."""
        return cls(DueIndex(tables.due), ComingCounts(tables.runs), clock)

    def count(self, began_at: float, asked_at: float) -> Counted:
        """Count in a tick that began at `began_at`, if somebody asked for it lately, at `asked_at`. Raises nothing."""
        counted = Counted()
        now = self.clock.now()
        if asked_at < now - ASKED_FOR_S:
            return counted
        try:
            turns = self._turns(now)
            stop_at = min(now + _MAX_COUNTING_S, began_at + _STOP_AFTER_S)
            for nth, partition in enumerate(turns):
                if not self._count(partition, stop_at):
                    counted.remaining = len(turns) - nth
                    break
                counted.partitions.append(partition)
        except Exception as error:  # noqa: BLE001  the tick stands, whatever this is
            counted.problem = repr(error)[:500]
        return counted

    def _turns(self, now: float) -> Sequence[int]:
        """The partitions that are to be counted, beginning with another one in each tick."""
        counted_at = self.counts.counted_at()
        first = int(now) // WINDOW_S
        in_order = ((first + nth) % PARTITIONS for nth in range(PARTITIONS))
        return [number for number in in_order if counted_at.get(number, 0) < now - _INTERVAL_S]

    def _count(self, partition: int, stop_at: float) -> bool:
        """Count a partition. False: there is no time for it."""
        now = self.clock.now()
        start = window_start(int(now))
        density = PlatformDensity(start, start + _AHEAD_S)
        cursor: DensityCursor | None = DensityCursor(partition)
        while cursor:
            if self.clock.now() >= stop_at:
                return False
            cursor = count_step(self.index, density, cursor, last=partition)
        self.counts.store(partition, density, int(now))
        return True
