"""What is coming on the whole platform, by minute or second and by tenant, from the due index.

A step reads a bounded part of the index and returns where the next one continues. The dates of calendars are not read:
an execution that a calendar excludes is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from common.clock import CpuBudget
from common.planning.directory import Shard
from common.planning.due_entry import DueEntry
from common.planning.due_index import DueIndex, read_entry
from common.planning.execution import job_key
from common.storage import keys
from common.storage.bounded import KeyTextOrEmpty
from common.storage.metering import ahead
from common.storage.unreadable import Unreadable
from common.storage.wire import DAMAGE, Item
from common.timing.density import MINUTE_S, due_times
from common.timing.groups import group_can_fire
from common.timing.schedule import Schedule
from common.timing.windows import window_start

# A step looks at so many shards, reads so many of them, and counts while it has processor time. Readers have their own:
# 0.9 ms a shard, so some 2 s in all.
MAX_SHARDS: Final = 10_000
MAX_READ: Final = 2_000
# The parts into which the directory is divided: recurring shards, and those of one-off jobs.
PARTITIONS: Final = 2 * keys.SPREAD
# Shards that are read at once. A shard may have 20 MB: of each the first page is read ahead, 1 MB at most.
_THREADS: Final = 8


@dataclass(slots=True)
class PlatformDensity:
    """The executions with fire times in [start, end): by when they are due, and by tenant.

    `counts`: by minute, or by second if the range is no longer than a minute. `jobs`: those that were looked at;
    `unreadable`: entries that cannot be planned, which ticks report.
    """

    start: int
    end: int
    counts: Counter[int] = field(default_factory=Counter)
    tenants: Counter[str] = field(default_factory=Counter)
    jobs: int = 0
    unreadable: int = 0
    # Equal schedules without jitter and spread have equal fire times.
    _known: dict[tuple[Schedule, int], Mapping[int, int]] = field(default_factory=dict)

    @property
    def is_by_second(self) -> bool:
        return self.end - self.start <= MINUTE_S

    def add(self, entry: DueEntry | Unreadable) -> None:
        """Count the executions of an entry."""
        try:
            due = None if isinstance(entry, Unreadable) else self._due(entry)
        except DAMAGE:  # its schedule cannot be read, which ticks report
            due = None
        if due is None or isinstance(entry, Unreadable):
            self.unreadable += 1
            return
        for at, count in due.items():
            self.counts[at] += count
        self.tenants[entry.tenant] += sum(due.values())
        self.jobs += 1

    def _due(self, entry: DueEntry) -> Mapping[int, int]:
        """The executions of an entry by when they are due."""
        begin, schedule = max(self.start, entry.effective_at), entry.schedule
        if schedule.jitter_s or schedule.spread_s:
            return self._counted(schedule, job_key(entry.tenant, entry.job_id), begin)
        if (known := self._known.get((schedule, begin))) is None:
            known = self._known[schedule, begin] = self._counted(schedule, "", begin)
        return known

    def _counted(self, schedule: Schedule, key: str, begin: int) -> dict[int, int]:
        unit_s = 1 if self.is_by_second else MINUTE_S
        counts: dict[int, int] = {}
        for at in due_times(schedule, key, begin, self.end):
            at -= at % unit_s
            counts[at] = counts.get(at, 0) + 1
        return counts


class DensityPosition(NamedTuple):
    """Where the next step continues: after an entry of a shard, or (without an entry) after the shard."""

    partition: Annotated[int, Meta(ge=0, lt=PARTITIONS)] = 0
    shard: KeyTextOrEmpty = ""
    entry: KeyTextOrEmpty = ""


def check_position(position: DensityPosition) -> None:
    """Refuse a position that is none. Raises ValueError."""
    if position.entry:
        keys.group_and_shard(position.shard)


def count_step(index: DueIndex, density: PlatformDensity, cursor: DensityPosition) -> DensityPosition | None:
    """Count the next part of the due index. Returns where the next step continues."""
    budget, done, has_counted = CpuBudget(), cursor, False

    def read(looked_at: _LookedAt) -> tuple[_LookedAt, Iterator[Item]]:
        if not isinstance(looked_at.shard, Shard):
            return looked_at, iter(())
        items = index.entry_items(looked_at.shard, looked_at.after, consistent=False)
        return looked_at, chain(list(islice(items, 1)), items)  # the first item brings its page

    for looked_at, items in ahead(read, _looked_at(index, density, cursor), _THREADS):
        shard, position = looked_at.shard, looked_at.position
        if shard is None:
            return position
        if isinstance(shard, Unreadable):
            density.unreadable += 1
        else:
            partition = keys.shard_partition(shard.group, shard.shard)
        for item in items:
            if has_counted and budget.is_spent:  # an entry may have a fire time each second of two days
                return done
            density.add(read_entry(item, partition))
            done, has_counted = position._replace(entry=item["sk"]), True
        done = position
    return None


class _LookedAt(NamedTuple):
    """A shard to read after its entry `after`; one that cannot be read; or None: the step ends."""

    position: DensityPosition
    shard: Shard | Unreadable | None
    after: str = ""


def _looked_at(index: DueIndex, density: PlatformDensity, cursor: DensityPosition) -> Iterator[_LookedAt]:
    if cursor.entry:
        group, shard = keys.group_and_shard(cursor.shard)
        yield _LookedAt(cursor._replace(entry=""), Shard(group, shard), cursor.entry)
    windows = keys.one_off_range(window_start(density.start), density.end - 1)
    partitions: Sequence[tuple[str, tuple[str, str] | None]] = [
        *((name, None) for name in keys.partitions("DIRECTORY")),
        *((name, windows) for name in keys.partitions("ONE_OFF")),
    ]
    seen, read = 0, int(bool(cursor.entry))
    for number, (name, between) in list(enumerate(partitions))[cursor.partition :]:
        after = cursor.shard if number == cursor.partition else ""
        for next_shard in index.directory.shards(name, between, after):
            if isinstance(next_shard, Unreadable):
                after = next_shard.key["sk"]
                yield _LookedAt(DensityPosition(number, after), next_shard)
            else:
                after = f"{next_shard.group}#{next_shard.shard}"
                if next_shard.jobs > 0 and _may_fire(next_shard, density):
                    read += 1
                    yield _LookedAt(DensityPosition(number, after), next_shard)
            seen += 1
            if seen >= MAX_SHARDS or read >= MAX_READ:
                yield _LookedAt(DensityPosition(number, after), None)
                return


def _may_fire(shard: Shard, density: PlatformDensity) -> bool:
    try:
        return group_can_fire(shard.group, density.start, density.end)
    except DAMAGE:  # ticks report it
        return False
