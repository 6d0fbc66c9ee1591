"""Each attribute of each item that a tick passes has each wrong type: the tick plans all others.

One kind of item after the other is damaged in a stage that has all kinds. Of the tenant `bolt` nothing is damaged, and
its jobs have shards of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import structs

from common.jobs.ended import EndedJobs
from common.planning.directory import Shard
from common.planning.due_index import Window
from common.planning.execution import Execution
from common.planning.log import AGAIN_PLANNED
from common.planning.pace import PaceName, pace_of
from common.planning.quarantine import Quarantine
from common.planning.shares import PlanningQueue, Share, Shares, share_item
from common.platform.findings import Level
from common.platform.planning_checks import PlanningState, findings
from common.projection.state import Again
from common.runs.unrecorded import Unrecorded
from common.storage import keys
from common.storage.transactions import Transaction
from common.truth.contradiction import JOB_LOST, Contradiction, FoundContradictions, job_subject
from scheduler import handler
from scheduler.pacing import PaceCarryover
from scheduler.planner import FanOut, SharePlanner
from scheduler.tick import Scheduler
from tests.planning.test_shares import Queue
from tests.scheduler_handler import serve
from tests.truth.damage import small_world
from tests.worlds import World, at, job

NOW = at("2026-11-21T03:48:00Z")
Wire = dict[str, Any]
# In DynamoDB's own form; None deletes the attribute.
WRONG: dict[str, Wire | None] = {
    "deleted": None,
    "number": {"N": "7"},
    "astronomic": {"N": "1e37"},
    "text": {"S": "?"},
    "list": {"L": [{"N": "1"}]},
    "binary": {"B": b"\x00\xff"},
    "true": {"BOOL": True},
    "null": {"NULL": True},
}
# The kinds of items in the due table that a tick, or what follows it, reads.
KINDS = (
    *(
        "GROUP",
        "DIRECTORY",
        "LISTED",
        "ONE_OFF",
        "PENDING",
        "POSTPONED",
        "ENDED",
        "PROGRESS",
        "SHARES",
        "WINDOWS",
    ),
    *("QUARANTINE", "CARRIED", "LOG", "UNRECORDED", "CONTRADICTIONS", "CHORES"),
)
POSTPONED = Execution("acme", "often", at("2026-11-21T02:00:00Z"), at("2026-11-21T03:52:00Z"), 1, attempt=2)


class Stage:
    """A stage at minute 48 with items of each kind, most of them of the tenant acme; restored for each damage."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.world = world = small_world()
        serve(world, patched)
        planner, shares, self.planning = world.scheduler.planner, Shares(world.tables.due), Queue()
        queue = PlanningQueue(self.planning, "planning")  # type: ignore[arg-type]
        world.scheduler = Scheduler(planner, FanOut(shares, queue, 20_000))
        patched.setattr(handler, "_share_planner", lambda: SharePlanner(planner, shares, queue))
        world.tick = self.tick  # type: ignore[method-assign]
        world.registry.put("bolt", "own", job(cron="*/2 * * * *", jitter_s=3))
        world.registry.put("bolt", "kept", job(cron="59 2 * * *", jitter_s=4))
        pace = {"key": "api", "per_second": 1, "tolerance_s": 60}
        for nth in range(3):
            world.registry.put("acme", f"paced-{nth}", job(cron="59 * * * *", pace=pace))
        world.run_until("2026-11-21T03:47:00Z", ticks=True)
        world.clock.move_to(NOW)
        self._add_other_kinds()
        self._saved = world.dynamodb.saved()

    def _add_other_kinds(self) -> None:
        world, due = self.world, self.world.tables.due
        entry = world.store.get("acme", "often").due_entry()
        tx = Transaction(world.dynamodb)
        world.index.put_pending(tx, entry, 9)
        tx.commit()
        kept = structs.replace(POSTPONED, tenant="bolt", job_id="kept")
        for execution in (POSTPONED, kept):
            world.scheduler.planner.postponed._table.put(postponed_item(execution))
        EndedJobs(due, world.tables.jobs).note(POSTPONED, NOW)
        progress = world.index.progress()
        assert progress
        shard = Shard("every|300|0", 0, 2)
        window = Window(progress.planned_until, progress.planned_until + 600, NOW)
        share = Share(keys.share(window.end, 7), window, (shard,))
        due.put({**share.key, **share_item(window, (shard,)), "after": "", "tries": 1})
        past = Share(keys.share(window.start, 3), Window(window.start - 600, window.start, NOW), (shard,))
        due.put({**past.key, **share_item(past.window, (shard,))})
        quarantine = Quarantine(due)
        quarantine.add_share(past, "for the test", NOW)
        quarantine.add_group("lunar|full#0", window, "for the test", NOW)
        quarantine.add_entry("acme#often", "for the test", NOW)
        world.index.log.note([POSTPONED], NOW - 1_200)
        world.index.log.look_again([Again(NOW - 60, POSTPONED, AGAIN_PLANNED)])
        paced = world.store.get("acme", "paced-0")
        reserved = {PaceName("acme", "api"): Counter({progress.planned_until + 3: 2})}
        pace = pace_of(paced.shard)
        PaceCarryover(due).store(pace, progress.planned_until, Shard(paced.group, paced.shard), reserved)
        Unrecorded(due, world.tables.runs).add([structs.replace(POSTPONED, job_id="lost")], NOW)
        contradiction = Contradiction(JOB_LOST, job_subject("acme", "lost"), "for the test")
        FoundContradictions(due).suspect([contradiction], NOW)

    def restore(self) -> World:
        self.world.dynamodb.restore(self._saved)
        self.world.clock.move_to(NOW)
        self.world.sqs._waiting.clear()
        self.world.sqs.bodies.clear()
        self.planning.bodies.clear()
        return self.world

    @property
    def state(self) -> PlanningState:
        """What doctor and API see."""
        return PlanningState(self.world.tables.due, self.world.clock, "dev")

    def tick(self) -> dict[str, Any]:
        summary = handler.handle({}, None)
        bodies, self.planning.bodies = self.planning.bodies, []
        for body in bodies:
            handler.handle_shares({"Records": [{"body": body}]}, None)
        return summary

    def items(self, kind: str) -> list[Wire]:
        """One item of each form that the kind has."""
        items = [
            item
            for item in self.world.dynamodb.scan(TableName="test-due")["Items"]
            if item["pk"]["S"].partition("#")[0] == kind and "bolt" not in item["sk"]["S"]
        ]
        forms = {
            (*sorted(item), item["sk"]["S"] if kind == "CHORES" else ""): item
            for item in items
            if "bolt" not in str(item.get("taken"))
        }
        return list(forms.values())


def postponed_item(execution: Execution) -> dict[str, Any]:
    key = keys.postponed(execution.visible_at, f"{execution.execution_id}#{execution.attempt}")
    return {**key, "body": execution.encode(), "expires_at": execution.visible_at + 9}


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with pytest.MonkeyPatch.context() as patched:
        yield Stage(patched)


def plans_bolt(stage: Stage) -> None:
    """Two ticks plan what is due of bolt, with its postponed execution, and end the window."""
    for tick_at in (NOW, NOW + 600):
        stage.world.clock.move_to(tick_at)
        stage.tick()
    planned = {
        (execution.job_id, execution.fire_at)
        for execution in map(Execution.decode, "\n".join(stage.world.sqs.bodies).split("\n"))
        if execution.tenant == "bolt"
    }
    start = at("2026-11-21T03:50:00Z")
    assert {("own", start + 120 * nth) for nth in range(10)} <= planned
    assert ("kept", POSTPONED.fire_at) in planned
    progress = stage.world.index.progress()
    assert progress
    assert progress.planned_until == start + 1_200


def damaged(stage: Stage, item: Wire, name: str, value: Wire | None) -> None:
    damaged = {**item, name: value}
    stage.world.dynamodb._set("test-due", item, {name: value for name, value in damaged.items() if value})


def test_the_stage_has_all_kinds(stage: Stage) -> None:
    stage.restore()
    assert [kind for kind in KINDS if not stage.items(kind)] == []
    plans_bolt(stage)


@pytest.mark.parametrize("kind", KINDS)
def test_no_wrong_type_of_an_attribute_stops_the_others(stage: Stage, kind: str) -> None:
    stopped = []
    stage.restore()
    for item in stage.items(kind):
        for name in sorted({*item} - {"pk", "sk"}):
            for wrong, value in WRONG.items():
                stage.restore()
                damaged(stage, item, name, value)
                try:
                    findings(stage.state)
                    plans_bolt(stage)
                    findings(stage.state)
                except Exception as error:  # noqa: BLE001  all of them are shown
                    stopped.append(f"{item['pk']['S']} {item['sk']['S']} {name} {wrong}: {error!r}"[:300])
    assert not stopped, "\n".join(stopped)


# Sort keys that a tick reads, and that none of ours have.
MALFORMED = ("0", "00#", "1#", "1#acme", "1#acme:often", "1#::#", "1#acme:often#2", "0" + "é" * 500)


@pytest.mark.parametrize("sk", MALFORMED)
def test_a_postponed_item_under_a_malformed_key_is_named_and_stops_nobody(stage: Stage, sk: str) -> None:
    world = stage.restore()
    key: keys.Key = {"pk": "POSTPONED#0", "sk": sk}
    world.tables.due.put({**key, "body": 7})
    world.tables.due.put({**key, "pk": "POSTPONED#1", "body": POSTPONED.encode()})
    plans_bolt(stage)
    assert_named(stage, f"POSTPONED#0 {sk}")
    assert_named(stage, f"POSTPONED#1 {sk}")


@pytest.mark.parametrize(
    "body",
    [
        7,
        None,
        "",
        "{}",
        ["x"],
        structs.replace(POSTPONED, tenant="bolt", job_id="kept").encode(),
        structs.replace(POSTPONED, due_at=POSTPONED.due_at + 86_400).encode(),
        POSTPONED.encode().replace('"v":1', '"v":2'),
    ],
)
def test_a_postponed_item_that_cannot_be_read_is_named_until_it_is_put_back_or_discarded(
    stage: Stage, body: object
) -> None:
    world = stage.restore()
    item = postponed_item(POSTPONED)
    world.tables.due.put({**item, "body": body})
    plans_bolt(stage)
    name = f"{item['pk']} {item['sk']}"
    assert_named(stage, name)
    executions = map(Execution.decode, "\n".join(world.sqs.bodies).split("\n"))
    assert [run for run in executions if run.attempt == 2 and run.job_id != "kept"] == []
    run_key = keys.run("acme", "often", "20261121T035000Z:u-window")
    run = world.tables.runs.get(run_key)
    assert run
    assert "unreadable postponed execution" in run["detail"]
    world.clock.move_to(NOW + 86_400)
    stage.tick()
    assert_named(stage, name)
    quarantine = Quarantine(world.tables.due)
    [record] = [record for record in quarantine.waiting() if record.kind == "item"]
    quarantine.put_back(record.name)
    put_back = world.tables.due.get(keys.key_of(item))
    assert put_back
    assert put_back.get("body") == body
    world.clock.move_to(NOW + 87_000)
    stage.tick()
    assert_named(stage, name)
    quarantine.discard(record.name)
    assert name not in str([finding.message for finding in findings(stage.state)])


def assert_named(stage: Stage, name: str) -> None:
    """The doctor and the API tell of the item."""
    messages = [finding.message for finding in findings(stage.state) if finding.level == Level.FAILED]
    assert any(name[:100] in message for message in messages), messages


def test_an_entry_of_another_tenants_job_plans_nothing_of_it(stage: Stage) -> None:
    world = stage.restore()
    own = world.store.get("bolt", "own")
    stored = world.store.get("acme", "often")
    key = keys.due_entry(stored.group, stored.shard, "acme", "often")
    foreign = structs.replace(own.due_entry(), schedule=stored.schedule)
    world.tables.due.put({**key, "entry": foreign.encode()})
    plans_bolt(stage)
    executions = map(Execution.decode, "\n".join(world.sqs.bodies).split("\n"))
    assert {run.fire_at % 120 for run in executions if run.job_id == "own"} == {0}
