"""Throttled targets that say when to retry: which throttles use up an attempt, and how long each waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from math import inf
from typing import Any

import pytest

from common.errors import InvalidInput
from common.jobs.spec import Retry
from common.planning.execution import Execution
from common.runs.outcome import Outcome
from executor.pipeline import Message
from executor.retry import retry_at
from executor.throttled import interval_s, reserved
from tests.worlds import Killed, World, at, job

MAX_ATTEMPTS_KEPT = 110
MAX_THROTTLES_KEPT = 10

THROTTLED = Outcome(ok=False, throttled=True, error_type="TooManyRequestsException", error="slow down")
FAILED = Outcome(ok=False, error_type="Boom")
OK = Outcome(ok=True)
FIRE_AT = "2026-11-21T03:15:00Z"


def answers(*outcomes: Outcome) -> Callable[[Mapping[str, Any]], Outcome]:
    """These answers in order; the last one is repeated."""
    remaining = list(outcomes)
    return lambda event: remaining.pop(0) if len(remaining) > 1 else remaining[0]


def test_throttled_attempts_use_up_none_of_the_policys(world: World) -> None:
    world.target.answer = answers(*[THROTTLED] * 5, FAILED, THROTTLED, OK)
    world.registry.create("alice", "once", job(at=FIRE_AT, retry={"max_attempts": 2, "base_s": 1}))
    world.run_until("2026-11-21T04:15:00Z")
    (run,) = world.run_items("alice", "once")
    assert (run["status"], run["attempt"], run["throttles"]) == ("succeeded", 8, 6)
    assert [attempt.get("throttled", False) for attempt in run["attempts"]] == [True] * 5 + [
        False,
        True,
        False,
    ]


def test_attempts_are_used_up_as_ever_between_throttles(world: World) -> None:
    world.target.answer = answers(THROTTLED, FAILED, THROTTLED, FAILED, OK)
    world.registry.create("alice", "once", job(at=FIRE_AT, retry={"max_attempts": 2, "base_s": 1}))
    world.run_until("2026-11-21T04:15:00Z")
    assert world.statuses("alice", "once") == ["failed"]
    assert len(world.target.calls) == 4


def test_as_many_attempts_as_eventbridge_scheduler_makes_within_a_day(world: World) -> None:
    """The most that a policy may name: the first attempt and 185 retries. The record keeps the newest ones."""
    world.target.answer = answers(FAILED)
    retry = {"max_attempts": 186, "base_s": 1, "cap_s": 600, "max_age_s": 86_400}
    world.registry.create("alice", "once", job(at=FIRE_AT, retry=retry))
    world.run_until("2026-11-22T04:15:00Z", ticks=True)
    (run,) = world.run_items("alice", "once")
    assert (run["status"], run["attempt"], len(world.target.calls)) == ("failed", 186, 186)
    assert len(run["attempts"]) == MAX_ATTEMPTS_KEPT
    assert run["attempts"][-1]["attempt"] == 186
    with pytest.raises(InvalidInput, match="186"):
        world.registry.create("alice", "more", job(at=FIRE_AT, retry={**retry, "max_attempts": 187}))


@pytest.mark.parametrize(
    ("retry", "most"), [({}, 186), ({"base_s": 1, "factor": 1, "cap_s": 1, "max_age_s": 86_400}, 2_000)]
)
def test_throttled_for_a_day_a_lone_run_calls_a_bounded_number_of_times(
    world: World, retry: dict[str, Any], most: int
) -> None:
    """By default less often than EventBridge Scheduler; at most about once in 45 seconds."""
    world.target.answer = answers(THROTTLED)
    world.registry.create("alice", "once", job(at=FIRE_AT, retry=retry))
    world.run_until("2026-11-22T05:15:00Z", ticks=True)
    assert world.statuses("alice", "once") == ["failed"]
    assert 0.6 * most < len(world.target.calls) <= most


def test_throttled_for_ever_the_run_fails_at_its_age_and_its_record_stays_small(world: World) -> None:
    world.target.answer = answers(THROTTLED)
    retry = {"max_attempts": 1, "base_s": 1, "factor": 1, "cap_s": 1, "max_age_s": 3_600}
    world.registry.create("alice", "once", job(at=FIRE_AT, retry=retry))
    world.run_until("2026-11-21T05:15:00Z")
    (run,) = world.run_items("alice", "once")
    assert (run["status"], len(run["attempts"])) == ("failed", MAX_THROTTLES_KEPT)
    assert run["throttles"] == len(world.target.calls)
    assert 60 < len(world.target.calls) < 140, "half a minute to a minute apart, whatever the tenant's curve"
    assert world.target.calls[-1][0] <= at(FIRE_AT) + 3_600
    assert run["failed_tenant"] == "alice"


def test_a_duplicate_of_a_throttled_message_calls_nothing(world: World) -> None:
    world.target.answer = answers(THROTTLED, OK)
    world.registry.create("alice", "once", job(at=FIRE_AT, retry={"base_s": 10}))
    world.run_until(FIRE_AT)
    first, second = world.sqs.bodies
    assert world.execute(Message("another", first)).result == "duplicate"
    world.run_until("2026-11-21T03:20:00Z")
    assert world.execute(Message("yet-another", second)).result == "duplicate"
    assert (world.statuses("alice", "once"), len(world.target.calls)) == (["succeeded"], 2)


def test_killed_before_the_throttled_message_went_out_the_count_is_kept(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.target.answer = answers(THROTTLED, FAILED, OK)
    world.registry.create("alice", "once", job(at=FIRE_AT, retry={"max_attempts": 2, "base_s": 10}))

    def killed(*args: object, **kwargs: object) -> dict[str, object]:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(world.sqs, "send_message_batch", killed)
        world.run_until(FIRE_AT)
    assert world.statuses("alice", "once") == ["retrying"]
    world.run_until("2026-11-21T04:00:00Z")
    (run,) = world.run_items("alice", "once")
    assert (run["status"], run["attempt"], run["throttles"]) == ("succeeded", 3, 1)


def test_a_target_that_says_when_is_asked_then_and_not_sooner(world: World) -> None:
    world.target.answer = answers(Outcome(ok=False, error_type="RetryLater", retry_after_s=1_800), OK)
    world.registry.create("alice", "once", job(at=FIRE_AT, retry={"base_s": 1}))
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    first, second = (called_at for called_at, _ in world.target.calls)
    assert 1_800 <= second - first <= 1_802
    assert world.statuses("alice", "once") == ["succeeded"]


@pytest.mark.parametrize(
    ("outcome", "attempt", "throttles", "wait"),
    [
        (FAILED, 1, 0, (50, 101)),
        (FAILED, 2, 0, (100, 201)),
        (FAILED, 3, 0, None),
        (FAILED, 3, 1, (100, 201)),
        (FAILED, 100, 97, None),
        (FAILED, 100, 99, (50, 101)),
        (THROTTLED, 1, 0, (50, 101)),
        (THROTTLED, 3, 2, (200, 401)),
        (THROTTLED, 3, 0, (50, 101)),
        (THROTTLED, 10**6, 10**6 - 1, (450, 901)),
        (Outcome(ok=False, retry_after_s=0), 1, 0, (0, 1)),
        (Outcome(ok=False, retry_after_s=7.5), 1, 0, (7, 8)),
        (Outcome(ok=False, retry_after_s=7.5), 3, 0, None),
        (Outcome(ok=False, retry_after_s=3_600), 1, 0, (3_600, 3_601)),
        (Outcome(ok=False, retry_after_s=10_001), 1, 0, None),
        (Outcome(ok=False, retry_after_s=float("inf")), 1, 0, None),
        (Outcome(ok=False, throttled=True, retry_after_s=0), 1, 0, (50, 101)),
        (Outcome(ok=False, throttled=True, retry_after_s=500), 1, 0, (500, 501)),
        (Outcome(ok=False, permanent=True, retry_after_s=1), 1, 0, None),
    ],
)
def test_the_wait(outcome: Outcome, attempt: int, throttles: int, wait: tuple[int, int] | None) -> None:
    policy = Retry(max_attempts=3, base_s=100, factor=2, cap_s=900, max_age_s=10_000)
    execution = Execution("alice", "once", 0, 0, 1, attempt=attempt, throttles=throttles)
    next_at = retry_at(policy, execution, outcome, 0, 0)
    if wait is None:
        assert next_at is None
    else:
        assert next_at is not None
        assert wait[0] <= next_at <= wait[1]


def test_a_throttled_message_reads_back() -> None:
    execution = Execution("alice", "once", 0, 0, 1).retry(60, throttled=True)
    assert (execution.attempt, execution.throttles) == (2, 1)
    assert Execution.decode(execution.encode()) == execution
    assert "throttles" not in Execution("alice", "once", 0, 0, 1).retry(60).encode()


def test_an_hour_of_throttling_calls_at_most_twice_as_often_as_is_due(world: World) -> None:
    """By themselves, 360 runs would call 66 times in a minute where six are due."""
    world.target.answer = answers(THROTTLED)
    world.registry.create("alice", "often", job(every="10s", retry={"base_s": 1}))
    world.run_until("2026-11-21T04:13:00Z", ticks=True)
    begin = world.target.calls[0][0]
    by_minute = Counter(int(called_at - begin) // 60 for called_at, _ in world.target.calls)
    assert max(by_minute.values()) <= 13, "12, and what falls on the minute's edge"
    statuses = Counter(world.statuses("alice", "often"))
    assert statuses["retrying"] <= 110
    failed = [run for run in world.run_items("alice", "often") if run["status"] == "failed"]
    assert failed
    assert all("100 runs of the job wait already" in run["attempts"][-1]["error"] for run in failed)
    world.target.answer = answers(OK)
    world.run_until("2026-11-21T05:00:00Z", ticks=True)
    assert not {"retrying", "running"} & set(world.statuses("alice", "often"))
    later = Counter(int(called_at - begin) // 60 for called_at, _ in world.target.calls)
    assert max(later.values()) <= 13


def test_a_run_that_is_throttled_alone_keeps_to_its_own_policy(world: World) -> None:
    world.target.answer = answers(*[THROTTLED] * 3, OK)
    world.registry.create("alice", "once", job(at=FIRE_AT, retry={"base_s": 1}))
    world.run_until("2026-11-21T03:15:20Z")
    assert world.statuses("alice", "once") == ["succeeded"]


@pytest.mark.parametrize(
    ("stored", "at", "every_s", "reserved_at"),
    [
        (None, 105, 10, 105),
        ({"next_at": 140, "run": "other"}, 105, 10, 140),
        ({"next_at": 90, "run": "other"}, 105, 10, 105),
        ({"next_at": 140, "run": "mine"}, 105, 10, 140),
        ({"next_at": 140, "run": "mine"}, 105, 60, 105),  # it waits alone
        ({"next_at": 1_100, "run": "other"}, 105, 10, 1_100),
        ({"next_at": 1_101, "run": "other"}, 105, 10, None),
        ({"next_at": 1_101, "run": "other"}, 5_000, 10, 5_000),  # the target asked for so long a wait
        ({"next_at": "soon"}, 105, 10, 105),
        ({"next_at": 10**9}, 105, 10, 105),
        ({}, 105, 10, 105),
    ],
)
def test_each_retry_has_a_second_of_its_own(
    stored: dict[str, Any] | None, at: int, every_s: float, reserved_at: int | None
) -> None:
    item, reserved_second = reserved(stored, "mine", at, every_s, 100, 100 * every_s)
    assert reserved_second == reserved_at
    if reserved_at is None:
        assert item is stored
    else:
        assert item and item["next_at"] == reserved_at + every_s


def test_behind_the_first_late_run_is_a_pause_and_behind_the_others_none() -> None:
    stored, begins = None, []
    for name in ("first", "second", "third"):
        stored, begin_at = reserved(stored, name, 100, 10, 100, inf, 1_200)
        begins.append(begin_at)
    assert begins == [100, 1_300, 1_310]


@pytest.mark.parametrize(("cron", "seconds"), [("* * * * *", 60), ("0 3 * * *", 60), ("*/2 * * * *", 60)])
def test_retries_are_as_many_as_are_due_or_one_a_minute(world: World, cron: str, seconds: float) -> None:
    world.registry.create("alice", "job", job(cron=cron))
    assert interval_s(world.store.get("alice", "job"), world.clock.now()) == seconds
