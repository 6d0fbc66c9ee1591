"""Reading the executor's batches from its log."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.benchmarks.model_check import at_the_mean, gap, services
from scripts.benchmarks.modelled_aws import Service, Setting

DUE = 1_000


def log(stream: str, ended_at: float, duration_ms: int, lateness: str) -> list[dict[str, Any]]:
    at = int(ended_at * 1000)
    lines = [
        "START",
        f'{{"LatenessSeconds": {lateness}, "_aws": {{}}}}',
        f"REPORT\tDuration: {duration_ms} ms\t",
    ]
    return [{"logStreamName": stream, "timestamp": at, "message": line} for line in lines]


def test_a_batch_that_was_held_counts_from_its_second_and_a_later_one_from_its_begin() -> None:
    events = [*log("late", DUE + 3, 1_000, "2.5"), *log("held", DUE + 1, 1_800, "[0.25, 0.5]")]
    held, late = services(events, [DUE])
    assert held == Service((0.25, 0.5), 1.0)
    assert late == Service((0.5,), 1.0)


def test_batches_of_an_earlier_load_do_not_count() -> None:
    assert services(log("earlier", DUE - 5, 1_000, "0.5"), [DUE]) == []


def test_a_batch_of_messages_that_came_before_has_no_runs() -> None:
    report = {"logStreamName": "a", "timestamp": DUE * 1000, "message": "REPORT\tDuration: 500 ms\t"}
    assert services([report], [DUE]) == [Service((), 0.5)]


def test_a_run_belongs_to_the_last_second_before_its_batch_ended() -> None:
    [batch] = services(log("steady", DUE + 1.2, 700, "[0.1, 0.1]"), range(DUE, DUE + 5))
    assert batch.leads_s == pytest.approx((0.1, 0.1))
    assert batch.whole_s == pytest.approx(0.2)


def test_the_mean_is_of_batches_that_have_runs_and_ends_after_its_last_call() -> None:
    batches = Service((1.0,) * 10, 1.1), Service((0.1,), 0.2), Service((), 0.01)
    [mean] = at_the_mean(Setting(services=batches)).services
    assert mean.leads_s == pytest.approx((0.55,))
    assert mean.whole_s == pytest.approx(0.65)


def test_the_gap_is_the_largest_between_two_distributions() -> None:
    assert gap([1, 2, 3, 4], [1, 2, 3, 4]) == 0
    assert gap([1, 2, 3, 4], [3, 4, 5, 6]) == 0.5
