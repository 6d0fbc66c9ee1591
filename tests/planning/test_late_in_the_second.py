"""A tick with time to spare sends late in each second, so that executors hold messages briefly; nothing else waits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.planning.execution import Execution
from common.planning.packs import is_wake, packed
from common.planning.queue import EARLY, LATE, ExecutionsQueue, HandOverFailed, seconds_until_part
from scheduler.tick import Scheduler
from tests.manual_clock import ManualClock
from tests.worlds import World, at, job

EARLY_FROM = 2_000

# A request takes this long to reach SQS.
WAY_S = 0.01
WINDOW = at("2026-11-21T03:20:00Z")


@dataclass
class Sqs:
    """Time passes during a request. Records when each message arrives and becomes visible."""

    clock: ManualClock
    arrived: dict[str, float] = field(default_factory=dict)
    out: dict[str, float] = field(default_factory=dict)
    refuses: int = 0

    def send_message_batch(self, QueueUrl: str, Entries: list[Mapping[str, Any]]) -> dict[str, Any]:
        self.clock.sleep(WAY_S)
        if self.refuses:
            self.refuses -= 1
            return {"Failed": [{"Id": entry["Id"], "SenderFault": False} for entry in Entries]}
        for entry in Entries:
            body = entry["MessageBody"]
            self.arrived[body] = self.clock.now()
            self.out[body] = self.clock.now() + entry["DelaySeconds"]
        return {}

    def held_s(self) -> list[float]:
        return [Execution.decode(body).visible_at - out for body, out in self.out.items()]


def executions(count: int, due_at: int = WINDOW) -> list[Execution]:
    return [Execution("alice", f"job-{n}", due_at + n % 600, due_at + n % 600, 1) for n in range(count)]


def sender(now: float) -> tuple[ExecutionsQueue, Sqs]:
    clock = ManualClock(now)
    sqs = Sqs(clock)
    return ExecutionsQueue(sqs, "queue", clock), sqs  # type: ignore[arg-type]


@pytest.mark.parametrize("part", [EARLY, LATE])
@given(now=st.floats(0, 2_000_000_000))
def test_the_wait_ends_in_its_part_of_a_second(part: tuple[float, float], now: float) -> None:
    wait_s = seconds_until_part(part, now)
    assert 0 <= wait_s < 1.01
    assert part[0] - 0.01 < (now + wait_s) % 1 < part[1] + 0.01
    assert seconds_until_part(part, now + wait_s) == 0


@pytest.mark.parametrize(
    ("count", "least_s", "most_s"),
    [(EARLY_FROM - 1, 0, 0.12), (EARLY_FROM, 0.68, 0.9), (2 * EARLY_FROM, 0.68, 0.9)],
)
def test_a_large_crowd_comes_out_early_in_the_second_before(
    count: int, least_s: float, most_s: float
) -> None:
    """Lambda's polling has grown when they are due."""
    queue, sqs = sender(WINDOW - 120)
    crowd = [Execution(f"tenant-{n % 7}", f"job-{n}", WINDOW, WINDOW, 1) for n in range(count)]
    queue.send_packs(packed(crowd, 1), send_late_until=WINDOW - 30)
    held_s = [WINDOW - out for body, out in sqs.out.items() if not is_wake(body)]
    assert least_s < min(held_s) <= max(held_s) < most_s
    assert sum(body.count("\n") + 1 for body in sqs.out if not is_wake(body)) == count


@pytest.mark.parametrize("fraction", [0, 0.3, 0.87, 0.9, 0.96, 0.999])
def test_with_time_to_spare_a_message_comes_out_just_before_its_second(fraction: float) -> None:
    queue, sqs = sender(WINDOW - 120 + fraction)
    assert queue.send(executions(200), send_late_until=WINDOW - 30) == (200, [])
    assert len(sqs.out) == 200
    assert 0 < min(sqs.held_s()) <= max(sqs.held_s()) < 0.12
    # 20 requests of 10 ms do not fit into the late part of one second
    assert 1 < max(sqs.arrived.values()) - min(sqs.arrived.values()) < 4


def test_without_it_nothing_waits() -> None:
    queue, sqs = sender(WINDOW - 120)
    queue.send(executions(200))
    assert max(sqs.arrived.values()) < WINDOW - 120 + 21 * WAY_S
    assert max(sqs.held_s()) > 0.9


def test_messages_left_at_the_end_of_the_time_go_at_once() -> None:
    queue, sqs = sender(WINDOW - 31.5)
    queue.send(executions(2_000), send_late_until=WINDOW - 30)
    assert len(sqs.out) == 2_000
    # 200 requests: some in the late parts of two seconds, the rest one after the other
    assert max(sqs.arrived.values()) < WINDOW - 30 + 201 * WAY_S
    assert min(sqs.held_s()) > -WAY_S


def test_messages_that_sqs_refused_are_sent_again_within_the_second() -> None:
    queue, sqs = sender(WINDOW - 120)
    sqs.refuses = 1
    assert queue.send(executions(3), send_late_until=WINDOW - 30) == (3, [])
    assert max(sqs.arrived.values()) < WINDOW - 118.9 + WAY_S


def patient(world: World, sqs: Sqs) -> Scheduler:
    queue = ExecutionsQueue(sqs, "queue", world.clock)  # type: ignore[arg-type]
    # Single messages: packs would be too few to wait for.
    planner = replace(world.scheduler.planner, queue=queue, patient=True, pack_from=0)
    return replace(world.scheduler, planner=planner)


def test_a_patient_tick_waits_before_its_window_and_a_late_one_does_not(world: World) -> None:
    for n in range(25):
        world.registry.create("alice", f"job-{n}", job(cron="25,35 * * * *"))
    world.clock.move_to(at("2026-11-21T03:18:02Z"))
    sqs = Sqs(world.clock)
    assert patient(world, sqs).tick().planned == 25
    assert 0 < min(sqs.held_s()) <= max(sqs.held_s()) < 0.12
    assert world.clock.now() < at("2026-11-21T03:18:04Z")

    late = at("2026-11-21T03:29:45Z")
    world.clock.move_to(late)
    sqs = Sqs(world.clock)
    assert patient(world, sqs).tick().planned == 25
    assert world.clock.now() == pytest.approx(late + 3 * WAY_S)


def test_a_hand_over_that_fails_between_waits_is_done_again_by_the_next_tick(world: World) -> None:
    for n in range(25):
        world.registry.create("alice", f"job-{n}", job(cron="25 * * * *"))
    world.clock.move_to(at("2026-11-21T03:18:02Z"))
    sqs = Sqs(world.clock)

    class Refusing(Sqs):
        def send_message_batch(self, QueueUrl: str, Entries: list[Mapping[str, Any]]) -> dict[str, Any]:
            self.refuses = int(bool(self.out))  # it takes the first batch alone
            return super().send_message_batch(QueueUrl, Entries)

    with pytest.raises(HandOverFailed):
        patient(world, Refusing(world.clock, out=sqs.out)).tick()
    assert len(sqs.out) == 10
    assert patient(world, sqs).tick().planned == 25
    assert len(sqs.out) == 25


def test_a_registration_is_handed_over_at_once(world: World) -> None:
    world.clock.move_to(at("2026-11-21T03:18:00Z"))
    world.scheduler.tick()
    before = world.clock.now()
    world.registry.create("alice", "new", job(cron="25 * * * *"))
    assert len(world.sqs) == 1
    assert world.clock.now() == before
