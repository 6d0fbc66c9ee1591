"""What a change of a schedule, or of a calendar, does to the fire times of a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from rich.console import Console

from common.preview.preview import resolved_as_given
from common.registration.schedule_text import parse_schedule
from common.timing.durations import duration_text
from common.timing.excluded_days import NO_DAYS, Dates, calendar_days
from common.timing.fires import next_fires
from common.timing.instants import rfc3339
from common.timing.schedule import Schedule
from minute8.cli.output import plural
from minute8.client import Client, NotFound

# If none of the next fire times differs, those behind them are compared too.
COMPARED_FIRES: Final = 50
_MAX_COMPARED_FIRES: Final = 1_000
_MAX_SHOWN_FIRES: Final = 3

# The dates of a calendar, by its name.
DatesOf = Callable[[str], Dates]


@dataclass(frozen=True, slots=True)
class Consequences:
    """The fire times that appear and vanish up to `compared_until`; None: all that there are were compared.

    `others_stay`: some fire times are the same before and after.
    """

    appear: tuple[int, ...] = ()
    vanish: tuple[int, ...] = ()
    compared_until: int | None = None
    others_stay: bool = False

    def view(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "appear": [rfc3339(at) for at in self.appear],
            "vanish": [rfc3339(at) for at in self.vanish],
            "compared_until": None if self.compared_until is None else rfc3339(self.compared_until),
        }


def consequences(
    before: Schedule | None,
    after: Schedule | None,
    now: int,
    dates_of: DatesOf,
    dates_after: DatesOf | None = None,
) -> Consequences:
    """What a change does to the fire times; None is a job that does not fire.

    `dates_of` returns the dates of a calendar, `dates_after` those after the change if they change.
    """
    excluded = [
        calendar_days(schedule, dates) if schedule else NO_DAYS
        for schedule, dates in ((before, dates_of), (after, dates_after or dates_of))
    ]

    def compared(count: int) -> Consequences:
        old, new = (
            next_fires(schedule, now, count, excluded=days) if schedule else []
            for schedule, days in zip((before, after), excluded, strict=True)
        )
        return _compared(old, new, count)

    near = compared(COMPARED_FIRES)
    if near.appear or near.vanish or near.compared_until is None:
        return near
    return compared(_MAX_COMPARED_FIRES)


def _compared(old: list[int], new: list[int], count: int) -> Consequences:
    until = min((fires[-1] for fires in (old, new) if len(fires) == count), default=None)
    was, becomes = ({at for at in fires if until is None or at <= until} for fires in (old, new))
    appear, vanish = tuple(sorted(becomes - was)), tuple(sorted(was - becomes))
    return Consequences(appear, vanish, until, others_stay=bool(was & becomes))


def move_of(appear: tuple[int, ...], vanish: tuple[int, ...]) -> tuple[int, int] | None:
    """A fire time before and after, if all move by the same; None if they do not.

    Now may lie between a fire time and where it moves, so the first of one side may have no partner on the other.
    """
    moves: list[tuple[int, int]] = []
    if abs(len(appear) - len(vanish)) > 1:
        return None
    for before, after in ((vanish, appear), (vanish[1:], appear), (vanish, appear[1:])):
        shifts = {new - old for old, new in zip(before, after, strict=False)}
        if len(shifts) == 1:
            moves.append((before[0], after[0]))
    return min(moves, key=lambda move: abs(move[1] - move[0]), default=None)


def resolved_schedule(resolved: Mapping[str, Any]) -> Schedule:
    """The schedule that an answer shows as `schedule_resolved`."""
    return parse_schedule(resolved_as_given(resolved), job_key="resolved", now=0)


def dates_by_name(client: Client) -> DatesOf:
    """Returns the dates of a calendar, which is read once; a missing one has none."""

    @cache
    def dates_of(name: str) -> Dates:
        try:
            return Dates(client.get_calendar(name)["dates"])
        except NotFound:
            return Dates(())

    return dates_of


def show_fires(out: Console, changes: Consequences) -> None:
    """Print which fire times appear, vanish or move."""
    until = f" until {rfc3339(changes.compared_until)}" if changes.compared_until is not None else ""
    if not changes.others_stay and (move := move_of(changes.appear, changes.vanish)):
        was, becomes = move
        by = f"{duration_text(abs(becomes - was))} {'later' if becomes > was else 'earlier'}"
        text = f"    all fire times move {by}, such as {rfc3339(was)} to {rfc3339(becomes)}"
        out.print(text, soft_wrap=True)
        return
    for verb, fires in (("vanish", changes.vanish), ("appear", changes.appear)):
        if fires:
            shown = ", ".join(map(rfc3339, fires[:_MAX_SHOWN_FIRES]))
            more = " …" if len(fires) > _MAX_SHOWN_FIRES else ""
            text = f"    {plural(len(fires), 'fire time')}{until} {verb}: {shown}{more}"
            out.print(text, soft_wrap=True)
