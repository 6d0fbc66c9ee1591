"""One run: does it go on?"""

from __future__ import annotations

from dataclasses import dataclass

from common.planning.execution import Execution, split_execution_id
from common.runs.records import Runs
from common.runs.stuck import check_record, going_on, is_stuck, record_key, stuck_since
from common.storage.wire import Item
from common.texts import UNREADABLE
from common.timing.instants import rfc3339
from common.truth.contradiction import RUN_CORRUPT, RUN_STUCK, Contradiction, Subject
from common.truth.unplanned import Unplanned


@dataclass(frozen=True, slots=True)
class RunChecks:
    """Compares the record of a run with the clock."""

    unplanned: Unplanned

    def look(self, execution_id: str) -> list[Contradiction]:
        """What contradicts the run. Nothing if it has no record: that is what the comparison with the log finds."""
        if split_execution_id(execution_id) is None:
            return []
        subject, now = Subject("run", execution_id), self.unplanned.clock.now()
        record = self.unplanned.tables.runs.get(record_key(execution_id))
        try:
            if record:
                check_record(record)
            if record is None or not is_stuck(record, now):
                return []
            execution = self._execution(execution_id, record, now)
            detail = f"it is {record['status']}, and should have gone on at {rfc3339(int(stuck_since(record) or 0))}"
        except UNREADABLE as error:
            return [Contradiction(RUN_CORRUPT, subject, f"unreadable: {error!r}"[:300])]
        return [Contradiction(RUN_STUCK, subject, detail, lambda: self._send(execution))]

    def _execution(self, execution_id: str, record: Item, now: float) -> Execution:
        return going_on(execution_id.partition(":")[0], execution_id, record, now)

    def _send(self, execution: Execution) -> None:
        Runs(self.unplanned.tables.runs).note([execution], self.unplanned.clock.now())
        self.unplanned.queue.send([execution])
