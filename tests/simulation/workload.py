"""Jobs of all kinds, drawn at random, mostly in zones with clock changes."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

from common.timing.instants import rfc3339
from tests.worlds import job

ZONES = (
    "UTC", "America/New_York", "Europe/London", "Europe/Paris", "Australia/Lord_Howe", "Pacific/Chatham",
    "Antarctica/Troll", "America/Havana", "Asia/Beirut", "Africa/Cairo", "America/Asuncion", "America/Sao_Paulo",
    "Pacific/Apia", "Africa/Casablanca", "America/Nuuk", "Asia/Gaza", "America/Santiago", "Asia/Kathmandu",
)  # fmt: skip
CALENDARS = ("feasts", "closed", "freeze")
DAY_S = 86_400
# A change of a calendar does not touch the next days, so the dates in force are certain.
SETTLED_DAYS = 4

# (weight, expression): `m` any minute, `n` an hour at which clocks change, `h` any hour, `w` a weekday, `d` a day.
_CRONS = (
    (30, "m n * * *"),
    (15, "m h * * *"),
    (8, "m h * * w"),
    (5, "m h * * 1-5"),
    (5, "m h d * *"),
    (3, "m h L * *"),
    (2, "m h 15W * *"),
    (2, "m h * * 1#2"),
    (2, "m h * * L5"),
    (2, "m h d 3,10 *"),
    (4, "m */6 * * *"),
    (3, "m,30 n * * *"),
    (3, "*/20 2 * * *"),
    (2, "0 1-3 * * w"),
    (2, "H n * * *"),
    (1, "m * * * w"),
    (3, "15,45 m n * * *"),
    (1, "*/10 m n * * w"),
)
_EVERY = ("4h", "6h", "12h", "24h", "25h", "90m", "7d", "100h", "8h15m")
_FREQUENT = ({"cron": "* * * * *"}, {"every": "61s"}, {"every": "7m"}, {"cron": "*/15 * * * * *"})


class Workload:
    """The tenants' definitions. Schedules are drawn from a pool, so they repeat, as those of real tenants do."""

    def __init__(self, rng: random.Random, ends: int, distinct: int) -> None:
        self._rng = rng
        self._ends = ends
        texts = rng.choices([text for _, text in _CRONS], [weight for weight, _ in _CRONS], k=distinct)
        self._crons = [{"cron": self._cron(text), "timezone": rng.choice(ZONES)} for text in texts]

    def _cron(self, text: str) -> str:
        rng = self._rng
        letters = {
            "m": str(rng.choice((0, 0, 15, 30, rng.randrange(60)))),
            "n": str(rng.choice((0, 1, 2, 3))),
            "h": str(rng.randrange(24)),
            "w": str(rng.randrange(7)),
            "d": str(rng.choice((1, 15, 28, 31))),
        }
        fields = ([letters.get(item, item) for item in field.split(",")] for field in text.split(" "))
        return " ".join(",".join(dict.fromkeys(items)) for items in fields)

    def definition(self, now: int) -> dict[str, Any]:
        """A job that a tenant registers at `now`."""
        rng = self._rng
        fields = self._timing(now) | {"catch_up": rng.choice(("none", "latest", "all"))}
        exclude: dict[str, Any] = {}
        if rng.random() < 0.15:
            exclude["dates"] = sorted({_date(self._moment(now)) for _ in range(rng.randrange(1, 30))})
        if rng.random() < 0.25:
            exclude["calendars"] = rng.sample(CALENDARS, rng.randrange(1, 3))
        if exclude:
            fields["exclude"] = exclude
        if exclude and "cron" in fields:  # a changed date must not move a planned time
            moves = ("skip", "next", "next") if "calendars" in exclude else ("skip", "next", "previous")
            fields["on_excluded"] = random.Random(str(exclude)).choice(moves)
        if rng.random() < 0.2:
            fields["jitter_s"] = rng.choice((5, 60, 600, 3_600))
        return job(invocation="Event", **fields)

    def _timing(self, now: int) -> dict[str, Any]:
        rng, kind = self._rng, self._rng.random()
        if kind < 0.15:
            return {"at": rfc3339(self._moment(now))}
        if kind < 0.19:  # frequent, and therefore for some hours only
            start = self._moment(now)
            bounds = {"start_at": rfc3339(start), "end_at": rfc3339(start + rng.randrange(60, 14_400))}
            return rng.choice(_FREQUENT) | bounds
        timing = {"every": rng.choice(_EVERY)} if kind < 0.32 else dict(rng.choice(self._crons))
        if rng.random() < 0.15:
            timing["start_at"] = rfc3339(self._moment(now))
        elif rng.random() < 0.15:
            timing["end_at"] = rfc3339(self._moment(now) + 1)
        return timing

    def _moment(self, now: int) -> int:
        """A second in the future; near ones more often."""
        if self._rng.random() < 0.3:
            return now + self._rng.randrange(1, 1_800)
        return self._rng.randrange(now + 1, max(now + 2, self._ends))

    def calendar(self, now: int, before: list[str]) -> list[str]:
        """What a calendar is changed to at `now`."""
        settled = _date(now + SETTLED_DAYS * DAY_S)
        days = max(1, (self._ends - now) // DAY_S)
        later = {
            _date(now + (SETTLED_DAYS + self._rng.randrange(days)) * DAY_S) for _ in range(days // 12 + 1)
        }
        return sorted({date for date in before if date < settled} | later)


def _date(at: int) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()
