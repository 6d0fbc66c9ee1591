"""The stored form of a job's schedule, with everything resolved.

`common/registration/schedule_text.py` reads what a tenant writes; `common/timing/fires.py` evaluates.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from common.timing.date_interval import DateInterval

# The two cron dialects, and the two rules for clock changes.
MINUTE8: Final = "minute8"
EVENTBRIDGE: Final = "eventbridge"


# What becomes of a fire time on an excluded date: it is left out, or it moves to an allowed date.
SKIP: Final = "skip"
NEXT: Final = "next"
PREVIOUS: Final = "previous"


class CronTiming(Struct, frozen=True):
    """Calendar times: canonical text in an IANA zone.

    The text has 5 fields, or 6 with the seconds first, and `H` is resolved; in the dialect EVENTBRIDGE it is AWS's.
    `dst` is the rule for clock changes.
    """

    expression: str
    timezone: str
    dialect: str = MINUTE8
    dst: str = MINUTE8


class EveryTiming(Struct, frozen=True):
    """Elapsed time: fires at anchor_at + k * interval_s for every integer k, of either sign."""

    interval_s: int
    anchor_at: int


class AtTiming(Struct, frozen=True):
    """One instant."""

    at: int


class ManyTiming(Struct, frozen=True):
    """Several schedules of one job: it fires when one of them does, once at an instant that they share.

    Jitter, spread and pace are those of the schedule that has this timing.
    """

    schedules: tuple[Schedule, ...]


Timing = CronTiming | EveryTiming | AtTiming | ManyTiming


class Pace(Struct, frozen=True):
    """At most `per_second` executions of all the tenant's jobs with this key are due at one second.

    What is too much is due up to `tolerance_s` later. An empty key stands for the job's target.
    """

    key: str
    per_second: int
    tolerance_s: int


class Schedule(Struct, frozen=True):
    """A timing with its bounds (start inclusive, end exclusive), exclusions, jitter, spread and pace.

    `exclude_dates` are ISO dates in the schedule's zone (UTC for `every` and `at`), `exclude_weekdays` some of "mon" to
    "sun". Also excluded are dates in one of the `calendars`, or in none of the `include_calendars` if there are any.
    Both are names; the caller resolves their dates and passes them to `fires`. `on_excluded` is SKIP, NEXT or PREVIOUS.
    With an `interval`, a cron fires on its dates only. `jitter_s` delays each fire by another number of seconds,
    `spread_s` all fires of a job by the same number.
    """

    timing: Timing
    start_at: int | None = None
    end_at: int | None = None
    exclude_dates: tuple[str, ...] = ()
    calendars: tuple[str, ...] = ()
    jitter_s: int = 0
    spread_s: int = 0
    pace: Pace | None = None
    include_calendars: tuple[str, ...] = ()
    on_excluded: str = SKIP
    interval: DateInterval | None = None
    exclude_weekdays: tuple[str, ...] = ()

    @property
    def tolerance_s(self) -> int:
        """How many seconds its pace may delay an execution."""
        return self.pace.tolerance_s if self.pace else 0

    @property
    def parts(self) -> tuple[Schedule, ...]:
        """Its schedules, in order; itself if it is a single one."""
        return self.timing.schedules if isinstance(self.timing, ManyTiming) else (self,)

    @property
    def timezone(self) -> str:
        """The zone of its cron; of several schedules that of the first. Others are in UTC."""
        timing = self.parts[0].timing
        return timing.timezone if isinstance(timing, CronTiming) else "UTC"

    @property
    def moves(self) -> bool:
        """Whether some of its fire times move from excluded dates."""
        return any(part.on_excluded != SKIP for part in self.parts)

    @property
    def named_calendars(self) -> tuple[str, ...]:
        """All calendars on which its fire times depend."""
        if isinstance(self.timing, ManyTiming):
            return tuple(dict.fromkeys(name for part in self.parts for name in part.named_calendars))
        return self.calendars + self.include_calendars

    def to_item(self) -> dict[str, Any]:
        """The stored form: ints, text, lists and maps; default values are left out."""
        optional = {
            "start_at": self.start_at,
            "end_at": self.end_at,
            "exclude_dates": list(self.exclude_dates) or None,
            "exclude_weekdays": list(self.exclude_weekdays) or None,
            "calendars": list(self.calendars) or None,
            "interval": self.interval.to_item() if self.interval else None,
            "include_calendars": list(self.include_calendars) or None,
            "on_excluded": self.on_excluded if self.on_excluded != SKIP else None,
            "jitter_s": self.jitter_s or None,
            "spread_s": self.spread_s or None,
            "pace": asdict(self.pace) if self.pace else None,
        }
        return _timing_item(self.timing) | {
            key: value for key, value in optional.items() if value is not None
        }

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Schedule:
        """The inverse of `to_item`."""
        return cls(
            timing=_timing_of(item),
            start_at=int(item["start_at"]) if "start_at" in item else None,
            end_at=int(item["end_at"]) if "end_at" in item else None,
            exclude_dates=tuple(item.get("exclude_dates", ())),
            exclude_weekdays=tuple(item.get("exclude_weekdays", ())),
            calendars=tuple(item.get("calendars", ())),
            include_calendars=tuple(item.get("include_calendars", ())),
            on_excluded=item.get("on_excluded", SKIP),
            interval=DateInterval.from_item(item["interval"]) if "interval" in item else None,
            jitter_s=int(item.get("jitter_s", 0)),
            spread_s=int(item.get("spread_s", 0)),
            pace=_pace_of(item["pace"]) if "pace" in item else None,
        )


def _pace_of(item: Mapping[str, Any]) -> Pace:
    if not isinstance(item["key"], str):
        raise TypeError(f"not the key of a pace: {item['key']!r}"[:200])
    return Pace(item["key"], int(item["per_second"]), int(item["tolerance_s"]))


def _timing_item(timing: Timing) -> dict[str, Any]:
    match timing:
        case CronTiming(expression, timezone, dialect, dst):
            eventbridge_rules = {
                name: EVENTBRIDGE for name, rule in (("dialect", dialect), ("dst", dst)) if rule != MINUTE8
            }
            zone = {} if timezone == "UTC" else {"timezone": timezone}
            return {"cron": expression} | zone | eventbridge_rules
        case EveryTiming(interval_s, anchor_at):
            return {"every_s": interval_s, "anchor_at": anchor_at}
        case AtTiming(at):
            return {"at": at}
        case ManyTiming(schedules):
            return {"schedules": [schedule.to_item() for schedule in schedules]}


def _timing_of(item: Mapping[str, Any]) -> Timing:
    if "cron" in item:
        rules = (item.get(name, MINUTE8) for name in ("dialect", "dst"))
        return CronTiming(item["cron"], item.get("timezone", "UTC"), *rules)
    if "every_s" in item:
        return EveryTiming(int(item["every_s"]), int(item["anchor_at"]))
    if "schedules" in item:
        return ManyTiming(tuple(map(Schedule.from_item, item["schedules"])))
    return AtTiming(int(item["at"]))
