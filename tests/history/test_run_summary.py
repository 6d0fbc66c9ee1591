"""Summaries: what is counted, how percentiles are computed, and that parts merge to the whole."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.history.run_lists import Bounds
from common.history.runs_cursor import RunsCursor
from common.history.summary import Summary
from common.projection.totals import RunTotals, percentiles, success_rate
from common.storage.wire import Item
from tests.history.table import DAY, MIDNIGHT, NOW, Tenancy, places

seconds = st.integers(0, 10**7).map(lambda ms: ms / 1_000)
started = st.builds(
    lambda status, lateness_s, duration_s: {
        "status": status,
        "lateness_s": lateness_s,
        **({"duration_s": duration_s} if status != "running" else {}),
    },
    st.sampled_from(("succeeded", "failed", "retrying", "running")),
    seconds,
    seconds,
)
skipped = st.builds(
    lambda reason, count: {"status": "skipped", "reason": reason, "skipped_count": count},
    st.sampled_from(("paused", "missed")),
    st.integers(1, 500),
)
fire_times = st.integers(MIDNIGHT - 3 * DAY, MIDNIGHT + DAY - 1)
records = st.builds(lambda at, outcome: {"fire_at": at, **outcome}, fire_times, started | skipped)


def summary_of(items: list[Any]) -> Summary:
    summary = Summary()
    for item in items:
        summary.add(item)
    return summary


def test_each_status_counts_as_documented() -> None:
    day = MIDNIGHT + 60
    shown = summary_of(
        [
            {"fire_at": day, "status": "succeeded", "lateness_s": 0.1, "duration_s": 2},
            {"fire_at": day, "status": "succeeded", "lateness_s": 0.3, "duration_s": 4},
            {"fire_at": day, "status": "failed", "lateness_s": 0.2, "duration_s": 60},
            {"fire_at": day, "status": "failed", "lateness_s": 0.2},
            {"fire_at": day, "status": "retrying", "lateness_s": 9, "duration_s": 99},
            {"fire_at": day, "status": "dispatched", "lateness_s": 0},
            {"fire_at": day, "status": "running", "lateness_s": 0},
            {"fire_at": day, "status": "queued"},
            {"fire_at": day, "status": "skipped", "reason": "paused"},
            {"fire_at": MIDNIGHT - 1, "status": "skipped", "reason": "missed", "skipped_count": 60},
        ]
    ).to_json()
    today, yesterday = shown["days"]
    assert (today["date"], yesterday["date"]) == ("2026-11-21", "2026-11-20")
    assert today["runs"] == 9
    assert today["statuses"] == {
        "dispatched": 1, "failed": 2, "queued": 1, "retrying": 1, "running": 1, "skipped": 1, "succeeded": 2,
    }  # fmt: skip
    assert today["success_rate"] == 0.5
    assert today["lateness_s"] == {"count": 7, "p50": 0.2, "p95": 9, "p99": 9, "max": 9}
    assert today["duration_s"] == {"count": 3, "p50": 4, "p95": 60, "p99": 60, "max": 60}
    assert yesterday["runs"] == 60
    assert (yesterday["statuses"], yesterday["reasons"]) == ({"skipped": 60}, {"missed": 60})
    assert (yesterday["success_rate"], yesterday["lateness_s"]) == (None, {"count": 0})
    assert shown["total"]["reasons"] == {"missed": 60, "paused": 1}
    assert Summary().to_json()["days"] == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], []),
        ([7], [7, 7, 7]),
        ([1, 2], [1, 2, 2]),
        ([1, 2, 3], [2, 3, 3]),
        (range(1, 101), [50, 95, 99]),
        (range(1, 201), [100, 190, 198]),
        ([0] * 94 + [5] * 5 + [9], [0, 5, 5]),
        ([0] * 98 + [8, 9], [0, 0, 8]),
    ],
)
def test_percentiles_by_nearest_rank(values: list[float], expected: list[float]) -> None:
    assert percentiles(Counter(values)) == expected


@given(st.lists(seconds, min_size=1))
def test_a_percentile_is_the_value_at_its_rank(values: list[float]) -> None:
    ranked = sorted(values)
    expected = [ranked[math.ceil(percent * len(values) / 100) - 1] for percent in (50, 95, 99)]
    assert percentiles(Counter(values)) == expected


@pytest.mark.parametrize(
    ("statuses", "rate"),
    [
        ({}, None),
        ({"skipped": 3, "dispatched": 2, "running": 1}, None),
        ({"succeeded": 3}, 1),
        ({"failed": 3, "skipped": 9}, 0),
        ({"succeeded": 2, "failed": 1}, 0.666667),
    ],
)
def test_the_success_rate(statuses: dict[str, int], rate: float | None) -> None:
    assert success_rate(statuses) == rate


@pytest.mark.long
@given(st.lists(st.lists(records, max_size=8), max_size=5))
def test_summaries_merge_to_that_of_all_runs_also_through_json(parts: list[list[Any]]) -> None:
    merged_at_once = summary_of([item for part in parts for item in part])
    merged = Summary()
    for part in parts:
        shown = json.loads(json.dumps(summary_of(part).to_json(values=True)))
        merged.merge((day["date"], RunTotals.of_json(day)) for day in shown["days"])
    assert merged.to_json(values=True) == merged_at_once.to_json(values=True)
    assert merged.total().to_json(values=True) == merged_at_once.total().to_json(values=True)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 9), records), max_size=50),
    st.builds(
        Bounds, jobs=st.integers(1, 7), further_queries=st.integers(1, 5), summarised_runs=st.integers(1, 20)
    ),
    st.sampled_from(("", "a")),
)
def test_the_parts_of_a_walk_merge_to_the_whole(
    recorded: list[tuple[str, int, Item]], most: Bounds, only: str
) -> None:
    tenancy = Tenancy()
    for job_id in "abcdef":
        tenancy.add_job(job_id)
    for job_id, revision, record in recorded:
        for tenant in ("alice", "alice-2"):
            tenancy.add_run(job_id, **{**record, "name": str(revision), "tenant": tenant})
    truth = [run for run in tenancy.stored() if run["fire_at"] >= MIDNIGHT - 2 * DAY]
    expected_runs = [run for run in truth if only in ("", run["job_id"])]
    lists, merged = tenancy.lists(most), Summary()
    start = RunsCursor.start(NOW, MIDNIGHT - 2 * DAY, MIDNIGHT + DAY)
    for part, next_place in places(start, lambda place: lists.summary("alice", place, only)):
        assert part.records <= most.summarised_runs
        merged.merge(part.days.items())
        from_at = next_place.complete_from_at if next_place else start.from_at
        complete = summary_of(
            [run for run in expected_runs if from_at is not None and run["fire_at"] >= from_at]
        )
        for date, day in complete.days.items():
            assert day.statuses <= merged.days[date].statuses
    assert merged.to_json(values=True) == summary_of(expected_runs).to_json(values=True)


def test_a_summary_of_many_jobs_has_as_many_parts_as_it_has_runs_or_jobs_for() -> None:
    tenancy = Tenancy()
    for n in range(40):
        tenancy.add_job(f"job{n:02}")
        for hour in range(10):
            tenancy.add_run(f"job{n:02}", MIDNIGHT + hour * 3_600)
    lists = tenancy.lists(Bounds(jobs=10, summarised_runs=50))
    start = RunsCursor.start(NOW, MIDNIGHT, MIDNIGHT + DAY)
    parts = [part for part, _ in places(start, lambda place: lists.summary("alice", place))]
    assert [part.records for part in parts] == [50, 50] * 4
