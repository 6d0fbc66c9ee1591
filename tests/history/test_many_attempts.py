"""What lists hold in memory at once, if every run has the most attempts that a job may have."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from common.history.failed_runs import FailedRuns, FailureFilter
from common.history.runs_by_time import RunFilter, RunLists
from common.runs.run import Run
from minute8.api import views
from tests.history.table import NOW, Tenancy

MAX_RETRIES = 800

JOBS, ATTEMPTS = 100, 100
TEXTS = ("error_type", "error", "log_tail", "request_id")


@pytest.fixture(scope="module")
def tenancy() -> Tenancy:
    """A hundred jobs with two failed runs each: 20,000 attempts."""
    tenancy = Tenancy()
    fields = {
        "started_at": NOW,
        "finished_at": NOW + 1,
        "lateness_s": 0.25,
        "outcome": "failed",
        **{name: name for name in TEXTS},
    }
    attempts = [{"attempt": n + 1, **fields} for n in range(ATTEMPTS)]
    for n in range(JOBS):
        tenancy.add_job(f"job{n:03}")
        for age_s in (n, n + 1_000):
            failed = {"failed_tenant": "alice", "failed_at": NOW - age_s, "status": "failed"}
            more = {
                "attempt": ATTEMPTS,
                "attempts": attempts,
                "lost_calls": [{"attempt": 1, "started_at": NOW, "lateness_s": 0}],
            }
            tenancy.add_run(f"job{n:03}", NOW - age_s, **failed, **more)
    return tenancy


def listed_of_job(tenancy: Tenancy) -> list[Run]:
    return RunLists(tenancy.runs).of_job("alice", "job000", RunFilter(), limit=200).items


def failed(tenancy: Tenancy) -> list[Run]:
    return FailedRuns(tenancy.jobs, tenancy.runs).page("alice", FailureFilter(), limit=200).items


def failed_with_a_tag(tenancy: Tenancy) -> list[Run]:
    return FailedRuns(tenancy.jobs, tenancy.runs).page("alice", FailureFilter(tag="x"), limit=200).items


def grouped(tenancy: Tenancy) -> list[Run]:
    groups, _ = FailedRuns(tenancy.jobs, tenancy.runs).groups("alice", FailureFilter())
    return [group.latest for group in groups]


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("read", [listed_of_job, failed, failed_with_a_tag, grouped])
def test_a_list_holds_about_as_many_attempts_as_it_shows(
    tenancy: Tenancy, traced: None, read: Callable[[Tenancy], list[Run]]
) -> None:
    read(tenancy)  # what is imported or compiled once does not count
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    runs = read(tenancy)
    _, peak = tracemalloc.get_traced_memory()
    assert sum(len(run.attempts) for run in runs) <= MAX_RETRIES + 2 * ATTEMPTS
    assert peak - before < 2_000_000


def test_a_listed_run_is_whole(tenancy: Tenancy) -> None:
    stored = {(run["sk"], run["job_id"]): run for run in tenancy.stored()}
    runs = failed(tenancy)
    assert len(runs) == 9
    assert all(
        views.run_view(run, 0) == views.run_view(Run.from_item(stored[run.run_name, run.job_id]), 0)
        for run in runs
    )
