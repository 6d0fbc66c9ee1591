"""Waiting until an execution is due, and reading its job then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from common.clock import Clock
from common.jobs.job import Job
from common.planning.execution import Execution
from common.storage import keys
from common.storage.table import Table

if TYPE_CHECKING:
    from common.planning.postponed import Postponed

# SQS delays by whole seconds, so a message can arrive up to a second early; it is then held for that time.
# A message that arrives earlier goes back to the queue.
HOLD_S: Final = 2.0

# Jobs by tenant and job id, read at the second of their executions; None: the job does not exist.
Jobs = Mapping[tuple[str, str], Job | None]


@dataclass(frozen=True, slots=True)
class DueJobs:
    """Holds executions until their second, and reads their jobs."""

    jobs: Table
    postponed: Postponed
    clock: Clock

    def hold(self, execution: Execution, came_at: float) -> bool:
        """Wait until the execution is due; False if that is too far away, and it went back to the queue."""
        if execution.visible_at - came_at > HOLD_S:
            self.postponed.send(execution)
            return False
        self._wait_until(execution.visible_at)
        return True

    def load(self, execution: Execution) -> Job | None:
        """The job of an execution; None if it does not exist."""
        item = self.jobs.get(keys.job(execution.tenant, execution.job_id))
        return Job.from_item(item) if item else None

    def load_when_due(self, executions: Sequence[Execution]) -> Jobs:
        """The jobs of executions that are due at the same second, read then; empty if that is too far away."""
        due_at = executions[0].visible_at
        if due_at - self.clock.now() > HOLD_S:
            return {}
        self._wait_until(due_at)
        names = list(dict.fromkeys((execution.tenant, execution.job_id) for execution in executions))
        found = map(Job.from_item, self.jobs.get_many([keys.job(*name) for name in names]))
        return dict.fromkeys(names) | {(job.tenant, job.job_id): job for job in found}

    def _wait_until(self, at: int) -> None:
        # In a loop: a sleep may end early, and a run must never start early.
        while (early_s := at - self.clock.now()) > 0:
            self.clock.sleep(early_s)
