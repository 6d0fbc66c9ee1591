"""Flows over several messages, with a crash after each call: overlap, backfill, manual commands, failures in a row.

The queue delivers again what the dead process had; a person or client that was answered by nothing asks again. In the
end every run is explained, nothing is called twice but across that crash, and no lock, backfill or pause is stuck.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pytest

from common.errors import Conflict
from common.runs.outcome import Outcome
from tests.faults.stage import Stage, deliver_one, staged
from tests.faults.truth import FINAL
from tests.faults.wire import Fault
from tests.worlds import World, at, job

BEGIN, LATER, END = "2026-11-21T03:12:00Z", "2026-11-21T03:40:00Z", "2026-11-21T05:00:00Z"
KEY = ("alice", "job")
OK = Outcome(ok=True)
PERMANENT = Outcome(ok=False, permanent=True, error_type="Boom")
FIRST = "alice:job:20261121T031300Z"
BACKFILLED = (at("2026-11-20T00:00:00Z"), at("2026-11-20T05:00:00Z"))


def until_empty(world: World, until: str = LATER) -> None:
    """Deliver the messages until then, one after another, in the order of time."""
    while (moment := world.sqs.next_at()) is not None and moment <= at(until):
        world.clock.move_to(max(world.clock.now(), moment))
        deliver_one(world)


def overlapping(overlap: str, **fields: Any) -> Callable[[Stage], None]:
    """Three fire times a minute apart; the first run takes until the third is due."""

    def before(stage: Stage) -> None:
        world = stage.world
        timing = {"cron": "13-15 3 * * *", "end_at": "2026-11-21T03:16:00Z"}
        world.registry.create(*KEY, job(**timing, overlap=overlap, timeout_s=200, **fields))

        def slow(event: Mapping[str, Any]) -> Outcome:
            if event["minute8"]["fire_at"] == "2026-11-21T03:13:00Z" and world.clock.now() < at(
                "2026-11-21T03:14:00Z"
            ):
                until_empty(world, "2026-11-21T03:15:00Z")
                world.clock.move_to(at("2026-11-21T03:15:10Z"))
            return OK

        world.target.answer = slow

    return before


def backfill(overlap: str = "allow") -> Callable[[Stage], None]:
    def before(stage: Stage) -> None:
        stage.world.registry.create(
            *KEY, job(cron="0 * * * *", end_at="2026-11-20T23:00:00Z", overlap=overlap)
        )

    return before


def ask_for_backfill(world: World) -> None:
    world.manual.backfills.start(*KEY, *BACKFILLED, concurrency=2, backfill_id="x")


def backfill_under_way(stage: Stage) -> None:
    backfill()(stage)
    ask_for_backfill(stage.world)


def daily(stage: Stage) -> None:
    stage.world.registry.create(*KEY, job(cron="0 12 * * *"))


def run_now(world: World) -> None:
    world.manual.run_now(*KEY, "abc")


def failed(stage: Stage) -> None:
    stage.world.registry.create(*KEY, job(at="2026-11-21T03:13:00Z"))
    stage.world.target.answer = lambda event: PERMANENT
    until_empty(stage.world)
    stage.world.target.answer = lambda event: OK


def retry(world: World) -> None:
    world.manual.retry("alice", FIRST)


def waits_for_retry(stage: Stage) -> None:
    stage.world.registry.create(*KEY, job(at="2026-11-21T03:13:00Z", overlap="skip", retry={"base_s": 600}))
    stage.world.target.answer = lambda event: Outcome(ok=False, error_type="Boom")
    until_empty(stage.world, "2026-11-21T03:14:00Z")


def cancel(world: World) -> None:
    world.manual.cancel("alice", FIRST, "")


def second_failure_pauses(stage: Stage) -> None:
    """3:13 has failed; 3:14 will, and pauses the job; 3:15 falls into the pause."""
    world = stage.world
    timing = {"cron": "13-15 3 * * *", "end_at": "2026-11-21T03:16:00Z"}
    world.registry.create(*KEY, job(**timing, pause_after_failures=2))
    world.target.answer = lambda event: PERMANENT
    until_empty(world, "2026-11-21T03:13:30Z")
    world.clock.move_to(at("2026-11-21T03:14:00Z"))
    world.events.clear()


def recovers(stage: Stage) -> None:
    second_failure_pauses(stage)
    stage.world.target.answer = lambda event: OK


def is_paused_and_told(world: World) -> None:
    assert world.store.get(*KEY).state == "paused"
    published = {(kind, detail.get("fire_at")) for kind, detail in world.events}
    failed = {
        ("Run Failed", run["fire_at"]) for run in world.run_items(*KEY)[1:] if run["status"] == "failed"
    }
    assert failed | {("Job Paused", None)} <= published, published


def has_recovered(world: World) -> None:
    assert "failures_in_row" not in (world.table("jobs").get({"pk": "alice", "sk": "JOB#job"}) or {})
    assert world.store.get(*KEY).state == "active"


def is_whole(world: World) -> None:
    assert world.manual.backfills.progress(*KEY, "x").sent == 5


def nothing(world: World) -> None: ...


@dataclass(frozen=True)
class Cut:
    """A flow to be cut: its preparation, its steps, the final states that its runs may have, and other conditions."""

    before: Callable[[Stage], None]
    step: Callable[[World], None]
    may_end: tuple[tuple[str, ...], ...]
    blocks: Callable[[World], None] = nothing
    manual: bool = False


SUCCEEDED, SKIPPED, FAILED, PAUSED = "succeeded", "skipped(overlap)", "failed", "skipped(paused)"
# An attempt that was due before a pause, or whose executor died, waits for its end.
WAITS = ("retrying", "queued")
DONE = (SUCCEEDED,)
# A message that was cut off comes back minutes later: other fire times are before it.
EITHER, FAILED_OR_PAUSED = (SUCCEEDED, SKIPPED), (FAILED, PAUSED, *WAITS)
CUTS = {
    "skip": Cut(overlapping("skip"), until_empty, (DONE, EITHER, EITHER)),
    "queue_one": Cut(overlapping("queue_one"), until_empty, (DONE, DONE, EITHER)),
    "backfill asked for": Cut(backfill(), ask_for_backfill, (DONE,) * 5, is_whole, manual=True),
    "backfill": Cut(backfill_under_way, until_empty, (DONE,) * 5, is_whole),
    "run now": Cut(daily, run_now, (DONE,), manual=True),
    "retry by hand": Cut(failed, retry, (DONE,), manual=True),
    "cancel": Cut(waits_for_retry, cancel, ((FAILED,),), manual=True),
    "pause after failures": Cut(
        second_failure_pauses,
        deliver_one,
        ((FAILED,), FAILED_OR_PAUSED, FAILED_OR_PAUSED),
        is_paused_and_told,
    ),
    "recovery": Cut(recovers, until_empty, ((FAILED,), DONE, DONE), has_recovered),
}


@pytest.mark.parametrize("name", CUTS)
def test_a_flow_is_cut_after_each_of_its_calls(name: str) -> None:
    cut = CUTS[name]

    def carries_on(world: World, died: BaseException | None) -> None:
        if cut.manual and died:
            world.clock.sleep(2)
            with suppress(Conflict):
                cut.step(world)
        world.run_until(END)
        assert len(world.sqs) == 0
        assert {run["status"] for run in world.run_items(*KEY)} <= FINAL | ({*WAITS} & {*chain(*cut.may_end)})
        statuses = world.statuses(*KEY)
        assert len(statuses) == len(cut.may_end)
        assert all(status in may for status, may in zip(statuses, cut.may_end, strict=True)), statuses
        called = Counter((c["execution_id"], c["attempt"]) for _, c in world.target.calls)
        assert sum(called.values()) - len(called) <= (stage.wire.hit == "target"), called
        cut.blocks(world)

    with staged(BEGIN) as stage:
        cut.before(stage)
        stage.save()
        assert stage.each_call(cut.step, Fault.KILLED_AFTER, carries_on) >= 2
