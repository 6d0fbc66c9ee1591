"""Each benchmark runs at a tiny scale and gives its figures; no durations are tested."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.benchmarks import document, workload
from scripts.benchmarks.__main__ import BENCHMARKS, main, shown
from scripts.benchmarks.api_cpu import PAIRS, in_process
from scripts.measure.result import Result

ROOT = Path(__file__).resolve().parents[2]
# What needs no embedded AWS.
QUICK = ["bill", "cold_start", "day", "requests", "planning", "projecting", "api_cpu"]


@pytest.mark.parametrize("name", QUICK)
def test_a_benchmark_reports_tables_goals_and_figures(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--json", "--scale", "0.002"]) == 0
    result = Result.from_json(json.loads(capsys.readouterr().out))
    assert result.name == name
    assert result.goals
    assert result.figures
    for table in result.tables:
        assert table.rows
        assert all(len(row) == len(table.head) for row in table.rows)
    assert name in shown(result)


def test_the_api_and_the_bare_handler_answer_alike() -> None:
    """Both sides of api_cpu.py do the same work. No durations are tested, and no embedded AWS is needed."""
    with in_process(2) as calls:
        assert all(cpu_s > 0 for cpu_s in (call() for call in calls.values()))
    assert set(calls) == set(PAIRS) | set(PAIRS.values())


def test_the_list_names_every_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    listed = capsys.readouterr().out
    assert all(name in listed for name in BENCHMARKS)
    for name in BENCHMARKS:
        assert (ROOT / "scripts" / "benchmarks" / f"{name}.py").exists()


def test_the_document_is_what_the_kept_results_make_it() -> None:
    for name, text in document.texts().items():
        assert text == (document.DOCS / name).read_text(), name


@pytest.mark.parametrize("name", ["capacity", "registered"])
def test_a_simulation_reports_tables_and_figures(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--json", "--scale", "0.002"]) == 0
    result = Result.from_json(json.loads(capsys.readouterr().out))
    assert result.figures
    assert all(len(row) == len(table.head) for table in result.tables for row in table.rows)


def test_a_jobs_group_is_known_without_the_job() -> None:
    assert [workload.group(number) for number in range(500)] == [workload.job(n).group for n in range(500)]
