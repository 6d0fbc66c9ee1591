"""Everything that a stage costs in a month of the mix, by size, next to two other schedulers for the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from common.planning.execution import Execution
from common.planning.packs import PACK_FROM
from common.timing.windows import WINDOW_S
from common.truth.truth import EXAMINED_A_TICK
from scripts.benchmarks import workload
from scripts.benchmarks.day import POLLS, SAMPLE, Load, bill_of, jobs_for, load_of, windows_of_day
from scripts.benchmarks.projecting import Mix, units_of_day, units_of_windows, windows_from
from scripts.measure.prices import PRICES
from scripts.measure.result import Goal, Result, Table, kept
from tests.docs import test_idle_cost as idle

_MILLION: Final = 1_000_000
# Millions of runs a month. The goal is of the third size.
_SIZES: Final = (0.001, 1, 30, 100)
_GOAL_AT: Final = 2
# The noon hour, which is as full as an average one.
_FROM: Final = workload.DAY + 12 * 3_600
_WINDOWS: Final = 6
# The default of a tenant's `retention_days`, and what DynamoDB adds to each item.
_RETENTION_DAYS: Final = 30
_ITEM_BYTES: Final = 100
# https://upstash.com/pricing/qstash: a million messages, a month of up to a million a day, a schedule beyond the first.
_QSTASH_MILLION: Final = 10.0
_QSTASH_FIXED: Final = 180.0
_QSTASH_SCHEDULE: Final = 0.01
_FREE_SCHEDULES: Final = 1_000


_IDLE: Final = "the idle stage: alarms, dashboards, polls, canary, ticks"


def run(scale: float) -> Result:
    """Count a month at each size."""
    sizes = [size * scale for size in _SIZES]
    months = [_month(millions) for millions in sizes]
    jobs = [jobs_for(_a_day(millions)) for millions in sizes]
    sums = [sum(month.values()) for month in months]
    more = [(dollars - month[_IDLE]) / size for size, month, dollars in zip(sizes, months, sums, strict=True)]
    scheduler = [size * _MILLION * PRICES["scheduler_invocation"] for size in sizes]
    qstash = list(map(_qstash, sizes, jobs))
    heads = [f"{size * _MILLION:,.0f} runs" for size in sizes]
    rows = [[name, *(f"{month[name]:.2f}" for month in months)] for name in months[0]]
    rows.append(["**all**", *(f"**{dollars:.2f}**" for dollars in sums)])
    rows.append(["a million runs, beyond the idle stage", *(f"{dollars:.2f}" for dollars in more)])
    services = [
        ("Minute8", sums, "your AWS account operates it"),
        (
            "EventBridge Scheduler",
            scheduler,
            "history, exact seconds, tenants, overlap; 14 M a month are free",
        ),
        ("QStash", qstash, "tenants, targets that are not HTTP, history beyond days"),
    ]
    return Result(
        "bill",
        scale,
        tables=[
            Table("Dollars a month, everything counted", ["for", *heads], rows),
            Table(
                "The same runs by services, dollars a month",
                ["", *heads, "lacks"],
                [[name, *(f"{dollars:,.0f}" for dollars in month), lacks] for name, month, lacks in services],
            ),
        ],
        goals=[
            Goal("a million runs of the mix, everything beyond the idle stage, $", 1.0, more[_GOAL_AT], False)
        ],
        figures=dict(zip(heads, months, strict=True)),
        notes=[
            f"The months have {', '.join(f'{count:,}' for count in jobs)} jobs of {workload.TENANTS:,} tenants."
            " Requests to the API and the targets' own functions are not in them."
        ],
    )


def _month(millions: float) -> dict[str, float]:
    """Dollars by purpose."""
    windows = windows_of_day(max(SAMPLE // 10, jobs_for(_a_day(millions))))
    load = load_of(windows, PACK_FROM, POLLS)
    runs = millions * _MILLION
    read, write = PRICES["dynamodb_read_unit"], PRICES["dynamodb_write_unit"]
    after = _after_planning(windows)
    logged_gb = _logged_bytes(load) * runs / load.executions / 1e9
    return {
        _IDLE: sum(amount * price for amount, price in idle.lines().values()),
        **{name: dollars * millions for name, dollars in bill_of(load).items()},
        "log of executions, projection, comparison": after["write"] * runs * write
        + after["read"] * runs * read,
        "projection of days": _days(write, read, min(workload.TENANTS, _a_day(millions))),
        "truth checker, a unit for each that it examines": idle.TICKS * EXAMINED_A_TICK * read,
        "logs and metrics of batches": logged_gb * PRICES["cloudwatch_logs_gb"],
        f"storage of {_RETENTION_DAYS} days, with point-in-time recovery": _storage(runs),
    }


def _a_day(millions: float) -> int:
    return round(millions * _MILLION / idle.DAYS)


def _after_planning(windows: Sequence[Sequence[Execution]]) -> dict[str, float]:
    """Units that ticks take for a run besides its planning, over an hour of the day."""
    by_start = {executions[0].fire_at // WINDOW_S * WINDOW_S: executions for executions in windows}
    hour = [by_start.get(start, ()) for start in windows_from(_FROM, _WINDOWS)]
    counts = units_of_windows(workload.TENANTS, hour)
    runs = sum(map(len, hour[-_WINDOWS:]))
    return {kind: counts[f"{kind} units"] / runs for kind in ("read", "write")}


def _days(write: float, read: float, tenants: int) -> float:
    """Of so many tenants: a tenant's day is the same few units, whatever its runs are."""
    units = units_of_day(Mix("", 1, 10, 1))
    a_day = units["write units"] * write + units["read units"] * read
    return a_day * tenants * idle.DAYS


def _logged_bytes(load: Load) -> float:
    """What a successful batch logs grows with its executions."""
    single, ten = idle.metrics_bytes(1), idle.metrics_bytes(10)
    an_execution = (ten - single) / 9
    return sum(count * (single + (size - 1) * an_execution) for size, count in load.batches.items() if size)


def _storage(runs: float) -> float:
    """The records, once as many expire as come."""
    (requests,) = kept(["requests"])
    a_run: float = requests.figures["Event"]["counted"]["bytes of a run's record"] + _ITEM_BYTES
    gb = runs * _RETENTION_DAYS / idle.DAYS * a_run / 1e9
    return gb * (PRICES["dynamodb_gb_month"] + PRICES["dynamodb_pitr_gb_month"])


def _qstash(millions: float, jobs: int) -> float:
    """The cheaper of its plans. Each job is a schedule there."""
    schedules = max(0, jobs - _FREE_SCHEDULES) * _QSTASH_SCHEDULE
    fixed = _QSTASH_FIXED if _a_day(millions) <= _MILLION else float("inf")
    return min(millions * _QSTASH_MILLION + schedules, fixed + schedules)
