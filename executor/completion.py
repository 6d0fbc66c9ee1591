"""The outcomes Lambda completes dispatched runs: Lambda's destination reports the outcome of an `Event` invocation.

It takes a batch of destination records, and returns the ids of those to deliver again.

A destination reports every asynchronous invocation of its function, including invocations by others. Anybody who may
send to the queue can also write any record. So only the token of the attempt's own call completes a run: only Lambda
and the function have seen it.
https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html
"""

from __future__ import annotations

import hmac
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any, Literal

from msgspec import structs

from common import telemetry
from common.clock import Clock, SystemClock
from common.config import config
from common.deployment import Deployment
from common.errors import Minute8Error, NotFound
from common.jobs.former_jobs import load_jobs
from common.jobs.job import Job
from common.planning.execution import Execution, parse_execution_id
from common.planning.queue import ExecutionsQueue
from common.runs.claims import Claim
from common.runs.outcome import Outcome
from common.runs.records import CHANGED_AFTER_S, Runs
from common.runs.run import Run
from common.runs.states import DISPATCHED
from common.storage import aws
from common.storage.table import Table
from executor.failure_streak import FailureStreak
from executor.targets import answers
from executor.targets.lambda_function import raised

VERSION = "1.0"
# The condition in a destination's record of a success.
_SUCCESS = "Success"

# "ignored": not a run of Minute8; "refused": without the run's token; "known": reported before, or too late.
Result = Literal["succeeded", "failed", "ignored", "refused", "known"]


def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """SQS event → partial batch response."""
    results, failed = complete_batch(_outcomes(), event["Records"])
    metrics = telemetry.metrics()
    for result, count in results.items():
        metrics.add_metric(f"{telemetry.OUTCOMES}.{result}", "Count", count)
    if failed:
        metrics.add_metric(telemetry.MESSAGES_FAILED, "Count", len(failed))
    metrics.flush_metrics()
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def complete_batch(outcomes: Outcomes, records: list[Mapping[str, Any]]) -> tuple[Counter[Result], list[str]]:
    """Process the records one by one; a failure affects only its record. Returns reports, and ids to deliver again."""
    results: Counter[Result] = Counter()
    failed: list[str] = []
    for record in records:
        # Without the body: it has the event, with the values of its secrets.
        with telemetry.tolerated("outcome failed: it comes again", message_id=record["messageId"]):
            results[outcomes.complete(record["body"])] += 1
            continue
        failed.append(record["messageId"])
    return results, failed


@cache
def _outcomes() -> Outcomes:
    # A job may be paused here, which enqueues nothing.
    deployment = Deployment(config(), queue=ExecutionsQueue(aws.on_first_use(aws.sqs), "", SystemClock()))
    store = aws.on_first_use(lambda: deployment.stored_jobs)
    streak = FailureStreak(store, deployment.tables.runs, deployment.events)
    return Outcomes(deployment.tables.jobs, deployment.runs, streak, deployment.clock)


class UnreadableOutcome(Minute8Error):
    """Not a destination record in a version that this code reads. It belongs in the dead-letter queue."""


@dataclass(frozen=True, slots=True)
class DestinationRecord:
    """One destination record: its attempt and token, how and when the invocation ended, if its event had secrets."""

    execution: Execution
    token: str
    outcome: Outcome
    at: float | None
    has_secrets: bool = False


@dataclass(frozen=True, slots=True)
class Outcomes:
    """Completes dispatched runs."""

    jobs: Table
    runs: Runs
    failure_streak: FailureStreak
    clock: Clock

    def complete(self, body: str) -> Result:
        """Complete the run of a record. Repeating it changes nothing. Raises UnreadableOutcome."""
        raw = _record(body)
        if not isinstance(_context(raw), dict):
            return "ignored"
        record = read(raw)
        run = self.runs.get(record.execution) if record else None
        if record is None or run is None or not _is_of(record, run):
            return "refused"
        execution = structs.replace(record.execution, trigger=run.trigger)
        job = self._load(execution)
        if record.has_secrets or (job and job.secrets):
            record = replace(record, outcome=record.outcome.without_words())
        if run.status != DISPATCHED or not self._finish(replace(record, execution=execution), run):
            if job:  # the completing process may have died before it published the event
                self.failure_streak.repeat_end(job, execution, run)
            return "known"
        if record.outcome.ok:
            if job:
                self.failure_streak.succeeded(job, execution)
            return "succeeded"
        self.failure_streak.failed(job, execution, record.outcome)
        return "failed"

    def _finish(self, record: DestinationRecord, run: Run) -> bool:
        now, started_at = self.clock.now(), run.started_at
        self.runs.note_late(record.execution, run.due_at, CHANGED_AFTER_S, now)
        ended_at = max(started_at, min(record.at if record.at is not None else now, now))
        claim = Claim(record.execution, run.claimed_by, started_at, now, token=run.claim_token)
        return self.runs.finish(claim, record.outcome, ended_at, None)

    def _load(self, execution: Execution) -> Job | None:
        name = execution.tenant, execution.job_id
        return load_jobs(self.jobs, [name]).get(name)


def read(raw: Mapping[str, Any]) -> DestinationRecord | None:
    """The parsed record; None if it does not name an attempt of an execution."""
    context = _context(raw)
    try:
        tenant, execution_id, token = (context[name] for name in ("tenant", "execution_id", "outcome_token"))
        attempt = context["attempt"]
        if not all(isinstance(text, str) and text for text in (tenant, execution_id, token)):
            return None
        if not isinstance(attempt, int) or isinstance(attempt, bool):
            return None
        execution = structs.replace(parse_execution_id(tenant, execution_id), attempt=attempt)
    except (KeyError, TypeError, NotFound):
        return None
    at, has_secrets = _instant(raw.get("timestamp")), "has_secrets" in context
    return DestinationRecord(execution, token, _outcome(raw), at, has_secrets)


def _record(body: str) -> dict[str, Any]:
    try:
        record = json.loads(body)
        if record["version"] != VERSION or not isinstance(record["requestContext"]["condition"], str):
            raise ValueError("not of this version")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        # Not its text, which can have secrets.
        raise UnreadableOutcome(f"no record of a destination: {len(body)} characters ({error!r})") from error
    return dict(record)


def _context(record: Mapping[str, Any]) -> Any:
    payload = record.get("requestPayload")
    return payload.get("minute8") if isinstance(payload, dict) else None


def _is_of(record: DestinationRecord, run: Run) -> bool:
    same = hmac.compare_digest(record.token.encode(), run.claim_token.encode())
    return same and run.attempt == record.execution.attempt


def _outcome(record: Mapping[str, Any]) -> Outcome:
    invocation = record["requestContext"]
    payload = record.get("responsePayload")
    body = json.dumps(payload, ensure_ascii=False).encode("utf-8", "replace") if payload is not None else b""
    request_id = str(invocation.get("requestId", ""))
    if invocation["condition"] == _SUCCESS:
        return replace(answers.retry_directive(body) or Outcome(ok=True), request_id=request_id)
    error_type, error = (
        raised(body) if body else (invocation["condition"], "the function was not called in time")
    )
    return Outcome(ok=False, permanent=True, error_type=error_type, error=error, request_id=request_id)


def _instant(text: object) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except (ValueError, OverflowError):
        return None


if aws.in_lambda():
    aws.warm_up(_outcomes)
