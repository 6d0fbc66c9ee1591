"""One run: does it go on?"""

from __future__ import annotations

from dataclasses import dataclass

from common.planning.execution import split_execution_id
from common.runs.records import Runs
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
        if (names := split_execution_id(execution_id)) is None:
            return []
        subject, now = Subject("run", execution_id), self.unplanned.clock.now()
        runs = Runs(self.unplanned.tables.runs)
        try:
            run = runs.named(*names)
            if run is None or not run.is_stuck(now):
                return []
            execution = run.going_on(now)
        except UNREADABLE as error:
            return [Contradiction(RUN_CORRUPT, subject, f"unreadable: {error!r}"[:300])]
        detail = f"it is {run.status}, and should have gone on at {rfc3339(int(run.stuck_since))}"

        def send() -> None:
            runs.note([execution], self.unplanned.clock.now())
            self.unplanned.queue.send([execution])

        return [Contradiction(RUN_STUCK, subject, detail, send)]
