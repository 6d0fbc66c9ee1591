"""Measuring on a busy machine: processor time, rounds in turn, medians."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import track as rich_track

Item = TypeVar("Item")


def take_turns(candidates: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Call each candidate once a round, in alternating order; returns their results by name.

    Another program that slows the machine down then affects all candidates, and their ratio stays.
    """
    measured: dict[str, list[float]] = {name: [] for name in candidates}
    for number in track(range(rounds), "rounds"):
        order = list(candidates) if number % 2 == 0 else list(candidates)[::-1]
        for name in order:
            measured[name].append(candidates[name]())
    return measured


def ratio(above: Sequence[float], below: Sequence[float]) -> float:
    """The median of the rounds' own ratios."""
    return statistics.median(a / b for a, b in zip(above, below, strict=True))


def cpu_s(work: Callable[[], object]) -> float:
    """Processor seconds of this process, all threads."""
    began = time.process_time()
    work()
    return time.process_time() - began


def percentile(values: Iterable[float], share: float) -> float:
    """The value below which this share of the values lies: `percentile(v, 0.99)`."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def track(items: Sequence[Item], label: str) -> Iterator[Item]:
    """Iterate over the items, with a progress bar in a terminal."""
    hidden = not sys.stderr.isatty()
    yield from rich_track(items, label, console=Console(stderr=True), transient=True, disable=hidden)
