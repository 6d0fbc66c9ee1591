"""A page ends at its budget of processor time, and its cursor leads on."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import pytest

from common.history import next_fires
from minute8.api.routes import jobs
from tests.api.calls import Office
from tests.worlds import job

PAGE_CPU_S = 1.5

JOBS = 6


@pytest.fixture
def jobs_that_work(office: Office, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Jobs that take half of the budget each: each look at the clock of the thread is so much later."""
    names = [f"job-{n}" for n in range(JOBS)]
    for name in names:
        assert office.alice("PUT", f"/v1/jobs/{name}", job(cron="0 3 * * *")).status == 201
    ticks = itertools.count()
    monkeypatch.setattr(time, "thread_time", lambda: next(ticks) * PAGE_CPU_S / 2)
    return names


def pages_of(office: Office, path: str) -> list[dict[str, Any]]:
    """All pages of a list."""
    pages: list[dict[str, Any]] = []
    cursor = ""
    while not pages or cursor:
        pages.append(office.alice_reads("GET", f"{path}{cursor and f'&cursor={cursor}'}").json)
        cursor = pages[-1]["next_cursor"] or ""
    return pages


def test_a_page_ends_at_its_budget(office: Office, jobs_that_work: list[str]) -> None:
    pages = pages_of(office, "/v1/jobs?limit=200")
    assert 1 < len(pages) <= JOBS
    assert [name["job_id"] for page in pages for name in page["jobs"]] == jobs_that_work


@pytest.mark.parametrize("path", ["/v1/expected?", "/v1/clock-changes?", "/v1/tzdata-changes?"])
def test_a_page_that_computes_times_ends_at_its_budget_and_nothing_is_left_out(
    office: Office, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    for n in range(JOBS):
        timing = {"cron": f"{n} */6 * * *", "timezone": "Europe/Berlin"}
        assert office.alice("PUT", f"/v1/jobs/job-{n}", job(**timing)).status == 201
    in_one_page = pages_of(office, path)
    assert len(in_one_page) == 1, "without a limit to its time"
    ticks = itertools.count()
    monkeypatch.setattr(time, "thread_time", lambda: next(ticks) * PAGE_CPU_S / 2)
    pages = pages_of(office, path)
    assert len(pages) > 1
    for name in ("expected", "moved"):
        listed = [json.dumps(entry, sort_keys=True) for page in pages for entry in page.get(name, ())]
        in_one = [json.dumps(entry, sort_keys=True) for entry in in_one_page[0].get(name, ())]
        assert sorted(listed) == sorted(in_one)
        assert len(set(listed)) == len(listed)


def test_a_page_with_health_ends_at_its_budget(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_HEALTHS_AT_ONCE", 2)
    names = [f"job-{n}" for n in range(JOBS)]
    for name in names:
        assert office.alice("PUT", f"/v1/jobs/{name}", job(cron="0 3 * * *")).status == 201
    spent = iter([False] * (JOBS - 1) + [True] + [False] * 100)
    monkeypatch.setattr("common.clock.CpuBudget.is_spent", property(lambda _: next(spent)))
    first, second = pages_of(office, "/v1/jobs?limit=200&health=true")
    for page, expected in ((first, names[:2]), (second, names[2:])):
        assert [job_["job_id"] for job_ in page["jobs"]] == list(page["health"]) == expected


@pytest.mark.parametrize(
    ("each_s", "expected"),
    [(0.499, ["d", "c", "b", "a"]), (0.5, ["c", "b", "a", "d"])],
    ids=["just below", "at the bound"],
)
def test_next_fires_of_a_sorted_list_take_a_second_and_a_half(
    office: Office, monkeypatch: pytest.MonkeyPatch, each_s: float, expected: list[str]
) -> None:
    """The fourth schedule would begin at the bound: its job comes last, though it fires first."""
    for n, name in enumerate("abcd"):
        assert office.alice("PUT", f"/v1/jobs/{name}", job(cron=f"0 {9 - n} * * *")).status == 201
    used = [0.0]
    compute = next_fires.next_fires

    def takes_its_time(*arguments: Any, **fields: Any) -> list[int]:
        used[0] += each_s
        return compute(*arguments, **fields)

    monkeypatch.setattr(next_fires, "next_fires", takes_its_time)
    monkeypatch.setattr(time, "thread_time", lambda: used[0])
    answer = office.alice("GET", "/v1/jobs?sort=next")
    assert [listed["job_id"] for listed in answer.json["jobs"]] == expected
    assert answer.json["matched"] == 4
