"""When a failed attempt is retried: only this module decides it. Pure."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from common.jobs.spec import Retry
from common.planning.execution import Execution

if TYPE_CHECKING:
    from common.runs.outcome import Outcome

# A tenant's own retry delay may be as short as a second, which is too short for an overloaded target.
_THROTTLED_FACTOR = 2.0
_THROTTLED_CAP_S = 60


def retry_at(
    policy: Retry,
    execution: Execution,
    outcome: Outcome,
    first_due_at: float,
    now: float,
    not_before: float = 0.0,
) -> int | None:
    """The second at which the next attempt is due, or None if there is none. It is not due before `not_before`.

    The delay is base · factor^(n-1), at most cap. The wait is between half of it and all of it ("equal jitter"), so
    that attempts that failed together are not retried together. The jitter is derived from the execution, so computing
    it twice gives the same time. https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/

    A throttled attempt does not count towards `max_attempts` and has its own delay. A target's `retry_after_s`
    replaces the computed delay; after a throttled attempt it is the minimum. No attempt is due after the policy's age:
    the run then fails, because an earlier attempt would ignore the target's `retry_after_s`.
    """
    if outcome.permanent:
        return None
    if not outcome.throttled and execution.attempt - execution.throttles >= policy.max_attempts:
        return None
    wait_s = _curve_s(policy, execution, outcome.throttled) * (0.5 + 0.5 * _fraction(execution))
    if outcome.retry_after_s is not None:
        wait_s = max(outcome.retry_after_s, wait_s if outcome.throttled else 0.0)
    wait_s = max(wait_s, not_before - now)
    if not now + wait_s <= first_due_at + policy.max_age_s:
        return None
    return int(now + wait_s) + 1


def exhausted(policy: Retry, execution: Execution, outcome: Outcome) -> str:
    """Which condition of EventBridge Scheduler's retry policy ended a failed run; empty: its error allows no retry."""
    if outcome.permanent:
        return ""
    if not outcome.throttled and execution.attempt - execution.throttles >= policy.max_attempts:
        return "MaximumRetryAttempts"
    return "MaximumEventAgeInSeconds"


def _curve_s(policy: Retry, execution: Execution, throttled: bool) -> float:
    if throttled:
        failures, factor = execution.throttles, max(policy.factor, _THROTTLED_FACTOR)
        cap_s = max(policy.cap_s, _THROTTLED_CAP_S)
    else:
        failures, factor, cap_s = execution.attempt - execution.throttles - 1, policy.factor, policy.cap_s
    # The power overflows a float long after the cap is reached.
    return min(float(cap_s), policy.base_s * factor ** min(failures, 64))


def _fraction(execution: Execution) -> float:
    """A number between 0 and 1, always the same for the same attempt of the same execution."""
    digest = hashlib.sha256(f"{execution.execution_id}/{execution.attempt}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64
