"""The modelled system beyond this machine: bursts of up to a million executions, by pollers, tables and functions."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from common.limits import MAX_IN_A_PACK, MAX_WAKES
from common.planning.packs import EARLY_FROM, PACK_FROM
from common.planning.queue import EARLY
from scripts.benchmarks.model import burst
from scripts.benchmarks.modelled_aws import BATCH, SLOW_START_BATCHES, Outcome, Setting, measured
from scripts.benchmarks.registered import SHARE_ENTRIES
from scripts.benchmarks.requests import EXECUTOR_GB, EXECUTOR_MB
from scripts.measure.prices import PRICES
from scripts.measure.result import Goal, Result, Table
from scripts.measure.rounds import percentile, track

# For this load, set these parameters (of serverless.yml). The account's concurrency is requested from AWS.
RECOMMENDED: dict[int, dict[str, int]] = {
    1_000: {},
    10_000: {},
    100_000: {"minimumPollers": 40, "maximumPollers": 50, "warmReads": 40_000, "warmWrites": 40_000},
    1_000_000: {"minimumPollers": 150, "maximumPollers": 200, "warmReads": 120_000, "warmWrites": 120_000},
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
# A Lambda environment before the init phase: assumed, for AWS publishes no number.
SANDBOX_S = 0.5
# A new table's 4,000 writes a second take over four minutes for a million, whatever reads the queue.
_MAX_ON_NEW_TABLES = 100_000
# An executor with this memory was measured, too.
_LARGER_MB = 1_024
# A plot needs no more.
_POINTS = 200
# The load whose curves the page has.
PLOTTED = 1_000_000


@dataclass(frozen=True, slots=True)
class Case:
    """One simulated burst."""

    load: int
    name: str
    setting: Setting


def cases() -> Iterator[Case]:
    """Each load with the defaults, with its pollers on new tables, with all recommended parameters, and with more."""
    for load, parameters in RECOMMENDED.items():
        if load <= _MAX_ON_NEW_TABLES:
            yield Case(load, "the defaults", _default(load))
        if load == 1_000:
            fewest = replace(_default(load), first_batches=SLOW_START_BATCHES)
            yield Case(load, "maximumConcurrency: off, Lambda begins with two", fewest)
        if load == 10_000:
            yield Case(load, "the defaults, one tenant", replace(_default(load), tenants=1))
            larger = with_executor(_default(load), _LARGER_MB)
            yield Case(load, f"executorMemoryMb: {_LARGER_MB}", larger)
        if not parameters:
            continue
        recommended = setting(load)
        pollers = f"{recommended.minimum_pollers}-{recommended.maximum_pollers} pollers"
        new = Setting()
        if load <= _MAX_ON_NEW_TABLES < 10 * load:
            cold = replace(recommended, warm_reads=new.warm_reads, warm_writes=new.warm_writes)
            yield Case(load, f"{pollers}, new tables", cold)
        if recommended.warm_writes != new.warm_writes:
            pollers += ", warm tables"
        yield Case(load, pollers, recommended)
        if load == 1_000_000:
            warm = recommended.warm_writes * _FUNCTIONS
            several = replace(recommended, functions=_FUNCTIONS, warm_reads=warm, warm_writes=warm)
            yield Case(load, f"the same, {_FUNCTIONS} functions on the queue", several)


def setting(load: int) -> Setting:
    """The model's parameters with the recommended values."""
    fields = {_FIELDS[name]: value for name, value in RECOMMENDED[load].items()}
    return replace(_default(load), **fields)  # type: ignore[arg-type]


def _default(load: int) -> Setting:
    plain = Setting(
        account_concurrency=ACCOUNT[load],
        target_s=_TARGET_S,
        pack=pack_of(load),
        wakes=wakes_of(load),
    )
    early = replace(plain, early_s=1 - EARLY[0], latest_s=1 - EARLY[1])
    return with_executor(early if load >= EARLY_FROM else plain, EXECUTOR_MB)


def pack_of(load: int) -> int:
    """The executions of a message where so many are due at a second, in shares as planners have them."""
    return min(MAX_IN_A_PACK, -(-min(load, SHARE_ENTRIES) // PACK_FROM))


def wakes_of(load: int) -> int:
    """The wakes of all shares before a second where so many are due."""
    shares = -(-load // SHARE_ENTRIES)
    return min(load // MAX_IN_A_PACK, shares * MAX_WAKES)


def with_executor(setting: Setting, memory_mb: int) -> Setting:
    """The same with the executor that was measured with this memory."""
    executor = measured(memory_mb)
    return replace(setting, executor=executor, cold_s=SANDBOX_S + executor.init_s)


def run(scale: float) -> Result:
    """Simulate; `scale` shrinks the loads."""
    rows, recommended, figures = [], [], {}
    for case in track(list(cases()), "bursts"):
        executions = max(100, int(case.load * scale))
        outcome = burst(executions, case.setting)
        burst_figures = _figures(executions, outcome)
        figures[f"{case.load} {case.name}"] = burst_figures
        if case.load == PLOTTED:
            burst_figures["started"] = _curve(sorted(outcome.lateness))
        rows.append([f"{executions:,}", case.name, *_cells(burst_figures)])
        if case.setting == setting(case.load):
            text = ", ".join(f"`{name}: {value}`" for name, value in RECOMMENDED[case.load].items())
            late = [f"{burst_figures[name]:,.1f}" for name in ("p50_s", "most_s")]
            recommended.append(
                [
                    f"{case.load:,}",
                    text or "the defaults",
                    f"{ACCOUNT[case.load]:,}",
                    *late,
                    f"{burst_figures['dollars']:.2f}",
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
            Table(
                "Out of silence, without wakes",
                ["calls at once", "sandbox, s", "init, s", "last call, s"],
                alone(),
            ),
            Table("Lateness, throttling and cost of a burst, simulated", _HEAD, rows),
        ],
        goals=_goals(figures),
        figures=figures,
        notes=[
            f"Every burst comes out of silence. A cold environment takes {SANDBOX_S} s (assumed) and the measured init"
            f" phase; batches take as long as in Strict lateness at {EXECUTOR_MB} MB; a target takes {_TARGET_S} s in"
            " the same account; 1,000 tenants share each burst. Throttled counts requests that DynamoDB turned away;"
            " came back counts executions turned away four times. Dollars are queue, executor and tables by"
            " scripts/measure/prices.json, without warming.",
        ],
    )


def alone() -> list[list[str]]:
    """The first calls after silence, by how many there are: each second's messages come up to 0.12 s before it."""
    executor = measured(EXECUTOR_MB)
    early_s = Setting().early_s
    rows = []
    for count, lead_s in zip(executor.cold.counts, executor.cold.last_s, strict=True):
        late_s = SANDBOX_S + executor.init_s + lead_s
        span = f"{late_s - early_s:.2f} to {late_s:.2f}"
        rows.append([f"{count}", f"{SANDBOX_S}", f"{executor.init_s:.2f}", span])
    return rows


def _goals(figures: Mapping[str, Any]) -> list[Goal]:
    return [
        Goal(f"{load:,} at one second, the defaults, out of silence: {words}, s", bound, value, False)
        for load, name, words, bound in (
            (1_000, "most_s", "the last", 0.8),
            (10_000, "p50_s", "p50", 1.5),
            (10_000, "most_s", "the last", 3.5),
        )
        for value in [round(figures[f"{load} the defaults"][name], 3)]
    ]


_HEAD = ["due at one second", "setting", "p50, s", "p99, s", "most, s", "executors", "throttled", "came back"]
_HEAD += ["targets done after, s", "$ a burst"]


def _figures(executions: int, outcome: Outcome) -> dict[str, Any]:
    late = sorted(outcome.lateness)
    return {
        "p50_s": statistics.median(late),
        "p99_s": percentile(late, 0.99),
        "most_s": late[-1],
        "executors": outcome.max_executors,
        "throttled": outcome.throttled,
        "came_back": outcome.came_back,
        "dead": outcome.dead,
        "batches": outcome.batches,
        "in_flight": outcome.max_in_flight,
        "targets_done_s": outcome.targets_done_at,
        "dollars": dollars(executions, outcome, PRICES, pack_of(executions)),
    }


def _curve(late: Sequence[float]) -> list[tuple[float, int]]:
    """How many had started, at `_POINTS` instants."""
    step = max(1, len(late) // _POINTS)
    return [*((round(late[n], 2), n + 1) for n in range(0, len(late), step)), (late[-1], len(late))]


def dollars(executions: int, outcome: Outcome, prices: Mapping[str, float], pack: int) -> float:
    """A burst's requests to the queue, the executor and the tables."""
    queue = (executions / BATCH / pack + outcome.wakes + 2 * outcome.batches) * (
        prices["sqs_request"] + prices["sqs_fair_queue_request"]
    )
    executor = outcome.batches * prices["lambda_request"]
    executor += outcome.busy_s * EXECUTOR_GB * prices["lambda_gb_s_arm64"]
    tables = executions * (1.5 * prices["dynamodb_read_unit"] + prices["dynamodb_write_unit"])
    return queue + executor + tables


def pollers_dollars(setting: Setting) -> float:
    """The monthly cost of the provisioned pollers."""
    return setting.minimum_pollers * _HOURS_A_MONTH * PRICES["lambda_sqs_poller_hour"]


def _cells(burst_figures: Mapping[str, Any]) -> list[str]:
    late = [f"{burst_figures[name]:,.1f}" for name in ("p50_s", "p99_s", "most_s")]
    counts = [f"{burst_figures[name]:,}" for name in ("executors", "throttled", "came_back")]
    return [*late, *counts, f"{burst_figures['targets_done_s']:,.1f}", f"{burst_figures['dollars']:.2f}"]
