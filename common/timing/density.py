"""How many executions are due in each minute, and which minutes are crowded. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from common.timing.excluded_days import NO_DAYS, Excluded
from common.timing.fires import due_at, fires
from common.timing.schedule import Schedule

MINUTE_S: Final = 60
# A minute is crowded if it has CROWDED_TIMES the average, and at least CROWDED_LEAST executions.
CROWDED_TIMES: Final = 3
CROWDED_LEAST: Final = 10
CROWDED_SHOWN: Final = 10


@dataclass(slots=True)
class Density:
    """Executions by minute: the instant at which a minute begins -> how many are due in it, jitter included."""

    start: int
    end: int
    minutes: Counter[int] = field(default_factory=Counter)
    total: int = 0
    # Equal schedules without jitter and spread have equal fire times.
    _known: dict[tuple[Schedule, int], Counter[int]] = field(default_factory=dict)

    def of_job(
        self, schedule: Schedule, job_key: str, effective_at: int, excluded: Excluded = NO_DAYS
    ) -> Counter[int]:
        """An active job's executions with fire times in [start, end), by minute. They are not added.

        `excluded` must be the same for the same calendars.
        """
        begin = max(self.start, effective_at)
        if schedule.jitter_s or schedule.spread_s:
            return by_minute(due_times(schedule, job_key, begin, self.end, excluded))
        known = self._known.get((schedule, begin))
        if known is None:
            known = by_minute(due_times(schedule, job_key, begin, self.end, excluded))
            self._known[schedule, begin] = known
        return known

    def add(self, counts: Counter[int]) -> None:
        """Add what `of_job` returned."""
        self.minutes.update(counts)
        self.total += counts.total()

    def crowded(self) -> list[tuple[int, int]]:
        """The most crowded minutes, with their counts; the earliest of equals first."""
        return crowded(self.minutes, self.end - self.start)


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
