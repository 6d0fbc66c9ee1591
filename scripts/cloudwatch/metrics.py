"""Metrics: samples with a time, and their statistics over periods. Reads them from logs, too (EMF).

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

_STATISTICS: Final[dict[str, Callable[[Sequence[float]], float]]] = {
    "Sum": sum,
    "Minimum": min,
    "Maximum": max,
    "SampleCount": len,
    "Average": lambda values: sum(values) / len(values),
}
# Start of a period (epoch seconds) -> its value; a period without samples is missing.
Series = dict[int, float]


class Metric(NamedTuple):
    """A metric's name: `dimensions` are (name, value) pairs, sorted."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, namespace: str, name: str, **dimensions: str) -> Metric:
        return cls(namespace, name, tuple(sorted(dimensions.items())))


class Metrics:
    """All samples, in memory, by the minute: no alarm looks closer."""

    def __init__(self) -> None:
        self._samples: defaultdict[Metric, defaultdict[int, list[float]]] = defaultdict(
            lambda: defaultdict(list)
        )

    @property
    def names(self) -> set[Metric]:
        return set(self._samples)

    def add(self, metric: Metric, at: float, value: float) -> None:
        """Add a sample, taken at `at` (epoch seconds)."""
        self._samples[metric][int(at // 60 * 60)].append(value)

    def add_log(self, lines: Iterable[str], at: float | None = None) -> None:
        """Add what the lines of a log hold; `at` in the place of the time that they name."""
        for line in lines:
            for metric, sampled_at, value in samples_in(line):
                self.add(metric, sampled_at if at is None else at, value)

    def forget(self, before: float) -> None:
        """Drop the samples of the minutes before an instant."""
        for minutes in self._samples.values():
            for minute in [past for past in minutes if past < before]:
                del minutes[minute]

    def series(self, metric: Metric, statistic: str, period_s: int, starts: Sequence[int]) -> Series:
        """The statistic of each period; starts and period are whole minutes. `pNN` is a percentile."""
        minutes: Mapping[int, list[float]] = self._samples.get(metric, {})
        series = {}
        for start in starts:
            within = range(start, start + period_s, 60)
            if values := [value for minute in within for value in minutes.get(minute, ())]:
                series[start] = statistic_of(values, statistic)
        return series


def statistic_of(values: Sequence[float], statistic: str) -> float:
    """A statistic of samples. A percentile is the smallest sample that so many per cent do not exceed."""
    if statistic.startswith("p"):
        rank = -(-len(values) * float(statistic[1:]) // 100)
        return sorted(values)[max(0, int(rank) - 1)]
    return float(_STATISTICS[statistic](values))


def samples_in(line: str) -> list[tuple[Metric, float, float]]:
    """The metrics of a line, each with its time (epoch seconds) and one of its values."""
    if '"_aws"' not in line:
        return []
    try:
        parsed: Mapping[str, Any] = json.loads(line)
        about = parsed["_aws"]
        return [
            (
                Metric.of(group["Namespace"], metric["Name"], **_chosen(parsed, names)),
                about["Timestamp"] / 1000,
                value,
            )
            for group in about["CloudWatchMetrics"]
            for names in group["Dimensions"]
            for metric in group["Metrics"]
            for value in _values(parsed[metric["Name"]])
        ]
    except (ValueError, KeyError, TypeError):
        return []  # CloudWatch leaves out such a line


def _chosen(parsed: Mapping[str, Any], names: Iterable[str]) -> dict[str, str]:
    return {name: str(parsed[name]) for name in names}


def _values(parsed: Any) -> list[float]:
    return [float(value) for value in (parsed if isinstance(parsed, list) else [parsed])]
