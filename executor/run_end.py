"""What follows the end of a run: the next run, the failure streak, the dead letter, and the end of its job."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from common.clock import Clock
from common.events import RUN_SKIPPED, Events
from common.jobs.job import DELETED, Job
from common.planning.execution import BACKFILL_PREFIX, Execution
from common.planning.queue import ExecutionsQueue
from common.runs.outcome import Outcome, last_attempt
from common.runs.states import FAILED
from common.storage.wire import Item
from executor.admission import Skip, is_for_job
from executor.dead_letters import DeadLetters
from executor.failure_streak import FailureStreak, responsible
from executor.overlap import OverlapPolicy
from executor.retry import exhausted

if TYPE_CHECKING:
    from common.jobs.backfill import Backfills
    from common.jobs.ended import EndedJobs
    from common.planning.removal_requests import RemovalRequests


@dataclass(frozen=True, slots=True)
class RunEnd:
    """Each method is for one kind of end, and is called after the end was recorded. A call can be repeated."""

    overlap: OverlapPolicy
    failure_streak: FailureStreak
    dead_letters: DeadLetters
    backfills: Backfills
    ended_jobs: EndedJobs
    removals: RemovalRequests
    events: Events
    queue: ExecutionsQueue
    clock: Clock

    def succeeded(self, job: Job | None, execution: Execution) -> None:
        """The target has done the work."""
        self.ended(job, execution)
        if job:
            self.failure_streak.succeeded(job, execution)

    def failed(self, job: Job | None, execution: Execution, outcome: Outcome) -> None:
        """No attempt follows this outcome."""
        self.ended(job, execution)
        self.failure_streak.failed(job, execution, outcome)
        condition = exhausted(job.retry, execution, outcome) if job else ""
        self.dead_letters.send(job, execution, outcome.error_type, outcome.error, condition)

    def skipped(self, job: Job | None, execution: Execution, skip: Skip) -> None:
        """The first attempt is not made."""
        self.ended(job, execution)
        self.events.publish(
            RUN_SKIPPED,
            {
                "tenant": execution.tenant,
                "job_id": execution.job_id,
                "execution_id": execution.execution_id,
                "fire_at": execution.fire_at,
                "reason": skip.reason,
                "detail": skip.detail,
                **responsible(job),
            },
        )

    def given_up(self, job: Job | None, execution: Execution, reason: str, error: str) -> None:
        """A later attempt is not made, for a reason outside its target."""
        self.ended(job, execution)
        self.failure_streak.given_up(job, execution, reason, error)
        self.dead_letters.send(job, replace(execution, attempt=execution.attempt - 1), reason, error)

    def repeat_end(self, job: Job, execution: Execution, record: Item) -> None:
        """Repeat what follows a recorded run whose executor may have died before."""
        self.failure_streak.repeat_end(job, execution, record)
        last = last_attempt(record)
        if record["status"] == FAILED and last.get("outcome") == "failed":
            error_type, error = (str(last.get(name, "")) for name in ("error_type", "error"))
            self.dead_letters.send(job, execution, error_type, error)

    def ended(self, job: Job | None, execution: Execution, record: Item | None = None) -> None:
        """Start the run that waited for this one, and a backfill's next one; note the job's end.

        `record`: of a run that ended before.
        """
        is_same_job = job and job.state != DELETED and is_for_job(execution, job)
        if is_same_job and execution.trigger_id.startswith(BACKFILL_PREFIX):
            self.backfills.run_ended(execution, self.queue, int(self.clock.now()), record)
        if (waiting := self.overlap.ended(job, execution)) is not None:
            self.queue.send([waiting])
        if (
            job
            and job.after_completion == "delete"
            and self.ended_jobs.run_ended(job, execution, self.clock.now())
        ):
            self.removals.ask_soon()
