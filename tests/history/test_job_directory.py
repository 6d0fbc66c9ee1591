"""The directory of a tenant's jobs: after any changes it has what the jobs are, whoever makes it and when."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import convert, to_builtins

from common.errors import Busy
from common.history import job_directory, next_fires
from common.history.job_directory import JobDirectory, ListedJob, Streak
from common.history.next_fires import Fires
from common.jobs.job import exists
from common.storage import keys
from common.storage.table import Query
from common.storage.transactions import Transaction
from common.tenants.audit import Audit
from minute8.api.http.paging import read_cursor, write_cursor
from minute8.api.routes.job_lists import JobSearch, has_words, matching_places, place_hint, words_of
from tests.worlds import World, at, job, open_world

NAMES = ["", "Daily report", "Ärger mit 😀", "x" * 200]


def directory(world: World) -> JobDirectory:
    return JobDirectory(world.table("jobs"), Audit(world.table("tenants")))


def recounted(world: World) -> list[ListedJob]:
    stored = [listed for listed in world.store.list_jobs("alice") if exists(listed)]
    return sorted(filter(None, (job_directory._listed(listed.to_item()) for listed in stored)))


def change(world: World, rng: random.Random, number: int) -> None:
    job_id = f"job-{number}"
    registry, stored = world.registry, world.store.load_all("alice", [job_id]).get(job_id)
    definition = job(
        cron=f"{rng.randrange(60)} 3 * * *",
        name=rng.choice(NAMES),
        tags=rng.sample(["red", "green"], rng.randrange(3)),
    )
    if stored is None or not exists(stored) or rng.random() < 0.3:
        registry.put("alice", job_id, definition)
    else:
        act: Callable[[str, str], Any] = rng.choice(
            [world.store.pause, world.store.resume, world.store.delete]
        )
        act("alice", job_id)


@pytest.mark.long
@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6), st.lists(st.sampled_from(["change", "many", "look", "other", "wait"]), max_size=25)
)
def test_after_any_changes_it_has_what_the_jobs_are(seed: int, steps: Sequence[str]) -> None:
    rng = random.Random(seed)
    with open_world() as world, pytest.MonkeyPatch.context() as bounds:
        bounds.setattr(job_directory, "RENEWED_AFTER", 3)
        bounds.setattr(job_directory, "MAX_CHANGES", 8)
        bounds.setattr(job_directory, "_CHUNK_BYTES", 800)
        first, second = directory(world), directory(world)  # two functions with a memory each
        for step in steps:
            match step:
                case "change":
                    change(world, rng, rng.randrange(12))
                case "many":
                    for _ in range(10):
                        change(world, rng, rng.randrange(12))
                case "wait":
                    world.clock.sleep(rng.choice([1, 100, 20 * 86_400, 40 * 86_400]))
                case who:
                    looker = first if who == "look" else second
                    assert sorted(looker.listed("alice", world.clock.now())) == recounted(world)
        assert sorted(first.listed("alice", world.clock.now())) == recounted(world)
        stored = world.table("jobs").get(keys.job_directory("alice"))
        assert stored
        kept = list(stored["chunks"])
        found_items = list(world.table("jobs").get_many([keys.job_directory("alice", name) for name in kept]))
        assert len(found_items) == len(kept)


def test_a_change_that_commits_after_a_later_one_is_not_missed(world: World) -> None:
    """Its entry in the audit is older than the directory."""
    world.registry.put("alice", "a", job(cron="0 3 * * *"))
    began_at = world.clock.now()
    world.clock.sleep(25)
    looker = directory(world)
    looker.listed("alice", world.clock.now())
    now, world.clock.now = world.clock.now, lambda: began_at  # type: ignore[method-assign]
    world.registry.put("alice", "late", job(cron="0 4 * * *"))
    world.clock.now = now  # type: ignore[method-assign]
    world.clock.sleep(5)
    assert sorted(looker.listed("alice", world.clock.now())) == recounted(world)


def test_other_changes_of_a_tenant_hide_no_change_of_a_job(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the bound and above it: whoever changes calendars or cancels runs has as many entries as they like."""
    monkeypatch.setattr(job_directory, "MAX_CHANGES", 8)
    looker, audit = directory(world), Audit(world.table("tenants"))
    looker.listed("alice", world.clock.now())
    for entry_count in (7, 8, 30):
        world.clock.sleep(100)
        looker.listed("alice", world.clock.now())
        world.registry.put("alice", f"job-{entry_count}", job(cron="0 3 * * *"))
        for n in range(entry_count):
            world.clock.sleep(1)
            tx = Transaction(world.dynamodb)
            audit.add(tx, "alice", "key", "calendar.stored", f"calendar-{n}", world.clock.now())
            tx.commit()
        assert sorted(looker.listed("alice", world.clock.now())) == recounted(world)


def test_a_large_directory_is_made_by_several_requests(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(9):
        world.registry.put("alice", f"job-{n}", job(cron="0 3 * * *"))

    class Spent:
        rows = 0

        @property
        def is_spent(self) -> bool:
            self.rows += 1
            return self.rows == 4

    monkeypatch.setattr(job_directory, "CpuBudget", Spent)
    for requests in range(2):
        with pytest.raises(Busy, match=f"{4 * (requests + 1)} jobs so far"):
            directory(world).listed("alice", world.clock.now())
        world.clock.sleep(100)
        world.registry.put("alice", "job-0", job(cron="0 4 * * *", name=f"changed {requests}"))
        world.registry.put("alice", f"new-{requests}", job(cron="0 4 * * *"))
    looker = directory(world)
    assert sorted(looker.listed("alice", world.clock.now())) == recounted(world)
    assert sorted(looker.listed("alice", world.clock.now())) == recounted(world)


def test_a_directory_of_which_a_part_is_gone_is_made_anew(world: World) -> None:
    for n in range(3):
        world.registry.put("alice", f"job-{n}", job(cron="0 3 * * *"))
    directory(world).listed("alice", world.clock.now())
    head = world.table("jobs").get(keys.job_directory("alice"))
    assert head
    world.table("jobs").delete(keys.job_directory("alice", head["chunks"][0]))
    assert sorted(directory(world).listed("alice", world.clock.now())) == recounted(world)


def test_a_directory_of_another_version_is_made_anew(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.registry.put("alice", "a", job(cron="0 3 * * *"))
    with monkeypatch.context() as other_version:
        other_version.setattr(job_directory, "_FORMAT", 2)
        other_version.setattr(job_directory, "_encoded", lambda rows, schedules: "what nobody reads")
        directory(world).listed("alice", world.clock.now())
    assert sorted(directory(world).listed("alice", world.clock.now())) == recounted(world)


def test_two_that_make_it_at_once_leave_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.registry.put("alice", "a", job(cron="0 3 * * *"))
    first, second = directory(world), directory(world)
    put, raced = world.table("jobs").put, []

    def racing(item: Any, condition: Any = None) -> None:
        put(item, condition)
        if not raced:
            raced.append([])  # the other one's own requests do not race
            raced[0] += sorted(second.listed("alice", world.clock.now()))

    monkeypatch.setattr(first.jobs, "put", racing)
    assert sorted(first.listed("alice", world.clock.now())) == raced[0] == recounted(world)
    stored = list(world.table("jobs").query(Query("alice", sk_prefix="LISTED#")))
    assert len(stored) == 2  # its head, and one chunk


def test_a_change_of_a_job_writes_nothing_of_it(world: World) -> None:
    looker = directory(world)
    world.registry.put("alice", "a", job(cron="0 3 * * *"))
    looker.listed("alice", world.clock.now())
    head = world.table("jobs").get(keys.job_directory("alice"))
    world.registry.put("alice", "b", job(cron="0 3 * * *"))
    assert len(looker.listed("alice", world.clock.now())) == 2
    assert world.table("jobs").get(keys.job_directory("alice")) == head


def test_what_stays_in_memory_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_directory, "_REMEMBERED_JOBS", 3)
    looker = directory(world)
    for n in range(5):
        world.registry.put("alice", f"job-{n}", job(cron=f"{n} 3 * * *"))
    for _ in range(2):
        assert len(looker.listed("alice", world.clock.now())) == 5
    assert looker._remembered == {}


def test_a_schedule_that_jobs_share_is_computed_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []
    compute = next_fires.next_fires
    monkeypatch.setattr(
        next_fires, "next_fires", lambda *args, **more: computed.append(args[0]) or compute(*args, **more)
    )
    for n in range(4):
        world.registry.put("alice", f"job-{n}", job(cron=f"{n // 2 * 10} 3 * * *"))
    world.registry.put("alice", "over", job(cron="0 3 1 1 *", end_at="2026-12-01T00:00:00Z"))
    fires = Fires.of(world.table("jobs"), "alice", world.clock.now())
    jobs = directory(world).listed("alice", world.clock.now())
    first, second = at("2026-11-22T03:00:00Z"), at("2026-11-22T03:10:00Z")
    next_times = {job.job_id: fires.next(job) for job in jobs}
    assert next_times == {"job-0": first, "job-1": first, "job-2": second, "job-3": second, "over": None}
    assert len(computed) == 3


@pytest.mark.parametrize(
    ("words", "text", "matches"),
    [
        ("daily", "Daily report", True),
        ("rep dai", "Daily report", True),
        ("eport", "Daily report", False),
        ("acme-report", "report-acme-7", True),
        ("ÄRGER", "ärger mit 😀", True),
        ("7", "report_7", True),
        ("daily nothing", "daily", False),
    ],
)
def test_words_are_beginnings_of_words(words: str, text: str, matches: bool) -> None:
    assert has_words(words_of(words), text) is matches


def listed_job(job_id: str, name: str = "", **fields: Any) -> ListedJob:
    defaults = {
        "tags": "",
        "kind": "lambda",
        "address": "arn",
        "state": "active",
        "revision": 1,
        "schedule": "{}",
    }
    return ListedJob(job_id=job_id, name=name, **(defaults | fields))


def test_each_order_is_total_and_a_place_survives_its_cursor() -> None:
    jobs = [
        listed_job("b", "Zebra"),
        listed_job("a", "ant"),
        listed_job("c"),
        listed_job("d", state="paused"),
    ]
    failures = {"c": Streak(3, 1), "a": Streak(9, 0)}
    next_at = {"a": 30, "b": 20, "c": None, "d": 10}
    for order, expected in (
        ("id", "abcd"),
        ("name", "acdb"),
        ("next", "bacd"),
        ("failures", "cabd"),
    ):
        places = matching_places(
            jobs, JobSearch(order=order), failures, lambda listed: next_at[listed.job_id]
        )  # type: ignore[arg-type]
        assert "".join(job_id for _, job_id in places) == expected, order
        assert convert(to_builtins(places), list[place_hint(order)]) == places  # type: ignore[misc, arg-type]
    assert [
        job_id for _, job_id in matching_places(jobs, JobSearch(failing=True), failures, lambda listed: None)
    ] == ["c"]


@pytest.mark.parametrize("values", [[], 1, ["a"], [1, "a"], ["a", 1], [None, "a"]])
def test_what_is_no_place_is_refused(values: Any) -> None:
    with pytest.raises(ValueError):
        convert(values, place_hint("name"))


def test_a_cursor_of_the_longest_name_is_accepted() -> None:
    (place,) = matching_places(
        [listed_job("x" * 128, "😀" * 200)], JobSearch(order="name"), {}, lambda listed: None
    )
    cursor = write_cursor("alice", "jobs", place)
    assert read_cursor("alice", "jobs", cursor, place_hint("name")) == place
