"""The result of a trial, and which repeated calls are no problem."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from common.runs.states import DISPATCHED
from scripts.demo.witness import Call
from scripts.measure.rounds import percentile

_LATENESS: Final = ("load", "runs", "least", "p50", "p99", "most")
# A message that comes again after the lease of an `Event` run, 15 s, calls again. The run's record has when the first
# call was to go out: a slow executor states up to five seconds after its claim. Without that record the target's clock
# counts: the first call may have waited for an environment, and the second one not.
_AFTER_RECORDED_CALL_S: Final = 10
_AFTER_SEEN_CALL_S: Final = 10


@dataclass(slots=True)
class TrialResult:
    """The result of one trial. `rows` are the rows of a table with the head `head`."""

    title: str
    head: Sequence[str] = ()
    rows: list[list[str]] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def allowed(calls: Sequence[Call], runs: Mapping[str, Mapping[str, Any]]) -> list[Call]:
    """The calls without those that docs/guarantees.md allows.

    An event's message comes twice, the second time after the lease. Or an awaited call's executor died before it
    recorded the call: the record has each such call.
    """
    first: dict[tuple[str, int], float] = {}
    again: Counter[tuple[str, int]] = Counter()
    kept = []
    for call in sorted(calls, key=lambda call: call.at):
        name = call.execution_id, call.attempt
        at = first.setdefault(name, call.at)
        run = runs.get(call.execution_id, {})
        lost_calls = [each for each in run.get("lost_calls", ()) if each["attempt"] == call.attempt]
        is_allowed = again[name] <= len(lost_calls)
        if run.get("status") == DISPATCHED:
            recorded_at = float(lost_calls[0]["started_at"]) + _AFTER_RECORDED_CALL_S if lost_calls else 0.0
            is_allowed = call.at >= (recorded_at or at + _AFTER_SEEN_CALL_S)
        again[name] += 1
        if call.at == at or not is_allowed:
            kept.append(call)
    return kept


def lateness(title: str, load: str, late: Sequence[float], wrong: list[str]) -> TrialResult:
    """A table of one row. `late` is in seconds."""
    figures = {load: [round(late_s, 3) for late_s in late]}
    return TrialResult(title, _LATENESS, [row(load, late)], figures, wrong)


def row(load: str, late: Sequence[float]) -> list[str]:
    """A row of lateness under this load."""
    if not late:
        return [load, "0", "", "", "", ""]
    figures = [min(late), statistics.median(late), percentile(late, 0.99), max(late)]
    return [load, f"{len(late):,}", *(f"{figure:.3f}" for figure in figures)]
