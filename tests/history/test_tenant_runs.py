"""The list of all jobs' runs: nothing twice, nothing lost, newest first, at a bounded cost."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.history.run_lists import Bounds, RunFilter, TenantPage
from common.history.runs_cursor import RunsCursor, next_width_s
from common.storage.wire import Item
from tests.history.table import NOW, Tenancy, places

HOUR = 3_600

job_ids = st.integers(0, 30).map(lambda n: f"job{n}")
jobs = st.dictionaries(job_ids, st.sampled_from(("there", "deleted", "made again")), min_size=1, max_size=12)
# Ages at full minutes and next to them, where slices meet. With several names a job has several runs in one second.
ages_s = st.builds(
    lambda minutes, more: minutes * 60 + more, st.integers(-5, 90), st.sampled_from((0, 1, -1))
)
runs = st.lists(
    st.tuples(
        st.integers(0, 11),
        ages_s,
        st.sampled_from(("1", "2", "1:m-x")),
        st.sampled_from(("failed", "skipped")),
    ),
    max_size=60,
)
bounds = st.builds(
    Bounds, jobs=st.integers(1, 14), further_queries=st.integers(1, 5), listed_runs=st.integers(1, 20)
)


def ident(item: Item) -> tuple[str, str]:
    return item["sk"], item["job_id"]


def tenancy_of(named: dict[str, str], recorded: list[tuple[int, int, str, str]]) -> Tenancy:
    tenancy = Tenancy()
    for job_id, how in named.items():
        if how != "deleted":
            tenancy.add_job(job_id)
        if how != "there":
            tenancy.add_job(job_id, former=True)
    for number, age_s, name, status in recorded:
        job_id = sorted(named)[number % len(named)]
        for tenant in ("alice", "alice-2"):
            tenancy.add_run(job_id, NOW - age_s, name=name, status=status, tenant=tenant)
    return tenancy


@pytest.mark.long
@settings(deadline=None, max_examples=300)
@given(jobs, runs, bounds, st.integers(1, 9), st.sampled_from(("", "failed")), st.data())
def test_each_run_comes_once_and_none_after_the_complete_part(
    named: dict[str, str],
    recorded: list[tuple[int, int, str, str]],
    most: Bounds,
    limit: int,
    status: str,
    data: st.DataObject,
) -> None:
    tenancy, filters = tenancy_of(named, recorded), RunFilter(status=status)
    truth = [run for run in tenancy.stored() if run["fire_at"] >= NOW - HOUR and filters.matches(run)]
    lists = tenancy.lists(most)

    def step(place: RunsCursor) -> tuple[TenantPage, RunsCursor | None]:
        page = lists.page("alice", place, filters, limit=limit)
        return page, page.next

    listed: list[Item] = []
    complete_from_at = NOW * 2
    for page, next_place in places(RunsCursor.start(NOW, NOW - HOUR, None), step):
        assert len(page.runs) <= limit
        assert all(ident(newer) > ident(older) for newer, older in pairwise(page.runs))
        added = [run for run in page.runs if run["trigger"] != "meanwhile"]
        assert not {*map(ident, added)} & {*map(ident, listed)}
        listed += added
        from_at = next_place.complete_from_at if next_place else NOW - HOUR
        if from_at is not None:
            assert from_at <= complete_from_at
            complete_from_at = from_at
            assert {ident(run) for run in truth if run["fire_at"] >= from_at} <= set(map(ident, listed))
        # An existing job continues to fire, and a new job begins.
        for job_id in (data.draw(st.sampled_from(sorted(named))), f"new{len(listed)}"):
            tenancy.add_run(job_id, NOW + 600, name=f"{len(listed)}", trigger="meanwhile")
        tenancy.add_job(f"new{len(listed)}", created_at=NOW + 1)
    assert sorted(map(ident, listed)) == sorted(map(ident, truth))
    if len(named) <= most.jobs:
        assert listed == sorted(truth, key=ident, reverse=True)


@settings(deadline=None, max_examples=100)
@given(jobs, runs, bounds, st.integers(-100, 100), st.integers(-100, 100))
def test_only_fire_times_of_the_range(
    named: dict[str, str], recorded: list[tuple[int, int, str, str]], most: Bounds, start: int, end: int
) -> None:
    tenancy = tenancy_of(named, recorded)
    from_at, until_at = NOW + start * 60, NOW + end * 60
    lists = tenancy.lists(most)

    def step(place: RunsCursor) -> tuple[list[Item], RunsCursor | None]:
        page = lists.page("alice", place, RunFilter(), limit=5)
        return page.runs, page.next

    listed = [run for page, _ in places(RunsCursor.start(NOW, from_at, until_at), step) for run in page]
    truth = [run for run in tenancy.stored() if from_at <= run["fire_at"] < until_at]
    assert sorted(map(ident, listed)) == sorted(map(ident, truth))


class Counting:
    """Counts the queries of a client."""

    def __init__(self, tenancy: Tenancy) -> None:
        self.queries = 0
        tenancy.client.before = self._count

    def _count(self, name: str) -> None:
        assert name == "query"
        self.queries += 1

    def take_count(self) -> int:
        queries, self.queries = self.queries, 0
        return queries


@pytest.mark.parametrize(("most", "pages"), [(300, 1), (100, 3)])
def test_a_page_asks_each_job_once_and_no_more_jobs_than_it_may(most: int, pages: int) -> None:
    tenancy = Tenancy()
    for n in range(300):
        tenancy.add_job(f"job{n:03}")
        tenancy.add_run(f"job{n:03}", NOW - n)
    counting = Counting(tenancy)
    lists, place = tenancy.lists(Bounds(jobs=most)), RunsCursor.start(NOW, NOW - 300, None)
    listed = 0
    for _ in range(pages):
        page = lists.page("alice", place, RunFilter(), limit=300)
        listed += len(page.runs)
        # One for the existing jobs, one for the deleted ones.
        assert counting.take_count() == most + 2
        place = page.next or place
    assert (listed, page.next) == (300, None)


def test_a_job_that_runs_often_is_read_on_in_ever_larger_parts_and_within_bounds() -> None:
    tenancy = Tenancy()
    for job_id in ("often", "rarely"):
        tenancy.add_job(job_id)
    for second in range(1_000):
        tenancy.add_run("often", NOW - second)
    tenancy.add_run("rarely", NOW - 2_000, status="failed")
    counting = Counting(tenancy)
    failed = RunFilter(status="failed")
    start = RunsCursor.start(NOW, NOW - HOUR, None)
    page = tenancy.lists(Bounds()).page("alice", start, failed, limit=10)
    assert [run["job_id"] for run in page.runs] == ["rarely"]
    # 10, 20, 40 … 640 of one, 10 of the other, and the two lists of jobs.
    assert counting.take_count() == 7 + 1 + 2
    page = tenancy.lists(Bounds(further_queries=2)).page("alice", start, failed, limit=10)
    assert (page.runs, counting.take_count()) == ([], 2 + 2 + 2)
    assert page.next and page.next.complete_from_at == NOW - 10 - 20 - 40 + 1 + 1


def test_slices_grow_while_little_is_found_and_shrink_where_there_is_much() -> None:
    assert [next_width_s(600, seen) for seen in (0, 499, 500, 5_000, 5_001)] == [1_200, 1_200, 600, 600, 300]
    assert (next_width_s(60, 9_999), next_width_s(600_000, 0)) == (60, 604_800)


PLACE: list[Any] = [NOW, NOW - HOUR, NOW - 600, NOW, 600, "a", "c", ["20261121T115500Z:1", "b"], 3]


@pytest.mark.parametrize(
    ("field", "bad"),
    [
        (0, -1), (0, "1"), (0, 1.5), (0, True), (0, 10**20), (1, NOW), (2, NOW - HOUR - 1), (2, NOW),
        (3, "x"), (3, False), (4, 0), (4, 10**9), (5, 0), (5, "a#b"), (5, "c"), (5, "x" * 129),
        (6, 0), (6, "a"), (6, ["c"]), (6, "é"), (7, []), (7, "ab"), (7, ["20261121T115500Z:1"]),
        (7, ["20261121T115500Z", "b"]), (7, ["20261321T115500Z:1", "b"]),
        (7, ["20261121T114900Z:1", "b"]), (7, ["20261121T115500Z:1", "b#lock"]), (7, [7, 7]), (8, None), (8, [[]]),
    ],
)  # fmt: skip
def test_a_place_made_by_hand(field: int, bad: object) -> None:
    assert RunsCursor.of_text(json.dumps(PLACE)).before == ("20261121T115500Z:1", "b")
    changed = [*PLACE[:field], bad, *PLACE[field + 1 :]]
    with pytest.raises((ValueError, TypeError)):
        RunsCursor.of_text(json.dumps(changed))
    for text in ("[]", "{}", "1", '"x"', json.dumps([*PLACE, 1])):
        with pytest.raises(ValueError):
            RunsCursor.of_text(text)


@pytest.mark.parametrize("last_job", ["c", "", None])
def test_a_cursor_keeps_its_stored_form(last_job: str | None) -> None:
    before = None if last_job is None else PLACE[7]
    text = json.dumps([*PLACE[:6], last_job, before, 3], separators=(",", ":"))
    assert RunsCursor.of_text(text).to_text() == text


def test_a_run_to_continue_after_needs_its_chunk() -> None:
    with pytest.raises(ValueError):
        RunsCursor.of_text(json.dumps([*PLACE[:6], None, *PLACE[7:]]))
