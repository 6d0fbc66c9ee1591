"""Sends runs that failed for good to the job's dead-letter queue, with the attributes of EventBridge Scheduler.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/configuring-schedule-dlq.html
The run has ended by then, whether or not the message can be sent. The message is sent again if the executor may have
died before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from common import telemetry
from common.clock import Clock
from common.errors import shown
from common.jobs.job import Job
from common.jobs.payload_formats import LetterParts, PayloadFormats, format_of
from common.planning.execution import Execution
from common.runs.changes import RunChanges
from common.tenants.allowed_targets import is_allowed, is_minute8_resource
from common.tenants.rules_cache import RulesOf
from common.timing.instants import rfc3339
from executor import calling
from executor.calling import PayloadReader
from executor.targets.clients import client
from executor.targets.events import Event, message_body
from executor.targets.sqs_queue import queue_url

_TIMEOUT_S: Final = 5
_MAX_TRIES: Final = 2
_MAX_ERROR_CHARS: Final = 1_000
# Characters that SQS refuses in the value of an attribute. `re` compiles the pattern on its first use: that takes 6 ms.
_REFUSED: Final = r"[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """`rules` returns each tenant's rules: the queue must still be allowed."""

    changes: RunChanges
    rules: RulesOf
    payload_formats: PayloadFormats
    payload_of: PayloadReader
    clock: Clock

    def send(
        self, job: Job | None, execution: Execution, error_type: str, error: str, exhausted: str = ""
    ) -> None:
        """Send one message if the job names a queue. A failure is noted in the run; nothing is raised.

        `execution` is of the last attempt; `exhausted` the condition of the retry policy that ended the run.
        """
        if job is None or job.dead_letter is None:
            return
        problem = ""
        try:
            if problem := self._forbidden(job):
                return
            for remaining_tries in reversed(range(_MAX_TRIES)):
                try:
                    payload = self.payload_of(job)
                    event = calling.event(job, payload, execution, "", self.payload_formats)
                    parts = self._parts(job, execution, event)
                    _send(
                        job, event, parts, attributes(job, execution, parts, (error_type, error, exhausted))
                    )
                    return
                except Exception as raised:
                    if not remaining_tries:
                        raise
                    telemetry.logger().warning("dead letter not sent, tried again", error=shown(str(raised)))
        except Exception as raised:  # noqa: BLE001  the run has ended, and its message must not come again
            problem = f"{type(raised).__name__}: {shown(str(raised))}"
        finally:
            if problem:
                self._note(execution, problem)

    def _forbidden(self, job: Job) -> str:
        queue = _queue(job)
        rules = self.rules.rules(job.tenant, self.clock.now())
        if rules and is_allowed(queue, rules.allowed_targets) and not is_minute8_resource(queue):
            return ""
        return f"the platform does not allow the tenant the queue {job.dead_letter}"

    def _parts(self, job: Job, execution: Execution, event: Event) -> LetterParts:
        """The body is the one that the target would have received, unless the format has another."""
        body = message_body(job.target, event) or "{}"
        if payload_format := format_of(job.target, self.payload_formats):
            return payload_format.letter(
                job, execution, body, lambda text: self.payload_of(replace(job, payload=text))
            )
        called = str(job.target.get("arn") or job.target.get("url"))
        return LetterParts(execution.execution_id, called, body)

    def _note(self, execution: Execution, problem: str) -> None:
        telemetry.logger().error("dead letter not sent", run=execution.execution_id, error=problem)
        try:
            self.changes.note_dead_letter(execution, problem)
        except Exception as raised:  # noqa: BLE001  it is logged
            telemetry.logger().error("nor noted in the run", error=shown(str(raised)))


def attributes(
    job: Job, execution: Execution, parts: LetterParts, failure: tuple[str, str, str]
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
        "SCHEDULE_ARN": str(job.target.get("schedule_arn") or job.key),
        "TARGET_ARN": parts.target_arn,
    }
    return {
        name: {"DataType": "String", "StringValue": value}
        for name, text in texts.items()
        if (value := re.sub(_REFUSED, "\ufffd", text))
    }


def _send(job: Job, event: Event, parts: LetterParts, message_attributes: dict[str, dict[str, str]]) -> None:
    queue = _queue(job)
    client("sqs", queue, event, _TIMEOUT_S).send_message(
        QueueUrl=queue_url(queue["arn"]), MessageBody=parts.body, MessageAttributes=message_attributes
    )


def _queue(job: Job) -> dict[str, Any]:
    """The queue as a target, with the role of the job's own target: that role may be needed to write to the queue."""
    role = {name: job.target[name] for name in ("role_arn", "external_id") if name in job.target}
    return {"kind": "sqs", "arn": job.dead_letter, **role}
