"""How long a batch takes in a function of some memory: what `strict_lateness` measured, by the size of the batch."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.service import Service

_RESULTS = Path(__file__).resolve().parent / "results" / "strict_lateness.json"


@dataclass(frozen=True, slots=True)
class Timing:
    """Of batches of these many executions, in order: when the median and the last call go out, and when it ends."""

    counts: tuple[int, ...]
    half_s: tuple[float, ...]
    last_s: tuple[float, ...]
    whole_s: tuple[float, ...]

    def service(self, count: int) -> Service:
        """A batch of `count`, between the two sizes that were measured. Its calls go out evenly."""
        half_s, last_s, whole_s = (
            self._at(values, count) for values in (self.half_s, self.last_s, self.whole_s)
        )
        first_s = max(0.0, 2 * half_s - last_s)
        step_s = (last_s - first_s) / max(1, count - 1)
        return Service(tuple(first_s + n * step_s for n in range(count)), max(whole_s, last_s))

    def _at(self, values: tuple[float, ...], count: int) -> float:
        high = min(max(1, bisect_left(self.counts, count)), len(self.counts) - 1)
        low = high - 1
        part = (count - self.counts[low]) / (self.counts[high] - self.counts[low])
        return values[low] + min(1.0, max(0.0, part)) * (values[high] - values[low])


@dataclass(frozen=True, slots=True)
class Measured:
    """The executor with this memory: a warm environment, one whose first batch it is, and one that was only woken.

    Its first wake takes `first_wake_s`, a later one `wake_s`.
    """

    warm: Timing
    cold: Timing
    woken: Timing
    init_s: float
    first_wake_s: float
    wake_s: float


def measured(memory_mb: int) -> Measured:
    """From the kept result of `strict_lateness`."""
    figures: Mapping[str, Any] = json.loads(_RESULTS.read_text())["figures"]
    sizes = {
        int(name.split()[-1]): found for name, found in figures.items() if name.startswith(f"{memory_mb} MB")
    }
    counts = tuple(sorted(sizes))

    def timing(*names: str) -> Timing:
        return Timing(counts, *(tuple(sizes[count][name] for count in counts) for name in names))

    return Measured(
        timing("half_s", "warm_s", "billed_s"),
        timing("cold_half_s", "cold_s", "cold_took_s"),
        timing("woken_half_s", "woken_s", "woken_took_s"),
        *(max(sizes[count][name] for count in counts) for name in ("init_s", "first_wake_s", "wake_s")),
    )
