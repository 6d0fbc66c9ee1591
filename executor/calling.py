"""The call of a target: its event and its outcome."""

from __future__ import annotations

from typing import Any

from common import telemetry
from common.errors import shown
from common.jobs.job import Job
from common.jobs.payload_formats import PayloadFormats, format_of
from common.jobs.placeholders import PayloadTooLarge, has_placeholders, render, values_for
from common.planning.execution import Execution, traceparent
from common.runs.claims import Claim
from common.runs.outcome import Outcome
from common.storage.steps import Steps
from common.timing.instants import rfc3339
from executor.targets import Kind


def call(kind: Kind, job: Job, claim: Claim, timeout_s: float, formats: PayloadFormats) -> Steps[Outcome]:
    """Call the job's target once, for the claimed attempt. Every error becomes an outcome; nothing is raised."""
    try:
        sent = event(job, claim.execution, claim.token, formats)
        if kind.in_steps:
            return (yield from kind.in_steps(job.target, sent, timeout_s))
        return kind.call(job.target, sent, timeout_s)
    except PayloadTooLarge as error:  # only jobs stored by old versions
        return Outcome(ok=False, permanent=True, error_type="PayloadTooLarge", error=str(error))
    except Exception as error:  # noqa: BLE001  an attempt without a recorded end would be made again
        said = shown(str(error))
        telemetry.logger().warning(
            "unforeseen error of a call",
            kind=job.target["kind"],
            type=type(error).__name__,
            error=said,
            **claim.execution.log_fields,
        )
        return Outcome(ok=False, error_type=type(error).__name__, error=said)


def event(job: Job, execution: Execution, token: str, formats: PayloadFormats) -> dict[str, Any]:
    """The target's event: the payload with its placeholders replaced, and the context of the execution, such as its id
    and nominal time. Raises PayloadTooLarge."""
    execution_id = execution.execution_id
    context = {
        "tenant": execution.tenant,
        "job_id": execution.job_id,
        "execution_id": execution_id,
        "fire_at": rfc3339(execution.fire_at),
        "due_at": rfc3339(execution.due_at),
        "attempt": execution.attempt,
        "schedule_revision": execution.schedule_revision,
        "trigger": execution.trigger,
        "traceparent": traceparent(execution_id, execution.attempt),
    }
    if job.target.get("invocation") == "Event":
        # Lambda passes it to the function's destination; there it proves which attempt the outcome belongs to.
        context["outcome_token"] = token
    payload = job.payload
    if payload_format := format_of(job.target, formats):
        payload = payload_format.render(job, execution)
    elif has_placeholders(payload):
        timezone = job.schedule_given.get("timezone", "UTC")
        payload = render(payload, values_for(execution, timezone))
    return {"payload": payload, "minute8": context}
