"""The position of a walk over the runs of all of a tenant's jobs, newest first. Pure; `run_lists.py` reads the runs.

Runs are stored by job: an index by tenant would cost a second write for each run. So each request is a step that reads
the newest runs of each job and merges them. The number of jobs per step is bounded. A tenant with no more jobs than
that gets all its runs in one order.

With more jobs, a list divides time into slices, newest first. Within a slice it reads one chunk of the jobs after the
other, each newest first. A summary needs no order: it reads one chunk after the other over the whole range.
In every case no later page has runs at or after `complete_from_at`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Final

from common.ids import JOB_ID_CHARS, is_id
from common.planning.execution import split_run_name
from common.timing.instants import DAY_S

_FIRST_SLICE_S: Final = 600
_MIN_SLICE_S: Final = 60
_MAX_SLICE_S: Final = 7 * DAY_S
# After a slice with fewer runs the next slice is wider; after a slice with more runs it is narrower.
_MIN_RUNS_IN_SLICE: Final = 500
_MAX_RUNS_IN_SLICE: Final = 5_000

_MAX_INSTANT: Final = 10**11

# A run's position: its name, which begins with its fire time, and its job. The largest comes first.
Rank = tuple[str, str]


@dataclass(frozen=True, slots=True)
class TimeSlice:
    """The current fire times, [from_at, until_at); all later ones are done."""

    from_at: int
    until_at: int | None
    width_s: int = _FIRST_SLICE_S
    # The runs of the slice that were read.
    seen: int = 0


@dataclass(frozen=True, slots=True)
class JobChunk:
    """The jobs that a step reads together: up to `last_job`, or all remaining jobs if `last_job` is None.

    Their runs of the slice from `before` on are done.
    """

    last_job: str | None
    before: Rank | None = None


@dataclass(frozen=True, slots=True)
class RunsCursor:
    """The position of a walk over the fire times from `from_at` on: a slice of time, and a chunk of the jobs in it.

    The jobs up to `after_job` are done in this slice. Jobs created after `begun_at` are left out: their runs are newer
    than the walk.
    """

    begun_at: int
    from_at: int
    slice: TimeSlice
    after_job: str = ""
    # None: the next step chooses as many jobs as it can read.
    chunk: JobChunk | None = None

    @classmethod
    def start(cls, now: float, from_at: int, until_at: int | None) -> RunsCursor:
        """The start of a walk over the fire times in [from_at, until_at)."""
        return cls(int(now), from_at, TimeSlice(from_at, until_at))

    @property
    def until_at(self) -> int | None:
        """All runs at or after this are done; None: no runs are done yet."""
        return self.slice.until_at

    @property
    def before(self) -> Rank | None:
        """The run after which the chunk continues; None: at its beginning."""
        return self.chunk.before if self.chunk else None

    def opened(self, job_ids: list[str], *, more: bool, sliced: bool) -> RunsCursor:
        """The cursor with the chunk `job_ids`. `more`: further jobs follow; `sliced`: time is then cut into slices."""
        cursor = replace(self, chunk=JobChunk(job_ids[-1] if more else None, self.before))
        if more and sliced and not self.after_job:
            until_at = self.begun_at if self.until_at is None else self.until_at
            from_at = max(self.from_at, until_at - self.slice.width_s)
            cursor = replace(cursor, slice=replace(self.slice, from_at=from_at))
        return cursor

    def after_run(self, rank: Rank, seen: int) -> RunsCursor:
        """The cursor after a run in the same chunk; `seen` more runs were read."""
        assert self.chunk, "a step opens a chunk first"
        return replace(self, chunk=replace(self.chunk, before=rank), slice=self._seen(seen))

    def after_chunk(self, seen: int) -> RunsCursor | None:
        """The cursor after the chunk; None at the end."""
        current = self._seen(seen)
        if self.chunk and self.chunk.last_job:
            return replace(self, slice=current, after_job=self.chunk.last_job, chunk=None)
        if current.from_at <= self.from_at:
            return None
        following = TimeSlice(self.from_at, current.from_at, next_width_s(current.width_s, current.seen))
        return RunsCursor(self.begun_at, self.from_at, following)

    def _seen(self, more: int) -> TimeSlice:
        return replace(self.slice, seen=self.slice.seen + more)

    @property
    def complete_from_at(self) -> int | None:
        """The time at or after which no more runs follow; None if that is not known yet."""
        if self.chunk and self.chunk.last_job is None and self.chunk.before:  # the other jobs are done
            fire_at = _fire_at(self.chunk.before[0])
            return self.until_at if fire_at is None else fire_at + 1
        return self.until_at

    def to_text(self) -> str:
        """The cursor as a JSON list. Its job is null without a chunk, and empty for all remaining jobs."""
        last_job = (self.chunk.last_job or "") if self.chunk else None
        current = self.slice
        values = [
            *(self.begun_at, self.from_at, current.from_at, current.until_at, current.width_s),
            *(self.after_job, last_job, self.before, current.seen),
        ]
        return json.dumps(values, separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> RunsCursor:
        """The inverse of `to_text`. A client may have written the text. Raises ValueError."""
        values = _CursorValues(text)
        begun_at, from_at = values.count(), values.count()
        current = (values.count(), values.optional_count(), values.count())
        after_job, last_job, before = values.job_id(), values.optional_job_id(), values.optional_rank()
        chunk = None if last_job is None else JobChunk(last_job or None, before)
        cursor = cls(begun_at, from_at, TimeSlice(*current, values.count()), after_job, chunk)
        if (before and not chunk) or not cursor._is_consistent():
            raise ValueError(text)
        return cursor

    def _is_consistent(self) -> bool:
        """Whether the slice is in the range, the jobs' ids rise, and the chunk continues within the slice."""
        current, before = self.slice, self.before
        last_job = self.chunk.last_job if self.chunk else None
        return (
            self.from_at <= current.from_at
            and (current.until_at is None or current.from_at < current.until_at)
            and _MIN_SLICE_S <= current.width_s <= _MAX_SLICE_S
            and (last_job is None or self.after_job < last_job)
            and (before is None or (_fire_at(before[0]) or 0) >= current.from_at)
        )


class _CursorValues:
    """The values of a cursor's text, read one after the other. Each method raises ValueError for another type."""

    def __init__(self, text: str) -> None:
        values = json.loads(text)
        if not isinstance(values, list) or len(values) != 9:
            raise ValueError(text)
        self._values = iter(values)

    def count(self) -> int:
        return _count(next(self._values))

    def optional_count(self) -> int | None:
        value = next(self._values)
        return None if value is None else _count(value)

    def job_id(self) -> str:
        return _job_id(next(self._values))

    def optional_job_id(self) -> str | None:
        value = next(self._values)
        return None if value is None else _job_id(value)

    def optional_rank(self) -> Rank | None:
        value = next(self._values)
        if value is None:
            return None
        run_name, job_id = value
        if _fire_at(run_name) is None or not job_id:
            raise ValueError(value)
        return run_name, _job_id(job_id)


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < _MAX_INSTANT:
        raise ValueError(value)
    return value


def _job_id(value: object) -> str:
    """A job's id, or an empty text."""
    if value != "" and not is_id(value, JOB_ID_CHARS):
        raise ValueError(value)
    return str(value)


def next_width_s(width_s: int, seen: int) -> int:
    """The width of the next slice, after a slice of `width_s` with `seen` runs."""
    if seen < _MIN_RUNS_IN_SLICE:
        return min(2 * width_s, _MAX_SLICE_S)
    return max(width_s // 2, _MIN_SLICE_S) if seen > _MAX_RUNS_IN_SLICE else width_s


def _fire_at(run_name: object) -> int | None:
    named = split_run_name(run_name)
    return named[0] if named else None
