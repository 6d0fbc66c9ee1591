"""A tenant with all that its quotas allow, after a day's outage: scheduler and planners stay within memory and time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from common.tenants.tenant import Quotas
from scripts.parameters import DEFAULTS
from tests.planning.hostile_tick import BAD_ENTRIES, BAD_GROUPS, EACH_SECOND, OF_ONE_SHARE, POSTPONED

CATCH_UP_LIMIT = 100

ROOT = Path(__file__).resolve().parents[2]
# Seconds of a whole processor, several times the usual ones. The functions have 300 s with 1/3 and 2/3 of one.
TICK_CPU_S = 30
PLANNERS_CPU_S = 60


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    command = [sys.executable, "-m", "tests.planning.hostile_tick"]
    done = subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(result)
    return result


def memory_mb(function: str) -> int:
    return int(DEFAULTS[f"{function}MemoryMb"])


def test_a_tick_stays_within_the_schedulers_memory_and_time(measured: dict[str, Any]) -> None:
    assert measured["tick_mb"] <= 0.8 * memory_mb("scheduler"), measured
    assert measured["tick_cpu_s"] < TICK_CPU_S, measured


def test_planners_stay_within_their_memory_and_time(measured: dict[str, Any]) -> None:
    assert measured["planners_mb"] <= 0.8 * memory_mb("planner"), measured
    assert measured["planners_cpu_s"] < PLANNERS_CPU_S, measured


def test_a_tick_that_plans_a_whole_share_itself_stays_within_them_too(measured: dict[str, Any]) -> None:
    assert measured["alone_mb"] <= 0.8 * memory_mb("scheduler"), measured
    assert measured["alone_cpu_s"] < TICK_CPU_S, measured
    assert measured["alone"]["shares"] == 0, measured
    assert measured["alone"]["shards_due"] >= OF_ONE_SHARE, measured
    assert measured["alone"]["planned"] >= OF_ONE_SHARE, measured


def test_everything_is_planned_and_the_mark_moves_on(measured: dict[str, Any]) -> None:
    assert not measured["is_open"], measured
    assert measured["lag_s"] <= 0, measured
    assert measured["shares"] > 1, measured
    unreadable_postponed = POSTPONED // 5
    assert measured["tick"]["set_aside"] == BAD_GROUPS + unreadable_postponed, measured
    # Jobs of each second are caught up or late; the others fire three or four times, by their hours.
    each_second = EACH_SECOND * (CATCH_UP_LIMIT + 600)
    assert measured["executions"] > POSTPONED * 4 // 5 + each_second + 3 * (Quotas().jobs - EACH_SECOND), (
        measured
    )
    assert measured["runs"] > BAD_ENTRIES, measured
