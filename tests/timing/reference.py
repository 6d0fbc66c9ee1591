"""The evaluator's reference: croniter.match minute by minute, and the transitions of tzdata.

Slow and simple on purpose. `croniter.match` at one instant is stateless and right; everything else in croniter that
walks through a clock change is not.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from datetime import datetime
from importlib import resources
from zoneinfo import ZoneInfo

import tzdata
from croniter import croniter
from hypothesis import strategies as st

from common.timing.cron import compile_cron
from common.timing.schedule import CronTiming, Schedule
from common.timing.zones import Change, changes, zone_names

HOUR_S = 3600
FIRST_AT, LAST_AT = 0, 2_145_916_800  # 1970 to the end of 2037


def matching(expression: str, zone: str, minutes: Iterable[int]) -> list[int]:
    """The UTC minutes that croniter.match accepts, without the second pass of fixed times."""
    fixed = not compile_cron(expression).repeats
    fire_minutes = []
    for at in minutes:
        local = datetime.fromtimestamp(at, ZoneInfo(zone))
        if not (fixed and local.fold) and croniter.match(expression, local, second_at_beginning=True):
            fire_minutes.append(at)
    return fire_minutes


def cron(expression: str, zone: str = "UTC", **rest: object) -> Schedule:
    return Schedule.of(CronTiming(expression, zone), **rest)  # type: ignore[arg-type]


def telling_minutes(change: Change, fires: list[int]) -> list[int]:
    """Minutes at which an evaluator would go wrong: around the change, the edges of its gap or overlap, our own fires
    and their neighbours."""
    shift = abs(change.after - change.before)
    edges = {change.at, change.at - shift, change.at + shift}
    near = {edge + 60 * n for edge in edges for n in range(-3, 4)} | {
        change.at + 1380 * n for n in range(-8, 9)
    }
    near |= {at + 60 * n for at in fires[:30] for n in (-1, 0, 1)}
    return sorted({-(-at // 60) * 60 for at in near})


def stated_changes(zone: str) -> list[int]:
    """The instants at which tzdata's own file changes a zone's offset, 1970 to 2037 (RFC 8536, read directly)."""
    raw = resources.files(tzdata).joinpath("zoneinfo", *zone.split("/")).read_bytes()
    counts = struct.unpack(">6l", raw[20:44])
    isut, isstd, leaps, times, types, chars = counts
    body = 44 + times * 5 + types * 6 + chars + leaps * 8 + isstd + isut
    _isut, _isstd, _leaps, times, types, _chars = struct.unpack(">6l", raw[body + 20 : body + 44])
    at = body + 44
    instants = struct.unpack(f">{times}q", raw[at : at + 8 * times])
    kinds = raw[at + 8 * times : at + 9 * times]
    offsets = [struct.unpack(">l", raw[at + 9 * times + 6 * n :][:4])[0] for n in range(types)]
    before = offsets[0]
    change_instants = []
    for instant, kind in zip(instants, kinds, strict=True):
        if offsets[kind] != before and FIRST_AT <= instant < LAST_AT:
            change_instants.append(instant)
        before = offsets[kind]
    return change_instants


def distinct_zones() -> dict[str, list[Change]]:
    """One zone of each set that shares its changes from 1970 to 2037, with these changes."""
    seen: dict[tuple[Change, ...], str] = {}
    for zone in sorted(zone_names()):
        seen.setdefault(tuple(changes(zone, FIRST_AT, LAST_AT)), zone)
    return {zone: list(zone_changes) for zone_changes, zone in seen.items() if zone_changes}


def _field(low: int, high: int) -> st.SearchStrategy[str]:
    value = st.integers(low, high)
    step = st.integers(1, high - low)
    pair = st.tuples(value, value).filter(lambda ab: ab[0] != ab[1])
    rising = pair.map(sorted)
    item = st.one_of(
        value.map(str),
        st.builds("*/{}".format, step),
        st.builds("{}/{}".format, value, step),
        pair.map(lambda ab: f"{ab[0]}-{ab[1]}"),
        st.builds(lambda ab, n: f"{ab[0]}-{ab[1]}/{n}", rising, step),
    )
    return st.one_of(st.just("*"), st.lists(item, min_size=1, max_size=3).map(",".join))


_MINUTE, _HOUR, _MONTH = _field(0, 59), st.one_of(_field(0, 23), _field(0, 4)), _field(1, 12)
_DAYS = st.one_of(
    st.just(("*", "*")),
    st.tuples(_field(1, 31), _field(0, 6)),
    st.tuples(st.sampled_from(["L", "1,L", "15W", "1W", "31W", "30W"]), st.just("*")),
    st.tuples(st.just("*"), st.sampled_from(["L5", "L0", "0#1", "1#2,1#4", "6#5", "0#2", "0#5"])),
    st.tuples(st.just("L"), _field(0, 6)),
)


@st.composite
def expressions(draw: st.DrawFn) -> str:
    """Canonical expressions of five fields; two in three restrict no date, since the hour is where clocks change."""
    day, weekday = draw(_DAYS) if draw(st.integers(0, 2)) == 0 else ("*", "*")
    month = draw(_MONTH) if draw(st.integers(0, 3)) == 0 else "*"
    return f"{draw(_MINUTE)} {draw(_HOUR)} {day} {month} {weekday}"
