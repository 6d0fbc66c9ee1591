"""The runs of all jobs, read from each engine in small steps."""

from __future__ import annotations

import pytest

from common.history.run_lists import Bounds, RunFilter, TenantRuns
from common.history.runs_cursor import RunsCursor
from common.history.summary import Summary
from common.storage import keys
from common.storage.table import Table
from common.timing.instants import compact_time

NOW = 1_795_230_900
JOBS = ("a", "b", "c", "former")
# Of each run of a job.
ATTEMPTS = {job_id: [{"attempt": n + 1} for n in range(count)] for count, job_id in enumerate(JOBS)}


@pytest.fixture
def filled(tables: dict[str, Table]) -> dict[str, Table]:
    """Four jobs of alice with five runs each, all at the same seconds; and one of another tenant."""
    for tenant in ("alice", "alice-2"):
        for job_id in JOBS[:-1]:
            tables["jobs"].put({**keys.job(tenant, job_id), "created_at": NOW - 10, "state": "active"})
        tables["jobs"].put(keys.former_job(tenant, "former"))
        for job_id in JOBS:
            for age_s in range(0, 1_500, 300):
                name = f"{compact_time(NOW - age_s)}:1"
                run = {"tenant": tenant, "job_id": job_id, "fire_at": NOW - age_s, "status": "succeeded"}
                tables["runs"].put(
                    {**keys.run(tenant, job_id, name), **run, "lateness_s": 0.25, "duration_s": 2}
                    | {"attempt": len(ATTEMPTS[job_id]), "attempts": ATTEMPTS[job_id]}
                )
    return tables


@pytest.mark.parametrize("jobs", [1, 3, 4])
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_each_run_in_the_range_once(filled: dict[str, Table], jobs: int, limit: int) -> None:
    lists = TenantRuns(filled["jobs"], filled["runs"], Bounds(jobs=jobs, further_queries=1))
    listed, place = [], RunsCursor.start(NOW, NOW - 900, NOW)
    while place:
        page = lists.page("alice", place, RunFilter(), limit=limit)
        listed += [(run["tenant"], run["job_id"], run["fire_at"]) for run in page.runs]
        assert all(run.get("attempts", []) == ATTEMPTS[run["job_id"]] for run in page.runs)
        place = page.next
    expected = [("alice", job_id, NOW - age_s) for age_s in (300, 600, 900) for job_id in reversed(JOBS)]
    assert sorted(listed) == sorted(expected)
    if jobs == len(JOBS):
        assert listed == expected


def test_a_summary_in_parts(filled: dict[str, Table]) -> None:
    lists = TenantRuns(filled["jobs"], filled["runs"], Bounds(jobs=3, further_queries=2, summarised_runs=4))
    merged, place = Summary(), RunsCursor.start(NOW, NOW - 900, NOW)
    while place:
        part, place = lists.summary("alice", place)
        assert part.records <= 4
        merged.merge(part.days.items())
    total = merged.total().to_json()
    assert total["statuses"] == {"succeeded": 12}
    assert total["lateness_s"] == {"count": 12, "p50": 0.25, "p95": 0.25, "p99": 0.25, "max": 0.25}
