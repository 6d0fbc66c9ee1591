"""Metrics of schedule groups: only of those that the parameter names, under AWS's names."""

from __future__ import annotations

import json

import pytest

from minute8.eventbridge.group_metrics import Attempt, counted, named_groups, write_metrics
from minute8.eventbridge.names import job_id_of
from scripts.parameters import refusals

GROUPS = "acme/billing, acme/default,other/a..b"


def test_only_named_groups_are_counted() -> None:
    attempts = [
        Attempt("acme", job_id_of("billing", "a"), "succeeded"),
        Attempt("acme", job_id_of("billing", "-odd"), "failed", letter_error=""),
        Attempt("acme", job_id_of("default", "a.b"), "retrying", is_throttled=True),
        Attempt("acme", job_id_of("reports", "a"), "failed"),
        Attempt("else", job_id_of("billing", "a"), "failed"),
        Attempt("other", job_id_of("a..b", "c"), "dispatched"),
        Attempt("other", job_id_of("a..b", "c"), "failed", is_call=False, letter_error="AccessDenied"),
        Attempt("other", job_id_of("a..b", "c"), "skipped", is_call=False),
    ]
    assert counted(named_groups(GROUPS), attempts) == {
        ("acme", "billing"): {
            "InvocationAttemptCount": 2,
            "TargetErrorCount": 1,
            "InvocationDroppedCount": 1,
            "InvocationsSentToDeadLetterCount": 1,
        },
        ("acme", "default"): {
            "InvocationAttemptCount": 1,
            "TargetErrorCount": 1,
            "TargetErrorThrottledCount": 1,
        },
        ("other", "a..b"): {
            "InvocationAttemptCount": 1,
            "InvocationDroppedCount": 1,
            "InvocationsFailedToBeSentToDeadLetterCount": 1,
            "InvocationsFailedToBeSentToDeadLetterCount_AccessDenied": 1,
        },
    }
    assert counted(named_groups(""), attempts) == {}


def test_they_are_written_with_their_dimensions(capsys: pytest.CaptureFixture[str]) -> None:
    write_metrics("test", counted(named_groups("acme/billing"), [Attempt("acme", "billing..a", "succeeded")]))
    metric = json.loads(capsys.readouterr().out)
    assert metric["InvocationAttemptCount"] == [1.0]
    assert (metric["stage"], metric["tenant"], metric["ScheduleGroup"]) == ("test", "acme", "billing")


@pytest.mark.parametrize("groups", ["acme", "acme/", "a/b/c", ",".join(f"a/{n}" for n in range(101))])
def test_the_parameter_is_checked_and_bounded(groups: str) -> None:
    assert any(
        "scheduleGroupMetrics" in problem
        for problem in refusals("dev", [f"--param=scheduleGroupMetrics={groups}"])
    )
