"""The service level: how many executions were due and how many of them Minute8 served well. Pure.

An execution is good if it started within the stated lateness and its result was recorded. A failure of the target is
not Minute8's, and a run that its job's or platform's rules skip does not count at all.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from common.runs import states
from executor.recorder import Report

_STARTED: Final = ("succeeded", "dispatched", "failed", "retrying")
# Error types for which Minute8 is responsible: the executor's process ended during the call.
_OUR_ERRORS: Final = ("ExecutorDied",)


class ServiceLevel(NamedTuple):
    """Executions of a batch: the good ones, and all that count."""

    good: int
    total: int


def service_level(reports: Iterable[Report], within_s: float) -> ServiceLevel:
    """Count a batch; `within_s` is the lateness up to which an execution is good."""
    good = total = 0
    for report in reports:
        if has_started(report):
            total += 1
            good += lateness_s(report) <= within_s and report.detail not in _OUR_ERRORS
        elif report.result == "unrecorded" or _came_too_late(report):
            total += 1
    return ServiceLevel(good, total)


def lateness_s(report: Report) -> float:
    """The lateness that is Minute8's: without the time that the run waited for its turn after another run."""
    execution = report.execution
    return max(0.0, report.lateness_s - (execution.visible_at - execution.due_at))


def has_started(report: Report) -> bool:
    """Whether an attempt was made; its lateness is known then."""
    return report.result in _STARTED and report.detail not in states.REASONS


def _came_too_late(report: Report) -> bool:
    """Whether the execution was skipped or given up because it was late, and not because it waited for its turn."""
    return report.detail == states.MISFIRE and not report.execution.not_before_at
