"""Windows divided among planners: nothing is lost or doubled, wherever a process dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.planning.directory import Shard
from common.planning.due_index import DueIndex, Window
from common.planning.quarantine import Quarantine
from common.planning.queue import ExecutionsQueue, HandOverFailed
from common.planning.shares import (
    PlanningQueue,
    PlanningWork,
    ShareDraft,
    Shares,
    UnreadableShare,
    divide,
)
from common.storage import keys
from common.storage.table import Query, Table
from common.timing.groups import group_key
from common.timing.schedule import CronTiming, EveryTiming, Schedule
from scheduler.planner import FanOut, SharePlanner
from scheduler.summary import TickSummary
from scheduler.tick import Scheduler
from tests.stand_ins import LosesAnswers
from tests.worlds import World, at, job, open_world

MAX_TEXT_BYTES = 300_000

MINUTES = {"a": "25", "b": "26", "c": "25,29"}
ZONES = {"a": "UTC", "b": "Asia/Tokyo", "c": "Europe/Berlin"}
DUE = sorted(
    (f"{name}{number}", f"2026-11-21T03:{minute}:00Z")
    for name, minutes in MINUTES.items()
    for number in range(2)
    for minute in minutes.split(",")
)


END = "2026-11-21T03:30:00Z"


class Died(BaseException):
    """The process is gone."""


class Mortal:
    """A client whose process dies after this many writes."""

    WRITES = (
        "transact_write_items",
        "put_item",
        "update_item",
        "delete_item",
        "batch_write_item",
        "send_message_batch",
    )

    def __init__(self, client: Any, fate: dict[str, int]) -> None:
        self._client = client
        self._fate = fate

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._client, name)
        if name not in self.WRITES:
            return attribute

        def call(**request: Any) -> Any:
            answer = attribute(**request)
            self._fate["left"] -= 1
            if self._fate["left"] == 0:
                raise Died
            return answer

        return call


class Queue:
    """The planning queue: it records the messages."""

    def __init__(self) -> None:
        self.bodies: list[str] = []

    def send_message_batch(self, QueueUrl: str, Entries: list[Mapping[str, Any]]) -> dict[str, Any]:
        self.bodies += [entry["MessageBody"] for entry in Entries]
        return {}


class Fleet:
    """A scheduler with fan-out and its planners; a test may limit the lives of each."""

    def __init__(self, world: World, share_entries: int = 10) -> None:
        self.world = world
        self.queue = Queue()
        self.share_entries = share_entries

    def scheduler(self, lives: int = 0) -> Scheduler:
        fate = {"left": lives or 10**6}
        due = Table(Mortal(self.world.dynamodb, fate), "test-due", now=self.world.clock.now)
        planner = replace(
            self.world.scheduler.planner,
            index=DueIndex(due),
            quarantine=Quarantine(due),
            queue=ExecutionsQueue(Mortal(self.world.sqs, fate), "queue", self.world.clock),  # type: ignore[arg-type]
        )
        planning_queue = PlanningQueue(Mortal(self.queue, fate), "planning")  # type: ignore[arg-type]
        return Scheduler(planner, FanOut(Shares(due), planning_queue, self.share_entries))

    def tick(self, lives: int = 0) -> TickSummary:
        return self.scheduler(lives).tick()

    def plan(self, body: str, lives: int = 0) -> TickSummary:
        scheduler = self.scheduler(lives)
        assert scheduler.fan_out
        return SharePlanner(scheduler.planner, scheduler.fan_out.shares, scheduler.fan_out.queue).plan(body)

    def plan_all(self) -> None:
        while self.queue.bodies:
            self.plan(self.queue.bodies.pop())


@pytest.fixture
def fleet(world: World) -> Fleet:
    return prepared(world)


def prepared(world: World) -> Fleet:
    """Six jobs in three groups, a share for each group, and the clock at the tick."""
    for name, minutes in MINUTES.items():
        for number in range(2):
            world.registry.create(
                "alice", f"{name}{number}", job(cron=f"{minutes} * * * *", timezone=ZONES[name])
            )
    world.run_until("2026-11-21T03:18:00Z")
    return Fleet(world)


def ran(world: World, until: str = "2026-11-21T03:29:30Z") -> list[tuple[str, str]]:
    world.run_until(until)
    return sorted((context["job_id"], context["fire_at"]) for _, context in world.target.calls)


def mark_at(world: World) -> int:
    progress = world.index.progress()
    assert progress
    return progress.planned_until


def test_a_small_window_is_not_divided(fleet: Fleet) -> None:
    fleet.share_entries = 1_000
    assert fleet.tick().planned == len(DUE)
    assert fleet.queue.bodies == []
    assert ran(fleet.world) == DUE


@pytest.mark.parametrize("order", [1, -1])
def test_the_planner_that_ends_last_moves_the_mark(fleet: Fleet, order: int) -> None:
    summary = fleet.tick()
    assert (summary.planned, summary.shares, len(fleet.queue.bodies)) == (0, 3, 3)
    for body in fleet.queue.bodies[::order]:
        assert mark_at(fleet.world) == at("2026-11-21T03:20:00Z")
        fleet.plan(body)
    assert mark_at(fleet.world) == at("2026-11-21T03:30:00Z")
    assert ran(fleet.world) == DUE


def test_a_share_delivered_twice_is_planned_once(fleet: Fleet) -> None:
    fleet.tick()
    planned = [fleet.plan(body).planned for body in [*fleet.queue.bodies, *fleet.queue.bodies]]
    assert planned[3:] == [0, 0, 0]
    assert ran(fleet.world) == DUE


def with_shares_lost(fleet: Fleet) -> list[str]:
    """The tick of 3:18 divides, two of three messages are lost, and it is 3:28."""
    fleet.tick()
    lost_messages, fleet.queue.bodies = fleet.queue.bodies[1:], fleet.queue.bodies[:1]
    fleet.plan_all()
    fleet.world.run_until("2026-11-21T03:28:00Z")
    return lost_messages


def test_lost_shares_are_sent_again_by_the_next_tick_which_waits_and_plans_on(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost_messages = with_shares_lost(fleet)
    sent: list[str] = []

    def planners_work(seconds: float) -> None:
        sent.extend(fleet.queue.bodies)
        fleet.plan_all()

    monkeypatch.setattr(fleet.world.clock, "sleep", planners_work)
    summary = fleet.tick()
    assert sorted(sent) == sorted(lost_messages)
    assert (summary.start, summary.end) == (at("2026-11-21T03:20:00Z"), at("2026-11-21T03:40:00Z"))
    monkeypatch.undo()
    assert ran(fleet.world, "2026-11-21T03:39:30Z") == DUE


def test_shares_that_no_planner_gets_through_hold_up_no_later_window(fleet: Fleet) -> None:
    lost_messages = with_shares_lost(fleet)
    fleet.world.registry.create("bob", "later", job(cron="35 3 * * *"))
    began_at = fleet.world.clock.now()
    summary = fleet.tick()
    assert fleet.world.clock.now() == began_at + 60  # it waited for planners, and none came
    assert (summary.end, summary.set_aside) == (at("2026-11-21T03:40:00Z"), 2)
    assert [record.shards for record in Quarantine(fleet.world.table("due")).waiting()] == [1, 1]
    assert lost_messages == fleet.queue.bodies[:2]
    fleet.plan_all()
    assert list(Quarantine(fleet.world.table("due")).waiting()) == []
    assert ran(fleet.world, "2026-11-21T03:39:30Z") == sorted([*DUE, ("later", "2026-11-21T03:35:00Z")])


def test_a_registration_while_planners_are_at_it_runs_once(fleet: Fleet) -> None:
    fleet.tick()
    fleet.world.registry.create("alice", "new", job(cron="25 3 * * *"))
    fleet.world.store.delete("alice", "a0")
    fleet.plan_all()
    assert ran(fleet.world) == sorted(
        [*(run for run in DUE if run[0] != "a0"), ("new", "2026-11-21T03:25:00Z")]
    )


def test_writes_whose_answers_are_lost_lose_nothing(fleet: Fleet) -> None:
    """The tick took the repeated division for another tick's, and deleted the shares that its own mark named."""
    fleet = Fleet(replace(fleet.world, dynamodb=LosesAnswers(fleet.world.dynamodb)))
    assert fleet.tick().shares == 3
    fleet.plan_all()
    assert mark_at(fleet.world) == at(END)
    assert ran(fleet.world) == DUE


def test_two_ticks_at_once_divide_a_window_once(fleet: Fleet) -> None:
    shares = Shares(fleet.world.table("due"))
    now = fleet.world.clock.now()
    window = fleet.world.index.begin_planning(fleet.world.index.ensure_progress(now), at(END), now)
    shards = [ShareDraft([Shard("cron|UTC|20-29 * * * *", 0, 2)])] * 3
    first = shares.record(window.window, shards)
    assert first.is_divided
    numbers = shares.unconfirmed(first)
    share = shares.load(window.planning_until, numbers[0])
    assert share
    shares.confirm(share)
    assert shares.record(window.window, shards) == first
    assert shares.unconfirmed(first) == numbers[1:]
    assert len(recorded(fleet.world)) == 2


def recorded(world: World) -> list[Any]:
    return list(world.table("due").query(Query(keys.SHARES)))


def test_shares_of_a_tick_that_died_before_they_counted_are_never_planned_and_swept(fleet: Fleet) -> None:
    with pytest.raises(Died):
        fleet.tick(lives=2)  # it announced, and recorded one share
    assert len(recorded(fleet.world)) == 1
    fleet.tick()
    assert (len(recorded(fleet.world)), len(fleet.queue.bodies)) == (4, 3)
    fleet.plan_all()
    assert mark_at(fleet.world) == at(END)
    fleet.world.run_until("2026-11-21T03:28:00Z")
    fleet.tick()
    assert all(item["sk"] > END for item in recorded(fleet.world))
    fleet.plan_all()
    assert recorded(fleet.world) == []
    assert ran(fleet.world, "2026-11-21T03:29:30Z") == DUE


def deaths() -> Iterator[tuple[str, Callable[[Fleet], Any]]]:
    """Each process dies after each of its writes: announce, record, send; send, confirm, move planned_until."""
    for lives in range(1, 7):
        yield f"tick-{lives}", lambda fleet, lives=lives: fleet.tick(lives)  # type: ignore[misc]

    def planner(fleet: Fleet, share: int, lives: int) -> None:
        fleet.tick()
        for body in fleet.queue.bodies[:share]:
            fleet.plan(body)
        fleet.plan(fleet.queue.bodies[share], lives)

    for share in (0, 2):
        for lives in (1, 2, 3) if share == 2 else (1, 2):
            yield (
                f"planner-{share}-{lives}",
                lambda fleet, share=share, lives=lives: planner(fleet, share, lives),  # type: ignore[misc]
            )


@pytest.mark.parametrize("death", [pytest.param(dies, id=name) for name, dies in deaths()])
@pytest.mark.parametrize("redelivered", [True, False])
def test_a_death_after_any_write_loses_nothing(death: Callable[[Fleet], Any], redelivered: bool) -> None:
    with open_world() as world:
        fleet = prepared(world)
        with pytest.raises(Died):
            death(fleet)
        if not redelivered:
            fleet.queue.bodies.clear()
        fleet.plan_all()
        world.run_until("2026-11-21T03:19:00Z")
        fleet.tick()  # Lambda retries a tick that died
        fleet.plan_all()
        assert mark_at(world) == at("2026-11-21T03:30:00Z")
        assert ran(world) == DUE
        world.run_until("2026-11-21T03:28:00Z")
        fleet.tick()
        fleet.plan_all()
        assert recorded(world) == []


def test_a_share_that_the_queue_refuses_fails_the_tick(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = {"Failed": [{"Id": "0", "Code": "InternalError", "SenderFault": False}]}
    monkeypatch.setattr(fleet.queue, "send_message_batch", lambda **_: refusal)
    with pytest.raises(HandOverFailed):
        fleet.tick()


WINDOW = Window(at("2026-11-21T03:20:00Z"), at(END), at("2026-11-21T03:18:00Z"))


@given(
    st.lists(st.tuples(st.integers(1, 2_000), st.integers(1, 60_000)), max_size=300), st.integers(500, 20_000)
)
def test_shares_hold_every_shard_once_and_each_is_within_its_bounds(
    sizes: list[tuple[int, int]], entries: int
) -> None:
    shards = [Shard("g" * length, number, jobs) for number, (jobs, length) in enumerate(sizes)]
    shares = [draft.shards for draft in divide(shards, WINDOW, entries)]
    assert [shard for share in shares for shard in share] == shards
    for share in shares:
        assert sum(shard.jobs + 8 for shard in share) <= entries or len(share) == 1
        assert sum(len(f"{shard.group}#{shard.shard}") + 1 for shard in share) <= MAX_TEXT_BYTES


def test_thousands_of_groups_of_one_job_are_divided() -> None:
    """Reading a group costs more than planning its job, so no planner reads them all."""
    shards = [Shard(f"cron|UTC|0-9 3 {n} * *", 0, 1) for n in range(6_900)]
    shares = divide(shards, Window(0, 600, 0.0), 20_000)
    assert [len(share.shards) for share in shares] == [2_222, 2_222, 2_222, 234]


def test_a_shard_of_each_second_weighs_as_much_as_sixty_of_each_minute() -> None:
    for timings in (
        (EveryTiming(1, 0), EveryTiming(60, 0)),
        (CronTiming("* * * * * *", "UTC"), CronTiming("* * * * *", "UTC")),
    ):
        seconds, minutes = (Shard(group_key(Schedule.of(timing)), 0, 33) for timing in timings)
        assert len(list(divide([seconds] * 11, WINDOW, 20_000))) == 2
        assert len(list(divide([minutes] * 11, WINDOW, 20_000))) == 1


def test_thousands_of_groups_with_long_keys_are_divided_and_each_record_is_stored() -> None:
    """Each of 5,000 groups has a key of 360 characters: 1.8 MB of names. An item takes 400 KB."""
    with open_world() as world:
        progress = world.index.begin_planning(
            world.index.ensure_progress(world.clock.now() - 1_000), at(END), world.clock.now()
        )
        shares = Shares(world.table("due"))
        shards = [Shard(f"cron|UTC|{n:0350}", 0, 1) for n in range(5_000)]
        divided = shares.record(progress.window, divide(shards, progress.window, 1_000_000))
        loaded = [shares.load(progress.planning_until, number) for number in shares.unconfirmed(divided)]
        assert len(loaded) == 7
        assert [(shard.group, shard.shard) for share in loaded if share for shard in share.shards] == [
            (shard.group, 0) for shard in shards
        ]


@pytest.mark.parametrize(
    "body",
    [
        *("", "{}", "[]", '{"v":2,"end":1,"share":0}', '{"v":1,"end":"x","share":0}'),
        *('{"end":1,"share":0}', '{"set_aside":["x"]}', '{"v":1}', '{"v":true,"end":1,"share":0}'),
    ],
)
def test_a_message_that_is_no_share_is_refused(body: str) -> None:
    with pytest.raises(UnreadableShare):
        PlanningWork.of(body)
    work = PlanningWork(end=600, share=7)
    assert PlanningWork.of(work.body) == work
