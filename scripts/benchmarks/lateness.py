"""The lateness of runs on the embedded AWS, next to a bare queue and Lambda on the same engine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

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
from scripts.measure.rounds import percentile

_STEADY_S = 120
_BURST = 500


def run(scale: float) -> Result:
    """Two minutes of ten executions a second, then 500 at one second."""
    with embedded_engine() as engine:
        _warm(engine)
        steady_s = max(5, int(_STEADY_S * scale))
        steady, steady_bare = _steady(engine, steady_s)
        burst, burst_bare = _burst(engine, max(20, int(_BURST * scale)))
    rows = [
        _row(f"10 a second for {steady_s} s, Minute8", steady),
        _row("the same, bare queue and Lambda", steady_bare),
        _row(f"{len(burst)} at one second, Minute8", burst),
        _row("the same, bare queue and Lambda", burst_bare),
    ]
    p50 = statistics.median(steady) - statistics.median(steady_bare)
    p99 = percentile(steady, 0.99) - percentile(steady_bare, 0.99)
    return Result(
        "lateness",
        scale,
        tables=[Table("Lateness, s", ["load", "runs", "p50", "p99", "most", "least"], rows)],
        goals=[
            Goal("lateness: steady p50 over the bare path, s", 0.1, p50, at_least=False),
            Goal("lateness: steady p99 over the bare path, s", 0.5, p99, at_least=False),
            Goal("lateness: the least, s (never early)", 0, min(*steady, *burst), at_least=True),
        ],
        figures={"steady over the bare path, s": {"p50": p50, "p99": p99}},
    )


def _warm(engine: Engine) -> None:
    """Cold starts on two busy cores take seconds, and are not measured here."""
    engine.send_bare([int(time.time()) + 1] * 50)
    warm_up(engine, 50)


def _steady(engine: Engine, seconds: int) -> tuple[list[float], list[float]]:
    began = time.time()
    first = int(began) + 5 + seconds // 30
    times = [first + second for second in range(seconds) for _ in range(10)]
    engine.send_bare(times)
    executions = every_second(engine, first, seconds)
    return lateness_of(engine, executions), _bare(engine, began, len(times))


def _burst(engine: Engine, count: int) -> tuple[list[float], list[float]]:
    """One after the other: on two cores each would slow the other down."""
    began = time.time()
    engine.send_bare([int(began) + 10] * count)
    bare = _bare(engine, began, count)
    executions = register(engine, "burst", [int(time.time()) + 15 + count // 40] * count)
    return lateness_of(engine, executions), bare


def _bare(engine: Engine, since: float, count: int) -> list[float]:
    until = time.time() + PATIENCE_S
    while len(late := engine.bare_lateness(since)) < count and time.time() < until:
        time.sleep(1)
    return late


def _row(name: str, late: Sequence[float]) -> list[str]:
    figures = [statistics.median(late), percentile(late, 0.99), max(late), min(late)]
    return [name, f"{len(late):,}", *(f"{figure:.2f}" for figure in figures)]
