"""Each write of a run's record from each state, compared with the table of transitions and the document."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from common.planning.due_entry import Missed
from common.planning.execution import Execution
from common.runs import states
from common.runs.claims import Claim, Settlement
from common.runs.moves import MOVES
from common.runs.outcome import Outcome
from common.runs.records import Runs
from common.runs.states import (
    DISPATCHED,
    ENDED,
    FAILED,
    NONE,
    QUEUED,
    REASONS,
    RETRYING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
    TRIGGERS,
)
from common.storage.expressions import change
from common.timing.schedule import AtTiming, Schedule
from tests.worlds import World

FIRST = Execution("alice", "job", fire_at=1000, due_at=1000, schedule_revision=1)
SECOND = FIRST.retry(1100)
OK, BOOM = Outcome(ok=True), Outcome(ok=False, error_type="Boom")
LEASE_ENDED = 5_000.0
STATES = (NONE, QUEUED, RUNNING, RETRYING, DISPATCHED, SUCCEEDED, FAILED, SKIPPED)

Write = Callable[[Runs], object]


def claim(execution: Execution, at: float = 1000.0) -> Claim:
    return Claim(execution, "message", at, at + 60)


def first_attempt(runs: Runs, status: str = "running") -> None:
    runs.claim(claim(FIRST), status)


def finish(runs: Runs, *arguments: Any) -> bool:
    """What the executor writes whose claim the record has."""
    run = runs.get(FIRST)
    return runs.finish(replace(claim(FIRST), token=run.claim_token if run else "none"), *arguments)


def signs_and_ends(runs: Runs, outcome: Outcome, retry_at: float | None) -> None:
    """Its target gives a sign, and it ends."""
    if (run := runs.get(FIRST)) and run.status in MOVES["tell"].sources:
        runs.tell(run, change(add={"signs": 1}), 1001)
    finish(runs, outcome, 1002, retry_at, Settlement("end", 1, 1001))


def end_by_hand(runs: Runs) -> object:
    run = runs.get(FIRST)
    return run and run.claim_token and runs.end_by_hand(run, "enough", 1002, 1900)


def take_over(runs: Runs, status: str) -> object:
    """What a message does that comes when the lease is over."""
    run = runs.get(FIRST)
    return run and runs.take_over(claim(FIRST, LEASE_ENDED), status, run)


# How to bring a record into each state; its first attempt has been made if it has one.
INTO: dict[str, Write] = {
    "none": lambda runs: None,
    "queued": lambda runs: runs.queue(FIRST, "", 1000),
    "running": lambda runs: first_attempt(runs),
    "retrying": lambda runs: (first_attempt(runs), finish(runs, BOOM, 1001, 1100)),
    "dispatched": lambda runs: first_attempt(runs, DISPATCHED),
    "succeeded": lambda runs: (first_attempt(runs), finish(runs, OK, 1001, None)),
    "failed": lambda runs: (first_attempt(runs), finish(runs, BOOM, 1001, None)),
    "skipped": lambda runs: runs.cancel([FIRST], "", 1000),
}
# The move and the state that it leads to.
WRITES: dict[tuple[str, str], Write] = {
    ("queue", QUEUED): lambda runs: runs.queue(FIRST, "", 1000),
    ("claim", RUNNING): lambda runs: runs.claim(claim(FIRST)),
    ("claim", DISPATCHED): lambda runs: runs.claim(claim(FIRST), DISPATCHED),
    ("claim the next attempt", RUNNING): lambda runs: runs.claim(claim(SECOND)),
    ("claim the next attempt", DISPATCHED): lambda runs: runs.claim(claim(SECOND), DISPATCHED),
    ("take over", RUNNING): lambda runs: take_over(runs, RUNNING),
    ("take over", DISPATCHED): lambda runs: take_over(runs, DISPATCHED),
    ("finish", SUCCEEDED): lambda runs: finish(runs, OK, 1002, None),
    ("finish", FAILED): lambda runs: finish(runs, BOOM, 1002, None),
    ("finish", RETRYING): lambda runs: finish(runs, BOOM, 1002, 1100),
    ("finish by a sign", SUCCEEDED): lambda runs: signs_and_ends(runs, OK, None),
    ("finish by a sign", FAILED): lambda runs: signs_and_ends(runs, BOOM, None),
    ("finish by a sign", RETRYING): lambda runs: signs_and_ends(runs, BOOM, 1100),
    ("skip", SKIPPED): lambda runs: runs.skip(FIRST, "deleted", "", 1002),
    ("miss", SKIPPED): lambda runs: runs.record_missed(
        Missed("alice", "job", 1, 1, 1000, 1000, "none", Schedule.of(AtTiming(1000))), 1002
    ),
    ("record anew", DISPATCHED): lambda runs: runs.record_anew(FIRST, "projection", 1002),
    ("give up", FAILED): lambda runs: runs.give_up(SECOND, "paused", "", 1002),
    ("cancel", SKIPPED): lambda runs: runs.cancel([FIRST], "", 1002),
    ("cancel the next attempt", FAILED): lambda runs: runs.cancel_retries([FIRST], "", 1002),
    ("take back a cancellation", NONE): lambda runs: runs.take_back([FIRST], 1000.0),
    ("open again by hand", RETRYING): lambda runs: runs.reopen(FIRST, 1002),
    ("end by hand", FAILED): lambda runs: end_by_hand(runs),
}


def record(world: World) -> dict[str, object] | None:
    return next(iter(world.run_items("alice", "job")), None)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(("name", "to"), WRITES)
def test_each_write_does_exactly_what_the_table_says(world: World, name: str, to: str, state: str) -> None:
    INTO[state](world.runs)
    before = record(world)
    assert (before or {"status": NONE})["status"] == state
    WRITES[name, to](world.runs)
    stored = record(world)
    if state in MOVES[name].sources:
        assert (stored or {"status": NONE})["status"] == to
        assert stored != before
    else:
        assert stored == before


def test_after_a_takeover_the_earlier_claim_of_the_same_message_writes_nothing(world: World) -> None:
    earlier = claim(FIRST)
    world.runs.claim(earlier)
    take_over(world.runs, RUNNING)
    before = record(world)
    assert not world.runs.finish(earlier, BOOM, LEASE_ENDED + 1, None)
    assert record(world) == before
    assert finish(world.runs, OK, LEASE_ENDED + 2, None)


def test_every_move_of_the_table_is_driven() -> None:
    assert set(WRITES) == {(name, to) for name, move in MOVES.items() for to in move.to}
    assert set(INTO) == set(STATES)
    assert all({*move.sources, *move.to} <= set(STATES) for move in MOVES.values())


def test_only_a_person_or_an_outcome_changes_a_final_run() -> None:
    for name, move in MOVES.items():
        for state in ENDED & set(move.sources) if move.to else ():
            by_hand = name in ("open again by hand", "take back a cancellation")
            assert by_hand or state == DISPATCHED, (name, state)


@pytest.mark.parametrize("attempt", [SECOND, structs.replace(SECOND, attempt=3)])
def test_no_attempt_is_claimed_before_the_one_ahead_of_it_has_ended(world: World, attempt: Execution) -> None:
    world.runs.claim(claim(FIRST))
    assert world.runs.claim(claim(attempt)) is not None


DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "runs.md").read_text()


TABLE = {(name, old, new) for name, move in MOVES.items() for old in move.sources for new in move.to}


def test_the_document_has_the_same_table() -> None:
    rows = re.findall(r"^\| (\w+) \| (\w+) \| ([\w ,-]+) \|$", DOCUMENT, re.MULTILINE)
    assert {(name, old, new) for old, new, names in rows[1:] for name in names.split(", ")} == TABLE


def test_the_diagram_shows_the_same_moves() -> None:
    shown = set(re.findall(r"^ +(\S+) --> (\S+)", DOCUMENT, re.MULTILINE))
    assert shown == {(old.replace(NONE, "[*]"), new.replace(NONE, "[*]")) for _, old, new in TABLE}


@pytest.mark.parametrize(
    ("heading", "words"), [("Why a run is skipped", REASONS), ("What started it", TRIGGERS)]
)
def test_the_document_names_every_word(heading: str, words: dict[str, str]) -> None:
    section = DOCUMENT.split(f"## {heading}\n")[1].split("\n## ")[0]
    assert dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE)) == words


def test_the_code_knows_no_other_reason() -> None:
    source = Path(states.__file__).read_text().split("# Why a run was skipped")[1].split("REASONS")[0]
    assert set(re.findall(r'= "(\w+)"', source)) == set(REASONS)
