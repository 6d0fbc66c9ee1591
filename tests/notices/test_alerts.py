"""Runs that take too long or too little, and jobs without a success: what subscribers hear of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from msgspec import structs

from common.errors import InvalidInput
from common.jobs.job import Job
from common.jobs.spec import Alert
from common.notices.grouping import Digest, may_report
from common.notices.message import body, context_of, described
from common.notices.subscription import (
    FAILED,
    NO_SUCCESS,
    OVERDUE,
    TOO_LONG,
    TOO_SHORT,
    Notice,
    Problem,
    Subscription,
    SubscriptionState,
)
from common.notices.subscription import KINDS as SUBSCRIPTION_KINDS
from common.runs.outcome import Outcome
from common.runs.run import Run
from common.storage import keys
from common.storage.wire import item_bytes, to_wire
from common.timing.instants import DAY_S, compact_time, rfc3339
from minute8.notifier import problem_reader
from minute8.notifier.problem_reader import alert_problems, read_from
from tests.notices.conftest import HOOK, Stage, make_stage
from tests.worlds import Killed, World, at, job, open_world

LATE_RUN_S = 3_600
MAX_ITEM_BYTES = 409_600
MAX_REPORTED = 200
MAX_WAITING = 100

NOW = at("2026-11-21T06:00:00Z")
KINDS = ["too_long", "too_short", "no_success", "recoveries"]


def stored_job(alert: Alert) -> Job:
    with open_world("2026-11-21T00:00:00Z") as world:
        return world.registry.put("alice", "j", job(cron="0 * * * *", alert=alert.thresholds))


def run(started: float, took: float | None = None, status: str = "succeeded", **more: Any) -> Run:
    """A run: it started and ended so many seconds before NOW, as health reads it."""
    ended = {} if took is None else {"finished_at": NOW - started + took, "duration_s": took}
    item = {
        "tenant": "alice",
        "job_id": "j",
        "sk": "20261121T050000Z",
        "trigger": "schedule",
        "schedule_revision": 1,
        "due_at": int(NOW - started),
        "fire_at": int(NOW - started),
        "status": status,
        "started_at": NOW - started,
        "first_started_at": NOW - started,
        **ended,
    }
    return Run.from_item({**item, **more})


@pytest.mark.parametrize(
    ("alert", "runs", "expected"),
    [
        (Alert(longer_than_s=60), [run(100, 60)], []),
        (Alert(longer_than_s=60), [run(100, 60.001)], [(TOO_LONG, NOW - 40, 60.001)]),
        (Alert(longer_than_s=60), [run(100, 61, "failed")], [(TOO_LONG, NOW - 40, 61)]),
        (Alert(longer_than_s=60), [run(60, None, "running")], []),
        (Alert(longer_than_s=60), [run(61, None, "running")], [(TOO_LONG, NOW - 1, 61)]),
        # Waiting for the next attempt, 70 s after the first one: its last call took one second.
        (Alert(longer_than_s=60), [run(70, 1, "retrying")], [(TOO_LONG, NOW - 10, 70)]),
        # It was too long before the look before.
        (Alert(longer_than_s=60), [run(701, None, "running")], []),
        (Alert(longer_than_s=60), [run(660, None, "running")], [(TOO_LONG, NOW - 600, 660)]),
        (Alert(longer_than_s=60), [run(100, 99, "dispatched")], []),
        (Alert(longer_than_s=60), [run(0, 0, "skipped", started_at=0, first_started_at=0)], []),
        (Alert(longer_than_s=60), [run(0, None, "queued", started_at=0, first_started_at=0)], []),
        (Alert(shorter_than_s=5), [run(100, 5)], []),
        (Alert(shorter_than_s=5), [run(100, 4.999)], [(TOO_SHORT, NOW - 95.001, 4.999)]),
        (Alert(shorter_than_s=5), [run(100, 1, "failed")], []),
        (Alert(shorter_than_s=5), [run(100, None, "running")], []),
        # With retries the run is long, and the call that succeeded is short.
        (
            Alert(longer_than_s=60, shorter_than_s=5),
            [run(90, 80, duration_s=1.0)],
            [(TOO_LONG, NOW - 30, 80), (TOO_SHORT, NOW - 10, 1.0)],
        ),
        (Alert(no_success_for_s=3_600), [run(3_610, 10)], []),
        (Alert(no_success_for_s=3_600), [run(3_610, 9.5)], [(NO_SUCCESS, NOW - 0.5, None)]),
        (Alert(no_success_for_s=3_600), [run(30, 1, "failed"), run(7_200, 0)], [(NO_SUCCESS, NOW - 3_600, None)]),
        (Alert(no_success_for_s=3_600), [run(30, 1), run(7_200, 0)], []),
        # Never: since the job is active, 5:59:59 ago.
        (Alert(no_success_for_s=6 * 3_600 - 1), [run(30, 1, "failed")], []),
        (Alert(no_success_for_s=6 * 3_600 - 2), [], [(NO_SUCCESS, NOW - 1, None)]),
        # The record of a success may have expired.
        (Alert(no_success_for_s=DAY_S + 1), [], []),
    ],
)  # fmt: skip
def test_what_an_alert_says_at_its_bounds(
    alert: Alert, runs: list[dict[str, Any]], expected: list[tuple[str, float, float | None]]
) -> None:
    problems = alert_problems(stored_job(alert), alert, runs, NOW - 600, NOW, DAY_S)
    assert [(problem.kind, problem.last_at, problem.took_s) for problem in problems] == [
        (kind, pytest.approx(last_at, abs=1e-6), took_s and pytest.approx(took_s))
        for kind, last_at, took_s in expected
    ]


def test_runs_are_read_as_far_back_as_a_long_one_may_have_begun() -> None:
    assert read_from(Alert(longer_than_s=7_200), NOW) == NOW - 7_200 - LATE_RUN_S
    assert read_from(Alert(shorter_than_s=5), NOW) == NOW - LATE_RUN_S
    assert read_from(Alert(no_success_for_s=60), NOW) == float("inf")


@pytest.mark.parametrize(
    ("fields", "field", "accepted"),
    [
        ({"alert": {"longer_than_s": 0}}, "alert.longer_than_s", "1"),
        ({"alert": {"longer_than_s": 14 * DAY_S + 1}}, "alert.longer_than_s", str(14 * DAY_S)),
        ({"alert": {"longer_than_s": "5m"}}, "alert.longer_than_s", ""),
        ({"alert": {"longer_than_s": 1.5}}, "alert.longer_than_s", ""),
        ({"alert": {"shorter_than_s": 0}}, "alert.shorter_than_s", "1"),
        ({"alert": {"shorter_than_s": DAY_S + 1}}, "alert.shorter_than_s", str(DAY_S)),
        ({"alert": {"shorter_than_s": 61, "longer_than_s": 60}}, "alert.shorter_than_s", "1 to 60"),
        ({"alert": {"no_success_for_s": 59}}, "alert.no_success_for_s", "60"),
        ({"alert": {"no_success_for_s": 28 * DAY_S + 1}}, "alert.no_success_for_s", str(28 * DAY_S)),
        ({"alert": {"late": 5}}, "alert.late", ""),
        ({"alert": {"longer_than_s": 5}, "invocation": "Event"}, "alert", "RequestResponse"),
    ],
)  # fmt: skip
def test_a_wrong_alert_is_refused(world: World, fields: dict[str, Any], field: str, accepted: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        world.registry.put("alice", "j", job(cron="0 * * * *", **fields))
    assert refused.value.field == field
    assert accepted in f"{refused.value} {refused.value.accepted}"


def test_the_largest_and_smallest_thresholds_are_stored_and_none_is_no_alert(world: World) -> None:
    for alert in (
        {"longer_than_s": 14 * DAY_S, "shorter_than_s": DAY_S, "no_success_for_s": 28 * DAY_S},
        {"longer_than_s": 1, "shorter_than_s": 1, "no_success_for_s": 60},
    ):
        world.registry.put("alice", "j", job(cron="0 * * * *", alert=alert))
        assert world.store.get("alice", "j").spec.alert == Alert(**alert)
    for nothing in ({}, {"longer_than_s": None}, None):
        world.registry.put("alice", "j", job(cron="0 * * * *", alert=nothing, invocation="Event"))
        assert world.store.get("alice", "j").spec.alert is None


def test_a_time_without_success_that_outlives_the_runs_is_refused(world: World) -> None:
    world.table("tenants").put(
        {**keys.tenant("alice"), "state": "active", "allowed_targets": ["*"], "retention_days": 1}
    )
    world.registry.put("alice", "j", job(cron="0 * * * *", alert={"no_success_for_s": DAY_S}))
    with pytest.raises(InvalidInput, match="keeps this tenant's runs"):
        world.registry.put("alice", "j", job(cron="0 * * * *", alert={"no_success_for_s": DAY_S + 1}))


def slow(stage: Stage, seconds: float) -> Callable[[Any], Outcome]:
    """A target that takes this long."""

    def answer(event: Any) -> Outcome:
        stage.world.clock.sleep(seconds)
        return Outcome(ok=True)

    return answer


def rounds_until(stage: Stage, end: str) -> None:
    """A round each minute, with the world's runs between them."""
    world = stage.world
    while world.clock.now() < at(end):
        next_at = min(at(end), int(world.clock.now()) // 60 * 60 + 60)
        world.run_until(rfc3339(next_at), ticks=True)
        stage.round()


def texts(stage: Stage) -> list[str]:
    return [text.partition(": ")[2] for text in stage.addresses.texts]


def test_each_run_that_takes_too_long_is_reported_once(stage: Stage) -> None:
    stage.subscribe(kinds=KINDS, group_s=0)
    stage.world.registry.put(
        "alice", "slow", job(cron="15,45 * * * *", alert={"longer_than_s": 40}, owner="team")
    )
    stage.world.registry.put("alice", "unwatched", job(cron="15 * * * *"))
    stage.world.target.answer = slow(stage, 50)
    rounds_until(stage, "2026-11-21T04:40:00Z")
    assert texts(stage) == ["1 job took too long (slow)."] * 3
    (*_, first), *_ = stage.addresses.sent
    assert first["too_long"] == {
        "jobs": 1,
        "runs": 1,
        "first": [
            {
                "job_id": "slow",
                "runs": 1,
                "first_at": "2026-11-21T03:15:40Z",
                "last_at": "2026-11-21T03:15:40Z",
                "execution_id": "alice:slow:20261121T031500Z",
                "owner": "team",
                "took_s": 50.0,
                "limit_s": 40,
            }
        ],
    }


def test_a_run_that_is_still_going_is_reported_and_not_again_when_it_ends(stage: Stage) -> None:
    world = stage.world
    stage.subscribe(kinds=KINDS)
    world.registry.put("alice", "slow", job(cron="15 * * * *", alert={"longer_than_s": 100}, timeout_s=290))

    def answer(event: Any) -> Outcome:
        for _ in range(4):
            world.clock.sleep(60)
            stage.round()
        return Outcome(ok=True)

    world.target.answer = answer
    world.run_until("2026-11-21T03:15:30Z", ticks=True)
    rounds_until(stage, "2026-11-21T04:05:00Z")
    assert texts(stage) == ["1 job took too long (slow)."]


def test_runs_of_a_night_are_one_message(stage: Stage) -> None:
    stage.subscribe(kinds=KINDS, group_s=3_600)
    stage.world.registry.put("alice", "quick", job(cron="* * * * *", alert={"shorter_than_s": 5}))
    stage.world.target.answer = slow(stage, 1)
    rounds_until(stage, "2026-11-21T04:40:00Z")
    counts = [body["too_short"]["first"][0]["runs"] for *_, body in stage.addresses.sent]
    assert texts(stage) == ["1 job took too little time (quick)."] * len(counts)
    state = stage.state()
    ended = [
        item for item in stage.world.run_items("alice", "quick") if item["finished_at"] <= state.searched_at
    ]
    waiting = sum(problem.runs for problem in state.waiting.values())
    assert (len(counts), sum(counts) + waiting) == (2, len(ended)), "each run is counted once"


def test_a_job_without_success_is_reported_once_and_then_its_recovery(stage: Stage) -> None:
    world = stage.world
    stage.subscribe(kinds=KINDS)
    world.registry.put("alice", "sync", job(cron="*/5 * * * *", alert={"no_success_for_s": 1_200}))
    world.registry.put("alice", "off", job(cron="*/5 * * * *", alert={"no_success_for_s": 60}))
    world.store.pause("alice", "off")
    rounds_until(stage, "2026-11-21T03:31:00Z")
    assert texts(stage) == []
    world.target.answer = lambda event: Outcome(ok=False, permanent=True, error_type="Boom", error="no")
    rounds_until(stage, "2026-11-21T04:41:00Z")
    assert texts(stage) == ["1 job without a success (sync)."]
    assert stage.addresses.sent[0][3]["no_success"]["first"] == [
        {"job_id": "sync", "since_at": "2026-11-21T03:30:00Z", "limit_s": 1_200}
    ]
    world.target.answer = slow(stage, 1)
    rounds_until(stage, "2026-11-21T05:31:00Z")
    assert texts(stage)[1:] == ["1 job recovered (sync)."]


def test_a_subscription_hears_only_of_its_kinds_and_of_what_happens_from_then_on(stage: Stage) -> None:
    world = stage.world
    world.registry.put("alice", "quick", job(at="2026-11-21T03:15:00Z", alert={"shorter_than_s": 5}))
    world.run_until("2026-11-21T03:16:00Z", ticks=True)
    stage.subscribe(kinds=KINDS)
    stage.subscribe(name="others", kinds=["failures", "recoveries", "overdue"])
    rounds_until(stage, "2026-11-21T03:30:00Z")
    assert stage.addresses.sent == []


def test_jobs_without_an_alert_cost_no_read_more(stage: Stage) -> None:
    world = stage.world
    stage.subscribe(kinds=["overdue"])
    stage.subscribe("bob", kinds=KINDS)
    for tenant in ("alice", "bob"):
        world.registry.put(tenant, "j", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:45:00Z", ticks=True)
    requests: dict[str, list[str]] = {}
    for tenant in ("alice", "bob"):
        world.dynamodb.before = requests.setdefault(tenant, []).append
        stage.notifier.reader.search(
            tenant, "", world.clock.now(), problem_reader.AlertSpan(0.0, DAY_S) if tenant == "bob" else None
        )
    world.dynamodb.before = lambda name: None
    assert len(requests["alice"]) == len(requests["bob"])


def past_runs(world: World, tenant: str, job_id: str, count: int, status: str = "failed") -> None:
    """A failed run each second before now."""
    runs, now = world.table("runs"), int(world.clock.now())
    for nth in range(count):
        fire_at = now - nth
        name = f"{compact_time(fire_at)}"
        runs.put(
            {
                **keys.run(tenant, job_id, name),
                "fire_at": fire_at,
                "tenant": tenant,
                "job_id": job_id,
                "status": status,
                "schedule_revision": 1,
                "due_at": fire_at,
                "trigger": "schedule",
                "first_started_at": fire_at,
                "started_at": fire_at,
                "finished_at": fire_at + 0.5,
                "duration_s": 0.5,
            }
        )


def test_a_hostile_tenant_s_runs_are_read_to_the_bounds(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs that never succeed would have all their runs read in each search."""
    monkeypatch.setattr(problem_reader, "MAX_ALERT_RUNS", 150)
    monkeypatch.setattr(problem_reader, "MAX_OLDER_RUNS", 200)
    world = stage.world
    stage.subscribe(kinds=KINDS, group_s=0)
    for nth in range(4):
        world.registry.put(
            "alice", f"j{nth}", job(cron="0 0 1 1 *", alert={"no_success_for_s": 60, "longer_than_s": 60})
        )
    world.clock.sleep(3_600)
    world.tick()
    for nth in range(4):
        past_runs(world, "alice", f"j{nth}", 300)
    now = world.clock.now()
    search = stage.notifier.reader.search("alice", "", now, problem_reader.AlertSpan(now - 600, DAY_S))
    assert ([problem.job_id for problem, _ in search.problems], search.after_job) == (["j0", "j1"], "j1")
    assert not search.complete, "300 runs since the look before, of which 150 were read"
    search = stage.notifier.reader.search(
        "alice", search.after_job, now, problem_reader.AlertSpan(now - 600, DAY_S)
    )
    assert ([problem.job_id for problem, _ in search.problems], search.after_job) == (["j2", "j3"], "j3")
    stage.round()
    world.clock.sleep(60)
    stage.round()
    assert [body["no_success"]["jobs"] for *_, body in stage.addresses.sent] == [2, 2]
    assert [body["complete"] for *_, body in stage.addresses.sent] == [False, False]


def test_the_largest_message_of_all_kinds_fits_into_its_item_and_into_sns() -> None:
    """Every text as long as it may be, of the characters that take most bytes."""

    def problem(kind: str, nth: int) -> Problem:
        longest = Problem(kind, f"{nth:03}" + "j" * 125, 1e9 + 0.125, 1e9 + 0.125, "r" * 60, 10**6)
        times = {"reported_at": 1e9 + 0.125, "recovered_at": 1e9 + 0.125}
        return structs.replace(longest, **times, took_s=1e6 + 0.125, limit_s=10**7)

    digest = Digest(
        tuple(problem(kind, nth) for kind in (FAILED, OVERDUE, *KINDS[:3]) for nth in range(20)),
        tuple(problem(FAILED, 50 + nth) for nth in range(20)),
        False,
    )
    shown = {
        reported.key: context_of("e" * 300, "", "", "\0" * 200, "https://" + "r" * 492)
        for reported in described(digest)
    }
    failed = {
        reported.key: context_of("e" * 300, "\1" * 100, "\1" * 400, "\0" * 200, "https://" + "r" * 492)
        for reported in digest.problems[:10]
    }
    state = SubscriptionState(looked_at=1e9 + 0.125, searched_since=1e9 + 0.125)
    fields = {"tag": "x" * 200, "name_prefix": "x" * 200, "job_id": "j" * 128}
    subscription = Subscription(
        "t" * 64, "n" * 64, {**HOOK, "url": "u" * 2_048}, SUBSCRIPTION_KINDS, 1, 1, state, **fields
    )
    text = body(subscription, digest, {**shown, **failed}, "ntc_" + "0" * 32, 1e9)
    assert len(text) < 250 * 1024
    assert [len(json.loads(text)[kind]["first"]) for kind in ("failed", *KINDS[:3])] == [10, 4, 4, 4]
    state.message = Notice("ntc_" + "0" * 32, text, 1e9)
    for problems, most in (
        (state.waiting, MAX_WAITING),
        (state.reported, MAX_REPORTED),
        (state.over, MAX_REPORTED),
    ):
        problems |= {str(nth): problem(NO_SUCCESS, nth) for nth in range(most)}
    assert item_bytes(to_wire(subscription.to_item())) < MAX_ITEM_BYTES


@pytest.mark.parametrize("nth", range(1, 14))
def test_a_death_at_any_request_loses_no_alert_and_repeats_only_the_same_message(nth: int) -> None:
    with open_world() as world, ThreadPoolExecutor(1) as pool, ThreadPoolExecutor(1) as reads:
        stage = make_stage(world, pool, reads)
        stage.subscribe(kinds=KINDS)
        world.registry.put("alice", "quick", job(cron="13 * * * *", alert={"shorter_than_s": 5}))
        world.run_until("2026-11-21T03:14:00Z", ticks=True)
        requests_to_go = [nth]

        def dies(name: str) -> None:
            requests_to_go[0] -= 1
            if requests_to_go[0] == 0:
                raise Killed

        world.dynamodb.before = dies
        with suppress(Killed):
            stage.round()
        world.dynamodb.before = lambda name: None
        rounds_until(stage, "2026-11-21T03:40:00Z")
        assert len({message_id for _, _, message_id, _ in stage.addresses.sent}) == 1
        assert [body["too_short"]["runs"] for *_, body in stage.addresses.sent][:1] == [1]


def test_a_run_that_took_too_long_delays_no_recovery() -> None:
    """It never recovers, so the recovery of the last other problem does not wait for the end of `group_s`."""
    over = Problem(NO_SUCCESS, "j", 1.0, 1.0, "r", reported_at=1.0, recovered_at=2.0)
    once = Problem(TOO_LONG, "j", 1.0, 1.0, "r", reported_at=1.0)
    state = SubscriptionState(looked_at=3.0, quiet_until=1e9)
    state.reported, state.over = {over.key: over, once.key: once}, {over.key: over}
    assert may_report(state, 0, 3.0)
