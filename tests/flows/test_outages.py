"""planned_until: ticks early, late, missing for an hour or a day; clocks that step back; a deployment's first minutes.

The expected times are worked out by hand here; tests/simulation plays random outages for a year.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import World, at, job, make_world

MAX_DELAY_S = 900


@pytest.fixture
def m() -> Iterator[World]:
    """A fresh Minute8 at 2026-11-21T03:12:00Z over a DynamoDB in memory."""
    yield make_world(MemoryDynamoDB(), "2026-11-21T03:12:00Z")


def clock(first: str, last: str, every: int = 1) -> list[str]:
    """The minutes of 2026-11-21 from `first` to `last`."""
    start, end = at(f"2026-11-21T{first}:00Z"), at(f"2026-11-21T{last}:00Z")
    days = (start + 60 * n for n in range(0, (end - start) // 60 + 1, every))
    return [f"2026-11-21T{t % 86_400 // 3600:02}:{t % 3600 // 60:02}:00Z" for t in days]


def tick_at(m: World, text: str) -> None:
    """No tick until then, then one."""
    m.run_until(f"2026-11-21T{text}Z")
    m.scheduler.tick()


def progress(m: World) -> str:
    due_mark = m.index.progress()
    assert due_mark
    assert not due_mark.is_open
    return f"{due_mark.planned_until % 86_400 // 3600:02}:{due_mark.planned_until % 3600 // 60:02}"


def ran(m: World, job_id: str = "minutely") -> list[str]:
    times = m.target.fire_times(job_id)
    assert len(times) == len(set(times))
    return sorted(times)


def test_a_tick_that_comes_early_plans_as_far_as_sqs_can_hold(m: World) -> None:
    m.registry.create("alice", "minutely", job(cron="* * * * *"))
    tick_at(m, "03:15:00")
    assert progress(m) == "03:30"
    m.run_until("2026-11-21T03:29:30Z")
    assert ran(m) == clock("03:13", "03:29")
    assert max(m.sqs.delays) <= MAX_DELAY_S


def test_early_again_and_again_nothing_is_planned_twice(m: World) -> None:
    m.registry.create("alice", "minutely", job(cron="* * * * *"))
    for minute in range(13, 40):
        tick_at(m, f"03:{minute}:20")
    assert progress(m) == "03:50"
    assert len(m.sqs.bodies) == len(set(m.sqs.bodies))
    assert ran(m) == clock("03:13", "03:39")


@pytest.mark.parametrize("late", ["03:19:30", "03:21:00", "03:24:59", "03:27:10"])
def test_executions_late_by_minutes_all_run(m: World, late: str) -> None:
    m.registry.create("alice", "minutely", job(cron="* * * * *", catch_up="none"))
    tick_at(m, late)
    m.run_until("2026-11-21T03:29:30Z")
    assert ran(m) == clock("03:13", "03:29")
    assert set(m.statuses("alice", "minutely")) == {"succeeded"}


def test_the_rule_delayed_past_its_window_plans_two(m: World) -> None:
    m.registry.create("alice", "minutely", job(cron="* * * * *", catch_up="none"))
    tick_at(m, "03:29:30")  # the tick of 3:18; its window [3:20, 3:30) is almost over
    assert progress(m) == "03:40"
    m.run_until("2026-11-21T03:39:30Z")
    assert ran(m) == clock("03:13", "03:39")


@pytest.mark.parametrize(
    ("catch_up", "caught_up"),
    [("none", []), ("latest", clock("04:07", "04:07")), ("all", clock("03:30", "04:07"))],
)
def test_missing_for_an_hour(m: World, catch_up: str, caught_up: list[str]) -> None:
    tick_at(m, "03:18:00")
    timing = {"cron": "* * * * *", "start_at": "2026-11-21T03:28:00Z"}
    m.registry.create("alice", "minutely", job(**timing, catch_up=catch_up))
    tick_at(m, "04:18:00")
    m.run_until("2026-11-21T05:29:30Z", ticks=True)
    # 3:28 and 3:29 were planned before; 4:08 is ten minutes ago: late; the times between were missed
    assert ran(m) == clock("03:28", "03:29") + caught_up + clock("04:08", "05:29")
    records = [run for run in m.run_items("alice", "minutely") if run["status"] == "skipped"]
    skipped = 38 - len(caught_up)
    assert [run["skipped_count"] for run in records] == ([skipped] if skipped else [])


def test_after_a_day_without_ticks_one_record_holds_the_missed_times(m: World) -> None:
    for policy in ("none", "latest", "all"):
        m.registry.create("alice", policy, job(cron="*/10 * * * *", catch_up=policy))
    m.run_until("2026-11-21T03:19:00Z")
    m.clock.move_to(at("2026-11-22T03:28:00Z"))
    m.scheduler.tick()
    m.run_until("2026-11-22T05:39:30Z", ticks=True)
    # [3:20 of the 21st, 3:18 of the 22nd): 144 fire times were missed; the 14 from 3:20 to 5:30 were not
    assert len(ran(m, "none")) == 14
    assert len(ran(m, "latest")) == 15
    assert len(ran(m, "all")) == 114  # at most a hundred are caught up
    counts = {
        policy: [run["skipped_count"] for run in m.run_items("alice", policy) if run["status"] == "skipped"]
        for policy in ("none", "latest", "all")
    }
    assert counts == {"none": [144], "latest": [143], "all": [44]}


def test_two_ticks_at_once_plan_the_same(m: World) -> None:
    for n in range(30):
        m.registry.create("alice", f"job-{n}", job(cron="*/5 * * * *"))
    m.run_until("2026-11-21T03:18:00Z")
    memory: MemoryDynamoDB = m.dynamodb
    calls = 0

    def other_tick(name: str) -> None:
        nonlocal calls
        calls += 1
        if calls == 20:
            m.scheduler.tick()

    memory.before = other_tick
    m.scheduler.tick()
    assert calls > 40
    m.run_until("2026-11-21T03:29:30Z")
    assert progress(m) == "03:30"
    for n in range(30):
        assert ran(m, f"job-{n}") == clock("03:15", "03:25", 5)


def test_a_clock_that_steps_back_moves_no_mark_and_loses_nothing(m: World) -> None:
    m.registry.create("alice", "minutely", job(cron="* * * * *"))
    tick_at(m, "03:18:00")
    m.clock.move_to(at("2026-11-21T02:48:00Z"))
    m.scheduler.tick()
    assert progress(m) == "03:30"
    m.clock.move_to(at("2026-11-21T03:19:00Z"))
    m.run_until("2026-11-21T03:28:00Z")
    m.scheduler.tick()
    m.run_until("2026-11-21T03:39:30Z")
    assert ran(m) == clock("03:13", "03:39")


def test_a_clock_that_is_minutes_ahead_for_one_tick_calls_nothing_early(m: World) -> None:
    m.registry.create("alice", "minutely", job(cron="* * * * *"))
    m.run_until("2026-11-21T03:18:00Z")
    m.clock.move_to(at("2026-11-21T03:25:30Z"))
    m.scheduler.tick()  # plans up to 3:40, with delays that are too short by the same time
    assert progress(m) == "03:40"
    m.clock.move_to(at("2026-11-21T03:18:01Z"))
    m.run_until("2026-11-21T03:49:30Z", ticks=True)
    assert ran(m) == clock("03:13", "03:49")
    assert min(called - at(context["due_at"]) for called, context in m.target.calls) >= 0


def test_a_fresh_deployment_begins_with_what_its_first_tick_can_plan(m: World) -> None:
    tick_at(m, "03:18:00")
    assert progress(m) == "03:30"
    m.registry.create("alice", "minutely", job(cron="* * * * *"))
    m.run_until("2026-11-21T03:28:00Z")
    assert ran(m) == clock("03:19", "03:28")[: len(ran(m))]
    m.scheduler.tick()
    m.run_until("2026-11-21T03:39:30Z")
    assert ran(m) == clock("03:19", "03:39")


def test_a_fresh_deployment_whose_first_tick_comes_late(m: World) -> None:
    m.registry.create("alice", "minutely", job(cron="* * * * *", catch_up="none"))
    assert progress(m) == "03:20"
    tick_at(m, "03:28:00")
    m.run_until("2026-11-21T03:39:30Z")
    assert ran(m) == clock("03:13", "03:39")


def test_jobs_registered_during_an_outage(m: World) -> None:
    tick_at(m, "03:18:00")
    m.run_until("2026-11-21T04:00:30Z")  # planned_until is at 3:30, half an hour ago
    for policy in ("none", "latest", "all"):
        m.registry.create("alice", policy, job(cron="* * * * *", catch_up=policy))
    m.registry.create("alice", "once", job(at="2026-11-21T04:05:00Z", catch_up="none"))
    m.registry.create("alice", "late", job(at="2026-11-21T04:17:00Z", catch_up="none"))
    assert m.sqs.bodies == []  # no part of it is in a planned window; the next tick plans all of it
    tick_at(m, "04:18:00")
    m.run_until("2026-11-21T05:29:30Z", ticks=True)
    late = clock("04:08", "05:29")
    assert ran(m, "none") == late
    assert ran(m, "latest") == clock("04:07", "04:07") + late
    assert ran(m, "all") == clock("04:01", "05:29")
    assert (m.statuses("alice", "once"), m.statuses("alice", "late")) == (["skipped(missed)"], ["succeeded"])


def test_changed_during_an_outage_a_job_owes_of_its_former_times_those_that_it_still_has(m: World) -> None:
    m.registry.create("alice", "job", job(cron="* * * * *", catch_up="all"))
    m.run_until("2026-11-21T04:00:30Z")
    m.registry.put("alice", "job", job(cron="*/5 * * * *", catch_up="all"))
    tick_at(m, "04:18:00")
    m.run_until("2026-11-21T05:29:30Z", ticks=True)
    assert ran(m, "job") == clock("03:13", "03:19") + clock("03:20", "05:25", 5)
    ended = [run["fire_at"] for run in m.run_items("alice", "job") if run.get("reason") == "rescheduled"]
    assert ended == [
        fire_at
        for fire_at in range(at("2026-11-21T03:20:00Z"), at("2026-11-21T04:00:30Z"), 60)
        if fire_at % 300
    ]
