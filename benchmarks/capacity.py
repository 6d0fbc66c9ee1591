"""The modelled system past this machine: bursts of up to a million executions, default and provisioned pollers.

`python -m benchmarks.capacity` writes docs/capacity.md and its plot.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.measure import percentile
from benchmarks.model import BATCH, Outcome, Setting, burst
from benchmarks.plot import lines
from benchmarks.result import Result, Table

_DOCS = Path(__file__).resolve().parent.parent / "docs"
_ABOUT = Path(__file__).resolve().parent / "about" / "capacity_document.md"

# For this load, set these parameters (of serverless.yml, but for the account's limit).
RECOMMENDED: dict[int, dict[str, int]] = {
    1_000: {},
    10_000: {"minimumPollers": 20, "maximumPollers": 50},
    100_000: {"minimumPollers": 100, "maximumPollers": 200},
    1_000_000: {"minimumPollers": 200, "maximumPollers": 1000},
}
_ACCOUNT = {1_000: 1_000, 10_000: 1_000, 100_000: 2_000, 1_000_000: 10_000}


def run(scale: float) -> Result:
    """Simulate; `scale` shrinks the loads."""
    rows, recommended, figures = [], [], {}
    for load, parameters in RECOMMENDED.items():
        executions = max(100, int(load * scale))
        account = _ACCOUNT[load]
        default = burst(executions, Setting(account_concurrency=account))
        pollers = parameters.get("minimumPollers", 0), parameters.get("maximumPollers", 0)
        provisioned = Setting(
            minimum_pollers=pollers[0], maximum_pollers=pollers[1], account_concurrency=account
        )
        settings = {"default pollers": default}
        if parameters:
            settings[f"{pollers[0]}-{pollers[1]} pollers"] = burst(executions, provisioned)
        if load >= 100_000:
            several = Setting(**{**_fields(provisioned), "queues": 4})
            settings["the same, four queues and functions"] = burst(executions, several)
        for name, outcome in settings.items():
            rows.append([f"{executions:,}", name, f"{account:,}", *_cells(outcome)])
            figures[f"{executions} {name}"] = statistics.median(outcome.lateness)
        text = ", ".join(f"`{name}: {value}`" for name, value in parameters.items()) or "the defaults"
        recommended.append([f"{load:,}", text, f"{account:,}"])
    head = [
        "due at one second",
        "setting",
        "account concurrency",
        "p50, s",
        "p99, s",
        "most, s",
        "environments",
    ]
    return Result(
        "capacity",
        scale,
        tables=[
            Table("Lateness of a burst, simulated", head, rows),
            Table(
                "For this load, set these parameters",
                ["due at one second", "parameters", "account concurrency"],
                recommended,
            ),
        ],
        goals=[],
        figures=figures,
        notes=[
            "A cold environment takes 1.2 s and a batch of ten 0.3 s, both parameters of benchmarks/model.py."
        ],
    )


def _fields(setting: Setting) -> dict[str, int]:
    return {
        "minimum_pollers": setting.minimum_pollers,
        "maximum_pollers": setting.maximum_pollers,
        "account_concurrency": setting.account_concurrency,
    }


def _cells(outcome: Outcome) -> list[str]:
    late = outcome.lateness
    figures = (statistics.median(late), percentile(late, 0.99), max(late))
    return [*(f"{figure:,.1f}" for figure in figures), f"{outcome.most_at_once:,}"]


def write(result: Result) -> None:
    """docs/capacity.md and its plot, from a result at scale 1."""
    (_DOCS / "capacity.svg").write_text(_plot(1_000_000))
    tables = "\n\n".join(table.markdown() for table in result.tables)
    notes = "\n".join(f"- {note}" for note in result.notes)
    (_DOCS / "capacity.md").write_text(f"{_ABOUT.read_text().strip()}\n\n{tables}\n\n{notes}\n")


def _plot(executions: int) -> str:
    series = {}
    parameters = RECOMMENDED[executions]
    provisioned = Setting(
        minimum_pollers=parameters["minimumPollers"],
        maximum_pollers=parameters["maximumPollers"],
        account_concurrency=_ACCOUNT[executions],
    )
    settings = {
        "default pollers": Setting(account_concurrency=_ACCOUNT[executions]),
        "200-1000 pollers": provisioned,
        "the same, four queues": Setting(**{**_fields(provisioned), "queues": 4}),
    }
    for name, setting in settings.items():
        begins = sorted(burst(executions, setting).lateness)
        step = max(1, len(begins) // 200)
        series[name] = [(begins[n], (n + 1) * BATCH) for n in range(0, len(begins), step)]
    return lines("A million executions due at one second", "seconds after it", "executions started", series)


if __name__ == "__main__":
    write(run(1))
