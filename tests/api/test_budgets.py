"""A page ends at its budget of processor time, and its cursor leads on."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest

from common.budget import PAGE_CPU_S
from tests.api.calls import Office
from tests.worlds import job

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


@pytest.mark.parametrize("path", ["/v1/jobs?limit=200", "/v1/jobs?limit=200&tag=nobody", "/v1/density?"])
def test_a_page_ends_at_its_budget(office: Office, jobs_that_work: list[str], path: str) -> None:
    pages: list[dict[str, Any]] = []
    cursor = ""
    while not pages or cursor:
        pages.append(office.alice_reads("GET", f"{path}{cursor and f'&cursor={cursor}'}").json)
        cursor = pages[-1]["next_cursor"] or ""
    assert 1 < len(pages) <= JOBS
    if "tag" not in path:
        listed = [name["job_id"] for page in pages for name in page.get("jobs", ())]
        counted = sum(page.get("jobs_counted", 0) for page in pages)
        assert listed == jobs_that_work or counted == JOBS
