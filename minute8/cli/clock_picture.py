"""How a job fires around each clock change of its zone: rows of ten-minute cells for drawing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from common.preview.preview import clock_text
from common.timing.compiled import compiled, in_all_clocks
from common.timing.cron import Cron
from common.timing.date_bits import date_bits
from common.timing.fires import cron_fires, fires
from common.timing.instants import DAY_S, EPOCH_ORDINAL, rfc3339
from common.timing.schedule import EVENTBRIDGE, CronTiming, Schedule
from common.timing.zones import Change, changes, offset_at

CELL_S: Final = 600
_HOURS_AROUND: Final = 3
_YEAR_S: Final = 366 * DAY_S
_MAX_DRAWN_S: Final = 3 * 3600


@dataclass(frozen=True, slots=True)
class Cell:
    """Ten minutes of the local clock, and the number of fires in them.

    `skipped`: the clock never shows them; `at` is the instant of the change. `second_pass`: the clock shows them again.
    `instead`: a time of the schedule in this cell fires elsewhere, after the gap or in the first pass.
    """

    at: int
    clock: str
    fires: int
    second_pass: bool = False
    skipped: bool = False
    instead: bool = False


@dataclass(frozen=True, slots=True)
class ClockPicture:
    """The hours around one change; `gap_s` is positive if the clock skips time, negative if it repeats time."""

    title: str
    verdict: str
    change_at: int
    gap_s: int
    cells: tuple[Cell, ...]


def clock_pictures(schedule: Schedule, zone: str, now: int) -> list[ClockPicture]:
    """A picture for each clock change of the zone in the year after `now`."""
    return [_picture(schedule, zone, change) for change in changes(zone, now, now + _YEAR_S)]


def _picture(schedule: Schedule, zone: str, change: Change) -> ClockPicture:
    gap_s = change.after - change.before
    again_s = max(0, -gap_s)
    start = (change.at - _HOURS_AROUND * 3600 - again_s) // CELL_S * CELL_S
    end = change.at + _HOURS_AROUND * 3600 + again_s
    timing = schedule.timing
    cron = compiled(timing) if isinstance(timing, CronTiming) and timing.timezone == zone else None
    before = [_cell(schedule, zone, cron, change, at) for at in range(start, change.at, CELL_S)]
    after = [_cell(schedule, zone, cron, change, at) for at in range(change.at, end, CELL_S)]
    cells = (*before, *_skipped(cron, change), *after)
    drops_a_time = (
        gap_s > 0 and isinstance(timing, CronTiming) and timing.dst == EVENTBRIDGE and _loses(timing, change)
    )
    verdict = "a time in it does not fire" if drops_a_time else _verdict(cells, gap_s)
    return ClockPicture(clock_text(change), verdict, change.at, gap_s, cells)


def _loses(timing: CronTiming, change: Change) -> bool:
    """Whether the change skips a time that would fire after the gap by Minute8's rule."""
    return any(cell.instead for cell in _skipped(in_all_clocks(timing), change))


def _cell(schedule: Schedule, zone: str, cron: Cron | None, change: Change, at: int) -> Cell:
    count = sum(1 for _ in fires(schedule, at, at + CELL_S))
    second = change.at <= at < change.at + change.before - change.after
    instead = False
    if second and cron and not cron.repeats and not count:
        instead = any(True for _ in cron_fires(replace(cron, repeats=True), zone, at, at + CELL_S))
    return Cell(at, rfc3339(at + offset_at(zone, at))[11:16], count, second, instead=instead)


def _skipped(cron: Cron | None, change: Change) -> Iterator[Cell]:
    """The skipped times; for a whole skipped day only its first hours."""
    first, last = change.at + change.before, change.at + change.after
    owed = cron if cron and cron.names_hour else None
    if last - first > _MAX_DRAWN_S:
        owed_at = [wall for wall in range(first, last, 60) if owed and _names(owed, wall)]
        for wall in range(first, first + 3600, CELL_S):
            yield Cell(change.at, "", 0, skipped=True, instead=bool(owed_at) and wall == first + 3 * CELL_S)
        return
    for wall in range(first, last, CELL_S):
        minutes = range(wall, min(wall + CELL_S, last), 60)
        instead = owed is not None and any(_names(owed, minute) for minute in minutes)
        yield Cell(change.at, rfc3339(wall)[11:16], 0, skipped=True, instead=instead)


def _names(cron: Cron, wall: int) -> bool:
    day, second = divmod(wall, DAY_S)
    on_date = cron.on_date(*date_bits(day + EPOCH_ORDINAL))
    return on_date and bool(cron.hours >> second // 3600 & 1 and cron.minutes >> second // 60 % 60 & 1)


def _verdict(cells: tuple[Cell, ...], gap_s: int) -> str:
    """A sentence about what the picture shows."""
    if any(cell.instead for cell in cells):
        return "a time in it fires once, at its end" if gap_s > 0 else "it fires the first time only"
    if gap_s < 0 and any(cell.fires and cell.second_pass for cell in cells):
        return "it fires in both passes"
    if any(cell.fires for cell in cells):
        return "nothing is lost and nothing doubled"
    return "nothing fires near"
