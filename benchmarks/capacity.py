"""The modelled system past this machine: bursts of up to a million executions, default and provisioned pollers."""

from __future__ import annotations

import statistics

from benchmarks.measure import percentile
from benchmarks.model import Outcome, Setting, burst
from benchmarks.result import Result, Table

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
