"""`concurrency`: at most so many attempts of all of a tenant's jobs with the same key go at a time."""

from __future__ import annotations

from typing import Any

import pytest

from common.errors import InvalidInput
from common.runs.holders import Holders, State
from common.runs.outcome import Outcome
from common.runs.run import Run
from common.storage import keys
from executor.recorder import service_level
from minute8.api.views import run_view
from tests.worlds import World, at, job

LOOK_AFTER_S = 60
MAX_PLACES = 50

DUE = "2026-11-21T03:15:00Z"
OK = Outcome(ok=True)


def create(world: World, count: int, tenant: str = "alice", **policy: Any) -> None:
    """Jobs that are all due at the same second, and whose targets call back."""
    concurrency = {"key": "crm", "limit": 2, **policy}
    for n in range(count):
        definition = job(at=DUE, completion="callback", concurrency=concurrency, callback_timeout_s=7_200)
        world.registry.create(tenant, f"job-{n:02}", definition)


def states(world: World, tenant: str = "alice") -> list[str]:
    """One for each job that has a run."""
    return [
        status
        for name in sorted(item["job_id"] for item in jobs_of(world, tenant))
        for status in world.statuses(tenant, name)
    ]


def jobs_of(world: World, tenant: str) -> list[dict[str, Any]]:
    return [{"job_id": f"job-{n:02}"} for n in range(MAX_PLACES + 20)]


def end_one(world: World, outcome: Outcome = OK) -> None:
    """The run whose target was called first, of those that go, ends."""
    for _, context in world.target.calls:
        record = world.callbacks.proven(context["execution_id"], context["callback"]["token"])
        if record.status == "running" and record.reported_attempt != record.attempt:
            world.callbacks.ends(record, outcome, world.clock.now())
            world.deliver()
            return
    raise AssertionError("none goes")


def holders(world: World, tenant: str = "alice", key: str = "crm") -> dict[str, Any]:
    return dict((world.table("runs").get(keys.key_permits(tenant, key)) or {}).get("holders", {}))


def test_no_more_go_than_the_limit_and_the_first_that_waits_is_next(world: World) -> None:
    create(world, 5)
    world.run_until(DUE)
    assert sorted(states(world)) == ["queued"] * 3 + ["running"] * 2
    began = [context["job_id"] for _, context in world.target.calls]
    waiting = world.table("runs").get(keys.key_permits("alice", "crm"))
    assert waiting
    order = sorted(waiting["waiting"], key=lambda name: (waiting["waiting"][name]["since"], name))
    while "running" in states(world):
        end_one(world)
        assert states(world).count("running") <= 2
    assert states(world) == ["succeeded"] * 5
    assert not any("detail" in run for n in range(5) for run in world.run_items("alice", f"job-{n:02}"))
    called = [context["job_id"] for _, context in world.target.calls]
    assert called == [*began, *(name.split(":")[0] for name in order)]
    assert holders(world) == {}
    world.run_until("2026-11-21T06:00:00Z", ticks=True)
    assert (states(world), len(world.sqs)) == (["succeeded"] * 5, 0)


def test_a_run_that_may_not_wait_is_skipped(world: World) -> None:
    create(world, 4, when_full="skip")
    world.run_until(DUE)
    assert sorted(states(world)) == ["running"] * 2 + ["skipped(concurrency)"] * 2
    run = next(
        run for n in range(4) for run in world.run_items("alice", f"job-{n:02}") if run["status"] == "skipped"
    )
    assert "2 runs of the concurrency key crm are going" in run["detail"]


def test_a_wait_has_an_end_and_says_how_long_it_was(world: World) -> None:
    create(world, 3, max_wait_s=300)
    world.run_until("2026-11-21T03:19:00Z")
    assert sorted(states(world)) == ["queued", "running", "running"]
    world.run_until("2026-11-21T03:22:00Z")
    assert sorted(states(world)) == ["running", "running", "skipped(concurrency)"]
    (skipped,) = [
        run for n in range(3) for run in world.run_items("alice", f"job-{n:02}") if run["status"] == "skipped"
    ]
    assert "it waited 30" in skipped["detail"]


def test_a_wait_that_the_tenant_asked_for_is_no_lateness_of_ours(world: World) -> None:
    create(world, 2, limit=1)
    world.run_until(DUE)
    world.clock.move_to(at(DUE) + 20.95)
    end_one(world)
    runs = [Run.from_item(item) for name in ("job-00", "job-01") for item in world.run_items("alice", name)]
    first, second = sorted(runs, key=lambda run: run.started_at)
    assert second.started_at == pytest.approx(at(DUE) + 21, abs=0.1)
    assert run_view(second, world.clock.now())["waited_s"] == pytest.approx(21, abs=0.1)
    assert "waited_s" not in run_view(first, world.clock.now())
    assert max(run.lateness_s or 0.0 for run in runs) < 0.1
    level = service_level(world.reports, within_s=0.5)
    assert (level.good, level.total) == (2, 2)


def test_tenants_and_keys_share_nothing(world: World) -> None:
    create(world, 3)
    create(world, 3, tenant="bob")
    world.registry.create(
        "alice", "other", job(at=DUE, completion="callback", concurrency={"key": "erp", "limit": 1})
    )
    world.run_until(DUE)
    assert states(world).count("running") == states(world, "bob").count("running") == 2
    assert world.statuses("alice", "other") == ["running"]


def test_each_job_begins_by_its_own_limit(world: World) -> None:
    create(world, 2)
    world.registry.create(
        "alice", "wide", job(at=DUE, completion="callback", concurrency={"key": "crm", "limit": 3})
    )
    world.registry.create(
        "alice", "z-narrow", job(at=DUE, concurrency={"key": "crm", "limit": 1, "when_full": "skip"})
    )
    world.run_until(DUE)
    assert world.statuses("alice", "z-narrow") == ["skipped(concurrency)"]
    assert len(holders(world)) <= 3


def first_in_line(world: World) -> str:
    """The job whose run has waited longest for a permit of the key."""
    waiting = (world.table("runs").get(keys.key_permits("alice", "crm")) or {}).get("waiting", {})
    first: str = min(waiting, key=lambda name: (waiting[name]["since"], name))
    return first.partition(":")[0]


def test_a_run_that_waits_for_the_end_of_a_pause_stands_in_nobodys_way(world: World) -> None:
    create(world, 3, limit=1)
    world.run_until(DUE)
    paused = first_in_line(world)
    world.store.pause("alice", paused, "a rest")
    end_one(world)
    assert sorted(states(world)) == ["queued", "running", "succeeded"]
    assert world.run_items("alice", paused)[0]["detail"] == "the job is paused: a rest"
    end_one(world)
    assert sorted(states(world)) == ["queued", "succeeded", "succeeded"]
    world.store.resume("alice", paused)
    world.run_until("2026-11-21T03:16:00Z")
    assert world.statuses("alice", paused) == ["running"]


def test_a_retry_that_waits_for_the_end_of_a_pause_stands_in_nobodys_way(world: World) -> None:
    create(world, 2, limit=1)
    world.run_until(DUE)
    failing = world.target.calls[0][1]["job_id"]
    end_one(world, Outcome(ok=False, error_type="Boom"))
    world.run_until("2026-11-21T03:17:00Z")
    assert (sorted(states(world)), first_in_line(world)) == (["retrying", "running"], failing)
    world.store.pause("alice", failing)
    end_one(world)
    world.registry.create(
        "alice", "job-09", job(at="2026-11-21T03:18:00Z", concurrency={"key": "crm", "limit": 1})
    )
    world.run_until("2026-11-21T03:18:00Z")
    assert world.statuses("alice", "job-09") == ["succeeded"]
    world.store.resume("alice", failing)
    world.run_until("2026-11-21T03:20:00Z")
    assert world.statuses("alice", failing) == ["running"]


def test_a_run_that_no_longer_needs_a_key_is_woken_once(world: World) -> None:
    """Each message of a run that waits for the end of a pause is followed by another one."""
    create(world, 2, limit=1)
    world.run_until(DUE)
    waiting = first_in_line(world)
    definition = job(at=DUE, concurrency={"key": "erp", "limit": 1})
    world.registry.put("alice", waiting, definition)
    world.store.pause("alice", waiting)
    world.run_until("2026-11-21T04:15:00Z", ticks=True)
    sent = len(world.sqs.bodies)
    world.run_until("2026-11-21T05:15:00Z", ticks=True)
    assert world.statuses("alice", waiting) == ["queued"]
    assert len([body for body in world.sqs.bodies[sent:] if waiting in body]) in (4, 5), "one each 15 minutes"


def test_an_attempt_that_waits_for_its_retry_holds_no_slot(world: World) -> None:
    create(world, 3)
    world.run_until(DUE)
    end_one(world, Outcome(ok=False, error_type="Boom"))
    assert sorted(states(world)) == ["retrying", "running", "running"]


def test_the_slots_of_dead_executors_come_back(world: World) -> None:
    """Their leases end with those of their attempts, and a minute later; within ten minutes a chore finds that."""
    create(world, 1, limit=1)
    dead = {"until": at(DUE) + 40, "attempt": 1, "doing": "call"}
    world.table("runs").put({**keys.key_permits("alice", "crm"), "holders": {"gone:run": dead}})
    world.run_until("2026-11-21T03:15:30Z")
    assert states(world) == ["queued"]
    world.run_until("2026-11-21T03:18:30Z", ticks=True)
    assert states(world) == ["running"]


def test_a_run_that_no_longer_waits_stands_in_nobodys_way(world: World) -> None:
    create(world, 4)
    world.run_until(DUE)
    waiting = [f"job-{n:02}" for n in range(4) if world.statuses("alice", f"job-{n:02}") == ["queued"]]
    run_name = world.run_items("alice", waiting[0])[0]["sk"]
    world.manual.cancel("alice", f"alice:{waiting[0]}:{run_name}", "")
    end_one(world)
    assert world.statuses("alice", waiting[1]) == ["running"]


def test_the_item_is_bounded_and_all_that_wait_have_their_turn(world: World) -> None:
    create(world, MAX_PLACES + 10, max_wait_s=86_400)
    world.run_until("2026-11-21T03:16:00Z")
    stored = world.table("runs").get(keys.key_permits("alice", "crm"))
    assert stored and len(stored["waiting"]) == MAX_PLACES
    for _ in range(MAX_PLACES + 10):
        end_one(world)
        world.clock.sleep(2 * LOOK_AFTER_S)
        world.deliver()
        assert states(world).count("running") <= 2
        if "running" not in states(world):
            break
    assert states(world) == ["succeeded"] * (MAX_PLACES + 10)


def test_jobs_without_a_key_make_no_request_for_it(world: World) -> None:
    world.registry.create("alice", "plain", job(at=DUE))
    world.run_until(DUE)
    assert world.statuses("alice", "plain") == ["succeeded"]
    assert world.table("runs").get(keys.key_permits("alice", "crm")) is None
    assert "concurrency_key" not in world.run_items("alice", "plain")[0]


@pytest.mark.parametrize(
    ("concurrency", "fields", "refused"),
    [
        ({"key": "crm"}, {}, "concurrency.limit"),
        ({"key": "crm", "limit": 0}, {}, "concurrency.limit"),
        ({"key": "crm", "limit": 101}, {}, "concurrency.limit"),
        ({"key": "a b", "limit": 1}, {}, "concurrency.key"),
        ({"key": "x" * 65, "limit": 1}, {}, "concurrency.key"),
        ({"key": "crm", "limit": 1, "max_wait_s": 86_401}, {}, "concurrency.max_wait_s"),
        ({"key": "crm", "limit": 1, "when_full": "cancel"}, {}, "concurrency.when_full"),
        ({"key": "crm", "limit": 1}, {"invocation": "Event"}, "concurrency"),
        ({"key": "x" * 64, "limit": 100, "max_wait_s": 86_400}, {}, ""),
        ({"key": "crm", "limit": 1}, {"invocation": "Event", "completion": "callback"}, ""),
    ],
)
def test_what_a_job_may_ask_for(
    world: World, concurrency: dict[str, Any], fields: dict[str, Any], refused: str
) -> None:
    definition = job(at=DUE, concurrency=concurrency, **fields)
    if not refused:
        world.registry.create("alice", "job", definition)
        return
    with pytest.raises(InvalidInput) as error:
        world.registry.create("alice", "job", definition)
    assert error.value.field == refused


def test_a_key_names_who_has_its_permits_and_who_waits_the_longest_first(world: World) -> None:
    create(world, 4)
    world.run_until(DUE)
    shown = Holders(world.table("runs"), world.queue, world.clock)
    state, records = shown.shown("alice", "crm")
    began = {context["job_id"] for _, context in world.target.calls}
    assert {name.partition(":")[0] for name in state.holders} == began
    assert all(records[name].started_at == pytest.approx(at(DUE), abs=1) for name in state.holders)
    waiting = state.in_line()
    assert len(waiting) == 2
    assert shown.shown("bob", "crm") == (State({}, {}), {})
    # A holder whose permit nobody has freed yet, and whose record has ended, has none.
    ended = sorted(state.holders)[0]
    record = records[ended]
    world.table("runs").put(
        {**record.to_item(), "status": "succeeded", "finished_at": int(world.clock.now())}
    )
    assert ended not in shown.shown("alice", "crm")[0].holders
