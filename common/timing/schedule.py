"""The stored form of a job's schedule, with everything resolved.

`common/registration/schedule_text.py` reads what a tenant writes; `common/timing/fires.py` evaluates.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, field
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


# The names that a stored schedule has for fields of timings, where they differ.
_STORED_NAMES: Final = {"expression": "cron", "timezone": "zone", "interval_s": "every_s"}


class Schedule(Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """A timing with its bounds (start inclusive, end exclusive), exclusions, jitter, spread and pace.

    It is stored as it is declared, with the fields of its `timing` among its own; `of` makes it of a timing.
    `exclude_dates` are ISO dates in the schedule's zone (UTC for `every` and `at`), `exclude_weekdays` some of "mon" to
    "sun". Also excluded are dates in one of the `calendars`, or in none of the `include_calendars` if there are any.
    Both are names; the caller resolves their dates and passes them to `fires`. `on_excluded` is SKIP, NEXT or PREVIOUS.
    With an `interval`, a cron fires on its dates only. `jitter_s` delays each fire by another number of seconds,
    `spread_s` all fires of a job by the same number.
    """

    cron: str | None = None
    zone: str = field(default="UTC", name="timezone")
    dialect: str = MINUTE8
    dst: str = MINUTE8
    every_s: Annotated[int, Meta(ge=1)] | None = None
    anchor_at: int | None = None
    at: int | None = None
    schedules: tuple[Schedule, ...] | None = None
    start_at: int | None = None
    end_at: int | None = None
    exclude_dates: tuple[str, ...] = ()
    exclude_weekdays: tuple[str, ...] = ()
    calendars: tuple[str, ...] = ()
    interval: DateInterval | None = None
    include_calendars: tuple[str, ...] = ()
    on_excluded: Literal["skip", "next", "previous"] = SKIP
    jitter_s: int = 0
    spread_s: int = 0
    pace: Pace | None = None

    def __post_init__(self) -> None:
        times = self.cron, self.every_s, self.at, self.schedules
        if times.count(None) == len(times) or (self.every_s is None) != (self.anchor_at is None):
            raise ValueError("the schedule says no times")

    @classmethod
    def of(cls, timing: Timing, **fields: Any) -> Schedule:
        """The schedule of a timing, with fields of its own."""
        parts = {_STORED_NAMES.get(name, name): value for name, value in asdict(timing).items()}
        # Only a default itself is left out of what is stored, not a text that is equal to it.
        return cls(
            **{name: value for name, value in parts.items() if value not in ("UTC", MINUTE8)}, **fields
        )

    @cached_property
    def timing(self) -> Timing:
        """When it fires, without what bounds and excludes that."""
        if self.cron is not None:
            return CronTiming(self.cron, self.zone, self.dialect, self.dst)
        if self.every_s is not None and self.anchor_at is not None:
            return EveryTiming(self.every_s, self.anchor_at)
        return AtTiming(self.at or 0) if self.schedules is None else ManyTiming(self.schedules)

    @property
    def tolerance_s(self) -> int:
        """How many seconds its pace may delay an execution."""
        return self.pace.tolerance_s if self.pace else 0

    @property
    def parts(self) -> tuple[Schedule, ...]:
        """Its schedules, in order; itself if it is a single one."""
        return (self,) if self.schedules is None else self.schedules

    @property
    def timezone(self) -> str:
        """The zone of its cron; of several schedules that of the first. Others are in UTC."""
        return self.parts[0].zone

    @property
    def moves(self) -> bool:
        """Whether some of its fire times move from excluded dates."""
        return any(part.on_excluded != SKIP for part in self.parts)

    @property
    def named_calendars(self) -> tuple[str, ...]:
        """All calendars on which its fire times depend."""
        if self.schedules is not None:
            return tuple(dict.fromkeys(name for part in self.schedules for name in part.named_calendars))
        return self.calendars + self.include_calendars
