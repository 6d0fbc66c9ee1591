"""The capacity table names parameters of a deployment with values that AWS accepts, and the document shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from common.planning import packs, queue
from executor import redelivery
from scripts.benchmarks.modelled_aws import Setting
from scripts.parameters import DEFAULTS

ROOT = Path(__file__).resolve().parents[2]
# AWS's limits, as the document states them.
LIMITS = {
    "minimumPollers": (2, 200),
    "maximumPollers": (2, 2_000),
    "warmReads": (12_001, 10**6),
    "warmWrites": (4_001, 10**6),
}


@pytest.fixture
def capacity() -> object:
    from scripts.benchmarks import capacity

    return capacity


def test_the_table_and_the_parameters_are_in_step(capacity: object) -> None:
    document = (ROOT / "docs" / "capacity.md").read_text()
    for load, recommended in capacity.RECOMMENDED.items():  # type: ignore[attr-defined]
        assert set(recommended) <= set(DEFAULTS)
        [row] = [
            line
            for line in document.splitlines()
            if line.startswith(f"| {load:,} |") and ("`" in line or "| the defaults | 1" in line)
        ][:1]
        assert f"| {capacity.ACCOUNT[load]:,} |" in row  # type: ignore[attr-defined]
        for name, value in recommended.items():
            least, most = LIMITS[name]
            assert least <= value <= most
            assert f"`{name}: {value}`" in row


def test_the_model_gets_the_recommended_and_the_default_parameters(capacity: object) -> None:
    for load, recommended in capacity.RECOMMENDED.items():  # type: ignore[attr-defined]
        setting = capacity.setting(load)  # type: ignore[attr-defined]
        assert setting.minimum_pollers == recommended.get("minimumPollers", 0)
        assert setting.maximum_pollers == recommended.get("maximumPollers", 0)
        assert setting.warm_reads == recommended.get("warmReads", 12_000)
        assert setting.warm_writes == recommended.get("warmWrites", 4_000)
        assert (setting.again_s, setting.max_again_s) == (
            redelivery._FIRST_WAIT_S,
            redelivery._MAX_WAIT_S,
        )
        assert setting.pack == capacity.pack_of(load) <= 10  # type: ignore[attr-defined]
        assert setting.max_receives == DEFAULTS["maxReceiveCount"]
        assert setting.functions == 1
        early = (1 - queue.EARLY[0], 1 - queue.EARLY[1]) if load >= packs.EARLY_FROM else (0.12, 0.0)
        assert (setting.early_s, setting.latest_s) == pytest.approx(early)
    assert Setting().early_s == pytest.approx(1 - queue.LATE[0])


def test_days_and_bursts_are_counted_with_the_deployments_own_packs() -> None:
    assert DEFAULTS["packFrom"] == packs.PACK_FROM == 1


def test_ten_million_jobs_are_planned_with_the_deployments_own_defaults() -> None:
    from scripts.benchmarks import registered

    assert DEFAULTS["plannerShareEntries"] == registered.SHARE_ENTRIES
    assert DEFAULTS["plannerMemoryMb"] == registered.PLANNER_MB
    assert DEFAULTS["schedulerMemoryMb"] == registered.TICK_MB
