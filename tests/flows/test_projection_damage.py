"""What an on-call engineer may meet: items of the projection that are gone, damaged, doubled, or too large."""

from __future__ import annotations

import random
import string
from collections import Counter
from typing import Any

import pytest

from common.planning.chores import Done
from common.projection import rebuild, windows
from common.projection.entry import RunEntry
from common.projection.state import PROJECTION
from common.projection.windows import totals_of
from common.storage import keys
from common.storage.table import Query
from tests.flows.test_projection import projected, recounted, start
from tests.worlds import World, at, job

WINDOW = at("2026-11-21T03:40:00Z")


def busy(world: World, tenant: str = "alice") -> int:
    """Some jobs ran for hours, and all of it is projected. Returns from when on."""
    since = start(world)
    for number in range(4):
        world.registry.create(tenant, f"j{number}", job(cron="* * * * *"))
    world.run_until("2026-11-21T06:38:00Z", ticks=True)
    world.project()
    return since


def projection(world: World) -> Done:
    return world.round(PROJECTION, world.projector.steps)


def rebuilt(world: World, tenant: str = "alice") -> None:
    remake = rebuild.Rebuild(world.table("jobs"), world.table("runs"), world.table("due"))
    cursor: rebuild.RebuildPosition | None = remake.start(world.clock.now(), 2)
    while cursor:
        cursor = remake.step(tenant, cursor, world.clock.now()).next


def is_a_recount(world: World) -> bool:
    """Also the totals of each window: `projected` checks these."""
    state = world.projector.states.read()
    assert state
    jobs = [f"j{number}" for number in range(4)]
    return projected(world) == [
        run for run in recounted(world, jobs) if run.fire_at < state.until_of("alice")
    ]


@pytest.mark.parametrize("part", ["a portion", "all portions", "a window", "everything"])
def test_a_rebuild_repairs_what_was_deleted(world: World, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    monkeypatch.setattr(windows, "MAX_INLINE", 6)
    monkeypatch.setattr(windows, "PORTION_RUNS", 8)
    busy(world)
    rebuilt(world)
    assert is_a_recount(world)
    runs = world.table("runs")
    portions = list(runs.query(Query(keys.projected_portions("alice"))))
    stored = list(runs.query(Query(keys.projected_windows("alice"))))
    days = list(runs.query(Query(keys.projected_days("alice"))))
    deleted = {
        "a portion": portions[:1],
        "all portions": portions,
        "a window": stored[3:4],
        "everything": [*portions, *stored, *days],
    }[part]
    assert deleted
    runs.delete_many([keys.key_of(item) for item in deleted])
    rebuilt(world)
    assert is_a_recount(world)


def test_a_change_of_a_window_without_one_of_its_portions_counts_what_is_left(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows, "MAX_INLINE", 2)
    monkeypatch.setattr(windows, "PORTION_RUNS", 2)
    entries = [RunEntry(f"20261121T034{minute}00Z", "j", "succeeded", "", 1, 0.1, 1.0) for minute in range(8)]
    merged = world.projector.windows.merge("alice", WINDOW, {run.key: run for run in entries}, 0)
    assert len(merged.portions) == 4
    name = merged.portions[0].name
    world.table("runs").delete(keys.projected_portion("alice", WINDOW, name))
    failed = entries[0]._replace(status="failed")
    after = world.projector.windows.merge("alice", WINDOW, {failed.key: failed}, 0)
    listed = list(world.projector.windows.runs_of("alice", after))
    assert after.totals == totals_of(listed)
    assert after.totals.statuses == Counter(succeeded=6, failed=1)


def test_long_random_ids_fit_into_portions(world: World) -> None:
    """The memory refuses an item of more than 400 KB, as DynamoDB does."""
    rng = random.Random(8)

    def text(chars: int) -> str:
        return "".join(rng.choices(string.ascii_letters + string.digits + "-_", k=chars))

    entries = [
        RunEntry(f"20261121T034000Z:{text(32)}", text(128), "failed", "", 1, 0.1, 1.0) for _ in range(7_000)
    ]
    for first in range(0, len(entries), 1_750):
        part = {run.key: run for run in entries[first : first + 1_750]}
        merged = world.projector.windows.merge("alice", WINDOW, part, 0)
    assert list(world.projector.windows.runs_of("alice", merged)) == sorted(entries, reverse=True)
    assert merged.totals.statuses == Counter(failed=7_000)


@pytest.mark.parametrize("kind", ["planned", "changed", "again", "again-planned"])
@pytest.mark.parametrize("damage", ["not base64!", "AAAA", ""])
def test_an_item_that_cannot_be_read_stops_nobody(world: World, kind: str, damage: str) -> None:
    """It is reported at each tick that meets it; ticks and lists go on with the others."""
    start(world)
    for number in range(4):
        world.registry.create("alice", f"j{number}", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:58:00Z", ticks=True)
    state = world.projector.states.read()
    assert state
    window = max(state.until_of("alice"), WINDOW - 600)
    key = keys.logged(keys.log_bucket("alice"), window, kind, "damaged")
    world.table("due").put({**key, "count": 1, "data": damage})
    assert len(projection(world).problems) == 1
    world.run_until("2026-11-21T04:38:00Z", ticks=True)
    projection(world)
    state = world.projector.states.read()
    assert state and state.until_of("alice") == at("2026-11-21T04:20:00Z")
    assert is_a_recount(world)


def test_of_a_tenant_that_is_removed_while_a_tick_reads_nothing_is_written(world: World) -> None:
    """A tick that took longer than a removal waits: the tenant's state is read once more."""
    start(world)
    world.registry.create("alice", "minutely", job(cron="* * * * *"))
    world.run_until("2026-11-21T04:38:00Z", ticks=True)
    records = type(world.projector)._records

    def slow(projector: Any, executions: Any, *, consistent: bool) -> Any:
        read = records(projector, executions, consistent=consistent)
        world.clock.sleep(50)
        world.table("tenants").put({**keys.tenant("alice"), "state": "deleted"})
        return read

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(world.projector), "_records", slow)
        world.project()
    assert projected(world) == []
