"""A run in line whose place somebody has damaged stops nobody behind it, and still runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from common.planning.chores import Done
from common.runs.outcome import Outcome
from common.storage import keys
from common.storage.wire import Item
from scheduler.lines import Lines
from tests.worlds import World, job

LINE = keys.key_permits("alice", "line")


@pytest.mark.parametrize("holds_s", [270, 600], ids=["before the tick", "after it"])
@pytest.mark.parametrize("name", ["message", "until", "since", "attempt"])
def test_a_damaged_head_of_a_line_stops_nobody_and_runs(world: World, name: str, holds_s: int) -> None:
    calls: list[str] = []

    def answer(event: Mapping[str, Any]) -> Outcome:
        calls.append(event["minute8"]["execution_id"])
        return Outcome(ok=True)

    world.target.answer = answer
    limit = {"key": "line", "limit": 1}
    world.registry.create(
        "alice",
        "first",
        job(
            at="2026-11-21T03:13:00Z",
            concurrency=limit,
            retry={"max_attempts": 1},
            completion="callback",
            callback_timeout_s=holds_s,
        ),
    )
    for minute in (14, 15, 16):
        world.registry.create(
            "alice", f"at-{minute}", job(at=f"2026-11-21T03:{minute}:00Z", concurrency=limit)
        )
    world.run_until("2026-11-21T03:17:00Z", ticks=True)
    stored = world.table("runs").get(LINE)
    assert stored
    waiting: Item = stored["waiting"]
    assert len(waiting) == 3
    head = min(waiting, key=lambda run: waiting[run]["since"])
    world.table("runs").put({**stored, "waiting": {**waiting, head: {**waiting[head], name: "?"}}})
    world.run_until("2026-11-21T03:29:00Z", ticks=True)
    assert sorted(calls) == sorted(set(calls))
    assert len(calls) == 4
    statuses = [run["status"] for minute in (14, 15, 16) for run in world.run_items("alice", f"at-{minute}")]
    assert statuses == ["succeeded"] * 3


def test_what_cannot_be_read_of_a_line_is_counted(world: World) -> None:
    item = {**LINE, "holders": {"first:20261121T031300Z": "?"}, "waiting": {"at-14:20261121T031400Z": "?"}}
    world.table("runs").put(item)
    world.table("runs").put({**keys.line(LINE), "at": world.clock.now()})
    done = Done("lines", world.clock, world.clock.now() + 150)
    assert list(Lines(world.tables, world.queue, world.clock).steps(None, done))
    assert done.counts["damaged"] == 2
