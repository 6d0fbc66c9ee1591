"""What lists hold in memory at once, if every run has the most attempts that a job may have."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from api import views
from common.history.failed_runs import FailedRuns, FailureFilter
from common.history.run_lists import LISTED, MAX_RETRIES, Bounds, RunFilter, RunLists
from common.history.runs_cursor import RunsCursor
from common.runs.run import Run
from common.storage.wire import Item
from tests.history.table import NOW, Tenancy

JOBS, ATTEMPTS = 100, 100
TEXTS = ("outcome", "error_type", "error", "log_tail", "request_id")


@pytest.fixture(scope="module")
def tenancy() -> Tenancy:
    """A hundred jobs with two failed runs each: 20,000 attempts."""
    tenancy = Tenancy()
    fields = {"started_at": NOW, "finished_at": NOW + 1, "lateness_s": 0.25, **{name: name for name in TEXTS}}
    attempts = [{"attempt": n + 1, **fields} for n in range(ATTEMPTS)]
    for n in range(JOBS):
        tenancy.add_job(f"job{n:03}")
        for age_s in (n, n + 1_000):
            failed = {"failed_tenant": "alice", "failed_at": NOW - age_s, "status": "failed"}
            more = {
                "attempt": ATTEMPTS,
                "attempts": attempts,
                "lost_calls": [{"attempt": 1, "started_at": NOW}],
            }
            tenancy.add_run(f"job{n:03}", NOW - age_s, **failed, **more)
    return tenancy


def listed(tenancy: Tenancy) -> list[Item]:
    place = RunsCursor.start(NOW, NOW - 3_600, None)
    return tenancy.lists(Bounds()).page("alice", place, RunFilter(), limit=200).runs


def listed_of_job(tenancy: Tenancy) -> list[Item]:
    return RunLists(tenancy.runs).of_job("alice", "job000", RunFilter(), limit=200)[0]


def failed(tenancy: Tenancy) -> list[Item]:
    return FailedRuns(tenancy.jobs, tenancy.runs).page("alice", FailureFilter(), limit=200)[0]


def failed_with_a_tag(tenancy: Tenancy) -> list[Item]:
    return FailedRuns(tenancy.jobs, tenancy.runs).page("alice", FailureFilter(tag="x"), limit=200)[0]


def grouped(tenancy: Tenancy) -> list[Item]:
    groups, _ = FailedRuns(tenancy.jobs, tenancy.runs).groups("alice", FailureFilter())
    return [group.latest for group in groups]


@pytest.fixture
def traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@pytest.mark.parametrize("read", [listed, listed_of_job, failed, failed_with_a_tag, grouped])
def test_a_list_holds_about_as_many_attempts_as_it_shows(
    tenancy: Tenancy, traced: None, read: Callable[[Tenancy], list[Item]]
) -> None:
    read(tenancy)  # what is imported or compiled once does not count
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()
    runs = read(tenancy)
    _, peak = tracemalloc.get_traced_memory()
    assert sum(len(run["attempts"]) for run in runs) <= MAX_RETRIES + 2 * ATTEMPTS
    assert peak - before < 2_000_000


def test_a_listed_run_is_whole(tenancy: Tenancy) -> None:
    stored = {(run["sk"], run["job_id"]): run for run in tenancy.stored()}
    runs = listed(tenancy)
    assert len(runs) == 9
    assert all(
        views.run_view(Run.from_item(run)) == views.run_view(Run.from_item(stored[run["sk"], run["job_id"]]))
        for run in runs
    )


def test_a_run_that_goes_on_while_its_attempts_are_read_leaves_its_status() -> None:
    tenancy, place = Tenancy(), RunsCursor.start(NOW, NOW - 3_600, None)
    tenancy.add_job("job")

    def ends(operation: str) -> None:
        if operation == "get_item":
            tenancy.client.before = lambda operation: None
            tenancy.add_run("job", NOW, status="succeeded", attempt=3)

    for run_filter, statuses in ((RunFilter(), ["succeeded"]), (RunFilter(status="retrying"), [])):
        tenancy.add_run("job", NOW, status="retrying", attempt=2)
        tenancy.client.before = ends
        page = tenancy.lists(Bounds()).page("alice", place, run_filter, limit=2)
        assert [run["status"] for run in page.runs] == statuses
        assert tenancy.client.before is not ends


def test_the_fields_of_a_run_are_read_for_lists() -> None:
    assert {*views._RUN_FIELDS} <= {*LISTED}
