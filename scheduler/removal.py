"""The last step of a tick: deletes ended jobs, and more items of tenants and groups of schedules that are deleted.

It works in slices, one tenant after the other, until the time is up; the next tick continues. Errors are logged and
left to the next tick. Planning is done by then, so removal cannot delay or undo it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from common import telemetry
from common.clock import Clock
from common.jobs.ended import EndedJobs
from common.jobs.wiring import job_store
from common.planning.due_index import DueIndex
from common.planning.executions_queue import ExecutionsQueue
from common.platform.deletion import Deletion, Deletions
from common.runs.records import Runs
from common.storage.table import Tables
from common.tenants.rules_cache import KnownTenants
from eventbridge.group_deletion import STEP, GroupDeletions
from eventbridge.guard import schedule_guard
from scheduler.ended import Completion

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


@dataclass(frozen=True, slots=True)
class Removal:
    """What deletes ended jobs, groups of schedules and tenants."""

    completion: Completion
    groups: GroupDeletions
    tenants: Deletions
    clock: Clock

    def run(self, began_at: float) -> None:
        """Delete what there is time for since the tick began, and log it. Raises nothing."""
        if deleted := self.completion.delete_ended(began_at):
            telemetry.logger().info("deleted after their completion", jobs=deleted)
        _log(remove_groups(self.groups, self.clock, began_at), "schedules of deleted groups")
        _log(remove_tenants(self.tenants, self.clock, began_at), "removal")


def removal(tables: Tables, queue: ExecutionsQueue, clock: Clock) -> Removal:
    """The removal of a deployment."""
    index = DueIndex(tables.due)
    store = job_store(
        tables, queue, clock, KnownTenants(tables.tenants), guards=[schedule_guard(tables.jobs)]
    )
    return Removal(
        Completion(EndedJobs(tables.due, tables.jobs), store, Runs(tables.runs)),
        GroupDeletions(store),
        Deletions(tables.tenants, tables.jobs, tables.runs, index),
        clock,
    )


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


def _log(removed: Removed, what: str) -> None:
    """Log what was removed, and the errors."""
    logger = telemetry.logger()
    for problem in removed.problems:
        logger.error("removal left to the next tick", **problem)
    if removed.tenants or removed.items:
        logger.info(what, tenants=removed.tenants, items=removed.items, finished=removed.finished)


def _items(deletion: Deletion) -> int:
    return sum(deletion.removed.values())
