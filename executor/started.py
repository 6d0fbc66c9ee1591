"""What a call has started: it is stopped if a person wants it, and a durable execution is followed to its end.

An attempt of a durable function is one durable execution. Lambda starts a name once, so a second delivery and a
takeover after a dead executor start nothing twice.
https://docs.aws.amazon.com/lambda/latest/dg/durable-execution-idempotency.html
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from common.clock import Clock
from common.jobs.job import Job
from common.limits import LOG_TAIL_BYTES, MAX_DURABLE_S
from common.planning.execution import OWN_PAYLOAD_PREFIX, Execution
from common.runs.claims import FIRST_LOOK_S
from common.runs.outcome import STOPPED, Outcome
from common.runs.run import DURABLE_PREFIX, Durable, Run
from common.tenants.allowed_targets import may_call
from common.tenants.rules_cache import KnownTenants
from executor.calling import run_names
from executor.targets import answers, aws_services
from executor.targets.clients import client

_TIMEOUT_S: Final = 10
# The longest delay of a message, so no look is kept in a table.
_LOOK_PERIOD_S: Final = 890
# A list may lag behind the call that started the execution.
_LISTED_AFTER_S: Final = 60
_NOT_FOUND: Final = "ResourceNotFoundException"
# arn:aws:lambda:region:account:function:name
_ARN_COLONS: Final = 6
NOT_ALLOWED: Final = "the platform does not allow the tenant the target (any more)"
_NOT_NAMED: Final = "its record does not name its durable execution and function"


def name_of(stage: str, execution: Execution) -> str:
    """The name of an attempt's durable execution, at most 64 of A-Z a-z 0-9 - _."""
    text = f"{stage}/{execution.execution_id}/{execution.attempt}"
    return f"{DURABLE_PREFIX}{hashlib.sha256(text.encode()).hexdigest()[:48]}"


def next_look_at(started_at: float, now: float) -> int:
    """When to look again: an end is seen late by an eighth of its duration, at least 15 s and at most 15 minutes."""
    return int(now + min(max((now - started_at) / 8, FIRST_LOOK_S), _LOOK_PERIOD_S)) + 1


@dataclass(frozen=True, slots=True)
class GoesOn:
    """The durable execution has not ended, or `problem` says why nobody can tell."""

    problem: str = ""


@dataclass(frozen=True, slots=True)
class Ended:
    """How and when the durable execution ended."""

    outcome: Outcome
    at: float


@dataclass(frozen=True, slots=True)
class Started:
    """Looks at what calls have started, and stops it. `rules` returns each tenant's: they must still allow it."""

    rules: KnownTenants
    clock: Clock

    def look(self, job: Job | None, execution: Execution, record: Run) -> GoesOn | Ended:
        """How the durable execution of the record's attempt stands."""
        now, durable = self.clock.now(), record.durable_execution
        if now - record.started_at > MAX_DURABLE_S:
            words = "nobody could see its end for as long as a durable execution can last"
            return Ended(Outcome(ok=False, permanent=True, error_type="EndUnknown", error=words), now)
        if not durable or not _is_named(durable):
            return Ended(Outcome(ok=False, permanent=True, error_type="EndUnknown", error=_NOT_NAMED), now)
        if problem := self._forbidden(durable, execution, now):
            return GoesOn(problem)
        try:
            functions = _client_of(durable, execution)
            arn = _arn_of(functions, durable, record)
            if not arn and now - record.started_at < _LISTED_AFTER_S:
                return GoesOn()
            if not arn:
                words = f"Lambda did not answer the call, and knows no durable execution {durable.name}"
                return Ended(Outcome(ok=False, throttled=True, error_type="NotStarted", error=words), now)
            answer = functions.get_durable_execution(DurableExecutionArn=arn, IncludeExecutionData=True)
        except (BotoCoreError, ClientError) as error:
            refused = answers.refused_by_aws(error, _TIMEOUT_S)
            if refused.error_type == _NOT_FOUND:
                return Ended(replace(refused, permanent=True), now)
            return GoesOn(f"{refused.error_type}: {refused.error}")
        if answer["Status"] == "RUNNING":
            return GoesOn()
        ended_at, outcome = answer.get("EndTimestamp"), outcome_of(answer)
        # Nobody has read the values of the secrets, so what could repeat them is not kept.
        if job is None or job.secrets or execution.trigger_id.startswith(OWN_PAYLOAD_PREFIX):
            outcome = outcome.without_words()
        return Ended(outcome, min(now, ended_at.timestamp()) if ended_at else now)

    def stop(self, job: Job | None, execution: Execution, record: Run) -> str | None:
        """Stop it. Returns why it could not be stopped, empty if it was, or None if there is nothing to stop so."""
        if durable := record.durable_execution:
            return self._stop_durable(durable, execution, record)
        if job is None:
            return "the job was deleted, and with it what to call"
        target, arns = job.spec.target, record.started_arns
        if not aws_services.can_stop(target) or (target["kind"] != "step_functions" and not arns):
            return None
        if not may_call(target, self.rules.rules(job.tenant, self.clock.now())):
            return NOT_ALLOWED
        outcome = aws_services.stop(target, {"minute8": run_names(execution)}, arns, _TIMEOUT_S)
        return "" if outcome.ok else f"{outcome.error_type}: {outcome.error}"

    def _stop_durable(self, durable: Durable, execution: Execution, record: Run) -> str:
        if not _is_named(durable):
            return _NOT_NAMED
        if problem := self._forbidden(durable, execution, self.clock.now()):
            return problem
        note = record.stop.note if record.stop else ""
        try:
            functions = _client_of(durable, execution)
            if not (arn := _arn_of(functions, durable, record)):
                return f"Lambda knows no durable execution {durable.name}"
            if ended_as := _ended_as(functions, arn):
                return f"the durable execution had ended before: {ended_as}"
            error = {"ErrorType": STOPPED, "ErrorMessage": note or "stopped by hand"}
            functions.stop_durable_execution(DurableExecutionArn=arn, Error=error)
        except (BotoCoreError, ClientError) as error:
            refused = answers.refused_by_aws(error, _TIMEOUT_S)
            return f"{refused.error_type}: {refused.error}"
        return ""

    def _forbidden(self, durable: Durable, execution: Execution, now: float) -> str:
        return "" if may_call(durable.target, self.rules.rules(execution.tenant, now)) else NOT_ALLOWED


def _client_of(durable: Durable, execution: Execution) -> Any:
    """A client for the function that was called: the job may have another target since."""
    event = {"minute8": {"tenant": execution.tenant, "job_id": execution.job_id}}
    return client("lambda", durable.target, event, _TIMEOUT_S)


def _is_named(durable: Durable) -> bool:
    """Whether it says which function was called. A damaged record does not."""
    return durable.function.startswith("arn:") and durable.function.count(":") >= _ARN_COLONS


def _arn_of(functions: Any, durable: Durable, record: Run) -> str:
    """The ARN that the call returned, or else that of the execution with the attempt's name; empty: there is none."""
    if record.started_arns:
        return record.started_arns[0]
    function, _, qualifier = durable.function.rpartition(":")
    listed = functions.list_durable_executions_by_function(
        FunctionName=function, Qualifier=qualifier, DurableExecutionName=durable.name
    )
    return next((str(each["DurableExecutionArn"]) for each in listed["DurableExecutions"]), "")


def _ended_as(functions: Any, arn: str) -> str:
    """The status of a durable execution that has ended; empty: it goes on, or nobody can tell."""
    try:
        answer = functions.get_durable_execution(DurableExecutionArn=arn, IncludeExecutionData=False)
    except (BotoCoreError, ClientError):
        return ""  # who may not look may still stop it
    status = str(answer["Status"])
    return "" if status == "RUNNING" else status


def outcome_of(answer: Mapping[str, Any]) -> Outcome:
    """The outcome of a durable execution that has ended. Its function controls the texts."""
    status, error = answer["Status"], answer.get("Error") or {}
    if status == "SUCCEEDED":
        result = str(answer.get("Result") or "").encode(errors="replace")
        outcome = answers.retry_directive(result) or Outcome(ok=True)
        return replace(outcome, log_tail=result[:LOG_TAIL_BYTES].decode(errors="replace"))
    if status == "TIMED_OUT":
        words = "the durable execution lasted longer than its ExecutionTimeout"
        return Outcome(ok=False, error_type="TimedOut", error=words)
    words = str(error.get("ErrorMessage") or status)
    if status == "STOPPED":
        return Outcome(ok=False, permanent=True, error_type="Stopped", error=words)
    return Outcome(ok=False, error_type=str(error.get("ErrorType") or "FunctionError"), error=words)
