"""Debian's cron on a night of a clock change: a small reference, written from cron(8), crontab(5) and measurement.

cron(8): clock changes of less than three hours affect only jobs that run at a particular time, "not specified as
@hourly, nor with '*' in the hour or minute specifier". Forwards, the skipped ones run soon after the change;
backwards, the repeated ones are not run again. Jobs with wildcards go by the new time at once, and so does everything
after a larger change. Measured (`data/debian.ndjson`): a field counts as a wildcard if it *begins* with `*`, and each
skipped time runs by itself, so that a job may start several times at the end of a gap.

It shares nothing with our evaluator but the zone rules.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_LOWS_AND_HIGHS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_NAMES: tuple[dict[str, int], ...] = (
    {},
    {},
    {},
    {name: n for n, name in enumerate(_MONTHS, start=1)},
    {name: n for n, name in enumerate(_WEEKDAYS)},
)
_CORRECTION = timedelta(hours=3)
_UP_BEFORE_S = 14_400


class Wakeup(NamedTuple):
    """One minute of the daemon: the instant, the local time for wildcard jobs, the local times for fixed jobs."""

    at: int
    wildcard: datetime
    fixed: tuple[datetime, ...]


class Crontab(NamedTuple):
    """The five fields as sets, and which of them begin with `*`."""

    values: tuple[frozenset[int], ...]
    stars: tuple[bool, ...]

    @property
    def wildcard(self) -> bool:
        return self.stars[0] or self.stars[1]

    def matches(self, local: datetime) -> bool:
        minutes, hours, days, months, weekdays = self.values
        if local.minute not in minutes or local.hour not in hours or local.month not in months:
            return False
        day, weekday = local.day in days, local.isoweekday() % 7 in weekdays
        return (day and weekday) if self.stars[2] or self.stars[4] else (day or weekday)


def parse(text: str) -> Crontab:
    """Raises ValueError for syntax that crontab(5) lacks: `L`, `#`, `?`, a range that wraps, a step after a number."""
    columns = ("0 * * * *" if text == "@hourly" else text).split()
    if len(columns) != 5:
        raise ValueError(f"{len(columns)} fields")
    values = [
        frozenset(value for item in column.lower().split(",") for value in _item(item, *bounds, names))
        for column, bounds, names in zip(columns, _LOWS_AND_HIGHS, _NAMES, strict=True)
    ]
    values[4] = frozenset(value % 7 for value in values[4])
    return Crontab(tuple(values), tuple(column.startswith("*") for column in columns))


def _item(item: str, low: int, high: int, names: dict[str, int]) -> range:
    span, _, step = item.partition("/")
    if span == "*":
        first, last = low, high
    else:
        ends = [names[end] if end in names else int(end) for end in span.split("-")]
        first, last = ends[0], ends[-1]
        if len(ends) > 2 or (step and len(ends) == 1):
            raise ValueError(item)
    if not low <= first <= last <= high or (step and int(step) < 1):
        raise ValueError(item)
    return range(first, last + 1, int(step or 1))


@lru_cache(maxsize=8)
def wakeups(zone: str, start: int, end: int) -> tuple[Wakeup, ...]:
    """The minutes of a daemon that was started some hours before `start`."""
    info = ZoneInfo(zone)
    daemon_wakeups = []
    done = _local(info, start - _UP_BEFORE_S - 60)
    for at in range(start - _UP_BEFORE_S, end, 60):
        now = _local(info, at)
        if now - done >= _CORRECTION or done - now >= _CORRECTION:
            due, done = [now], now
        else:
            due = [done + timedelta(minutes=n) for n in range(1, (now - done) // timedelta(minutes=1) + 1)]
            done = max(done, now)
        if at >= start:
            daemon_wakeups.append(Wakeup(at, now, tuple(due)))
    return tuple(daemon_wakeups)


def _local(info: ZoneInfo, at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC).astimezone(info).replace(tzinfo=None, fold=0, second=0)


def fires(text: str, zone: str, start: int, end: int) -> list[int]:
    """The instants in [start, end) at which Debian's cron starts a job; an instant is repeated for each start."""
    tab = parse(text)
    return [
        wakeup.at
        for wakeup in wakeups(zone, start, end)
        for local in ((wakeup.wildcard,) if tab.wildcard else wakeup.fixed)
        if tab.matches(local)
    ]
