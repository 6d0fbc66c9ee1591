"""Each write of a run's record from each state, compared with the table of transitions and the document."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from common.planning.due_entry import Missed
from common.planning.execution import Execution
from common.runs import states
from common.runs.changes import RunChanges
from common.runs.claims import Claim
from common.runs.outcome import Outcome
from common.runs.records import Runs
from common.runs.states import DISPATCHED, ENDED, NONE, REASONS, STATES, TRANSITIONS, TRIGGERS, after
from tests.worlds import World

FIRST = Execution("alice", "job", fire_at=1000, due_at=1000, schedule_revision=1)
SECOND = FIRST.retry(1100)
OK, BOOM = Outcome(ok=True), Outcome(ok=False, error_type="Boom")
LEASE_ENDED = 5_000.0

Write = Callable[[Runs, RunChanges], object]


def claim(execution: Execution, at: float = 1000.0) -> Claim:
    return Claim(execution, "message", at, at + 60)


def first_attempt(runs: Runs, status: str = "running") -> None:
    runs.claim(claim(FIRST), status)


# How to bring a record into each state; its first attempt has been made if it has one.
INTO: dict[str, Write] = {
    "none": lambda runs, changes: None,
    "queued": lambda runs, changes: changes.queue(FIRST, "", 1000),
    "running": lambda runs, changes: first_attempt(runs),
    "retrying": lambda runs, changes: (first_attempt(runs), runs.finish(claim(FIRST), BOOM, 1001, 1100)),
    "dispatched": lambda runs, changes: first_attempt(runs, DISPATCHED),
    "succeeded": lambda runs, changes: (first_attempt(runs), runs.finish(claim(FIRST), OK, 1001, None)),
    "failed": lambda runs, changes: (first_attempt(runs), runs.finish(claim(FIRST), BOOM, 1001, None)),
    "skipped": lambda runs, changes: changes.cancel(FIRST, "", 1000),
}
WRITES: dict[str, Write] = {
    "queue": lambda runs, changes: changes.queue(FIRST, "", 1000),
    "claim": lambda runs, changes: runs.claim(claim(FIRST)),
    "claim the next attempt": lambda runs, changes: runs.claim(claim(SECOND)),
    "claim for a hand-over": lambda runs, changes: runs.claim(claim(FIRST), DISPATCHED),
    "hand over the next attempt": lambda runs, changes: runs.claim(claim(SECOND), DISPATCHED),
    "take over": lambda runs, changes: runs.claim(claim(FIRST, LEASE_ENDED)),
    "take over a hand-over": lambda runs, changes: runs.claim(claim(FIRST, LEASE_ENDED), DISPATCHED),
    "succeed": lambda runs, changes: runs.finish(claim(FIRST), OK, 1002, None),
    "fail": lambda runs, changes: runs.finish(claim(FIRST), BOOM, 1002, None),
    "retry later": lambda runs, changes: runs.finish(claim(FIRST), BOOM, 1002, 1100),
    "skip": lambda runs, changes: runs.skip(FIRST, "deleted", "", 1002),
    "give up": lambda runs, changes: runs.give_up(SECOND, "paused", "", 1002),
    "miss": lambda runs, changes: runs.record_missed(Missed("alice", "job", 1, 1, 1000, 1000, "none"), 1002),
    "cancel": lambda runs, changes: changes.cancel(FIRST, "", 1002),
    "take back a cancellation": lambda runs, changes: changes.take_back([FIRST], 1000.0),
    "cancel the next attempt": lambda runs, changes: changes.cancel_retry(FIRST, "", 1002),
    "open again by hand": lambda runs, changes: changes.reopen(FIRST, 1002),
}


def record(world: World) -> dict[str, object] | None:
    return next(iter(world.run_items("alice", "job")), None)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("change", TRANSITIONS)
def test_each_write_does_exactly_what_the_table_says(world: World, change: str, state: str) -> None:
    changes = RunChanges(world.table("runs"))
    INTO[state](world.runs, changes)
    before = record(world)
    assert (before or {"status": NONE})["status"] == state
    WRITES[change](world.runs, changes)
    stored = record(world)
    expected = after(state, change)
    # A dead executor's message may be delivered like the first one: its claim takes over the run.
    if expected is None and change in ("claim", "claim for a hand-over") and stored != before:
        pytest.fail(f"{change} took a record that was {state}: {stored}")
    if expected is None and not (change.startswith("take over") and state in ("none", "queued")):
        assert stored == before
    elif expected is not None:
        assert (stored or {"status": NONE})["status"] == expected
        assert stored != before


def test_every_write_of_the_table_is_driven() -> None:
    assert set(WRITES) == set(TRANSITIONS)
    assert set(INTO) == set(STATES)
    assert all(set(moves) | set(moves.values()) <= set(STATES) for moves in TRANSITIONS.values())


def test_only_a_person_or_an_outcome_changes_a_final_run() -> None:
    for change, moves in TRANSITIONS.items():
        for state in ENDED & set(moves):
            by_hand = change in ("open again by hand", "take back a cancellation")
            assert by_hand or state == DISPATCHED, (change, state)


@pytest.mark.parametrize("attempt", [SECOND, replace(SECOND, attempt=3)])
def test_no_attempt_is_claimed_before_the_one_ahead_of_it_has_ended(world: World, attempt: Execution) -> None:
    world.runs.claim(claim(FIRST))
    assert world.runs.claim(claim(attempt)) is not None


DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "runs.md").read_text()


def test_the_document_has_the_same_table() -> None:
    rows = re.findall(r"^\| (\w+) \| (\w+) \| ([\w ,-]+) \|$", DOCUMENT, re.MULTILINE)
    documented = {(change, old, new) for old, new, changes in rows[1:] for change in changes.split(", ")}
    assert documented == {
        (change, old, new) for change, moves in TRANSITIONS.items() for old, new in moves.items()
    }


def test_the_diagram_shows_the_same_moves() -> None:
    shown = set(re.findall(r"^ +(\S+) --> (\S+)", DOCUMENT, re.MULTILINE))
    moves = {
        (old.replace(NONE, "[*]"), new.replace(NONE, "[*]"))
        for moves in TRANSITIONS.values()
        for old, new in moves.items()
    }
    assert shown == moves


@pytest.mark.parametrize(
    ("heading", "words"), [("Why a run is skipped", REASONS), ("What started it", TRIGGERS)]
)
def test_the_document_names_every_word(heading: str, words: dict[str, str]) -> None:
    section = DOCUMENT.split(f"## {heading}\n")[1].split("\n## ")[0]
    assert dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section, re.MULTILINE)) == words


def test_the_code_knows_no_other_reason() -> None:
    source = Path(states.__file__).read_text().split("# Why a run was skipped")[1].split("REASONS")[0]
    assert set(re.findall(r'= "(\w+)"', source)) == set(REASONS)
