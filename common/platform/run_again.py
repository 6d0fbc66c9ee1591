"""Run executions again that have no record, on behalf of the platform, with an entry in its audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from common.clock import Clock
from common.errors import InvalidInput, NotFound, shown
from common.planning.execution import Execution, parse_execution_id, split_execution_id
from common.planning.queue import ExecutionsQueue
from common.runs.unrecorded import Unrecorded
from common.storage import keys
from common.storage.table import Table, Transaction
from common.tenants.audit import AWS, Audit, AuditedCommit

MAX_RUN: Final = 100


@dataclass(frozen=True, slots=True)
class RunAgain:
    """Sends executions of the list once more."""

    unrecorded: Unrecorded
    queue: ExecutionsQueue
    tenants: Table
    clock: Clock

    def run(self, execution_ids: Sequence[str], by: str = AWS) -> tuple[list[str], list[str]]:
        """Send these again, at most MAX_RUN. Returns the ids that were sent, and those that have a record meanwhile.

        Raises InvalidInput; NotFound if one is not listed, and then sends none; HandOverFailed.
        """
        if not 1 <= len(execution_ids) <= MAX_RUN:
            raise InvalidInput(
                "execution_ids",
                "must be a list of execution ids",
                value=execution_ids,
                accepted=f"1 to {MAX_RUN} ids of the list",
            )
        # Only ids are keys: no other text is looked up.
        named = [one for one in execution_ids if isinstance(one, str) and split_execution_id(one)]
        listed = self.unrecorded.named(named)
        others = [one for one in named if one not in listed]  # a tick may have found the records of some
        recorded = set(others) - {one.execution_id for one in self.unrecorded.missing(_executions(others))}
        for one in execution_ids:
            if not isinstance(one, str) or one not in {*listed, *recorded}:
                raise NotFound("execution without a record", shown(one))
        left = self.unrecorded.missing([one.execution for one in listed.values()])
        ids = sorted(one.execution_id for one in left)
        if ids:
            now = self.clock.now()
            tx = Transaction(self.tenants.client)
            AuditedCommit(Audit(self.tenants), by, self.clock).commit(
                tx, keys.OPERATORS, "executions.run", ids[0], now, after={"count": len(ids), "ids": ids}
            )
            self.unrecorded.send(left, self.queue, now)
        return ids, sorted({*listed, *recorded} - set(ids))


def _executions(ids: Sequence[str]) -> list[Execution]:
    return [parse_execution_id(one.partition(":")[0], one) for one in ids]
