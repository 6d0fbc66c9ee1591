"""When the projection reads a run again: it is not over, has no record yet, or there was no time for it."""

from __future__ import annotations

from typing import Final, NamedTuple

from common.planning.execution import Execution
from common.runs.run import STUCK_AFTER_S
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S, window_start

# After this time without a record a run will not have one, unless it is noted as changed then.
NO_RECORD_AFTER_S: Final = DAY_S


class Again(NamedTuple):
    """When to read an execution's run again. `is_planned`: it must have a record, since it was enqueued."""

    at: int
    execution: Execution
    is_planned: bool


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
