"""When the projection reads a run again: it is not over, has no record yet, or there was no time for it.

What it has read outlives the runs: the log of planning and of looks is in another table. So after a restore of the runs
it tells which executions had a record.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, NamedTuple

from common.planning.execution import Execution, UnreadableMessage
from common.planning.log import AGAIN, AGAIN_PLANNED, AGAIN_RECORDED, PLANNED, ExecutionLog
from common.runs.run import STUCK_AFTER_S
from common.texts import UNREADABLE
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S, window_start

# After this time without a record a run will not have one, unless it is noted as changed then.
NO_RECORD_AFTER_S: Final = DAY_S
_FAR_AT: Final = 9_999_999_999


class Again(NamedTuple):
    """When to read an execution's run again, and the kind of the look (common/planning/log.py)."""

    at: int
    execution: Execution
    kind: str = AGAIN


def had_records(log: ExecutionLog, bucket: int, begin: int, until: int, among: set[str]) -> set[str]:
    """Of these ids, those of planned executions of windows in [begin, until) that had a record when ticks read it.

    `until`: up to where ticks have followed the bucket's log. What had none is noted, to be looked at again. No other
    ids of the log, which has those of two days, are kept in memory.
    """
    by_kind: dict[str, set[str]] = {PLANNED: set(), AGAIN_PLANNED: set(), AGAIN_RECORDED: set()}
    for portion in log.portions(begin, _FAR_AT, bucket):
        if portion.kind not in by_kind or (portion.kind == PLANNED and portion.window >= until):
            continue
        with suppress(
            UnreadableMessage, *UNREADABLE
        ):  # of a later version, or damaged: the projector says so
            by_kind[portion.kind] |= among & {
                Execution.decode(body).execution_id for body in portion.bodies()
            }
    return (by_kind[PLANNED] - by_kind[AGAIN_PLANNED]) | by_kind[AGAIN_RECORDED]


def next_look(execution: Execution, goes_on_at: float, now: float) -> int:
    """When to read a run again that is not over. Pure.

    `goes_on_at`: when its lease ends, or its next attempt is due; 0: it waits for neither. If it has not gone on soon
    after, it is stuck, and that tick finds it. Else in a quarter of its age.
    """
    if goes_on_at + STUCK_AFTER_S >= now:
        at = max(now + WINDOW_S, goes_on_at + STUCK_AFTER_S)
    else:
        at = now + max(WINDOW_S, (now - execution.visible_at) / 4)
    return window_start(int(at))
