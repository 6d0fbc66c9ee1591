"""The kinds of target; `kinds` lists them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from common.runs.outcome import Outcome
from common.storage.outgoing import Steps, at_once
from common.tenants.allowed_targets import CANARY_TENANT, is_canary, is_minute8_resource
from executor.targets import aws_services, lambda_function
from executor.targets.events import Event, context

Target = Mapping[str, Any]
Call = Callable[[Target, Event, float], Outcome]
CallInSteps = Callable[[Target, Event, float], Steps[Outcome]]


@dataclass(frozen=True, slots=True)
class Kind:
    """How a kind of target is called.

    `call(target, event, timeout_s)` returns the outcome; nothing that a target does makes it raise. The event's context
    names the caller; only the executor writes the context. `in_steps` replaces `call` if one thread can have several
    calls of the kind under way. It is the same call in steps.
    """

    call: Call
    in_steps: CallInSteps | None = None


def kinds(http: Call) -> Mapping[str, Kind]:
    """All kinds; none of them calls resources of Minute8. `http` calls endpoints (`http_endpoint.py`)."""
    return {
        "lambda": Kind(_in_one_thread(_lambda_in_steps), _lambda_in_steps),
        "sqs": Kind(_guarded(aws_services.send_message)),
        "sns": Kind(_guarded(aws_services.publish)),
        "event_bus": Kind(_guarded(aws_services.put_events)),
        "step_functions": Kind(_guarded(aws_services.start_execution)),
        "aws_operation": Kind(_guarded(aws_services.call_operation)),
        "http": Kind(http),
    }


def _guarded(call: Call) -> Call:
    def guarded(target: Target, event: Event, timeout_s: float) -> Outcome:
        return _refused(target, event) or call(target, event, timeout_s)

    return guarded


def _in_one_thread(in_steps: CallInSteps) -> Call:
    def call(target: Target, event: Event, timeout_s: float) -> Outcome:
        return at_once(in_steps(target, event, timeout_s))

    return call


def _lambda_in_steps(target: Target, event: Event, timeout_s: float) -> Steps[Outcome]:
    refused = _refused(target, event)
    return refused or (yield from lambda_function.call(target, event, timeout_s))


def _refused(target: Target, event: Event) -> Outcome | None:
    """Refuse Minute8's own resources: the executor may write to the executions queue, but not for a tenant.

    The canary's function is for its own tenant alone: another's call could hide that the canary does not run.
    """
    if is_minute8_resource(target) or (is_canary(target) and context(event, "tenant") != CANARY_TENANT):
        error = f"{target['arn']} is Minute8's own"
        return Outcome(ok=False, permanent=True, error_type="NotAllowed", error=error)
    return None
