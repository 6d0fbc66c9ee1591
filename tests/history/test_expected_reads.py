"""What the lists of expected runs read: few requests for jobs that fire seldom, and the same answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from common.history import expected_runs
from common.history.expected import CANCELLED, NO_RECORD, ON_TIME, OVERDUE, TO_COME
from common.history.expected_runs import ExpectedPosition, ExpectedQuery, ExpectedRuns, JobPage
from common.runs.outcome import Outcome
from common.tenants.audit import Audit
from common.timing.instants import DAY_S, rfc3339
from tests.worlds import World, at, job, open_world

REGISTERED = at("2026-11-20T03:12:00Z")
START = REGISTERED + DAY_S
NOW = START + 3 * 3_600
JOBS = 30


@pytest.fixture(scope="module")
def settled() -> Iterator[World]:
    """Jobs that have not changed for a day, and the runs of some hours."""
    with open_world(rfc3339(REGISTERED)) as world:
        world.target.answer = lambda event: Outcome(ok=True)
        world.table("jobs").put(
            {
                "pk": "alice",
                "sk": "CALENDAR#feasts",
                "tenant": "alice",
                "name": "feasts",
                "dates": "2026-12-25",
            }
            | {"source": {}, "created_at": 0, "updated_at": 0}
        )
        for n in range(JOBS):
            calendars = {"calendars": ["feasts"]} if n % 2 else {}
            world.registry.put("alice", f"daily-{n:02}", job(cron=f"{n} 4 * * *", exclude=calendars))
        world.registry.put("alice", "often", job(cron="*/10 * * * *"))
        world.registry.put("alice", "seldom", job(cron="0 4 1 * *"))
        world.clock.move_to(START - 240)
        world.run_until(rfc3339(NOW), ticks=True)
        world.manual.skip_next("alice", "daily-05", 1, "not today")
        yield world


@pytest.fixture
def requests(settled: World) -> Iterator[Counter[str]]:
    """The requests of a test."""
    counted: Counter[str] = Counter()
    settled.dynamodb.before = lambda name: counted.update([name])
    yield counted
    settled.dynamodb.before = lambda name: None


def reader(world: World) -> ExpectedRuns:
    return ExpectedRuns(world.tables.jobs, world.tables.runs, Audit(world.tables.tenants), world.index)


def query(end: int, limit: int = 5_000) -> ExpectedQuery:
    return ExpectedQuery("alice", START, end, NOW, 30 * DAY_S, limit)


def of_tenant(world: World, *, limit: int = 5_000, end: int = NOW + DAY_S) -> list[JobPage]:
    all_pages: list[JobPage] = []
    place: ExpectedPosition | None = None
    while True:
        pages, place = reader(world).of_tenant(query(end, limit), place)
        all_pages += pages
        if place is None:
            return all_pages


def of_jobs(world: World, *, end: int = NOW + DAY_S) -> dict[str, JobPage]:
    ids = [job.job_id for job in world.store.list_jobs("alice", limit=1_000)]
    return {job_id: reader(world).of_job(query(end), job_id) for job_id in ids}


def test_jobs_that_fire_seldom_are_read_together(settled: World, requests: Counter[str]) -> None:
    pages = {page.job_id: page for page in of_tenant(settled)}
    # The jobs, the audit, and the runs of `often`; a calendar and planned_until; all other runs.
    assert requests == {"query": 3, "get_item": 2, "batch_get_item": 1}
    assert pages["daily-00"].counts == {ON_TIME: 1, TO_COME: 1}
    assert pages["daily-05"].counts == {ON_TIME: 1, CANCELLED: 1}
    assert pages["often"].counts[ON_TIME] == 18
    assert pages["seldom"].instants == []
    assert pages == of_jobs(settled)


def test_small_pages_give_the_same_list(settled: World) -> None:
    all_instants = [outcome for page in of_tenant(settled) for outcome in page.instants]
    assert [outcome for page in of_tenant(settled, limit=7) for outcome in page.instants] == all_instants


def test_a_lost_run_is_looked_for_among_all(settled: World, requests: Counter[str]) -> None:
    saved = settled.dynamodb.saved()
    removed = settled.run_items("alice", "daily-03")[-1]
    settled.table("runs").delete({"pk": removed["pk"], "sk": removed["sk"]})
    requests.clear()
    pages = {page.job_id: page for page in of_tenant(settled, end=NOW)}
    assert pages["daily-03"].counts == {NO_RECORD: 1}
    assert requests["query"] == 3 + 2  # of the job: its range, and what counts missed runs after it
    assert pages == of_jobs(settled, end=NOW)
    settled.dynamodb.restore(saved)


def test_a_job_that_changed_is_read_whole(settled: World, requests: Counter[str]) -> None:
    saved = settled.dynamodb.saved()
    settled.store.pause("alice", "daily-04")
    requests.clear()
    pages = {page.job_id: page for page in of_tenant(settled)}
    assert requests["query"] == 3 + 1
    assert pages["daily-04"].counts == {ON_TIME: 1}
    assert pages == of_jobs(settled)
    settled.dynamodb.restore(saved)


def test_a_job_that_has_not_changed_is_known_however_short_the_audit_is(
    settled: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = settled.dynamodb.saved()
    for _ in range(3):
        settled.store.pause("alice", "often")
        settled.store.resume("alice", "often")
    monkeypatch.setattr(expected_runs, "MAX_ENTRIES", 2)
    pages = {page.job_id: page for page in of_tenant(settled)}
    assert pages["daily-00"].known_from_at <= START
    assert pages["often"].known_from_at > START
    assert OVERDUE not in pages["daily-00"].counts
    settled.dynamodb.restore(saved)


def pause(world: World, job_id: str) -> None:
    world.store.pause("alice", job_id)


def lose(world: World, job_id: str) -> None:
    removed = world.run_items("alice", job_id)[-1]
    world.table("runs").delete({"pk": removed["pk"], "sk": removed["sk"]})


@pytest.mark.parametrize("made_to_be_queried", [pause, lose])
def test_a_page_ends_before_it_makes_too_many_queries(
    settled: World,
    requests: Counter[str],
    monkeypatch: pytest.MonkeyPatch,
    made_to_be_queried: Callable[[World, str], None],
) -> None:
    saved = settled.dynamodb.saved()
    for n in (1, 4, 7):
        made_to_be_queried(settled, f"daily-{n:02}")
    pages_before = of_tenant(settled, end=NOW)
    monkeypatch.setattr(expected_runs, "MAX_QUERIED", 2)
    requests.clear()
    pages, place = reader(settled).of_tenant(query(NOW, 5_000), None)
    first = [page.job_id for page in pages]
    assert set(first) >= {"daily-01", "daily-04"}
    assert "daily-07" not in first
    assert requests["query"] <= 2 + 2 * 2
    assert place == ExpectedPosition(first[-1])
    assert of_tenant(settled, end=NOW) == pages_before
    settled.dynamodb.restore(saved)


def test_a_page_has_so_many_jobs(settled: World, monkeypatch: pytest.MonkeyPatch) -> None:
    pages_before = of_tenant(settled)
    monkeypatch.setattr(expected_runs, "MAX_JOBS", 7)
    pages, place = reader(settled).of_tenant(query(NOW, 5_000), None)
    assert (len(pages), place) == (7, ExpectedPosition("daily-06"))
    assert of_tenant(settled) == pages_before
