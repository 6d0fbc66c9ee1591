"""How many executions are due in each minute, and which minutes are crowded. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from common.timing.excluded_days import NO_DAYS, Excluded
from common.timing.fires import due_at, fires
from common.timing.schedule import Schedule

MINUTE_S: Final = 60
# A minute is crowded if it has CROWDED_TIMES the average, and at least CROWDED_LEAST executions.
CROWDED_TIMES: Final = 3
CROWDED_LEAST: Final = 10
CROWDED_SHOWN: Final = 10


def crowded(minutes: Mapping[int, int], span_s: int) -> list[tuple[int, int]]:
    """The minutes with at least three times the average of the span, and ten executions; the fullest first."""
    average = sum(minutes.values()) / max(1, span_s // MINUTE_S)
    least = max(CROWDED_LEAST, CROWDED_TIMES * average)
    crowded_minutes = [(minute, count) for minute, count in minutes.items() if count >= least]
    return sorted(crowded_minutes, key=lambda entry: (-entry[1], entry[0]))[:CROWDED_SHOWN]


def due_times(
    schedule: Schedule, job_key: str, start: int, end: int, excluded: Excluded = NO_DAYS
) -> Iterator[int]:
    """When the executions with fire times in [start, end) are due, in the order of their fire times."""
    return (due_at(schedule, job_key, at) for at in fires(schedule, start, end, excluded=excluded))


def by_minute(due: Iterable[int]) -> Counter[int]:
    """How many of these instants are in each minute."""
    return Counter(at - at % MINUTE_S for at in due)
