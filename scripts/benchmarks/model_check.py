"""The model of docs/capacity.md next to measurements: small loads on the embedded AWS, measured and modelled.

The model gets the polling of the engine under the strict layer (docs/embedded-aws.md) and the measured durations of the
batches; when which of them begins is what it has to predict.
"""

from __future__ import annotations

import json
import statistics
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from common.telemetry import LATENESS_S
from scripts.benchmarks.model import burst, simulate
from scripts.benchmarks.modelled_aws import Message, Service, Setting
from scripts.embedded.server import QUEUE_LOOK_INTERVAL_S
from scripts.embedded.strict.layer import DUPLICATE_AFTER_S, MESSAGES_PER_DUPLICATE
from scripts.measure.engine import (
    PATIENCE_S,
    Engine,
    embedded_engine,
    every_second,
    lateness_of,
    register,
    warm_up,
)
from scripts.measure.result import Goal, Result, Table
from scripts.measure.rounds import percentile, track

_BURST = 300
_ROUNDS = 3
_STEADY_S = 30
CONCURRENCY = (10, 4)
_NO_LIMIT = 10**6
# Of ministack's `_poll_loop`, its `_ESM_IDLE_WAKE_GAP_SECONDS`.
_IN_VAIN_S = 0.05
# A message becomes visible up to a second before it is due.
_EARLY_S = 1.5
# Then the strict layer begins with five batches again (scripts/embedded/strict/lambdas.py), and no copy is left.
_SILENCE_S = 65
_POINTS = 100


@dataclass(frozen=True, slots=True)
class Round:
    """A load once, measured and modelled: lateness of its runs, sorted.

    `modelled` gives each batch the duration that was measured, one after the other; `smooth` all of them the mean, as
    the model of AWS does.
    """

    measured: Sequence[float]
    modelled: Sequence[float]
    smooth: Sequence[float]


@dataclass(frozen=True, slots=True)
class Compared:
    """A load several times. This machine is noisy, so figures are medians of the rounds, and gaps are of all runs."""

    name: str
    rounds: Sequence[Round]

    def runs(self, kind: str) -> list[float]:
        """The lateness of all rounds."""
        return sorted(late for once in self.rounds for late in getattr(once, kind))

    def gap(self, kind: str) -> float:
        return gap(self.runs("measured"), self.runs(kind))

    def rows(self) -> list[list[str]]:
        measured = [self.name, "measured", *_cells(self._medians("measured")), ""]
        return [measured] + [
            ["", words, *_cells(self._medians(kind)), f"{self.gap(kind):.2f}"]
            for kind, words in (("modelled", "modelled"), ("smooth", "all at the mean"))
        ]

    def ratios(self) -> list[float]:
        """Modelled / measured: p50, p99, the maximum and the rate."""
        of_rounds = [
            [modelled / measured for modelled, measured in zip(*map(_figures, pair), strict=True)]
            for pair in ((once.modelled, once.measured) for once in self.rounds)
        ]
        return [statistics.median(ratios) for ratios in zip(*of_rounds, strict=True)]

    def _medians(self, kind: str) -> list[float]:
        figures = [_figures(getattr(once, kind)) for once in self.rounds]
        return [statistics.median(values) for values in zip(*figures, strict=True)]


def run(scale: float) -> Result:
    """Bursts with two settings of `maximumConcurrency`, then ten executions a second."""
    count, rounds = max(30, int(_BURST * scale)), max(1, round(_ROUNDS * scale))
    with embedded_engine(strict=True) as engine:
        warm_up(engine)
        measured = {concurrency: [_burst(engine, count, concurrency)] for concurrency in CONCURRENCY}
        for number in track(range(1, rounds), "rounds"):
            for concurrency in CONCURRENCY:
                measured[concurrency].append(_burst(engine, count, concurrency, number))
        bursts = [
            Compared(f"{count} at one second, `maximumConcurrency: {concurrency}`", each)
            for concurrency, each in measured.items()
        ]
        engine.set_concurrency(max(CONCURRENCY))
        steady_s = max(5, int(_STEADY_S * scale))
        compared = [*bursts, Compared(f"10 a second for {steady_s} s", [_steady(engine, steady_s)])]
    head = ["load", "", "p50, s", "p99, s", "most, s", "runs a second", "largest gap"]
    # The median may jump by the time between two batches' starts.
    worst = max(abs(ratio - 1) for load in bursts for ratio in load.ratios()[1:])
    widest = max(load.gap("modelled") for load in bursts)
    return Result(
        "model_check",
        scale,
        tables=[Table("Lateness on the embedded AWS, measured and modelled", head,
                      [row for load in compared for row in load.rows()])],
        goals=[
            Goal("the model of a burst: p99, most and rate are off by at most", 0.1, worst, at_least=False),
            Goal("the model of a burst: largest gap between the distributions", 0.15, widest, at_least=False),
        ],
        figures={
            load.name: {
                "ratios": load.ratios(),
                "rounds": [[_figures(once.measured), _figures(once.modelled)] for once in load.rounds],
                "measured": _curve(load.runs("measured")),
                "modelled": _curve(load.runs("modelled")),
            }
            for load in compared
        },
        notes=[
            "Modelled: the model's first batch lasts as long as the first that was measured under this load, and so on."
            f" Each burst was measured {rounds} times, out of silence; figures are medians."
            " The gap is the largest between the two distributions of lateness, as a share of the runs."
        ],
    )  # fmt: skip


def _burst(engine: Engine, count: int, concurrency: int, number: int = 0) -> Round:
    engine.set_concurrency(concurrency)
    due_at = int(time.time()) + _SILENCE_S + count // 6
    executions = register(engine, f"at-{concurrency}-{number}", [due_at] * count)
    assert len(executions) == count, "this machine was too slow to register them before their second"
    late = sorted(lateness_of(engine, executions))
    setting = measured_setting(engine, concurrency, [due_at], count)
    modelled, smooth = (sorted(burst(count, each).lateness) for each in (setting, at_the_mean(setting)))
    return Round(late, modelled, smooth)


def _steady(engine: Engine, seconds: int) -> Round:
    first = int(time.time()) + _SILENCE_S
    late = sorted(lateness_of(engine, every_second(engine, first, seconds)))
    setting = measured_setting(engine, max(CONCURRENCY), range(first, first + seconds), len(late))
    modelled, smooth = (
        sorted(simulate(_each_second(seconds), each).lateness) for each in (setting, at_the_mean(setting))
    )
    return Round(late, modelled, smooth)


def _each_second(seconds: int) -> list[Message]:
    """The messages that one job sends together become visible equally early."""
    messages = (Message(second - job / 10, second, job) for second in range(seconds) for job in range(10))
    return sorted(messages, key=lambda message: message.visible_at)


def at_the_mean(setting: Setting) -> Setting:
    """The same, with the average duration of the batches that have runs for each batch."""
    batches = [service for service in setting.services if service.leads_s]
    lead_s = statistics.mean(statistics.mean(batch.leads_s) for batch in batches)
    whole_s = statistics.mean(batch.whole_s for batch in batches)
    return replace(setting, services=(Service((lead_s,), whole_s),))


def measured_setting(engine: Engine, concurrency: int, seconds: Sequence[int], executions: int) -> Setting:
    """The embedded AWS under a load of this many executions, due at these seconds, with its batches' durations.

    Nothing throttles, the executor's processes are there already.
    """
    # A batch is logged when it has ended, after its runs began.
    until = time.time() + PATIENCE_S
    while (batches := _batches(engine, seconds)) and _runs(batches) < executions:
        assert time.time() < until, f"the log has not all of {executions} runs"
        time.sleep(1)
    return Setting(
        maximum_concurrency=concurrency,
        warm_environments=concurrency,
        warm_reads=_NO_LIMIT,
        warm_writes=_NO_LIMIT,
        services=tuple(batches),
        early_s=1.0,  # a registration sends its own executions at once
        look_s=QUEUE_LOOK_INTERVAL_S,
        after_empty_s=_IN_VAIN_S,
        doubled=MESSAGES_PER_DUPLICATE,
        again_after_s=DUPLICATE_AFTER_S,
    )


def _batches(engine: Engine, seconds: Sequence[int]) -> list[Service]:
    return services(engine.executor_log(seconds[0] - _EARLY_S), seconds)


def _runs(batches: Iterable[Service]) -> int:
    return sum(len(batch.leads_s) for batch in batches)


def services(events: Iterable[dict[str, Any]], seconds: Sequence[int]) -> list[Service]:
    """The batches in the executor's log of a load that was due at these ordered seconds, as they began.

    Of each: when its runs began after the batch, or their second, had begun; how long it lasted. One of messages that
    have come before has no runs.
    """
    streams = defaultdict(list)
    for event in events:
        streams[event["logStreamName"]].append(event)
    batches = []
    for stream in streams.values():
        reports = [event for event in stream if event["message"].startswith("REPORT")]
        late = [late for event in stream for late in _lateness_in(event["message"])]
        if reports:
            ended_at = reports[0]["timestamp"] / 1000
            duration_s = int(reports[0]["message"].partition("Duration: ")[2].split()[0]) / 1000
            began_at = ended_at - duration_s
            if began_at >= seconds[0] - _EARLY_S:  # otherwise it belongs to an earlier load
                batches.append((began_at, _service(began_at, ended_at, late, seconds)))
    return [service for _, service in sorted(batches, key=lambda pair: pair[0])]


def _service(began_at: float, ended_at: float, late: Sequence[float], seconds: Sequence[int]) -> Service:
    # A run began at its second plus its lateness, before the batch ended: the last such second.
    if not late:
        return Service((), ended_at - began_at)
    dues = [max((at for at in seconds if at + late_s <= ended_at), default=seconds[0]) for late_s in late]
    leads = [due_at + late_s - max(began_at, due_at) for due_at, late_s in zip(dues, late, strict=True)]
    whole_s = ended_at - max(began_at, max(dues))
    return Service(tuple(max(0.0, lead_s) for lead_s in leads), max(whole_s, *leads))


def _lateness_in(line: str) -> list[float]:
    """The values of a metric in a log line of powertools: one value or a list."""
    if not line.startswith("{") or LATENESS_S not in line:
        return []
    value = json.loads(line)[LATENESS_S]
    return [float(late) for late in (value if isinstance(value, list) else [value])]


def gap(sample: Sequence[float], other: Sequence[float]) -> float:
    """The largest difference between two sorted samples' distributions."""
    values = sorted({*sample, *other})
    return max(
        abs(bisect_right(sample, v) / len(sample) - bisect_right(other, v) / len(other)) for v in values
    )


def _figures(late: Sequence[float]) -> list[float]:
    """p50, p99, the maximum, and runs per second until the last began."""
    return [statistics.median(late), percentile(late, 0.99), max(late), len(late) / max(late)]


def _cells(figures: Sequence[float]) -> list[str]:
    return [*(f"{figure:.2f}" for figure in figures[:3]), f"{figures[3]:.0f}"]


def _curve(late: Sequence[float]) -> list[tuple[float, int]]:
    step = max(1, len(late) // _POINTS)
    return [*((round(late[n], 3), n + 1) for n in range(0, len(late), step)), (late[-1], len(late))]
