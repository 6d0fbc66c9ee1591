"""Which shards of the due index hold the jobs of one change."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from msgspec.structs import replace

from common import telemetry
from common.jobs.job import Job
from common.planning.directory import Directory
from common.planning.pace import pace_number, pace_of
from common.storage.transactions import Transaction


class ShardChoice:
    """Picks the shards, opens new ones before the change is committed, and removes those that it leaves empty."""

    def __init__(self, directory: Directory, rng: random.Random) -> None:
        self._directory = directory
        self._rng = rng
        self._tries = 0
        # The entries that each shard gains, or loses (negative).
        self._entries: Counter[tuple[str, int]] = Counter()
        self._may_be_empty: set[tuple[str, int]] = set()

    def place(self, moved: Sequence[tuple[Job | None, Job]], conflicts: int) -> list[tuple[Job | None, Job]]:
        """The jobs with their shards; jobs of one group and pace get the same shard. Raises TransactionConflict."""
        group_shards = {}
        for old, new in moved:
            kind = new.group, _pace(new)
            if new.group and not _stays(old, new) and kind not in group_shards:
                group_shards[kind] = self._directory.pick(
                    new.group, self._rng, conflicts, pace=_pace(new), consistent=self._tries > 0
                )
        self._tries += 1
        unlisted = [choice for choice in group_shards.values() if not choice.is_open]
        self._may_be_empty |= {(choice.shard.group, choice.shard.shard) for choice in unlisted}
        self._directory.open(unlisted)
        placed: list[tuple[Job | None, Job]] = []
        for old, new in moved:
            if old and _stays(old, new):
                new = replace(new, shard=old.shard)
            elif new.group:
                new = replace(new, shard=group_shards[new.group, _pace(new)].shard.shard)
            placed.append((old, new))
        return placed

    def count(self, tx: Transaction, placed: Sequence[tuple[Job | None, Job]]) -> None:
        """Add the changed numbers of entries to `tx`."""
        self._entries.clear()
        for old, new in placed:
            if moves(old, new):
                if old and old.group:
                    self._entries[old.group, old.shard] -= 1
                if new.group:
                    self._entries[new.group, new.shard] += 1
        for (group, shard), change in self._entries.items():
            if change:
                self._directory.count(tx, group, shard, change)

    def committed(self) -> None:
        """Note which shards may be empty, after what `count` added is stored."""
        grown = {name for name, change in self._entries.items() if change > 0}
        shrunk = {name for name, change in self._entries.items() if change < 0}
        self._may_be_empty = self._may_be_empty - grown | shrunk

    def tidy(self) -> None:
        """Remove the shards that the change left empty, also one that failed: no tick may look at them before days."""
        with telemetry.tolerated("empty shards are left to the tick that looks at them next"):
            self._directory.drop_if_empty(sorted(self._may_be_empty))


def moves(old: Job | None, new: Job) -> bool:
    """Whether a change puts the job's entry into another shard, or takes it away."""
    return old is None or (old.group, old.shard) != (new.group, new.shard)


def _stays(old: Job | None, new: Job) -> bool:
    if old is None or not new.group or old.group != new.group:
        return False
    return pace_of(old.shard) == _pace(new)


def _pace(job: Job) -> int:
    """The number of the job's pace, by which its shard is found; 0 without one."""
    return pace_number(job.tenant, job.schedule.pace)
