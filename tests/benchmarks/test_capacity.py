"""The capacity table names parameters that serverless.yml has, and the document shows the same table."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_and_the_parameters_are_in_step() -> None:
    pytest.importorskip("simpy", reason="requirements-bench.txt is not installed")
    from benchmarks.capacity import RECOMMENDED

    parameters = yaml.safe_load((ROOT / "serverless.yml").read_text())["params"]["default"]
    document = (ROOT / "docs" / "capacity.md").read_text()
    for load, recommended in RECOMMENDED.items():
        assert set(recommended) <= set(parameters)
        assert f"| {load:,} |" in document
        for name, value in recommended.items():
            assert f"`{name}: {value}`" in document
