"""Reads several schedules of one job. `schedule_text.py` reads each of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from common.errors import InvalidInput
from common.jobs.spec import PAYLOAD_PATCH
from common.timing.schedule import ManyTiming, Schedule

MAX_SCHEDULES: Final = 10
# The keys of one schedule alone, and those that go beside several ones. `start_at` and `end_at` may be in both places.
OF_ONE: Final = (
    *("cron", "every", "at", "timezone", "dialect", "dst", "anchor", "exclude"),
    *("include_calendars", "on_excluded"),
)
OF_ALL: Final = ("schedules", "max_runs", "jitter_s", "spread_s", "pace")


def read(fields: Mapping[str, object], parse: Callable[[Mapping[str, object]], Schedule]) -> Schedule:
    """The schedules, and the least of their default spreads; no other field of all. Raises InvalidInput."""
    raw = fields["schedules"]
    if not isinstance(raw, list | tuple) or not 1 <= len(raw) <= MAX_SCHEDULES:
        raise InvalidInput(
            "schedule.schedules",
            "must be a short list of schedules",
            value=raw,
            accepted=f"1 to {MAX_SCHEDULES} objects",
        )
    for key in OF_ONE:
        if key in fields:
            raise InvalidInput(
                f"schedule.{key}",
                "goes into each of the schedules",
                value=fields[key],
                accepted=f"no {key} beside schedules",
            )
    schedules = [_one_of(raw_schedule, place, parse) for place, raw_schedule in enumerate(raw)]
    timing = ManyTiming(tuple(replace(schedule, spread_s=0) for schedule in schedules))
    return Schedule(timing, spread_s=min(schedule.spread_s for schedule in schedules))


def _one_of(raw: object, place: int, parse: Callable[[Mapping[str, object]], Schedule]) -> Schedule:
    """Raises InvalidInput, which names the place."""
    where = f"schedule.schedules.{place}"
    if not isinstance(raw, Mapping):
        raise InvalidInput(
            where, "must be an object", value=raw, accepted='an object such as {"every": "90m"}'
        )
    for key in OF_ALL:
        if raw.get(key) is not None:
            raise InvalidInput(
                f"{where}.{key}",
                "goes beside the schedules, for all of them",
                value=raw[key],
                accepted=f"no {key} here",
            )
    try:
        return parse({key: value for key, value in raw.items() if key != PAYLOAD_PATCH})
    except InvalidInput as error:
        error.field = error.field.replace("schedule", where, 1)
        raise
