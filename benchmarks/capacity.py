"""The modelled system beyond this machine: bursts of up to a million executions, by pollers, tables and functions."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.measure import percentile, track
from benchmarks.model import burst
from benchmarks.modelled_queue import BATCH
from benchmarks.requests import _EXECUTOR_GB, PRICES
from benchmarks.result import Result, Table
from benchmarks.setting import Outcome, Setting

# For this load, set these parameters (of serverless.yml). The account's concurrency is requested from AWS.
RECOMMENDED: dict[int, dict[str, int]] = {
    1_000: {},
    10_000: {"minimumPollers": 20, "maximumPollers": 50},
    100_000: {"minimumPollers": 200, "maximumPollers": 250, "warmReads": 30_000, "warmWrites": 30_000},
    1_000_000: {"minimumPollers": 200, "maximumPollers": 300, "warmReads": 45_000, "warmWrites": 45_000},
}
ACCOUNT = {1_000: 1_000, 10_000: 1_000, 100_000: 5_000, 1_000_000: 10_000}
_FIELDS = {
    "minimumPollers": "minimum_pollers",
    "maximumPollers": "maximum_pollers",
    "warmReads": "warm_reads",
    "warmWrites": "warm_writes",
}
# `Event` targets are called in the same account, and run this long.
_TARGET_S = 0.2
_FUNCTIONS = 4
_HOURS_A_MONTH = 730
# A plot needs no more.
_POINTS = 200


@dataclass(frozen=True, slots=True)
class Case:
    """One simulated burst."""

    load: int
    name: str
    setting: Setting


def cases() -> Iterator[Case]:
    """Each load with the defaults, with its pollers on new tables, with all recommended parameters, and with more."""
    for load, parameters in RECOMMENDED.items():
        default = Setting(account_concurrency=ACCOUNT[load], target_s=_TARGET_S)
        yield Case(load, "the defaults", default)
        if not parameters:
            continue
        recommended = setting(load)
        pollers = f"{recommended.minimum_pollers}-{recommended.maximum_pollers} pollers"
        new = Setting()
        if recommended.warm_writes != new.warm_writes:
            cold = replace(recommended, warm_reads=new.warm_reads, warm_writes=new.warm_writes)
            yield Case(load, f"{pollers}, new tables", cold)
            pollers += ", warm tables"
        yield Case(load, pollers, recommended)
        if load >= 100_000:
            warm = recommended.warm_writes * _FUNCTIONS
            several = replace(recommended, functions=_FUNCTIONS, warm_reads=warm, warm_writes=warm)
            yield Case(load, f"the same, {_FUNCTIONS} functions on the queue", several)
        if load == 100_000:
            yield Case(load, f"{pollers}, one tenant", replace(recommended, tenants=1))


def setting(load: int) -> Setting:
    """The model's parameters with the recommended values."""
    given = {_FIELDS[name]: value for name, value in RECOMMENDED[load].items()}
    return Setting(**given, account_concurrency=ACCOUNT[load], target_s=_TARGET_S)  # type: ignore[arg-type]


def run(scale: float) -> Result:
    """Simulate; `scale` shrinks the loads."""
    rows, recommended, figures = [], [], {}
    for case in track(list(cases()), "bursts"):
        executions = max(100, int(case.load * scale))
        outcome = burst(executions, case.setting)
        found = _found(executions, outcome)
        figures[f"{case.load} {case.name}"] = found
        rows.append([f"{executions:,}", case.name, *_cells(found)])
        if case.setting == setting(case.load):
            text = ", ".join(f"`{name}: {value}`" for name, value in RECOMMENDED[case.load].items())
            late = [f"{found[name]:,.1f}" for name in ("p50_s", "most_s")]
            recommended.append(
                [
                    f"{case.load:,}",
                    text or "the defaults",
                    f"{ACCOUNT[case.load]:,}",
                    *late,
                    f"{found['dollars']:.2f}",
                    f"{pollers_dollars(case.setting):,.0f}",
                ]
            )
    return Result(
        "capacity",
        scale,
        tables=[
            Table(
                "For this load, set these parameters",
                [
                    "due at one second",
                    "parameters",
                    "account concurrency",
                    "p50, s",
                    "most, s",
                    "$ a burst",
                    "pollers, $ a month",
                ],
                recommended,
            ),
            Table("Lateness, throttling and cost of a burst, simulated", _HEAD, rows),
        ],
        goals=[],
        figures=figures,
        notes=[
            f"Every burst comes out of silence: no environment is warm. A cold one takes {Setting().cold_s} s, a batch"
            f" of ten {Setting().services[0].whole_s} s of which {Setting().services[0].leads_s[0]} s to its claims, a"
            f" target {_TARGET_S} s in the same account. 1,000 tenants share each burst evenly.",
            "Throttled: requests that DynamoDB turned away. Came back: executions turned away four times, which the"
            " queue delivers again after `visibilityTimeoutS`.",
            "Dollars: queue, executor and tables, by benchmarks/prices.json; what warming a table costs once is"
            " not among them. Pollers are paid by the hour, whether they have work or not.",
        ],
    )


_HEAD = ["due at one second", "setting", "p50, s", "p99, s", "most, s", "executors", "throttled", "came back"]
_HEAD += ["targets done after, s", "$ a burst"]


def _found(executions: int, outcome: Outcome) -> dict[str, Any]:
    late = sorted(outcome.lateness)
    step = max(1, len(late) // _POINTS)
    return {
        "p50_s": statistics.median(late),
        "p99_s": percentile(late, 0.99),
        "most_s": late[-1],
        "executors": outcome.most_executors,
        "throttled": outcome.throttled,
        "came_back": outcome.came_back,
        "dead": outcome.dead,
        "in_flight": outcome.most_in_flight,
        "targets_done_s": outcome.targets_done_at,
        "dollars": dollars(executions, outcome, PRICES),
        "started": [*((round(late[n], 2), n + 1) for n in range(0, len(late), step)), (late[-1], len(late))],
    }


def dollars(executions: int, outcome: Outcome, prices: Mapping[str, float]) -> float:
    """A burst's requests to the queue, the executor and the tables."""
    queue = (executions / BATCH + 2 * outcome.batches) * (
        prices["sqs_request"] + prices["sqs_fair_queue_request"]
    )
    executor = outcome.batches * prices["lambda_request"]
    executor += outcome.busy_s * _EXECUTOR_GB * prices["lambda_gb_s_arm64"]
    tables = executions * (1.5 * prices["dynamodb_read_unit"] + prices["dynamodb_write_unit"])
    return queue + executor + tables


def pollers_dollars(setting: Setting) -> float:
    """The monthly cost of the provisioned pollers."""
    return setting.minimum_pollers * _HOURS_A_MONTH * PRICES["lambda_sqs_poller_hour"]


def _cells(found: Mapping[str, Any]) -> list[str]:
    late = [f"{found[name]:,.1f}" for name in ("p50_s", "p99_s", "most_s")]
    counts = [f"{found[name]:,}" for name in ("executors", "throttled", "came_back")]
    return [*late, *counts, f"{found['targets_done_s']:,.1f}", f"{found['dollars']:.2f}"]
