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
from common.storage.table import Table
from common.storage.transactions import Transaction
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
        # Other texts are not looked up.
        ids = [text for text in execution_ids if isinstance(text, str) and split_execution_id(text)]
        listed = self.unrecorded.named(ids)
        unlisted = [execution_id for execution_id in ids if execution_id not in listed]
        # A tick may have found the records of some.
        still_missing = self.unrecorded.missing(_executions(unlisted))
        recorded = set(unlisted) - {execution.execution_id for execution in still_missing}
        for text in execution_ids:
            if not isinstance(text, str) or text not in {*listed, *recorded}:
                raise NotFound("execution without a record", shown(text))
        missing = self.unrecorded.missing([item.execution for item in listed.values()])
        sent_ids = sorted(execution.execution_id for execution in missing)
        if sent_ids:
            now = self.clock.now()
            tx = Transaction(self.tenants.client)
            AuditedCommit(Audit(self.tenants), by, self.clock).commit(
                tx,
                keys.OPERATORS,
                "executions.run",
                sent_ids[0],
                now,
                after={"count": len(sent_ids), "ids": sent_ids},
            )
            self.unrecorded.send(missing, self.queue, now)
        return sent_ids, sorted({*listed, *recorded} - set(sent_ids))


def _executions(ids: Sequence[str]) -> list[Execution]:
    return [parse_execution_id(execution_id.partition(":")[0], execution_id) for execution_id in ids]
