"""What the projection costs more for each run: the bound behind docs/performance.md."""

from __future__ import annotations

import pytest

from scripts.benchmarks import projecting
from scripts.benchmarks.projecting import Mix


@pytest.mark.parametrize(
    ("jobs", "runs", "write_units", "read_units"),
    [
        # A record of 700 bytes costs half a unit by its key, and a twelfth with its job's others.
        (10, 1, (0.1, 0.155), (0.5, 0.60)),
        (1, 10, (0.1, 0.155), (0.1, 0.20)),
    ],
)
def test_ticks_cost_so_much_more_for_each_run_of_another_tenant(
    jobs: int, runs: int, write_units: tuple[float, float], read_units: tuple[float, float]
) -> None:
    """One run per tenant and minute: 160 tenants next to 80, so that what each tick costs anyway is left out."""
    few, many = (
        projecting.units_of_ticks(Mix("", tenants, jobs, runs), projects=True) for tenants in (80, 160)
    )
    more_runs = 80 * jobs * runs * projecting.WINDOWS
    assert write_units[0] <= (many["write units"] - few["write units"]) / more_runs <= write_units[1]
    assert read_units[0] <= (many["read units"] - few["read units"]) / more_runs <= read_units[1]
