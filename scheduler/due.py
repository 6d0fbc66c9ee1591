"""What is due in a window, from the directory of groups. Unreadable groups are set aside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from common.planning.due_index import BadShard, DueIndex, Mark, Shard
from common.planning.quarantine import Quarantine
from common.timing.groups import group_can_fire
from scheduler.concurrently import for_each

if TYPE_CHECKING:
    from scheduler.summary import TickSummary

# So many empty shards are held in memory, to be dropped by this tick.
MOST_EMPTY = 200_000


def due_shards(
    index: DueIndex, quarantine: Quarantine, window: Mark, summary: TickSummary, empty: list[Shard]
) -> Iterator[Shard]:
    """The shards that may fire in the window; those without entries go into `empty`.

    Unreadable ones are set aside after all are read, and therefore before the mark moves.
    """
    unreadable: list[BadShard] = []
    for shard in index.recurring_shards():
        summary.groups_known += 1
        if isinstance(shard, BadShard):
            unreadable.append(shard)
        elif shard.jobs <= 0:
            if len(empty) < MOST_EMPTY:
                empty.append(shard)
        elif isinstance(due := _is_due(shard, window), BadShard):
            unreadable.append(due)
        elif due:
            yield shard
    for shard in index.one_off_shards(window.planned_until, window.planning_until):
        if isinstance(shard, BadShard):
            unreadable.append(shard)
        else:
            yield shard
    for_each(unreadable, lambda bad: quarantine.add_group(bad.name, window, bad.problem, summary.now))


def _is_due(shard: Shard, window: Mark) -> bool | BadShard:
    try:
        return group_can_fire(shard.group, window.planned_until, window.planning_until)
    except Exception as error:  # noqa: BLE001  whatever is wrong with it, the others are to be planned
        return BadShard(f"{shard.group}#{shard.shard}", f"unreadable group: {error!r}")
