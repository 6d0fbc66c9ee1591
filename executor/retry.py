"""When a failed attempt is tried again: the one place that decides it. Pure."""

from __future__ import annotations

import hashlib

from common.execution import Execution
from common.job import Retry


def retry_at(policy: Retry, execution: Execution, first_due_at: float, now: float) -> int | None:
    """The second at which the attempt after this one is due, or None if there is to be none.

    base · factor^(attempt-1), at most cap, of which a part between a half and the whole is waited ("equal jitter"), so
    that what failed together does not come back together. The part is derived from the execution: planned twice, it is
    the same. https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    """
    if execution.attempt >= policy.max_attempts:
        return None
    wait_s = float(policy.cap_s)
    # The exponent grows past what a float holds long after the cap is reached.
    if execution.attempt <= 64:
        wait_s = min(wait_s, policy.base_s * policy.factor ** (execution.attempt - 1))
    at = now + wait_s * (0.5 + 0.5 * _fraction(execution))
    if at > first_due_at + policy.max_age_s:
        return None
    return int(at) + 1


def _fraction(execution: Execution) -> float:
    """Between 0 and 1, the same for the same attempt of the same execution."""
    digest = hashlib.sha256(f"{execution.execution_id}/{execution.attempt}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64
