"""How a job fires around each clock change of its zone: rows of ten-minute cells, ready to be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from common.fires import fires
from common.instants import rfc3339
from common.preview import clock_text
from common.schedule import Schedule
from common.zones import DAY_S, changes, offset_at

CELL_S: Final = 600
_HOURS_AROUND: Final = 3
_YEAR_S: Final = 366 * DAY_S


@dataclass(frozen=True, slots=True)
class Cell:
    """Ten minutes: the UTC start, the local clock there, how many fires, and which pass of a repeated time it is."""

    at: int
    clock: str
    fires: int
    second_pass: bool


@dataclass(frozen=True, slots=True)
class ClockPicture:
    """The hours around one change; `gap_s` is positive where the clock skips, negative where it repeats."""

    title: str
    change_at: int
    gap_s: int
    cells: tuple[Cell, ...]


def clock_pictures(schedule: Schedule, zone: str, now: int) -> list[ClockPicture]:
    """A picture for each change of the zone's clock in the year from `now` on."""
    pictures = []
    for change in changes(zone, now, now + _YEAR_S):
        gap_s = change.after - change.before
        start = (change.at - _HOURS_AROUND * 3600 - max(0, -gap_s)) // CELL_S * CELL_S
        end = change.at + _HOURS_AROUND * 3600 + max(0, -gap_s)
        cells = tuple(
            Cell(
                at,
                rfc3339(at + offset_at(zone, at))[11:16],
                sum(1 for _ in fires(schedule, at, at + CELL_S)),
                change.at <= at < change.at - gap_s,
            )
            for at in range(start, end, CELL_S)
        )
        pictures.append(ClockPicture(clock_text(change), change.at, gap_s, cells))
    return pictures
