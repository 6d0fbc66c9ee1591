"""The log of planning is deleted or damaged, and the queue with it: the next tick plans again what was planned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from common.planning.log import PlannedWindow
from common.platform.findings import Level
from common.platform.planning_checks import check_progress, check_quarantine
from common.storage import keys
from common.storage.table import Query
from common.timing.fires import fires
from common.timing.instants import rfc3339
from scheduler import handler
from scheduler.gaps import LogRead, first_gap
from tests.desk import Desk
from tests.scheduler_handler import serve
from tests.worlds import World, at, job, open_world

FROM, UNTIL = at("2026-11-21T04:10:00Z"), at("2026-11-21T04:50:00Z")
CATCH_UP = ("none", "latest", "all")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Half an hour old, with jobs of two tenants."""
    with open_world("2026-11-21T03:57:00Z") as world:
        serve(world, monkeypatch)
        world.tick = lambda: handler.handle({}, None)  # type: ignore[method-assign, assignment, return-value]
        for tenant in ("alice", "bob"):
            for policy in CATCH_UP:
                world.registry.put(tenant, policy, job(every="2m", catch_up=policy))
        yield world


def delete_log(world: World) -> None:
    delete_buckets(world, range(keys.LOG_BUCKETS))


def delete_buckets(world: World, buckets: range) -> None:
    due = world.table("due")
    for bucket in buckets:
        due.delete_many([keys.key_of(item) for item in due.query(Query(keys.log_partition(bucket)))])


def damage_log(world: World) -> None:
    due = world.table("due")
    for bucket in range(keys.LOG_BUCKETS):
        for item in list(due.query(Query(keys.log_partition(bucket)))):
            due.put({**item, "data": item["data"][:-8]})


def delete_windows(world: World) -> None:
    due = world.table("due")
    due.delete_many([keys.key_of(item) for item in due.query(Query(keys.WINDOWS))])


def delete_all(world: World) -> None:
    delete_log(world)
    delete_windows(world)


def delete_log_under_windows_of_2096(world: World) -> None:
    """Somebody wrote more of them than are read."""
    for number in range(20):
        window = keys.planned_window(at("2096-10-02T07:00:00Z") + 600 * number)
        world.table("due").put({**window, "start": 1, "began_at": 1, "ended_at": 1})
    delete_log(world)


def delete_a_bucket(world: World) -> None:
    bucket = keys.log_bucket("alice")
    delete_buckets(world, range(bucket, bucket + 1))


@pytest.mark.parametrize(
    ("damage", "time"),
    [
        (delete_log, "04:17:30"),
        (delete_log, "04:27:50"),
        (damage_log, "04:18:30"),
        (delete_log_under_windows_of_2096, "04:17:30"),
        (delete_windows, "04:21:10"),
        (delete_all, "04:21:10"),
        (delete_a_bucket, "04:21:10"),
    ],
)
def test_what_was_planned_runs_late_within_ten_minutes(
    served: World, damage: Callable[[World], None], time: str
) -> None:
    served.run_until(f"2026-11-21T{time}Z", ticks=True)
    served.sqs._waiting.clear()
    damage(served)
    served.run_until("2026-11-21T04:31:00Z", ticks=True)
    progress = served.index.progress()
    assert progress and at(f"2026-11-21T{time}Z") <= progress.moved_back_at < at("2026-11-21T04:29:00Z")
    words = [finding.message for finding in check_progress(Desk(served))]  # type: ignore[arg-type]
    assert any("was moved back" in message for message in words)
    served.run_until(rfc3339(UNTIL + 60), ticks=True)
    for tenant in ("alice", "bob"):
        for policy in CATCH_UP:
            due = set(fires(served.store.get(tenant, policy).schedule, FROM, UNTIL))
            runs = [run for run in served.run_items(tenant, policy) if FROM <= run["fire_at"] < UNTIL]
            assert {run["fire_at"]: run["status"] for run in runs} == dict.fromkeys(due, "succeeded")
            assert not [run for run in served.run_items(tenant, policy) if run["status"] != "succeeded"]
    calls = Counter(call["execution_id"] for _, call in served.target.calls)
    assert set(calls.values()) == {1}
    served.run_until("2026-11-21T04:59:00Z", ticks=True)
    again = served.index.progress()
    assert again and again.moved_back_at == progress.moved_back_at
    assert not list(served.unrecorded.all())


def test_a_full_record_of_a_window_is_named_and_stops_no_planning(
    served: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Some hundred planners fill it with the places of their chunks: DynamoDB stores 400 KB."""
    record = keys.planned_window(at("2026-11-21T04:20:00Z"))
    began = {"start": at("2026-11-21T04:10:00Z"), "began_at": 1, "ended_at": 1}
    served.table("due").put({**record, **began, "filler": "p" * (400 * 1_024 - 100)})
    served.run_until("2026-11-21T04:08:00Z")
    served.tick()
    assert "its figures are lost" in caplog.text
    progress = served.deployment.index.progress()
    assert progress
    assert progress.planned_until == at("2026-11-21T04:20:00Z")
    finding = next(check_quarantine(Desk(served)))  # type: ignore[arg-type]
    assert finding.level == Level.WARNING and "does not name 2 parts of its log" in finding.message


def test_a_stage_that_loses_nothing_is_planned_once(served: World) -> None:
    served.run_until("2026-11-21T04:59:00Z", ticks=True)
    progress = served.index.progress()
    assert progress and not progress.moved_back_at


NAMES = ("3#0000000600#planned#a", "4#0000001200#planned#b")


@pytest.mark.parametrize(
    ("windows", "places", "gap_at"),
    [
        ([(600, 1200, NAMES[:1]), (1200, 1800, NAMES[1:])], NAMES, None),
        ([(600, 1200, NAMES[:1]), (1200, 1800, NAMES[1:])], NAMES[:1], 1200),
        ([(600, 1200, NAMES[:1]), (1200, 1800, NAMES[1:])], NAMES[1:], 600),
        ([(0, 1800, NAMES)], NAMES[1:], 600),  # what lies before was not read
        ([(600, 1200, NAMES[:1]), (1800, 2400, ())], NAMES, 1200),
        ([(1200, 1800, NAMES[1:])], NAMES, 600),
        ([(600, 1200, NAMES[:1])], NAMES, 1200),
        ([], (), 600),
        ([(0, 600, ("3#0000000000#planned#c",)), (600, 1800, NAMES)], NAMES, None),
        ([(600, 1200, ("9#0000000600#planned#d",)), (1200, 1800, ())], (), None),  # nobody read bucket 9
        ([(600, 1200, ()), (1200, 1800, ("3#0000001800#planned#e",))], (), None),  # nor so far ahead
    ],
)
def test_where_a_gap_begins(
    windows: list[tuple[int, int, tuple[str, ...]]], places: tuple[str, ...], gap_at: int | None
) -> None:
    planned = [PlannedWindow(start, end, 0, 0, places=names) for start, end, names in windows]
    read = LogRead(set(places), {3, 4})
    assert first_gap(planned, read, begin=600, last=1200, until=1800) == gap_at
