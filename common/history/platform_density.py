"""The density of the whole platform: the executions of all tenants by minute, from the due index.

A call reads a bounded part of the due index and returns where the next one continues. The dates of calendars are not
read: an execution that a calendar excludes is counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from common.history.density import Density
from common.planning.directory import BadShard, Shard
from common.planning.due_entry import DueEntry
from common.planning.due_index import BadEntry, DueIndex, place
from common.planning.execution import job_key
from common.storage import keys
from common.timing.groups import group_can_fire
from common.timing.windows import window_start

# What one call reads and counts at most. A single job may have more executions.
MAX_SHARDS: Final = 5_000
MAX_ENTRIES: Final = 10_000
MAX_COUNTED: Final = 200_000


@dataclass(frozen=True, slots=True)
class Spot:
    """Where the next call continues: after an entry of a shard, or (without an entry) after the shard."""

    partition: int = 0
    shard: str = ""
    entry: str = ""


@dataclass(slots=True)
class PlatformPage:
    """The density of a part of the due index; `next` is None at its end."""

    density: Density
    tenants: Counter[str] = field(default_factory=Counter)
    jobs: int = 0
    unreadable: int = 0
    next: Spot | None = None


def platform_density(index: DueIndex, spot: Spot, start: int, end: int, now: float) -> PlatformPage:
    """The executions with fire times in [start, end) of the next part of the due index."""
    page = PlatformPage(Density(max(start, math.ceil(now)), end))
    done = Spot(spot.partition, spot.shard)
    for seen, (number, shard, after) in enumerate(_shards(index, spot, page.density.start, end)):
        if seen >= MAX_SHARDS:
            page.next = done
            return page
        if isinstance(shard, BadShard):
            page.unreadable += 1
            done = Spot(number, shard.name)
            continue
        here = Spot(number, keys.directory(shard.group, shard.shard)["sk"])
        if (last := _count(index, shard, after, page)) is not None:
            page.next = replace(here, entry=last) if last else done
            return page
        done = here
    return page


def _shards(index: DueIndex, spot: Spot, start: int, end: int) -> Iterator[tuple[int, Shard | BadShard, str]]:
    """The shards from the spot on with their partition's number; the first one from the spot's entry on."""
    if spot.entry:
        group, shard = keys.group_and_shard(spot.shard)
        yield spot.partition, Shard(group, shard, 1), spot.entry
    windows = keys.one_off_range(window_start(start), end - 1)
    partitions: list[tuple[str, tuple[str, str] | None]] = [
        *((name, None) for name in keys.partitions("DIRECTORY")),
        *((name, windows) for name in keys.partitions("ONE_OFF")),
    ]
    for number, (name, between) in list(enumerate(partitions))[spot.partition :]:
        after = spot.shard if number == spot.partition else ""
        for found in index.directory.shards(name, between, after):
            yield number, found, ""


def _count(index: DueIndex, shard: Shard, after: str, page: PlatformPage) -> str | None:
    """Count a shard's entries from `after` on; None, or the last counted one if the call has to stop there."""
    if shard.jobs <= 0 or not _may_fire(shard, page.density):
        return None
    for entry in index.entries(shard, after):
        if page.jobs + page.unreadable >= MAX_ENTRIES:
            return after
        found = None if isinstance(entry, BadEntry) else _minutes(entry, page.density)
        if found is None:
            page.unreadable += 1
        else:
            if page.jobs and page.density.total + found.total() > MAX_COUNTED:
                return after
            page.density.add(found)
            page.tenants[entry.tenant] += found.total()
            page.jobs += 1
        after = place(entry)
    return None


def _may_fire(shard: Shard, density: Density) -> bool:
    try:
        return group_can_fire(shard.group, density.start, density.end)
    except Exception:  # noqa: BLE001  ticks report it
        return False


def _minutes(entry: DueEntry, density: Density) -> Counter[int] | None:
    """Its executions by minute; None if its schedule cannot be read, which ticks report."""
    try:
        return density.of_job(entry.schedule, job_key(entry.tenant, entry.job_id), entry.effective_at)
    except Exception:  # noqa: BLE001  as ticks treat it
        return None
