"""The declaration of a run reads and writes what the tables hold, and refuses what it cannot read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from common.runs.claims import Callback
from common.runs.outcome import Outcome
from common.runs.run import Run, readable_runs
from common.storage import keys
from common.storage.wire import Item, from_wire, to_wire
from tests.storage.test_run_states import FIRST, INTO, claim
from tests.worlds import World

STORED: Item = {
    **keys.run("alice", "job", "19700101T001640Z"),
    "tenant": "alice",
    "job_id": "job",
    "fire_at": 1000,
    "due_at": 1001,
    "schedule_revision": 1,
    "trigger": "schedule",
    "status": "running",
    "attempt": 1,
    "started_at": 1001.123,
    "lateness_s": 0,
}


def written(run: Run) -> Item:
    return from_wire(to_wire(run.to_item()))


def without_unset(stored: Item) -> Item:
    """An item without the texts and counts that are not set: they are not written again."""
    return {name: value for name, value in stored.items() if value not in ("", 0) or name.endswith("_s")}


@pytest.mark.parametrize("state", sorted(set(INTO) - {"none"}))
def test_what_is_written_in_each_state_is_read_and_written_unchanged(world: World, state: str) -> None:
    INTO[state](world.runs)
    (stored,) = world.run_items("alice", "job")
    run = Run.from_item(stored)
    assert (run.status, run.execution_id, run.execution.fire_at) == (state, FIRST.execution_id, FIRST.fire_at)
    assert written(run) == without_unset(stored)


def test_a_run_that_calls_back_is_read_with_all_that_was_told(world: World) -> None:
    awaited = replace(claim(FIRST), callback=Callback("https://x", 60))
    world.runs.claim(awaited)
    world.runs.accept(awaited, 1100.5)
    (stored,) = world.run_items("alice", "job")
    stored |= {
        "progress": {"attempt": 1, "at": 1002.5, "percent": 50, "text": "half"},
        "report": {"at": 1003.5, "ok": False, **Outcome(ok=False, error="no").to_item()},
        "stop": {"at": 1004.5, "note": "enough"},
        "stop_attempt": 1,
        "lost_calls": [{"attempt": 1, "started_at": 1000.5, "lateness_s": 0}],
    }
    run = Run.from_item(stored)
    assert run.awaits_callback(1)
    assert not run.awaits_callback(2)
    assert run.is_to_stop
    assert written(run) == without_unset(stored)


def test_no_time_is_rounded_beyond_what_the_table_rounds() -> None:
    run = Run.from_item(STORED)
    assert Run.from_item(written(run)) == run
    assert run.started_at == 1001.123
    assert isinstance(run.lateness_s, int)  # answers show 0, not 0.0


def test_an_attribute_of_a_later_version_is_tolerated() -> None:
    assert Run.from_item({**STORED, "colour": "red"}) == Run.from_item(STORED)


@pytest.mark.parametrize(
    "damage",
    [
        {"v": 2},
        {"status": "eaten"},
        {"status": "\ud800"},
        {"attempt": "1"},
        {"started_at": None},
        {"attempts": [{"attempt": 1}]},
        {"fire_at": 1000.5},
        {"stop": "now"},
    ],
)
def test_a_damaged_run_or_one_of_a_later_version_is_refused(damage: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        Run.from_item({**STORED, **damage})


@pytest.mark.parametrize("name", ["sk", "tenant", "job_id", "fire_at", "due_at", "status", "trigger"])
def test_a_run_without_what_every_run_has_is_refused(name: str) -> None:
    with pytest.raises(ValueError):
        Run.from_item({key: value for key, value in STORED.items() if key != name})


def test_who_reads_many_gets_those_that_can_be_read() -> None:
    damaged = {**STORED, "attempts": 7}
    assert (
        list(readable_runs([STORED, damaged, dict(keys.key_of(STORED)), STORED]))
        == [Run.from_item(STORED)] * 2
    )
