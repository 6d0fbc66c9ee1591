"""What follows the end of a run: a backfill's next run, the failure streak, the dead letter, and the end of its job.

Runs that failed for good are sent to the job's dead-letter queue, with the attributes of EventBridge Scheduler.
https://docs.aws.amazon.com/scheduler/latest/UserGuide/configuring-schedule-dlq.html
The run has ended by then, whether or not the message can be sent. The message is sent again if the executor may have
died before.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError
from msgspec import structs

from common import telemetry
from common.clock import Clock
from common.errors import shown
from common.events import RUN_SKIPPED, Events
from common.jobs.job import DELETED, PAUSED, Job, responsible
from common.jobs.placeholders import DeadLetterParts, PayloadFormats, format_of
from common.planning.execution import BACKFILL_PREFIX, Execution
from common.planning.queue import ExecutionsQueue
from common.runs.outcome import STOPPED, Outcome
from common.runs.records import Runs
from common.runs.run import Run
from common.runs.states import DELETED_JOB, FAILED
from common.tenants.allowed_targets import may_call
from common.tenants.rules_cache import KnownTenants
from common.timing.instants import rfc3339
from common.timing.schedule import MINUTE8, CronTiming, Schedule
from executor import calling
from executor.admission import WAITS_AFTER_S, Skip, is_for_job
from executor.calling import PayloadReader, Turns
from executor.retry import exhausted
from executor.targets.aws_services import queue_url
from executor.targets.clients import client
from executor.targets.events import Event, message_body

if TYPE_CHECKING:
    from common.jobs.backfill import Backfills
    from common.jobs.calendars import RememberedCalendars
    from common.jobs.ended import EndedJobs
    from common.planning.queue import RemovalRequests
    from executor.failure_streak import FailureStreak

_TIMEOUT_S: Final = 5
_MAX_ERROR_CHARS: Final = 1_000
_MAX_CODE_CHARS: Final = 64
# Characters that SQS refuses in the value of an attribute. `re` compiles the pattern on its first use: that takes 6 ms.
_REFUSED: Final = r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"


@dataclass(frozen=True, slots=True)
class RunEnd:
    """Each method is for one kind of end, and is called after the end was recorded. A call can be repeated.

    The methods for a failure return what `DeadLetters.send` does.
    """

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
        if job and job.has_streak:
            self.failure_streak.succeeded(job, execution)

    def failed(self, job: Job | None, execution: Execution, outcome: Outcome) -> str | None:
        """No attempt follows this outcome. Nobody has to hear of a run that a person stopped, or whose job is gone."""
        self.ended(job, execution)
        if outcome.error_type in (STOPPED, DELETED_JOB):
            return None
        self.failure_streak.failed(job, execution, outcome)
        condition = exhausted(job.spec.retry, execution, outcome) if job else ""
        return self.dead_letters.send(job, execution, outcome.error_type, outcome.error, condition)

    def skipped(self, job: Job | None, execution: Execution, skip: Skip) -> None:
        """The first attempt is not made."""
        self.ended(job, execution, skipped=skip.detail)
        if job and job.state != DELETED:
            self.failure_streak.skipped(job, execution, skip.reason, skip.detail)
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

    def waits(self, job: Job | None, execution: Execution, detail: str) -> None:
        """The attempt waits for other runs, or a block, to end. Nobody is told of a pause: somebody asked for it."""
        if job and job.state != PAUSED and execution.due_at + WAITS_AFTER_S <= self.clock.now():
            self.failure_streak.waits(job, execution, detail)

    def unreadable(self, job: Job) -> None:
        """A run is due of a job that somebody has damaged."""
        self.failure_streak.unreadable(job)

    def dispatched(self, job: Job | None, execution: Execution) -> None:
        """A service has taken the event."""
        self.ended(job, execution)
        if job and job.not_running:
            self.failure_streak.ran(job, execution)

    def given_up(self, job: Job | None, execution: Execution, reason: str, error: str) -> str | None:
        """A later attempt is not made, for a reason outside its target."""
        self.ended(job, execution)
        self.failure_streak.given_up(job, execution, reason, error)
        return self.dead_letters.send(
            job, structs.replace(execution, attempt=execution.attempt - 1), reason, error
        )

    def repeat_end(self, job: Job, execution: Execution, record: Run) -> str | None:
        """Repeat what follows a recorded run whose executor may have died before."""
        last = record.last_attempt
        if last and last.error_type == STOPPED:
            return None
        self.failure_streak.repeat_end(job, execution, record)
        if record.status == FAILED and last and last.outcome == "failed":
            return self.dead_letters.send(job, execution, last.error_type, last.error)
        return None

    def ended(
        self, job: Job | None, execution: Execution, record: Run | None = None, skipped: str = ""
    ) -> None:
        """Start a backfill's next run; note the job's end.

        `record`: of a run that ended before. `skipped`: why the run was.
        """
        if record and job and job.not_running == "waits":  # somebody has cancelled it
            self.failure_streak.ran(job, execution)
        is_of_backfill = job and job.state != DELETED and execution.trigger_id.startswith(BACKFILL_PREFIX)
        if job and is_of_backfill and is_for_job(execution, job):
            self.backfills.run_ended(execution, self.queue, int(self.clock.now()), record)
        if (
            job
            and job.spec.after_completion == "delete"
            and self.ended_jobs.run_ended(job, execution, self.clock.now())
        ):
            self.removals.ask_soon()
        elif job and _may_end(job.schedule):
            self.failure_streak.note_if_over(
                job, execution, lambda: self.ended_jobs.excluded(job), skipped=skipped
            )


def _may_end(schedule: Schedule) -> bool:
    """Whether the schedule may come to its end, as far as a look says that costs nothing. Pure."""
    return schedule.end_at is not None or any(
        part.end_at is not None
        or part.include_calendars
        or (isinstance(part.timing, CronTiming) and part.timing.dialect != MINUTE8)
        for part in schedule.parts
    )


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """`rules` returns each tenant's rules: the queue must still be allowed."""

    runs: Runs
    rules: KnownTenants
    payload_formats: PayloadFormats
    payload_of: PayloadReader
    as_scheduled: Callable[[Execution, Job, RememberedCalendars], Job]
    turns: Turns
    clock: Clock

    def send(
        self, job: Job | None, execution: Execution, error_type: str, error: str, exhausted: str = ""
    ) -> str | None:
        """Send one message if the job names a queue. A failure is noted in the run; nothing is raised.

        `execution` is of the last attempt; `exhausted` the condition of the retry policy that ended the run. Returns
        the code of the error that kept the message back; an empty text if it was sent; None if the job names no queue.
        """
        if job is None or job.spec.dead_letter is None:
            return None
        code = ""
        try:
            if problem := self._forbidden(job):
                code = "NotAllowed"
            else:
                self._send_or_repeat(job, execution, (error_type, error, exhausted))
        except Exception as raised:  # noqa: BLE001  the run has ended, and its message must not come again
            code, problem = _code_of(raised), f"{type(raised).__name__}: {shown(str(raised))}"
        if problem:
            self._note(execution, problem)
        return code

    def _send_or_repeat(self, job: Job, execution: Execution, failure: tuple[str, str, str]) -> None:
        with telemetry.tolerated("dead letter not sent, tried again"):
            return self._send(job, execution, failure)
        return self._send(job, execution, failure)

    def _send(self, job: Job, execution: Execution, failure: tuple[str, str, str]) -> None:
        turn = self.turns.turn(job.tenant)
        with turn.hold():
            job = self.as_scheduled(execution, job, turn.calendars)
            event = calling.event(job, self.payload_of(job), execution, None, self.payload_formats)
            parts = self._parts(job, execution, event)
        _send(job, event, parts, attributes(job, execution, parts, failure))

    def _forbidden(self, job: Job) -> str:
        if may_call(_queue(job), self.rules.rules(job.tenant, self.clock.now())):
            return ""
        return f"the platform does not allow the tenant the queue {job.spec.dead_letter}"

    def _parts(self, job: Job, execution: Execution, event: Event) -> DeadLetterParts:
        """The body is the one that the target would have received, unless the format has another."""
        body = message_body(job.spec.target, event) or "{}"
        if payload_format := format_of(job.spec.target, self.payload_formats):
            return payload_format.dead_letter(
                job, execution, body, lambda text: self.payload_of(structs.replace(job, payload=text))
            )
        called = str(job.spec.target.get("arn") or job.spec.target.get("url"))
        return DeadLetterParts(execution.execution_id, called, body)

    def _note(self, execution: Execution, problem: str) -> None:
        telemetry.logger().error("dead letter not sent", run=execution.execution_id, error=problem)
        with telemetry.tolerated("nor noted in the run"):
            self.runs.note_dead_letter(execution, problem)


def attributes(
    job: Job, execution: Execution, parts: DeadLetterParts, failure: tuple[str, str, str]
) -> dict[str, dict[str, str]]:
    """The attributes of the message. `SCHEDULE_ARN` is "tenant/job" for a job that replaces no schedule. Pure.

    `failure` is the type of the error, its text, and the exhausted condition.
    """
    error_type, error, exhausted = failure
    texts = {
        "ERROR_CODE": error_type,
        "ERROR_MESSAGE": error[:_MAX_ERROR_CHARS],
        "EXECUTION_ID": parts.execution_id,
        "EXHAUSTED_RETRY_CONDITION": exhausted or parts.refused,
        "IS_PAYLOAD_TRUNCATED": "false",
        "RETRY_ATTEMPTS": str(max(0, execution.attempt - 1)),
        "SCHEDULED_TIME": rfc3339(execution.fire_at),
        "SCHEDULE_ARN": str(job.spec.target.get("schedule_arn") or job.key),
        "TARGET_ARN": parts.target_arn,
    }
    return {
        name: {"DataType": "String", "StringValue": value}
        for name, text in texts.items()
        if (value := re.sub(_REFUSED, "\ufffd", text))
    }


def _code_of(raised: Exception) -> str:
    """AWS's code of the error, or its class: a part of a metric's name."""
    details = raised.response.get("Error", {}) if isinstance(raised, ClientError) else {}
    return re.sub(r"[^A-Za-z0-9._-]", "_", str(details.get("Code") or type(raised).__name__))[
        :_MAX_CODE_CHARS
    ]


def _send(
    job: Job, event: Event, parts: DeadLetterParts, message_attributes: dict[str, dict[str, str]]
) -> None:
    queue = _queue(job)
    client("sqs", queue, event, _TIMEOUT_S).send_message(
        QueueUrl=queue_url(queue["arn"]), MessageBody=parts.body, MessageAttributes=message_attributes
    )


def _queue(job: Job) -> dict[str, Any]:
    """The queue as a target, with the role of the job's own target: that role may be needed to write to the queue."""
    role = {name: job.spec.target[name] for name in ("role_arn", "external_id") if name in job.spec.target}
    return {"kind": "sqs", "arn": job.spec.dead_letter, **role}
