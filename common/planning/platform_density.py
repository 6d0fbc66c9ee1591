"""What is coming on the whole platform, by minute or second and by tenant, from the due index.

A step reads a bounded part of the index and returns where the next one continues. The dates of calendars are not read:
an execution that a calendar excludes is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from common.planning.directory import Shard
from common.planning.due_entry import DueEntry
from common.planning.due_index import DueIndex, entry_position
from common.planning.execution import job_key
from common.storage import keys
from common.storage.bounded import KeyTextOrEmpty
from common.storage.unreadable import Unreadable
from common.storage.wire import DAMAGE
from common.timing.density import MINUTE_S, by_minute, due_times
from common.timing.groups import group_can_fire
from common.timing.schedule import Schedule
from common.timing.windows import window_start

# Bounds of one step.
MAX_SHARDS: Final = 5_000
MAX_ENTRIES: Final = 10_000
MAX_COUNTED: Final = 200_000
# The parts into which the directory is divided: recurring shards, and those of one-off jobs.
PARTITIONS: Final = 2 * keys.SPREAD


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
    _known: dict[tuple[Schedule, int], Counter[int]] = field(default_factory=dict)

    @property
    def is_by_second(self) -> bool:
        return self.end - self.start <= MINUTE_S

    def of_entry(self, entry: DueEntry) -> Counter[int]:
        """The executions of an entry by when they are due. They are not added."""
        by = Counter[int] if self.is_by_second else by_minute
        begin, schedule = max(self.start, entry.effective_at), entry.schedule
        if schedule.jitter_s or schedule.spread_s:
            return by(due_times(schedule, job_key(entry.tenant, entry.job_id), begin, self.end))
        known = self._known.get((schedule, begin))
        if known is None:
            known = self._known[schedule, begin] = by(due_times(schedule, "", begin, self.end))
        return known

    def add(self, tenant: str, counts: Counter[int]) -> None:
        """Add what `of_entry` returned for an entry of the tenant."""
        self.counts.update(counts)
        self.tenants[tenant] += counts.total()
        self.jobs += 1


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
    done = DensityPosition(cursor.partition, cursor.shard)
    seen, room = 0, _Room(MAX_ENTRIES, MAX_COUNTED)
    for number, shard, after in _shards(index, cursor, density):
        if seen >= MAX_SHARDS:
            return done
        seen += 1
        if isinstance(shard, Unreadable):
            density.unreadable += 1
            done = DensityPosition(number, shard.key["sk"])
            continue
        position = DensityPosition(number, keys.directory(shard.group, shard.shard)["sk"])
        if (last_counted := _count(index, shard, after, density, room)) is not None:
            return position._replace(entry=last_counted) if last_counted else done
        done = position
    return None


@dataclass(slots=True)
class _Room:
    """How many entries and executions a step may still count; the first entry always has room."""

    entries: int
    executions: int
    is_first: bool = True

    def take(self, executions: int) -> bool:
        """Whether there is room for an entry with so many executions."""
        if not self.is_first and executions > self.executions:
            return False
        self.is_first = False
        self.entries -= 1
        self.executions -= executions
        return True


def _shards(
    index: DueIndex, cursor: DensityPosition, density: PlatformDensity
) -> Iterator[tuple[int, Shard | Unreadable, str]]:
    """The shards from the spot on with their partition's number; the first one from the spot's entry on."""
    if cursor.entry:
        group, shard = keys.group_and_shard(cursor.shard)
        yield cursor.partition, Shard(group, shard, 1), cursor.entry
    windows = keys.one_off_range(window_start(density.start), density.end - 1)
    partitions: Sequence[tuple[str, tuple[str, str] | None]] = [
        *((name, None) for name in keys.partitions("DIRECTORY")),
        *((name, windows) for name in keys.partitions("ONE_OFF")),
    ]
    for number, (name, between) in list(enumerate(partitions))[cursor.partition :]:
        after = cursor.shard if number == cursor.partition else ""
        for next_shard in index.directory.shards(name, between, after):
            yield number, next_shard, ""


def _count(index: DueIndex, shard: Shard, after: str, density: PlatformDensity, room: _Room) -> str | None:
    """Count a shard's entries from `after` on; None, or the last counted one if the step has to stop there."""
    if shard.jobs <= 0 or not _may_fire(shard, density):
        return None
    for entry in index.entries(shard, after, consistent=False):
        if room.entries <= 0:
            return after
        counts = None if isinstance(entry, Unreadable) else _readable(entry, density)
        if not room.take(counts.total() if counts else 0):
            return after
        if counts is None or isinstance(entry, Unreadable):
            density.unreadable += 1
        else:
            density.add(entry.tenant, counts)
        after = entry_position(entry)
    return None


def _may_fire(shard: Shard, density: PlatformDensity) -> bool:
    try:
        return group_can_fire(shard.group, density.start, density.end)
    except DAMAGE:  # ticks report it
        return False


def _readable(entry: DueEntry, density: PlatformDensity) -> Counter[int] | None:
    """Its executions by when they are due; None if its schedule cannot be read, which ticks report."""
    try:
        return density.of_entry(entry)
    except DAMAGE:
        return None
