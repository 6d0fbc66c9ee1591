"""The conditions and updates of every write to a run's record, as DynamoDB gets them: moves.jsonl.

`UPDATE_GOLDEN=1 pytest tests/golden/test_moves.py` writes the file anew; the difference is for a reviewer. The claim's
write is the hottest: not a byte of it changes without a measurement.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from common.runs.callbacks import Callbacks
from common.runs.claims import Callback, Claim, Settlement
from common.runs.moves import MOVES
from common.runs.outcome import Outcome
from common.runs.records import Runs
from common.runs.run import Run
from common.storage.table import Table
from common.storage.wire import from_wire
from tests.storage.test_run_states import FIRST, INTO, WRITES, Write
from tests.worlds import open_world

GOLDEN: Final = Path(__file__).parent / "moves.jsonl"
OWN: Final = Claim(FIRST, "message", 1000.0, 1060.0, token="token")
CALLS_BACK: Final = replace(OWN, callback=Callback("https://x", 60, "secret"))


def run_of(runs: Runs) -> Run:
    run = runs.get(FIRST)
    assert run
    return run


class NoQueue:
    def send(self, executions: object) -> None:
        """The message that brings the end to an executor."""


def signs(runs: Runs) -> None:
    """A target that calls back tells that it goes on, and then its end, twice."""
    runs.claim(CALLS_BACK)
    runs.accept(CALLS_BACK, 1100)
    callbacks: Any = Callbacks(runs, NoQueue())  # type: ignore[arg-type]
    callbacks.goes_on(run_of(runs), {"percent": 50}, 1010)
    for told_at in (1020, 1021):
        callbacks.ends(run_of(runs), Outcome(ok=False, permanent=True, error="no"), told_at)


def settled(runs: Runs) -> None:
    runs.finish(OWN, Outcome(ok=True), 1002, None, Settlement("end", 1, 1001))


# Writes that leave the state as it is, or that follow other writes.
OTHERS: Final[dict[str, tuple[str, Write]]] = {
    "claim a call that is answered later": ("none", lambda runs: runs.claim(CALLS_BACK)),
    "signs of a target": ("none", signs),
    "wait on": ("queued", lambda runs: runs.wait(FIRST, "it waits for another", 1000)),
    "put off": ("retrying", lambda runs: runs.put_off(FIRST.retry(1100), 1200, "other runs go on")),
    "settle": ("dispatched", lambda runs: runs.settle(FIRST, "message")),
    "accept": ("running", lambda runs: runs.accept(OWN, 1100)),
    "end by a sign": ("running", settled),
    "note what was started": (
        "dispatched",
        lambda runs: runs.note_started(FIRST, "token", ["x"]),
    ),
    "note that it was stopped": ("failed", lambda runs: runs.note_stopped(run_of(runs), "", 1003)),
    "note that it was not stopped": ("failed", lambda runs: runs.note_stopped(run_of(runs), "no", 1003)),
    "forget that its work goes on": ("failed", lambda runs: runs.forget_work(run_of(runs))),
    "note a dead letter": ("failed", lambda runs: runs.note_dead_letter(FIRST, "no queue")),
}


class Recording:
    """A client that keeps the writes to the runs table."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.writes: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        if name not in ("put_item", "update_item", "delete_item", "transact_write_items"):
            return call

        def kept(**request: Any) -> Any:
            for write in request.get("TransactItems", [{name: request}]):
                ((kind, arguments),) = write.items()
                if arguments["TableName"].endswith("-runs"):
                    self.writes.append({"kind": kind, **_of_interest(arguments)})
            return call(**request)

        return kept


def _of_interest(arguments: Mapping[str, Any]) -> dict[str, Any]:
    texts = ("UpdateExpression", "ConditionExpression")
    items = ("ExpressionAttributeValues", "Item")
    return {name: arguments[name] for name in texts if name in arguments} | {
        name: from_wire(arguments[name]) for name in items if name in arguments
    }


def written(monkeypatch: pytest.MonkeyPatch, state: str, write: Write) -> list[dict[str, Any]]:
    with open_world() as world:
        table = world.table("runs")
        monkeypatch.setattr("secrets.token_hex", lambda *_: "token")
        INTO[state](Runs(table))
        client = Recording(table.client)
        recorded = Table(client, table.name)
        monkeypatch.setattr("secrets.token_hex", lambda *_: "another")
        write(Runs(recorded))
    return client.writes


def test_each_write_is_the_one_that_was_reviewed(monkeypatch: pytest.MonkeyPatch) -> None:
    writes = {
        f"{name}: {state} to {to}": written(monkeypatch, state, write)
        for (name, to), write in WRITES.items()
        for state in MOVES[name].sources
    }
    writes |= {name: written(monkeypatch, state, write) for name, (state, write) in OTHERS.items()}
    lines = [json.dumps({"change": name, "writes": of_name}) for name, of_name in writes.items()]
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text("\n".join(lines) + "\n")
    assert lines == GOLDEN.read_text().splitlines()
