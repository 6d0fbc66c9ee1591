"""The last step of a tick: removes more items of tenants, and of groups of schedules, that are being deleted.

It works in slices, one tenant after the other, until the time is up; the next tick continues. Errors are logged and
left to the next tick. Planning is done by then, so removal cannot delay or undo it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from common.clock import Clock
from common.jobs.group_deletion import STEP, GroupDeletions
from common.platform.deletion import Deletion, Deletions

# The latest start of another slice, after the tick's start. A slice takes seconds; the function has 300 s
# (serverless.yml).
WORKS_FOR_S: Final = 180


@dataclass(slots=True)
class Removed:
    """The result: how many tenants had something to remove, how many items were removed, and what was finished."""

    tenants: int = 0
    items: int = 0
    finished: int = 0
    problems: list[dict[str, Any]] = field(default_factory=list)


def remove_tenants(deletions: Deletions, clock: Clock, began_at: float) -> Removed:
    """Continue each deletion while it has items to remove, and time is left. Raises nothing."""
    removed = Removed()
    try:
        left = list(deletions.under_way())
    except Exception as error:  # noqa: BLE001  the tick stands, whatever this is
        removed.problems.append({"error": repr(error)})
        return removed
    removed.tenants = len(left)
    while left and clock.now() < began_at + WORKS_FOR_S:
        before = left.pop(0)
        try:
            after = deletions.move_on(before.tenant_id, clock.now())
        except Exception as error:  # noqa: BLE001  the other tenants' go on
            removed.problems.append({"tenant": before.tenant_id, "error": repr(error)})
            continue
        items = _items(after) - _items(before)
        removed.items += items
        removed.finished += after.finished_at is not None
        if items > 0 and after.finished_at is None:  # else it waits
            left.append(after)
    return removed


def remove_groups(deletions: GroupDeletions, clock: Clock, began_at: float) -> Removed:
    """Continue each deletion of a group of schedules until it is done, or time is up. Raises nothing."""
    removed = Removed()
    try:
        left = list(deletions.under_way())
    except Exception as error:  # noqa: BLE001  the tick stands, whatever this is
        removed.problems.append({"error": repr(error)})
        return removed
    while left and clock.now() < began_at + WORKS_FOR_S:
        tenant, name = left.pop(0)
        try:
            found = deletions.move_on(tenant, name, clock.now())
        except Exception as error:  # noqa: BLE001  the other groups go on
            removed.problems.append({"tenant": tenant, "group": name, "error": repr(error)})
            continue
        removed.items += found
        if found == STEP:
            left.append((tenant, name))
        else:
            removed.finished += 1
    return removed


def _items(deletion: Deletion) -> int:
    return sum(deletion.removed.values())
