"""Metrics of schedule groups under the names of AWS's. Off unless a parameter names the groups, which bounds them.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/monitoring-cloudwatch.html
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from common.telemetry import NAMESPACE
from minute8.eventbridge.names import hashed_prefix, is_hashed, names_in

ATTEMPTS = "InvocationAttemptCount"
ERRORS = "TargetErrorCount"
THROTTLED = "TargetErrorThrottledCount"
DROPPED = "InvocationDroppedCount"
LETTERS = "InvocationsSentToDeadLetterCount"
# Also with an underscore and the error's code after it.
LOST_LETTERS = "InvocationsFailedToBeSentToDeadLetterCount"

# A tenant and one of its groups.
Group = tuple[str, str]


class Attempt(NamedTuple):
    """What a message did. `letter_error`: empty if the dead letter was sent, else the error's code; None: no letter."""

    tenant: str
    job_id: str
    result: str
    # Whether the target was called.
    is_call: bool = True
    is_throttled: bool = False
    letter_error: str | None = None


def named_groups(text: str) -> Mapping[str, tuple[str, ...]]:
    """The groups of each tenant in the parameter's text: `acme/billing,acme/default`."""
    groups: dict[str, tuple[str, ...]] = {}
    for tenant, _, group in (part.strip().partition("/") for part in text.split(",") if part.strip()):
        groups[tenant] = (*groups.get(tenant, ()), group)
    return groups


def counted(
    groups: Mapping[str, tuple[str, ...]], attempts: Iterable[Attempt]
) -> Mapping[Group, Counter[str]]:
    """The counts of each named group. Pure.

    Jobs of Minute8's own API whose ids name no group are in the group `default`.
    """
    counts: dict[Group, Counter[str]] = {}
    for attempt in attempts:
        for group in groups.get(attempt.tenant, ()):
            if _is_in(group, attempt.job_id):
                counts.setdefault((attempt.tenant, group), Counter()).update(_names(attempt))
    return counts


def write_metrics(stage: str, counts: Mapping[Group, Counter[str]]) -> None:
    """Write them into the log, from which CloudWatch takes them."""
    from aws_lambda_powertools.metrics import EphemeralMetrics

    for (tenant, group), count in counts.items():
        metrics = EphemeralMetrics(namespace=NAMESPACE)
        for name, value in (("stage", stage), ("tenant", tenant), ("ScheduleGroup", group)):
            metrics.add_dimension(name, value)
        for name, number in count.items():
            metrics.add_metric(name, "Count", number)
        metrics.flush_metrics()


def _is_in(group: str, job_id: str) -> bool:
    if is_hashed(job_id):
        return job_id.startswith(hashed_prefix(group))
    return names_in(job_id)[0] == group


def _names(attempt: Attempt) -> Iterator[str]:
    if attempt.is_call:
        yield ATTEMPTS
        if attempt.result in ("failed", "retrying"):
            yield ERRORS
        if attempt.is_throttled:
            yield THROTTLED
    if attempt.result == "failed":
        yield DROPPED
    if attempt.letter_error == "":
        yield LETTERS
    elif attempt.letter_error is not None:
        yield LOST_LETTERS
        yield f"{LOST_LETTERS}_{attempt.letter_error}"
