"""Faults and hostile tenants: dripping and dead addresses, floods, long texts, deaths at any request."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.structs import replace

from common.errors import Conflict, InvalidInput
from common.notices import grouping
from common.notices.subscription import FAILED, Notice, Problem, Subscription
from common.runs.outcome import Outcome
from common.storage import keys
from common.storage.wire import item_bytes, to_wire
from common.tenants.blocks import Blocks
from common.timing.schedule import AtTiming, Schedule
from minute8.notifier import problem_reader
from scripts.parameters import DEFAULTS
from tests.notices.conftest import HOOK, Stage, make_stage
from tests.notices.test_rounds import failing
from tests.worlds import Killed, World, job, plain_job

MAX_ITEM_BYTES = 409_600
MAX_SUBSCRIPTIONS = 20
MAX_TENANT_SEND_S = 30

ROOT = Path(__file__).resolve().parents[2]


def failed_runs(world: World, tenant: str, job_id: str, count: int, error: str = "boom") -> None:
    """Records of failed runs that ended now, one each millisecond."""
    runs, now = world.table("runs"), world.clock.now()
    for nth in range(count):
        runs.put(
            {
                **keys.run(tenant, job_id, f"20261121T0312{nth:05d}Z"),
                "tenant": tenant,
                "job_id": job_id,
                "fire_at": int(now),
                "due_at": int(now),
                "schedule_revision": 1,
                "trigger": "schedule",
                "status": "failed",
                "attempts": [
                    {
                        "attempt": 1,
                        "started_at": now,
                        "finished_at": now,
                        "outcome": "failed",
                        "error_type": "E",
                        "error": error,
                    }
                ],
                "failed_tenant": tenant,
                "failed_at": now - nth / 1_000,
            }
        )


def test_a_flood_is_read_to_its_bound_and_the_message_says_so(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(problem_reader, "MAX_FAILURES", 10)
    stage.subscribe()
    stage.subscribe("bob")
    stage.world.clock.sleep(1)
    failed_runs(stage.world, "alice", "flood", 11)
    failed_runs(stage.world, "bob", "one", 1)
    stage.round()
    bodies = {tenant: body for tenant, _, _, body in stage.addresses.sent}
    assert (bodies["alice"]["complete"], bodies["alice"]["failed"]["runs"]) == (False, 10)
    assert bodies["alice"]["text"].endswith("; more has happened than is counted here.")
    assert bodies["bob"]["complete"] is True


def test_a_search_for_overdue_jobs_reads_a_bounded_number_of_jobs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A tenant with a million jobs that are not active took the whole round from all tenants."""
    monkeypatch.setattr(problem_reader, "MAX_READ_JOBS", 5)
    world = stage.world
    stage.subscribe(kinds=["overdue"], delay_s=0)
    for nth in range(12):
        world.registry.put("alice", f"gone-{nth:02}", job(cron="15 * * * *"))
        world.store.pause("alice", f"gone-{nth:02}")
    world.registry.put("alice", "late", job(cron="15 * * * *"))
    world.scheduler.tick()
    world.clock.move_to(world.clock.now() + 300)
    searched = []
    for _ in range(3):
        stage.round()
        searched.append((stage.state().searched_after, len(stage.addresses.texts)))
        world.clock.sleep(60)
    assert searched == [("gone-04", 0), ("gone-09", 0), ("", 1)]


def test_the_largest_state_fits_into_an_item_and_its_message_into_sns(stage: Stage) -> None:
    """Every text as long as it may be, of the characters that take most bytes."""
    world = stage.world
    stage.subscribe(group_s=0, tag="x" * 64, name_prefix="x" * 200)
    for nth in range(grouping.MAX_WAITING):
        job_id = f"{nth:03d}" + "j" * 125
        stored = plain_job(
            "alice",
            job_id,
            Schedule.of(AtTiming(0)),
            name="x" * 200,
            tags=["x" * 64],
            owner="\x00" * 200,
            runbook="https://" + "r" * 492,
        )
        world.table("jobs").put({**keys.job("alice", job_id), **stored.to_item(), "group": "at|0"})
    world.clock.sleep(1)
    for nth in range(grouping.MAX_WAITING):
        failed_runs(world, "alice", f"{nth:03d}" + "j" * 125, 1, "\x01" * 400)
    stage.addresses.answer = lambda subscription: Outcome(ok=False, error_type="E" * 100, error="\x02" * 400)
    stage.round()
    subscription = stage.store.stored.get("alice", "on-call")
    state = subscription.state
    assert state.message and len(state.message.body.encode()) < 256 * 1024
    assert len(json.loads(state.message.body)["failed"]["first"]) == 10
    problem = Problem(
        FAILED, "j" * 128, 1e9, 1e9, "r" * 60, 10**6, by_hand=True, reported_at=1e9, recovered_at=1e9
    )
    bounds = ((state.waiting, grouping.MAX_WAITING), (state.reported, grouping.MAX_REPORTED))
    for problems, max_problems in bounds:
        problems |= {str(nth): replace(problem, kind=f"{nth}") for nth in range(max_problems)}
    state.over = dict(state.reported)
    state.test = Notice("ntc_" + "0" * 32, "t" * 400, 1e9)
    assert item_bytes(to_wire(subscription.to_item())) < MAX_ITEM_BYTES


def test_rounds_for_a_hostile_tenant_stay_within_the_functions_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.notices.hostile_rounds"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    measured = json.loads(done.stdout.splitlines()[-1])
    assert measured["sent"] >= MAX_SUBSCRIPTIONS
    assert measured["peak_mb"] <= 0.8 * DEFAULTS["notifierMemoryMb"], measured


def test_an_address_that_fails_keeps_its_message_and_delays_nobody(stage: Stage) -> None:
    world = stage.world
    for tenant in ("alice", "bob"):
        stage.subscribe(tenant)
        world.registry.put(tenant, "bad", job(at="2026-11-21T03:15:00Z"))
    stage.addresses.answer = lambda to: Outcome(ok=to.tenant == "bob", error_type="TimedOut", error="5 s")
    world.target.answer = failing("bad")
    world.run_until("2026-11-21T03:15:05Z", ticks=True)
    assert stage.round() == {"sent": 1, "failed": 1}
    assert stage.state().last_sent.error == "TimedOut: 5 s"
    assert stage.round() == {}, "it waits for a minute"
    stage.addresses.answer = lambda subscription: Outcome(ok=True)
    world.clock.sleep(61)
    assert stage.round() == {"sent": 1}
    ids = [message_id for tenant, _, message_id, _ in stage.addresses.sent if tenant == "alice"]
    assert len(ids) == 2 and len(set(ids)) == 1
    assert stage.state().failing_since is None


def test_every_tenant_s_first_message_comes_before_any_second(world: World) -> None:
    with ThreadPoolExecutor(1) as pool, ThreadPoolExecutor(1) as reads:
        stage = make_stage(world, pool, reads)
        for tenant, count in (("a-hostile", 3), ("z-victim", 1)):
            for nth in range(count):
                stage.subscribe(tenant, f"s{nth}")
        stage.subscribe("b-failing", "s0")
        dead = stage.store.stored.get("b-failing", "s0")
        dead.state.message = Notice("ntc_dead", "{}", 0.0, tries=3)
        stage.store.stored.save(dead)
        world.clock.sleep(1)
        for tenant in ("a-hostile", "z-victim"):
            failed_runs(world, tenant, "bad", 1)
        stage.round()
        assert [tenant for tenant, *_ in stage.addresses.sent] == [
            *("a-hostile", "z-victim", "b-failing"),
            *("a-hostile", "a-hostile"),
        ]


def test_slow_addresses_use_up_their_own_tenants_seconds(world: World) -> None:
    """Eight tenants have 20 addresses each that take 5 s. Another tenant's message that failed once is tried again."""
    with ThreadPoolExecutor(1) as pool, ThreadPoolExecutor(1) as reads:
        stage = make_stage(world, pool, reads)
        hostile = [f"hostile-{n}" for n in range(8)]
        for tenant in hostile:
            for n in range(MAX_SUBSCRIPTIONS):
                stage.subscribe(tenant, f"slow-{n:02}")
        stage.subscribe("quiet", "on-call")
        failed_once = stage.store.stored.get("quiet", "on-call")
        failed_once.state.message = Notice("ntc_quiet", "{}", 0.0, tries=1)
        stage.store.stored.save(failed_once)
        world.clock.sleep(1)
        for tenant in hostile:
            failed_runs(world, tenant, "bad", 1)

        def slow(subscription: Subscription) -> Outcome:
            if subscription.tenant == "quiet":
                return Outcome(ok=True)
            world.clock.sleep(5 / 16)  # one of 16 threads
            return Outcome(ok=False, error_type="TimedOut", error="5 s")

        stage.addresses.answer = slow
        counts = stage.round()
        assert counts["sent"] == 1
        assert stage.state("quiet").message is None
        assert counts["failed"] + counts["left"] == 8 * MAX_SUBSCRIPTIONS


def test_a_tenant_has_a_bound_of_seconds_in_a_round(stage: Stage) -> None:
    world = stage.world
    for n in range(MAX_SUBSCRIPTIONS):
        stage.subscribe("hostile", f"slow-{n:02}")
    world.clock.sleep(1)
    failed_runs(world, "hostile", "bad", 1)

    def slow(subscription: Subscription) -> Outcome:
        world.clock.sleep(5)
        return Outcome(ok=False, error_type="TimedOut", error="5 s")

    stage.addresses.answer = slow
    now = world.clock.now()
    counts = stage.notifier.round(now + 250, now + 450)
    assert counts["failed"] <= MAX_TENANT_SEND_S / 5
    assert counts["left"] == MAX_SUBSCRIPTIONS - counts["failed"]
    world.clock.sleep(grouping.LEASE_S)
    stage.addresses.answer = lambda subscription: Outcome(ok=True)
    stage.round()
    tried = {name for _, name, *_ in stage.addresses.sent}
    assert len(tried) == MAX_SUBSCRIPTIONS, "the next rounds do the rest"


def test_a_later_round_does_the_work_that_a_round_has_no_time_for(stage: Stage) -> None:
    world = stage.world
    stage.subscribe()
    world.clock.sleep(1)
    failed_runs(world, "alice", "bad", 1)
    now = world.clock.now()
    assert stage.notifier.round(now, now) == {}
    assert stage.notifier.round(now + 1, now) == {"left": 1}
    assert stage.round() == {}, "another process may be at it"
    world.clock.sleep(grouping.LEASE_S)
    assert stage.round() == {"sent": 1}


@pytest.mark.parametrize("nth", range(1, 14))
def test_a_death_at_any_request_loses_nothing_and_repeats_with_the_same_id(world: World, nth: int) -> None:
    with ThreadPoolExecutor(1) as pool, ThreadPoolExecutor(1) as reads:
        stage = make_stage(world, pool, reads)
        stage.subscribe()
        world.clock.sleep(1)
        failed_runs(world, "alice", "bad", 1)
        requests_to_go = [nth]

        def dies(name: str) -> None:
            requests_to_go[0] -= 1
            if requests_to_go[0] == 0:
                raise Killed

        world.dynamodb.before = dies
        with suppress(Killed):
            stage.round()
        world.dynamodb.before = lambda name: None
        for _ in range(4):
            world.clock.sleep(grouping.LEASE_S)
            stage.round()
        assert stage.addresses.sent
        assert len({message_id for _, _, message_id, _ in stage.addresses.sent}) == 1
        assert stage.state().message is None


def test_two_rounds_at_once_send_one_message(stage: Stage) -> None:
    world = stage.world
    stage.subscribe()
    world.clock.sleep(1)
    failed_runs(world, "alice", "bad", 1)
    rounds = [threading.Thread(target=stage.round) for _ in range(4)]
    for thread in rounds:
        thread.start()
    for thread in rounds:
        thread.join()
    assert len(stage.addresses.sent) == 1


def test_a_change_during_a_try_is_kept_and_so_is_the_result(stage: Stage) -> None:
    world = stage.world
    stage.subscribe()
    world.clock.sleep(1)
    failed_runs(world, "alice", "bad", 1)

    def changed(subscription: Subscription) -> Outcome:
        stage.subscribe(delay_s=77, group_s=0)
        return Outcome(ok=True)

    stage.addresses.answer = changed
    stage.round()
    stored = stage.store.stored.get("alice", "on-call")
    assert (stored.delay_s, stored.state.message, stored.state.delivered_at) == (77, None, world.clock.now())


def test_an_address_that_is_no_longer_allowed_is_not_called(stage: Stage) -> None:
    world = stage.world
    stage.subscribe()
    tenant = world.table("tenants").get(keys.tenant("alice")) or {}
    world.table("tenants").put({**tenant, "allowed_targets": ["hooks.example.org"]})
    world.clock.sleep(20)
    failed_runs(world, "alice", "bad", 1)
    assert stage.round() == {"failed": 1}
    assert stage.addresses.sent == []
    assert stage.state().last_sent.error.startswith("NotAllowed: ")


def test_a_held_address_is_not_called_and_does_not_count_as_failing(stage: Stage) -> None:
    world = stage.world
    stage.subscribe()
    world.clock.sleep(1)
    failed_runs(world, "alice", "bad", 1)
    blocks = Blocks(world.table("tenants"), world.clock)
    blocks.block("hooks.example.com", "an outage", world.clock.now())
    assert stage.round() == {"blocked": 1}
    assert (stage.addresses.sent, stage.state().failing_since) == ([], None)
    blocks.release("hooks.example.com", world.clock.now())
    world.clock.sleep(grouping.LEASE_S)
    assert stage.round() == {"sent": 1}


@pytest.mark.parametrize(("state", "listed"), [("suspended", True), ("deleting", False)])
def test_a_tenant_that_is_not_active_gets_nothing(stage: Stage, state: str, listed: bool) -> None:
    world = stage.world
    stage.subscribe()
    world.clock.sleep(20)
    failed_runs(world, "alice", "bad", 1)
    tenant = world.table("tenants").get(keys.tenant("alice")) or {}
    world.table("tenants").put({**tenant, "state": state})
    assert stage.round() == {}
    assert bool(list(stage.store.stored.subscribers())) == listed


def test_a_tenant_has_so_many_subscriptions_at_most(stage: Stage) -> None:
    for nth in range(MAX_SUBSCRIPTIONS):
        stage.subscribe(name=f"s{nth}")
    with pytest.raises(Conflict, match="20 subscriptions"):
        stage.subscribe(name="one-more")
    stage.subscribe(name="s0", delay_s=5)


@pytest.mark.parametrize(
    ("fields", "refused_field"),
    [
        ({"target": {**HOOK, "url": "http://hooks.example.com/"}}, "target.url"),
        ({"target": {**HOOK, "url": "https://169.254.169.254/"}}, "target.url"),
        (
            {"target": {"kind": "lambda", "arn": "arn:aws:lambda:us-east-1:123456789012:function:f"}},
            "target.kind",
        ),
        ({"target": {"kind": "sns", "arn": "arn:aws:sqs:us-east-1:123456789012:q"}}, "target.arn"),
        ({"target": {"kind": "sns", "arn": "arn:aws:sns:us-east-1:123456789012:minute8-prod"}}, "target.arn"),
        ({"target": {**HOOK, "url": "https://hooks.example.com/secret://token"}}, "target.url"),
        ({"kinds": ["recoveries"]}, "kinds"),
        ({"kinds": []}, "kinds"),
        ({"kinds": ["all"]}, "kinds.0"),
        ({"kinds": ["recoveries", "recoveries"]}, "kinds"),
        ({"delay_s": -1}, "delay_s"),
        ({"delay_s": 86_401}, "delay_s"),
        ({"group_s": 86_401}, "group_s"),
        ({"tag": "x" * 201}, "tag"),
        ({"headers": {}}, "headers"),
        ({"name": "a#b"}, "name"),
    ],
)
def test_an_invalid_subscription_is_refused(
    stage: Stage, fields: dict[str, object], refused_field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        stage.subscribe(**fields)  # type: ignore[arg-type]
    assert refused.value.field == refused_field
    assert refused.value.accepted or refused.value.value
    assert stage.store.stored.of_tenant("alice") == []
