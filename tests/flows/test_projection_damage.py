"""What an on-call engineer may meet: items of the projection that are gone, damaged, doubled, or too large."""

from __future__ import annotations

import random
import string
from collections import Counter
from typing import Any

import pytest

from common.planning.chores import Done
from common.planning.execution import parse_execution_id
from common.projection import rebuild, windows
from common.projection.entry import RunEntry
from common.projection.state import PROJECTION, Again
from common.projection.tenants import rows_of
from common.projection.windows import ProjectedWindow
from common.registration.definition import as_written
from common.storage import keys
from common.storage.table import Query
from common.storage.wire import Expression
from common.truth.contradiction import Contradiction
from common.truth.truth import Truth
from minute8.cli.doctor.item_checks import ItemChecks
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


@pytest.mark.parametrize("part", ["a chunk", "all chunks", "a window", "everything"])
def test_a_rebuild_repairs_what_was_deleted(world: World, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    monkeypatch.setattr(windows, "MAX_INLINE", 6)
    monkeypatch.setattr(windows, "CHUNK_RUNS", 8)
    busy(world)
    rebuilt(world)
    assert is_a_recount(world)
    runs = world.table("runs")
    chunks = list(runs.query(Query(keys.projected_chunks("alice"))))
    stored = list(runs.query(Query(keys.projected_windows("alice"))))
    days = list(runs.query(Query(keys.projected_days("alice"))))
    deleted = {
        "a chunk": chunks[:1],
        "all chunks": chunks,
        "a window": stored[3:4],
        "everything": [*chunks, *stored, *days],
    }[part]
    assert deleted
    runs.delete_many([keys.key_of(item) for item in deleted])
    rebuilt(world)
    assert is_a_recount(world)


def check(world: World) -> list[Contradiction]:
    """What `minute8 check` names."""
    stored = ItemChecks(world.tables, world.clock)
    truth = Truth(world.tables, world.queue, world.clock, as_written, stored)
    return [contradiction for _, contradictions in truth.all() for contradiction in contradictions]


def repaired(world: World) -> set[str]:
    """What check names, and repairs; then it names nothing."""
    contradictions = check(world)
    for contradiction in contradictions:
        assert contradiction.repair
        contradiction.repair()
    assert check(world) == []
    return {f"{contradiction.name} {contradiction.subject.name}" for contradiction in contradictions}


@pytest.mark.parametrize(
    ("part", "damage"),
    [
        ("runs", 7),
        ("version", "text"),
        ("version", None),
        ("expires_at", []),
        ("chunks", 7),
        ("a chunk", "text"),
        ("no chunk", 0),
    ],
)
def test_of_a_damaged_window_no_run_is_lost(
    world: World, monkeypatch: pytest.MonkeyPatch, part: str, damage: Any
) -> None:
    """Ticks name it and leave it; check names it, and the repair makes it anew from the runs."""
    if "chunk" in part:
        monkeypatch.setattr(windows, "MAX_INLINE", 6)
        monkeypatch.setattr(windows, "CHUNK_RUNS", 8)
    busy(world)
    runs, key = world.table("runs"), keys.projected_window("alice", at("2026-11-21T06:10:00Z"))
    item = runs.get(key)
    assert item
    window = ProjectedWindow.from_item(item)
    place = window.place_of(("20261121T061100Z", "j1"))
    name = window.chunks[place].name if window.chunks else ""
    chunk = runs.get(keys.projected_chunk("alice", window.start, name)) or {}
    if part == "no chunk":
        runs.delete(keys.key_of(chunk))
    else:
        runs.put({**chunk, "runs": damage} if part == "a chunk" else {**item, part: damage})
    stored = runs.get(key)
    world.registry.create("alice", "later", job(every=600))
    changed = next(
        run for run in world.run_items("alice", "j1") if run["fire_at"] == at("2026-11-21T06:11:00Z")
    )
    world.projector.index.log.look_again(
        [
            Again(
                int(world.clock.now()),
                parse_execution_id("alice", f"alice:j1:{changed['sk']}"),
            )
        ]
    )
    runs.update(keys.key_of(changed), Expression("SET #status = :failed", {":failed": "failed"}))
    world.clock.sleep(1_200)
    named = [
        error for error in projection(world).errors if "from 2026-11-21T06:10:00Z on is damaged" in error
    ]
    assert len(named) == 1
    assert runs.get(key) == stored
    assert repaired(world) == {f"projection-corrupt runs alice##windows {key['sk']}"}
    assert is_a_recount(world)
    assert projection(world).errors == []


def test_of_damaged_totals_of_tenants_no_tenant_is_lost(world: World) -> None:
    name = next(
        name for name in map("t{}".format, range(1_000)) if keys.log_bucket(name) == keys.log_bucket("alice")
    )
    world.registry.create(name, "own", job(cron="* * * * *"))
    busy(world)
    platform, bucket = world.projector.platform, keys.log_bucket("alice")
    start, hour = at("2026-11-21T06:10:00Z"), at("2026-11-21T05:00:00Z")
    span = at("2026-11-21T04:00:00Z"), at("2026-11-21T07:00:00Z")
    before = platform.between(*span).tenants
    runs = world.table("runs")
    hour_key = keys.projected_tenants_hour(hour, bucket)
    runs.put({**hour_key, "tenants": "text"})
    assert platform.between(*span).tenants == before, "the windows of the hour have it"
    key = keys.projected_tenants(start, bucket)
    runs.put({**key, "tenants": "text"})
    window = world.projector.windows.window("alice", start)
    assert window and platform.set(bucket, {("alice", start): window}) == [key["sk"]]
    assert rows_of(runs.get(hour_key) or {}), "an hour is made anew from its windows"
    assert repaired(world) == {f"projection-corrupt runs PROJECTION## {key['sk']}"}
    assert platform.between(*span).tenants == before


def test_long_random_ids_fit_into_chunks(world: World) -> None:
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
    assert list(world.projector.windows.runs_of("alice", merged)) == sorted(
        entries, key=lambda run: run.key, reverse=True
    )
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
