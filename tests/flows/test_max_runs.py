"""A schedule that ends after so many fire times: exact through pauses, edits and faults."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from common.errors import InvalidInput
from common.timing.fires import fires
from tests.worlds import World, at, job, open_world


@pytest.fixture
def world() -> Iterator[World]:
    with open_world("2026-11-21T03:12:00Z") as world:
        yield world


def put(world: World, **fields: Any) -> None:
    world.registry.put("alice", "job", job(**fields))


def called(world: World) -> list[str]:
    return [time[11:16] for time in world.target.fire_times("job")]


def test_a_job_ends_after_its_last_fire_time(world: World) -> None:
    put(world, cron="*/10 * * * *", max_runs=3, after_completion="delete")
    put(world, cron="*/10 * * * *", max_runs=3, after_completion="delete", name="the count goes on")
    world.run_until("2026-11-21T05:00:00Z", ticks=True)
    assert called(world) == ["03:20", "03:30", "03:40"]
    assert not list(world.store.list_jobs("alice"))


def test_a_paused_job_keeps_what_is_left(world: World) -> None:
    put(world, cron="*/10 * * * *", max_runs=3)
    world.run_until("2026-11-21T03:22:00Z", ticks=True)
    world.store.pause("alice", "job")
    put(world, cron="*/10 * * * *", max_runs=3, name="edited while it is paused")
    world.run_until("2026-11-21T04:22:00Z", ticks=True)
    world.store.pause("alice", "job", note="again")
    world.store.resume("alice", "job")
    world.run_until("2026-11-21T06:00:00Z", ticks=True)
    assert called(world) == ["03:20", "04:30", "04:40"]
    assert world.statuses("alice", "job").count("succeeded") == 3


@pytest.mark.parametrize("changed", [{"max_runs": 4}, {"max_runs": 4, "jitter_s": 9}])
def test_an_edit_in_the_second_of_a_resume_keeps_the_limit(world: World, changed: dict[str, Any]) -> None:
    put(world, cron="*/10 * * * *", max_runs=3)
    world.run_until("2026-11-21T03:22:00Z", ticks=True)
    world.store.pause("alice", "job")
    world.store.resume("alice", "job")
    put(world, cron="*/10 * * * *", **changed)
    world.run_until("2026-11-21T06:00:00Z", ticks=True)
    assert called(world) == ["03:20", "03:30", "03:40", "03:50"]


def test_the_count_goes_on_when_the_schedule_changes_and_a_higher_limit_lets_it_go_on(world: World) -> None:
    put(world, cron="*/10 * * * *", max_runs=3)
    world.run_until("2026-11-21T03:32:00Z", ticks=True)  # two have come
    put(world, cron="5 * * * *", max_runs=3)
    world.run_until("2026-11-21T06:00:00Z", ticks=True)
    assert called(world) == ["03:20", "03:30", "04:05"]
    put(world, cron="5 * * * *", max_runs=5)
    world.run_until("2026-11-21T09:00:00Z", ticks=True)
    assert called(world)[3:] == ["06:05", "07:05"]
    put(world, cron="5 * * * *", max_runs=2)  # it has fired more often
    world.run_until("2026-11-21T11:00:00Z", ticks=True)
    put(world, cron="5 * * * *")
    world.run_until("2026-11-21T12:00:00Z", ticks=True)
    assert called(world)[5:] == ["11:05"]
    put(world, cron="5 * * * *", max_runs=1)  # it begins anew
    world.run_until("2026-11-21T15:00:00Z", ticks=True)
    assert called(world)[6:] == ["12:05"]


def test_a_deleted_job_takes_its_count_along(world: World) -> None:
    put(world, cron="*/10 * * * *", max_runs=1)
    world.run_until("2026-11-21T03:22:00Z", ticks=True)
    world.store.delete("alice", "job")
    put(world, cron="*/10 * * * *", max_runs=1)
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    assert called(world) == ["03:20", "03:30"]


def test_skipped_and_missed_fire_times_count_and_runs_by_hand_do_not(world: World) -> None:
    put(world, cron="*/10 * * * *", max_runs=4, catch_up="latest")
    world.manual.run_now("alice", "job", "n")
    world.clock.sleep(2_400)  # an outage: 03:20 and 03:30 are missed
    world.run_until("2026-11-21T05:00:00Z", ticks=True)
    assert called(world)[-1] == "03:50"
    assert not [time for time in called(world) if time > "03:50"]


@pytest.mark.parametrize("end_at", [None, "2026-11-21T03:35:00Z"])
def test_an_earlier_end_holds_also_after_a_pause(world: World, end_at: str | None) -> None:
    put(world, every="10m", anchor="2026-11-21T00:00:00Z", max_runs=3, end_at=end_at)
    world.store.pause("alice", "job")
    world.store.resume("alice", "job")
    world.run_until("2026-11-21T05:00:00Z", ticks=True)
    assert called(world) == ["03:20", "03:30", "03:40"][: 2 if end_at else 3]


def test_the_end_lies_between_two_fire_times_and_is_what_all_readers_see(world: World) -> None:
    put(world, cron="0 3 * * *", max_runs=5, timezone="Europe/Paris", exclude={"dates": ["2026-11-23"]})
    stored = world.store.get("alice", "job")
    assert stored.schedule.end_at == at("2026-11-27T14:00:00Z") + 1
    assert len(list(fires(stored.schedule, stored.effective_at, at("2099-01-01T00:00:00Z")))) == 5


def test_a_rare_time_needs_no_end(world: World) -> None:
    put(world, cron="0 0 29 2 *", max_runs=1_000)
    assert world.store.get("alice", "job").schedule.end_at is None


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"cron": "0 3 * * *", "max_runs": 0}, "1 to 1000"),
        ({"cron": "0 3 * * *", "max_runs": 1_001}, "1 to 1000"),
        ({"at": "2026-12-24T08:00:00Z", "max_runs": 1}, "fires once"),
        ({"cron": "0 3 * * *", "max_runs": 2, "include_calendars": ["c"]}, "without calendars"),
        ({"cron": "0 3 * * *", "max_runs": 2, "exclude": {"calendars": ["c"]}}, "without calendars"),
    ],
)
def test_what_has_no_certain_end_is_refused(world: World, fields: dict[str, Any], part: str) -> None:
    world.table("jobs").put({"pk": "alice", "sk": "CALENDAR#c", "dates": ""})
    with pytest.raises(InvalidInput, match=part) as caught:
        put(world, **fields)
    assert caught.value.field == "schedule.max_runs"
