"""Finds gaps in what was planned: windows that do not join, and windows whose part of the log is not there.

Who deletes the log of planning takes away what ticks compare with the runs. So planning goes back to where the gap
begins. An execution that is enqueued again has the same id, and runs once; what has a record is not recorded as missed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from common.planning.due_index import MAX_CLOCK_ERROR_S, DueIndex
from common.planning.log import Chunk, PlannedWindow
from common.timing.windows import WINDOW_S, planning_end, window_start

# A gap that began longer ago is left: ticks were away, and the first one has planned all since.
_MAX_BACK_S: Final = 12 * WINDOW_S
_MAX_WINDOWS: Final = 16
# What a chore counts if planning goes back to a gap.
REOPENED: Final = "reopened"
# A new deployment's first window begins within this.
_BEGUN_WITHIN_S: Final = 2 * WINDOW_S


@dataclass(slots=True)
class LogRead:
    """The chunks that were read, and the `buckets` that were read to their end."""

    places: set[str] = field(default_factory=set)
    buckets: set[int] = field(default_factory=set)

    def add(self, chunk: Chunk) -> None:
        """Note a chunk, unless it is damaged."""
        if chunk.is_intact:
            self.places.add(chunk.place)

    def lacks(self, place: str, begin: int, last: int) -> bool:
        """Whether this place's window, one from `begin` to `last`, was read, and the chunk is not there."""
        bucket, _, rest = place.partition("#")
        window, was_read = rest.partition("#")[0], bucket.isdecimal() and int(bucket) in self.buckets
        return was_read and f"{begin:010d}" <= window <= f"{last:010d}" and place not in self.places


def reopen_gap(index: DueIndex, read: LogRead, begin: int, now: float) -> int | None:
    """If there is a gap from `begin` on, let the next tick plan from it on. Returns where it begins.

    Raises Busy.
    """
    last = window_start(int(now))
    begin = max(begin, last - _MAX_BACK_S)
    # A window that no tick can have planned would join all others.
    newest = index.windows.newest(_MAX_WINDOWS, planning_end(now + MAX_CLOCK_ERROR_S))
    windows = sorted(newest, key=lambda window: window.start)
    if first_gap(windows, read, begin, last, last + WINDOW_S) is None:
        return None
    if (progress := index.progress()) is None or progress.is_ahead(now):
        return None
    begin = max(begin, progress.new_since + _BEGUN_WITHIN_S)
    gap_at = first_gap(windows, read, begin, last, progress.surely_until)
    if gap_at is not None:
        index.reopen(progress, gap_at, now)
    return gap_at


def first_gap(
    windows: Sequence[PlannedWindow], read: LogRead, begin: int, last: int, until: int
) -> int | None:
    """Where the first gap in [begin, until) begins, by windows in their order; None: there is none. Pure.

    The log was read from `begin` to the window `last`.
    """
    joined_until = begin
    for window in windows:
        if window.end <= begin or joined_until >= until:
            continue
        if window.start > joined_until:
            break
        if any(read.lacks(place, begin, last) for place in window.places):
            return max(window.start, begin)
        joined_until = max(joined_until, window.end)
    return joined_until if joined_until < until else None
