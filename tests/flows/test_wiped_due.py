"""The whole table `due` is wiped: a repair loses nothing and doubles nothing, and what waited for hours goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from common.platform.tenants import Tenants
from common.projection.windows import ProjectedRuns
from common.runs.outcome import Outcome
from common.storage import keys
from common.timing.fires import fires
from common.timing.instants import rfc3339
from common.truth.contradiction import RUN_STUCK
from minute8.cli.doctor.truth import repair_outcome, repaired
from scheduler import handler
from tests.flows.test_stopped import wrongly_recorded
from tests.scheduler_handler import serve
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.truth.damage import truth_of
from tests.worlds import ARN, World, at, job, make_world

FROM, UNTIL = at("2026-11-21T04:10:00Z"), at("2026-11-21T09:50:00Z")
RETRY: dict[str, Any] = {"max_attempts": 4, "base_s": 7_200, "cap_s": 7_200, "factor": 1}
CALLBACK: dict[str, Any] = {"completion": "callback", "callback_timeout_s": 7_200}
ODD = {
    "long-ago": job(at="2026-11-21T04:12:00Z", retry=RETRY),
    "just-before": job(at="2026-11-21T05:22:00Z", retry=RETRY),
    "silent": job(at="2026-11-21T05:02:00Z", **CALLBACK, retry={"max_attempts": 1}),
    "paused": job(at="2026-11-21T05:21:00Z", retry=RETRY),
    "blocks": job(
        at="2026-11-21T04:15:00Z", concurrency={"key": "k", "limit": 1}, **CALLBACK, retry={"max_attempts": 1}
    ),
    "in-line": job(
        at="2026-11-21T04:16:00Z",
        concurrency={"key": "k", "limit": 1, "when_full": "wait", "max_wait_s": 86_400},
    ),
}


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Two tenants with jobs of each policy, and jobs whose runs wait."""
    world = make_world(MemoryDynamoDB(), "2026-11-21T03:57:00Z", pauses_move_the_clock=True)
    serve(world, monkeypatch)
    world.tick = lambda: handler.handle({}, None)  # type: ignore[method-assign, assignment]
    for tenant in ("alice", "bob"):
        Tenants(world.tables.tenants, world.clock).create(
            tenant, "", world.clock.now(), {"allowed_targets": [f"{ARN}*"]}
        )
        for policy in ("none", "latest", "all"):
            world.registry.put(tenant, policy, job(every="2m", catch_up=policy))
    for name, definition in ODD.items():
        world.registry.put("alice", name, definition)
    answer = world.target.answer
    world.target.answer = lambda event: (
        Outcome(ok=False, error_type="Later", error="try again")
        if ODD.get(event["minute8"]["job_id"], {}).get("retry") == RETRY and event["minute8"]["attempt"] == 1
        else answer(event)
    )
    yield world


def wipe(world: World) -> None:
    for item in world.dynamodb.scan(TableName="test-due")["Items"]:
        world.dynamodb._set("test-due", item, None)


def fix(world: World, *, leaves: frozenset[str] = frozenset()) -> list[str]:
    """As `minute8 check --fix`: what it names. It leaves nothing, or at most contradictions of these names."""
    truth = truth_of(world)
    contradicted = list(truth.all())
    results, remaining = repaired(truth, contradicted, repair_outcome)
    assert {item.name for item in remaining} <= leaves
    return [f"{item.name} {item.subject.name}" for item, _ in results]


def wait_times(world: World) -> dict[str, float]:
    """When the runs that wait for hours go on, by their records."""
    runs = {name: world.run_items("alice", name)[0] for name in ODD}
    times = {name: run.get("next_attempt_at") or run.get("lease_until") for name, run in runs.items()}
    return {name: time for name, time in times.items() if time}


@pytest.mark.parametrize("wiped_at", ["05:25:30", "05:31:00"])
@pytest.mark.parametrize("fixed_after_s", [0, 900])
def test_nothing_is_lost_or_doubled_and_what_waits_goes_on_in_time(
    served: World, wiped_at: str, fixed_after_s: int
) -> None:
    served.run_until(f"2026-11-21T{wiped_at}Z", ticks=True)
    waits = wait_times(served)
    assert waits.keys() == ODD.keys() - {"in-line"}
    wipe(served)
    served.run_until(rfc3339(int(served.clock.now()) + fixed_after_s), ticks=True)
    assert {name.partition(" ")[0] for name in fix(served)} <= {"entry-missing", "shard-missing"}
    served.run_until(rfc3339(UNTIL), ticks=True)
    assert fix(served) == []
    for tenant in ("alice", "bob"):
        for policy in ("none", "latest", "all"):
            due = set(fires(served.store.get(tenant, policy).schedule, FROM, UNTIL))
            runs = [run for run in served.run_items(tenant, policy) if FROM <= run["fire_at"] < UNTIL]
            assert {run["fire_at"]: run["status"] for run in runs} == dict.fromkeys(due, "succeeded")
    calls = Counter((call["execution_id"], call["attempt"]) for _, call in served.target.calls)
    assert set(calls.values()) == {1}
    ended = {name: served.run_items("alice", name)[0]["finished_at"] - time for name, time in waits.items()}
    assert {name: late_s for name, late_s in ended.items() if not 0 <= late_s < 60} == {}
    assert {served.statuses("alice", name)[0] for name in ODD} == {"succeeded", "failed"}


@pytest.mark.release
@pytest.mark.parametrize("minute", range(1, 60, 6))
@pytest.mark.parametrize("fixed_after_s", [0, 300, 3_600])
def test_each_fire_time_has_one_record(served: World, minute: int, fixed_after_s: int) -> None:
    served.run_until(f"2026-11-21T05:{minute:02}:30Z", ticks=True)
    wipe(served)
    served.run_until(rfc3339(int(served.clock.now()) + fixed_after_s), ticks=True)
    fix(served)
    served.run_until(rfc3339(UNTIL), ticks=True)
    names = [(tenant, policy) for tenant in ("alice", "bob") for policy in ("none", "latest", "all")]
    assert {name: wrong for name in names if (wrong := wrongly_recorded(served, *name, UNTIL - 60))} == {}
    calls = Counter((call["execution_id"], call["attempt"]) for _, call in served.target.calls)
    assert set(calls.values()) == {1}
    assert {served.statuses("alice", name)[0] for name in ODD} == {"succeeded", "failed"}


@pytest.mark.parametrize("followed", [{}, {"until": None}, {"until": -1}, {"until": 9_999_999_999}])
def test_without_a_repair_what_waits_goes_on_and_the_projection_has_all_runs(
    served: World, followed: dict[str, Any]
) -> None:
    """Also those that no tick had read when it was wiped, and if nobody can read how far they had."""
    served.run_until("2026-11-21T05:31:00Z", ticks=True)
    wipe(served)
    if followed:
        served.table("runs").put({**keys.FOLLOWED, **followed})
    served.run_until(rfc3339(UNTIL), ticks=True)
    assert {served.statuses("alice", name)[0] for name in ODD} == {"succeeded", "failed"}
    windows = ProjectedRuns(served.table("runs"))
    projected = {
        run.key: run.status
        for window in windows.between("alice", FROM, UNTIL)
        for run in windows.runs_of("alice", window)
    }
    records = [run for name in ("all", *ODD) for run in served.run_items("alice", name)]
    of_records = {(run["sk"], run["job_id"]): run["status"] for run in records if run["fire_at"] >= FROM}
    assert {key: projected.get(key) for key in of_records} == of_records


def test_a_first_attempt_that_waits_for_the_end_of_a_pause_goes_on(served: World) -> None:
    served.registry.put("alice", "late", job(at="2026-11-21T05:12:00Z", retry={"max_age_s": 86_400}))
    served.run_until("2026-11-21T05:11:59Z", ticks=True)
    served.clock.move_to(at("2026-11-21T05:12:30Z"))
    served.store.pause("alice", "late")
    served.run_until("2026-11-21T06:03:00Z", ticks=True)
    assert served.statuses("alice", "late") == ["queued"]
    wipe(served)
    served.sqs.purge()
    served.store.resume("alice", "late")
    served.run_until("2026-11-21T06:30:00Z", ticks=True)
    assert served.statuses("alice", "late") == ["succeeded"]


@pytest.mark.parametrize("resumed_after_fix", [True, False])
def test_a_first_attempt_whose_message_alone_is_lost_is_named_and_sent_again(
    served: World, resumed_after_fix: bool
) -> None:
    """It waits for the end of a pause; the log and the entries of the due table are there."""
    served.registry.put("alice", "late", job(at="2026-11-21T05:12:00Z", retry={"max_age_s": 86_400}))
    served.run_until("2026-11-21T05:11:59Z", ticks=True)
    served.clock.move_to(at("2026-11-21T05:12:30Z"))
    served.store.pause("alice", "late")
    served.run_until("2026-11-21T06:03:00Z", ticks=True)
    for item in served.dynamodb.scan(TableName="test-due")["Items"]:
        if item["pk"]["S"].startswith("POSTPONED#"):
            served.dynamodb._set("test-due", item, None)
    served.sqs.purge()
    if not resumed_after_fix:
        served.store.resume("alice", "late")
    served.run_until("2026-11-21T06:50:00Z", ticks=True)
    assert served.statuses("alice", "late") == ["queued"]
    execution_id = f"alice:late:{served.run_items('alice', 'late')[0]['sk']}"
    assert f"run-stuck {execution_id}" in fix(served, leaves=frozenset({RUN_STUCK}))
    served.run_until("2026-11-21T07:20:00Z", ticks=True)
    if resumed_after_fix:
        assert served.statuses("alice", "late") == ["queued"]
        served.store.resume("alice", "late")
    served.run_until("2026-11-21T07:40:00Z", ticks=True)
    assert served.statuses("alice", "late") == ["succeeded"]
    assert [call["attempt"] for _, call in served.target.calls if call["execution_id"] == execution_id] == [1]
    assert f"run-stuck {execution_id}" not in fix(served, leaves=frozenset({RUN_STUCK}))


def test_a_run_in_line_is_not_taken_for_one_that_is_stuck(served: World) -> None:
    """Other runs wake it, hours later."""
    served.run_until("2026-11-21T05:50:00Z", ticks=True)
    assert served.statuses("alice", "in-line") == ["queued"]
    assert fix(served) == []


def test_what_has_waited_for_days_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    world = make_world(MemoryDynamoDB(), "2026-11-21T03:57:00Z")
    serve(world, monkeypatch)
    world.tick = lambda: handler.handle({}, None)  # type: ignore[method-assign, assignment]
    Tenants(world.tables.tenants, world.clock).create(
        "alice", "", world.clock.now(), {"allowed_targets": [f"{ARN}*"]}
    )
    days: dict[str, Any] = {
        "completion": "callback",
        "callback_timeout_s": 200_000,
        "retry": {"max_attempts": 1},
    }
    world.registry.put("alice", "days", job(at="2026-11-21T04:12:00Z", **days))
    world.run_until("2026-11-23T05:00:00Z", ticks=True)
    assert world.statuses("alice", "days") == ["running"]
    wipe(world)
    world.run_until("2026-11-23T12:00:00Z", ticks=True)
    assert world.statuses("alice", "days") == ["failed"]


def test_a_restored_due_table_loses_no_run_that_waits(served: World) -> None:
    """It was started by hand after the restored instant, so no tick plans it again."""
    served.registry.put("alice", "by-hand", job(cron="0 0 1 1 *", retry=RETRY))
    answer = served.target.answer
    served.target.answer = lambda event: (
        Outcome(ok=False, error_type="Later", error="try again")
        if event["minute8"]["job_id"] == "by-hand" and event["minute8"]["attempt"] == 1
        else answer(event)
    )
    served.run_until("2026-11-21T05:21:00Z", ticks=True)
    backup = served.dynamodb.scan(TableName="test-due")["Items"]
    served.manual.run_now("alice", "by-hand", "n", None)
    served.run_until("2026-11-21T05:51:00Z", ticks=True)
    assert served.statuses("alice", "by-hand") == ["retrying"]
    wipe(served)
    for item in backup:
        served.dynamodb._set("test-due", item, item)
    served.run_until(rfc3339(UNTIL), ticks=True)
    assert served.statuses("alice", "by-hand") == ["succeeded"]
    calls = Counter((call["execution_id"], call["attempt"]) for _, call in served.target.calls)
    assert set(calls.values()) == {1}


def test_a_projection_that_begins_anew_sends_nothing_twice(served: World) -> None:
    """Only its position is deleted: each message is still there."""
    served.run_until("2026-11-21T05:31:00Z", ticks=True)
    served.table("due").delete(keys.chore("projection"))
    served.run_until(rfc3339(UNTIL), ticks=True)
    calls = Counter((call["execution_id"], call["attempt"]) for _, call in served.target.calls)
    assert set(calls.values()) == {1}
    assert {served.statuses("alice", name)[0] for name in ODD} == {"succeeded", "failed"}
