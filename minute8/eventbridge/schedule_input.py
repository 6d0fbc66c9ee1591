"""What the target of an EventBridge schedule receives: the Input with its context attributes replaced. Pure.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from typing import Any, Final

from common.errors import InvalidInput
from common.jobs.job import Job
from common.jobs.placeholders import DeadLetterParts, PayloadFormats, TextReader
from common.limits import INPUT_BYTES
from common.planning.execution import Execution
from common.timing.instants import rfc3339

_ATTRIBUTE: Final = re.compile(
    r"<aws\.scheduler\.(schedule-arn|scheduled-time|execution-id|attempt-number)>", re.ASCII
)
_NO_JSON: Final = object()
# The longest schedule ARN is 200 characters.
_MAX_CHARS: Final = {"schedule-arn": 200, "scheduled-time": 20, "execution-id": 16, "attempt-number": 10}


class ScheduleInput:
    """The format of the payloads of targets that name a schedule's ARN."""

    def check(self, kind: str, payload: object) -> None:
        """https://docs.aws.amazon.com/scheduler/latest/APIReference/API_Target.html#scheduler-Type-Target-Input"""
        if payload is None:
            return
        if not isinstance(payload, str) or not payload:
            raise InvalidInput(
                "payload",
                "is an EventBridge schedule's Input",
                value=payload,
                accepted="a text that is not empty, or null",
            )
        needs_object = kind in ("event_bus", "aws_operation")
        needs_json = needs_object or kind in ("lambda", "step_functions")
        if needs_json and not is_json(payload, an_object=needs_object):
            accepted = "a JSON object as a text" if needs_object else "JSON as a text"
            raise InvalidInput("payload", f"must be JSON for {kind}", value=payload, accepted=accepted)
        if (size := max_bytes(payload)) > INPUT_BYTES:
            raise InvalidInput(
                "payload",
                f"can grow to {size} bytes by its attributes",
                accepted=f"at most {INPUT_BYTES} bytes",
            )

    def sample(self, payload: object) -> Any:
        return sample(str(payload or ""))

    def render(self, job: Job, payload: str, execution: Execution) -> str:
        """The Input for one attempt."""
        arn = job.spec.target["schedule_arn"]
        text = json.loads(payload)
        return input_text(text, arn, execution.fire_at, execution.execution_id, execution.attempt)

    def dead_letter(self, job: Job, execution: Execution, body: str, read: TextReader) -> DeadLetterParts:
        """https://docs.aws.amazon.com/scheduler/latest/UserGuide/configuring-schedule-dlq.html

        A universal target's dead letter names the operation, and its body is the whole request. The guide's example of
        a call that is refused at its first attempt has the condition MaximumEventAgeInSeconds.
        """
        execution_id = _attempt_id(execution.execution_id, execution.attempt)
        arn, text = _universal_request(job, read)
        if text is not None:
            body = input_text(
                text,
                job.spec.target["schedule_arn"],
                execution.fire_at,
                execution.execution_id,
                execution.attempt,
            )
        return DeadLetterParts(
            execution_id, arn or str(job.spec.target["arn"]), body, "MaximumEventAgeInSeconds"
        )


# By the field of a job's target that chooses the format.
PAYLOAD_FORMATS: Final[PayloadFormats] = {"schedule_arn": ScheduleInput()}


def input_text(text: str | None, schedule_arn: str, fire_at: int, execution_id: str, attempt: int) -> str:
    """The Input for one attempt; without an Input the notification that EventBridge Scheduler sends.

    The id of each attempt is derived. Other texts in angle brackets stay.
    """
    if not text:
        return _notification(schedule_arn, fire_at, execution_id)
    values = {
        "schedule-arn": schedule_arn,
        "scheduled-time": rfc3339(fire_at),
        "execution-id": _attempt_id(execution_id, attempt),
        "attempt-number": str(attempt),
    }
    return _ATTRIBUTE.sub(lambda match: values[match[1]], text)


def max_bytes(text: str | None) -> int:
    """To how many bytes `input_text` can grow."""
    if not text:
        return 1_024
    growth = sum(_MAX_CHARS[match[1]] - len(match[0]) for match in _ATTRIBUTE.finditer(text))
    return len(text.encode(errors="replace")) + max(0, growth)


def sample(text: str) -> Any:
    """An Input as JSON when its attributes are replaced; an object of its own if it is none."""
    arn = "arn:aws:scheduler:us-east-1:123456789012:schedule/default/name"
    try:
        return json.loads(input_text(text, arn, 0, "", 1))
    except (ValueError, RecursionError):
        return _NO_JSON


def is_json(text: str, *, an_object: bool = False) -> bool:
    """Whether an Input is JSON (an object) when its attributes are replaced."""
    value = sample(text)
    return value is not _NO_JSON and (isinstance(value, dict) or not an_object)


def _attempt_id(execution_id: str, attempt: int) -> str:
    """What a target sees as the execution id. On AWS each attempt has another one."""
    return hashlib.sha256(f"{execution_id}/{attempt}".encode()).hexdigest()[:16]


def _universal_request(job: Job, read: TextReader) -> tuple[str, str | None]:
    """The ARN of the schedule's target, and the Input of a universal one.

    Once another API has changed the job, the request says no more what is called.
    """
    # Few runs send a dead letter, so its modules are loaded by the first one.
    from minute8.eventbridge.imported_from import schedule_of, target_arn_in
    from minute8.eventbridge.universal import is_universal

    imported_from = schedule_of(job)
    if not imported_from or "written" in imported_from:
        return "", None
    if not is_universal(arn := target_arn_in(imported_from)):
        return arn, None
    request = imported_from["request"]
    text = request if isinstance(request, str) else read(request)
    return arn, json.loads(text)["Target"].get("Input")


def _notification(schedule_arn: str, fire_at: int, execution_id: str) -> str:
    _, _, _, region, account, _ = schedule_arn.split(":", 5)
    event = {
        "version": "0",
        "id": str(uuid.UUID(bytes=hashlib.sha256(execution_id.encode()).digest()[:16])),
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": account,
        "time": rfc3339(fire_at),
        "region": region,
        "resources": [schedule_arn],
        "detail": "{}",
    }
    return json.dumps(event)
