"""Summaries: what is counted, how percentiles are computed, and that parts merge to the whole."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.history import runs_by_time
from common.history.runs_by_time import RunFilter, RunLists
from common.projection.totals import Summary, due, percentiles, success_rate
from common.runs.run import Run
from common.storage.wire import Item
from minute8.cli.commands.stats import merge_shown
from tests.history.table import DAY, MIDNIGHT, Tenancy

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


def run_of(item: Item) -> Run:
    at = item["fire_at"]
    fields = {"tenant": "alice", "job_id": "job", "sk": "20261121T000000Z", "due_at": at}
    return Run.from_item({**fields, "schedule_revision": 1, "trigger": "schedule", **item})


def summary_of(items: list[Any]) -> Summary:
    return Summary.of_runs(map(run_of, items))


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
    assert (today["due"], today["success_rate"]) == (5, 0.6)
    assert today["lateness_s"] == {"count": 7, "p50": 0.2, "p95": 9, "p99": 9, "max": 9}
    assert today["duration_s"] == {"count": 3, "p50": 4, "p95": 60, "p99": 60, "max": 60}
    assert yesterday["runs"] == 60
    assert (yesterday["statuses"], yesterday["reasons"]) == ({"skipped": 60}, {"missed": 60})
    assert (yesterday["due"], yesterday["success_rate"], yesterday["lateness_s"]) == (60, 0, {"count": 0})
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


ON_REQUEST = ("cancelled", "deleted", "excluded", "paused", "rescheduled")


@pytest.mark.parametrize(
    ("statuses", "reasons", "of", "rate"),
    [
        ({}, {}, 0, None),
        ({"running": 1, "queued": 2, "retrying": 3}, {}, 0, None),
        ({"succeeded": 3, "running": 1}, {}, 3, 1),
        ({"dispatched": 2, "failed": 2}, {}, 4, 0.5),
        ({"succeeded": 2, "failed": 1}, {}, 3, 0.666667),
        ({"succeeded": 5, "skipped": 122}, {"target_not_allowed": 122}, 127, 0.03937),
        ({"succeeded": 1, "skipped": 2}, {"overlap": 1, "missed": 1}, 3, 0.333333),
        ({"succeeded": 1, "skipped": 5}, dict.fromkeys(ON_REQUEST, 1), 1, 1),
        ({"skipped": 1}, {"paused": 1}, 0, None),
    ],
)
def test_the_success_rate_is_of_what_was_due(
    statuses: dict[str, int], reasons: dict[str, int], of: int, rate: float | None
) -> None:
    assert (due(statuses, reasons), success_rate(statuses, reasons)) == (of, rate)


@pytest.mark.long
@given(st.lists(st.lists(records, max_size=8), max_size=5))
def test_summaries_merge_to_that_of_all_runs_also_through_json(parts: list[list[Any]]) -> None:
    merged_at_once = summary_of([item for part in parts for item in part])
    merged = Summary()
    for part in parts:
        shown = json.loads(json.dumps(summary_of(part).to_json(values=True)))
        merge_shown(merged, shown["days"])
    assert merged.to_json(values=True) == merged_at_once.to_json(values=True)
    assert merged.total().to_json(values=True) == merged_at_once.total().to_json(values=True)


def test_the_parts_of_a_job_s_summary_merge_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_by_time, "MAX_SUMMARISED", 4)
    tenancy, merged, before = Tenancy(), Summary(), None
    for n in range(10):
        for tenant in ("alice", "alice-2"):
            tenancy.add_run("job", MIDNIGHT - n * 7_200, tenant=tenant, status="failed", lateness_s=n)
    parts = []
    lists, run_filter = RunLists(tenancy.runs), RunFilter(MIDNIGHT - DAY, MIDNIGHT + 1)
    while before or not parts:
        part, before = lists.summary("alice", "job", run_filter, before)
        parts.append(part.records)
        merged.merge(part.days.items())
    assert parts == [4, 4, 2]
    in_span = [run for run in tenancy.stored() if run["fire_at"] >= MIDNIGHT - DAY]
    assert merged.to_json(values=True) == summary_of(in_span).to_json(values=True)
