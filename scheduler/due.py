"""What is due in a window, from the directory of groups; unreadable groups are set aside.

A tick reads what is listed for its window. It reads the whole directory where listings may be missing: for a day after
code of another version, or with other time zones, was at work; after an outage; and in one window of each day.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final

from common.clock import Clock
from common.planning.directory import BadShard, Listing, Shard
from common.planning.due_index import DueIndex, Mark
from common.planning.quarantine import Quarantine
from common.storage.conflicts import TransactionConflict
from common.timing.groups import group_can_fire
from common.timing.instants import DAY_S
from scheduler.concurrently import for_each

if TYPE_CHECKING:
    from scheduler.summary import TickSummary

# The most empty shards, and the most misfiled ones, that a tick holds in memory to drop or file them.
MAX_KEPT: Final = 200_000
# How long code of an earlier version may write after a deployment or a rollback.
_DISTRUST_S: Final = DAY_S
# A longer window was left by an outage: it has so many places that reading everything costs less.
_LONG_S: Final = 3_600
# The window that is checked every day begins at 03:50 UTC, when little is due.
_CHECKED_AT_S: Final = 3 * 3_600 + 3_000
# One batch read; common/storage/table.py.
_AT_ONCE: Final = 100
_TIDIED_BETWEEN_LOOKS: Final = 1_600
_TIDIES_FOR_S: Final = 60


@dataclass(slots=True)
class Untidy:
    """What reading the directory found to be dropped, or to be listed elsewhere."""

    empty: list[Listing] = field(default_factory=list)
    misfiled: list[Listing] = field(default_factory=list)

    def look_at(self, found: Iterator[Listing | BadShard]) -> Iterator[Listing | BadShard]:
        """The same without the empty ones; keeps those that are to be tidied."""
        for one in found:
            if isinstance(one, BadShard):
                yield one
            elif one.shard.jobs <= 0:
                if len(self.empty) < MAX_KEPT:
                    self.empty.append(one)
            else:
                if not one.is_right and len(self.misfiled) < MAX_KEPT:
                    self.misfiled.append(one)
                yield one


def due_shards(
    index: DueIndex, quarantine: Quarantine, window: Mark, summary: TickSummary, untidy: Untidy
) -> Iterator[Shard]:
    """The shards that may fire in the window.

    Unreadable ones are set aside after all are read, and therefore before the mark moves.
    """
    unreadable: list[BadShard] = []
    for one in _recurring(index, window, summary, untidy):
        if isinstance(one, BadShard):
            unreadable.append(one)
        else:
            yield one.shard
    for shard in index.directory.one_off_shards(window.planned_until, window.planning_until):
        if isinstance(shard, BadShard):
            unreadable.append(shard)
        else:
            yield shard
    if untidy.misfiled:
        index.file_anew(summary.now)
    for_each(unreadable, lambda bad: quarantine.add_group(bad.name, window, bad.problem, summary.now))


def tidy(index: DueIndex, untidy: Untidy, clock: Clock) -> None:
    """List what is misfiled, and drop what is empty; what is left after a minute is found again by later ticks.

    Ticks may read what is in the directory, so nobody may fill it faster than it is emptied.
    """
    stop_at = clock.now() + _TIDIES_FOR_S

    def file(some: list[Listing]) -> None:
        with suppress(TransactionConflict):  # a writer holds one
            index.directory.open(some)

    for kept, do in ((untidy.misfiled, file), (untidy.empty, index.directory.drop_empty)):
        for first in range(0, len(kept), _TIDIED_BETWEEN_LOOKS):
            if clock.now() >= stop_at:
                return
            some = kept[first : first + _TIDIED_BETWEEN_LOOKS]
            for_each([some[at : at + _AT_ONCE] for at in range(0, len(some), _AT_ONCE)], do)


def _recurring(
    index: DueIndex, window: Mark, summary: TickSummary, untidy: Untidy
) -> Iterator[Listing | BadShard]:
    if _reads_all(window, summary.now):
        yield from _due(untidy.look_at(index.directory.whole()), window, summary)
        return
    listed = _due(index.directory.listed(window.planned_until, window.planning_until), window, summary)
    while some := list(islice(listed, _AT_ONCE)):
        yield from (one for one in some if isinstance(one, BadShard))
        readable = [one for one in some if isinstance(one, Listing)]
        yield from untidy.look_at(index.directory.counted(readable))


def _reads_all(window: Mark, now: float) -> bool:
    checks = [(at - _CHECKED_AT_S) // DAY_S for at in (window.planned_until - 1, window.planning_until - 1)]
    return (
        not window.is_filed
        or now < window.filed_since + _DISTRUST_S
        or window.planning_until - window.planned_until > _LONG_S
        or checks[0] < checks[1]
    )


def _due(
    found: Iterator[Listing | BadShard], window: Mark, summary: TickSummary
) -> Iterator[Listing | BadShard]:
    """Those that may fire in the window, and the unreadable ones."""
    for one in found:
        summary.groups_known += 1
        if isinstance(one, BadShard):
            yield one
            continue
        try:
            is_due = group_can_fire(one.shard.group, window.planned_until, window.planning_until)
        except Exception as error:  # noqa: BLE001  whatever is wrong with it, the others are to be planned
            yield BadShard(f"{one.shard.group}#{one.shard.shard}", f"unreadable group: {error!r}")
            continue
        if is_due:
            yield one
