"""Random schedules with all that a job may have, which fire around given moments, or nearly do."""

from __future__ import annotations

import calendar
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

ZONES = (
    *("UTC", "Europe/Paris", "Europe/London", "America/New_York", "America/Sao_Paulo", "Asia/Kolkata"),
    *("Asia/Tokyo", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Australia/Lord_Howe", "Pacific/Chatham"),
    *("Africa/Cairo", "America/Scoresbysund", "America/Havana", "Antarctica/Troll", "Asia/Beirut"),
)
CALENDARS = ("a", "b", "mostly", "none")
_DAY = timedelta(days=1)


@dataclass(frozen=True)
class Schedules:
    """Draws schedules that fire in [start, end), whole minutes, at about `gap_s` seconds or more."""

    rng: Random
    start: int
    end: int
    gap_s: int = 60

    def calendars(self) -> dict[str, list[str]]:
        """The dates of each of CALENDARS, some forty days around."""
        dates = [str(self._date(self.start) + n * _DAY) for n in range(-45, 46)]
        shares = {"a": 0.3, "b": 0.6, "mostly": 0.9, "none": 0.0}
        return {name: [day for day in dates if self.rng.random() < shares[name]] for name in CALENDARS}

    def schedule(self) -> dict[str, Any]:
        """A single schedule, or several, as a tenant writes them."""
        moment = self._moment()
        if self._chance(0.5):
            schedule = self._part(moment)
        else:
            moments = [moment if self._chance(0.5) else self._moment() for _ in range(self.rng.randint(1, 4))]
            schedule = {"schedules": [self._part(each) for each in moments]}
            for place, part in enumerate(schedule["schedules"]):
                part["payload_patch"] = {"place": place}
            schedule |= self._bounds(moment)
        calendars = [part for part in schedule.get("schedules", [schedule]) if self._names_calendars(part)]
        single_instant = "at" in schedule
        if not calendars and not single_instant and self._chance(0.4):
            schedule["max_runs"] = self.rng.randint(1, 4)
        return schedule | {"spread_s": 0}

    def _part(self, moment: int) -> dict[str, Any]:
        zone = self.rng.choice(ZONES)
        local = datetime.fromtimestamp(moment, ZoneInfo(zone)).replace(tzinfo=None)
        kinds = {"cron": self._cron, "days": self._days, "every": self._every, "at": self._at}
        kind = self.rng.choice(("cron", "cron", "cron", "days", "days", "every", "at"))
        part = kinds[kind](zone, local, moment)
        return part | self._dates(local.date(), kind in ("cron", "days")) | self._bounds(moment)

    def _cron(self, zone: str, local: datetime, moment: int) -> dict[str, Any]:
        minute, hour, day = local.minute, local.hour, local.date()
        step = max(2, -(-self.gap_s // 60))
        times = (
            *(f"{minute} {hour}", f"{minute} {hour}", f"{minute} *", f"*/{step} {hour}", f"{minute} */2"),
            *(f"{minute},{(minute + 30) % 60} {hour}", f"{minute} {hour},{(hour + 5) % 24}"),
            f"{minute}/{step + 5} {hour}",
        )
        weekday = day.isoweekday() % 7
        days = (
            *("* * *", "* * *", f"{day.day} * *", "L * *", "28-31 * *", f"* {day.month} *", "* * 1-5"),
            *(f"* * {weekday}", f"{day.day},15 * *", f"* * {weekday}#{(day.day + 6) // 7}", f"1 * {weekday}"),
        )
        return {"cron": f"{self.rng.choice(times)} {self.rng.choice(days)}", "timezone": zone}

    def _days(self, zone: str, local: datetime, moment: int) -> dict[str, Any]:
        """An interval of the calendar, whose anchor is some steps away, or nearly."""
        unit, most = self.rng.choice((("d", 9), ("w", 5), ("mo", 7), ("y", 2)))
        number, steps = self.rng.randint(1, most), self.rng.randint(-3, 12)
        beside = self.rng.choice((0, 0, 1, -1))
        if unit in ("d", "w"):
            day = local.date() - (number * steps * (7 if unit == "w" else 1) + beside) * _DAY
        else:
            months = local.year * 12 + local.month - 1 - number * steps * (12 if unit == "y" else 1) - beside
            year, month = months // 12, months % 12 + 1
            day = date(year, month, min(local.day, calendar.monthrange(year, month)[1]))
        anchor = datetime.combine(day, local.time()).isoformat()
        return {"every": f"{number}{unit}", "timezone": zone, "anchor": anchor}

    def _every(self, zone: str, local: datetime, moment: int) -> dict[str, Any]:
        """Elapsed time, also at odd seconds."""
        every_s = self.rng.choice((self.gap_s, self.gap_s + 17, 300, 5_400, 86_400))
        anchor = moment + self.rng.choice((0, 0, 7, 31)) - every_s * self.rng.randint(-3, 300)
        return {"every": f"{every_s}s", "anchor": text(anchor)}

    def _at(self, zone: str, local: datetime, moment: int) -> dict[str, Any]:
        return {"at": local.isoformat(), "timezone": zone} if self._chance(0.5) else {"at": text(moment)}

    def _dates(self, day: date, moves: bool) -> dict[str, Any]:
        dates: dict[str, Any] = {}
        if self._chance(0.35):
            near = [str(day + n * _DAY) for n in range(-4, 5) if n == 0 or self._chance(0.5)]
            dates["exclude"] = {"dates": near}
        if self._chance(0.25):
            names = self.rng.sample(CALENDARS, self.rng.randint(1, 2))
            dates["exclude"] = dates.get("exclude", {}) | {"calendars": names}
        if self._chance(0.2):
            dates["include_calendars"] = self.rng.sample(CALENDARS, self.rng.randint(1, 2))
        if moves and self._chance(0.6):
            dates["on_excluded"] = self.rng.choice(("skip", "next", "previous"))
        return dates

    def _bounds(self, moment: int) -> dict[str, Any]:
        bounds = {}
        if self._chance(0.1):
            bounds["start_at"] = text(moment + self.rng.choice((-3_600, 0, 60)))
        if self._chance(0.1):
            bounds["end_at"] = text(moment + self.rng.choice((61, 3_600, 90_000)))
        return bounds

    def _moment(self) -> int:
        return self.rng.randrange(self.start, self.end) // 60 * 60

    def _chance(self, share: float) -> bool:
        return self.rng.random() < share

    @staticmethod
    def _date(at: int) -> date:
        return datetime.fromtimestamp(at, UTC).date()

    @staticmethod
    def _names_calendars(part: dict[str, Any]) -> bool:
        return "include_calendars" in part or "calendars" in part.get("exclude", {})


def text(at: int) -> str:
    """The instant as RFC 3339."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}"
