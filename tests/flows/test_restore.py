"""Tables restored to an earlier instant, as in docs/restore.md: what fires twice, and what does not fire."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from common.runs.outcome import Outcome
from scheduler import handler
from tests.scheduler_handler import serve
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import World, at, job, make_world

DAY = "2026-11-21T"
# The tables are put back from 5:00 to 4:00, with what was planned by then: all before 4:10. The next tick is at 5:38.
RESTORED_TO, STOPPED, STARTED, END = (f"{DAY}{time}:00Z" for time in ("04:00", "05:00", "05:38", "07:30"))


@dataclass
class Restored:
    """A world after the restore: the fire times that each job was called for before it, and after it."""

    world: World
    stopped_after: int
    before: dict[str, list[str]] = field(default_factory=dict)
    after: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for number, (_, call) in enumerate(self.world.target.calls):
            phase = self.before if number < self.stopped_after else self.after
            phase.setdefault(call["job_id"], []).append(call["fire_at"][11:16])

    def twice(self, job_id: str) -> set[str]:
        return set(self.before[job_id]) & set(self.after.get(job_id, []))


def restored(*tables: str) -> Restored:
    db = MemoryDynamoDB()
    world = make_world(db, f"{DAY}03:12:00Z")
    world.target.answer = fails_first
    for policy in ("none", "latest", "all"):
        world.registry.create("alice", policy, job(cron="* * * * *", catch_up=policy))
    for name in ("removed", "changed"):
        world.registry.create("alice", name, job(cron="*/5 * * * *"))
    world.registry.create("alice", "once", job(at=f"{DAY}04:30:00Z"))
    retry = {"max_attempts": 2, "base_s": 600}
    world.registry.create("alice", "retried", job(at=f"{DAY}03:58:00Z", retry=retry))
    world.run_until(RESTORED_TO, ticks=True)
    backup = copy.deepcopy(db.tables)
    world.run_until(f"{DAY}04:10:30Z", ticks=True)
    world.store.delete("alice", "removed")
    world.registry.put("alice", "changed", job(cron="*/7 * * * *"))
    world.registry.create("alice", "created", job(cron="*/5 * * * *"))
    world.run_until(STOPPED, ticks=True)
    stopped_after = len(world.target.calls)
    for name in tables:
        db.tables[f"test-{name}"] = copy.deepcopy(backup[f"test-{name}"])
    world.clock.move_to(at(STARTED))
    world.scheduler.tick()
    world.run_until(END, ticks=True)
    return Restored(world, stopped_after)


def fails_first(event: Mapping[str, Any]) -> Outcome:
    about = event["minute8"]
    return Outcome(ok=about["job_id"] != "retried" or about["attempt"] == 2, error_type="Boom")


def minutes(first: str, last: str) -> list[str]:
    hours = [f"{hour:02}:{minute:02}" for hour in range(3, 8) for minute in range(60)]
    return hours[hours.index(first) : hours.index(last) + 1]


@pytest.fixture(scope="module")
def runs_kept() -> Restored:
    """The runs table stays as it is."""
    return restored("jobs", "due", "tenants")


@pytest.fixture(scope="module")
def all_restored() -> Restored:
    """The runs table goes back, too."""
    return restored("jobs", "due", "tenants", "runs")


def test_while_the_runs_are_kept_nothing_is_called_twice(runs_kept: Restored) -> None:
    for job_id in runs_kept.before:
        assert runs_kept.twice(job_id) == set()
    calls = [(call["execution_id"], call["attempt"]) for _, call in runs_kept.world.target.calls]
    assert len(calls) == len(set(calls))


@pytest.mark.parametrize("kept", ["runs_kept", "all_restored"])
def test_queued_executions_run_and_the_catch_up_policy_decides_about_the_others(
    kept: str, request: pytest.FixtureRequest
) -> None:
    """The queue had all executions before 5:10. Those of the ten minutes before the first tick are late and run."""
    after = request.getfixturevalue(kept).after
    in_the_queue, late = minutes("05:01", "05:09"), minutes("05:28", "07:30")
    assert sorted(after["none"]) == in_the_queue + late
    assert sorted(after["latest"]) == [*in_the_queue, "05:27", *late]
    assert set(minutes("05:01", "07:30")) <= set(after["all"])


def test_without_the_runs_what_catches_up_is_called_twice(all_restored: Restored) -> None:
    """From the restored progress on, 4:10."""
    assert all_restored.twice("all") == set(minutes("04:10", "05:00"))
    assert all_restored.twice("once") == {"04:30"}
    assert all_restored.twice("none") == all_restored.twice("latest") == set()


def test_without_the_runs_a_run_that_waited_for_its_next_attempt_goes_on_waiting_and_can_be_cancelled(
    all_restored: Restored,
) -> None:
    world = all_restored.world
    assert world.statuses("alice", "retried") == ["retrying"]
    world.manual.cancel("alice", "alice:retried:20261121T035800Z", "its message is gone")
    assert world.statuses("alice", "retried") == ["failed"]


def test_a_job_created_since_is_gone_and_one_deleted_or_changed_since_is_as_it_was(
    runs_kept: Restored,
) -> None:
    world, after = runs_kept.world, runs_kept.after
    assert "created" not in after
    assert world.statuses("alice", "created")[-1] == "skipped(deleted)"  # what was in the queue
    assert set(after["removed"]) == set(after["changed"]) == set(minutes("05:25", "07:30")[::5])
    assert "skipped(rescheduled)" in world.statuses("alice", "changed")


def test_after_a_restore_of_the_runs_alone_each_execution_without_a_record_is_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also those that the projection had followed before."""
    db = MemoryDynamoDB()
    world = make_world(db, f"{DAY}03:12:00Z")
    serve(world, monkeypatch)
    world.tick = lambda: handler.handle({}, None)  # type: ignore[method-assign, assignment, return-value]
    world.registry.create("alice", "often", job(cron="* * * * *"))
    world.run_until(RESTORED_TO, ticks=True)
    backup = copy.deepcopy(db.tables["test-runs"])
    world.run_until(f"{DAY}04:45:00Z", ticks=True)
    db.tables["test-runs"] = backup
    world.run_until(f"{DAY}05:09:00Z", ticks=True)
    listed = [each.execution.fire_at for each in world.unrecorded.all()]
    assert listed == list(range(at(f"{DAY}04:01:00Z"), at(f"{DAY}04:46:00Z"), 60))
    world.unrecorded.send([each.execution for each in world.unrecorded.all()], world.queue, world.clock.now())
    world.run_until(f"{DAY}05:19:00Z", ticks=True)
    assert not list(world.unrecorded.all())
    fire_times = [run["fire_at"] for run in world.run_items("alice", "often")]
    assert fire_times == list(range(fire_times[0], at(f"{DAY}05:20:00Z"), 60))
