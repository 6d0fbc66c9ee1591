"""What a lost region loses and doubles; `python -m tests.simulation.regions` plays many failovers."""

from __future__ import annotations

import pytest

from common.runs.unrecorded import Unrecorded
from tests.simulation.regions import failover


def test_nothing_that_was_replicated_is_lost_or_called_again() -> None:
    outcome = failover(seed=8, lag_s=2, after_s=1800)
    assert outcome.wrong == []
    assert outcome.counts["executions due"] > 500


def test_the_judge_finds_executions_of_the_lost_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Unrecorded, "all", lambda self: iter(()))  # nobody runs what has no record
    assert any("lost" in problem for problem in failover(seed=8, lag_s=2, after_s=1800).wrong)


def test_the_latest_writes_are_lost_and_what_they_recorded_is_called_again() -> None:
    outcome = failover(seed=9, lag_s=60, after_s=1800)
    assert outcome.wrong == []
    assert outcome.counts["attempts called in both"] > 0
