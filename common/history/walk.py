"""Where a walk over the runs of all of a tenant's jobs is, newest first, step by step. Pure; `tenant_runs.py` reads.

Runs are kept by job, since an index by tenant would be a second write for each. So a step asks each job for its newest
runs and merges them; how many jobs it asks is bounded. A tenant with no more jobs than that has its runs in one order.
With more of them a list cuts time into slices, newest first, and within a slice a chunk of the jobs is done after the
other, each newest first; a sum, which has no order, does one chunk after the other over the whole range.
`complete_from_at` says from which instant on nothing more comes, in every case.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any, Final

from common.ids import JOB_ID_CHARS, is_id
from common.planning.execution import split_run_name
from common.timing.instants import DAY_S

_FIRST_SLICE_S: Final = 600
_LEAST_SLICE_S: Final = 60
_MOST_SLICE_S: Final = 7 * DAY_S
# A slice in which fewer runs were seen is followed by a wider one, and one with more by a narrower one.
_FEW: Final = 500
_MANY: Final = 5_000

_LATEST: Final = 10**11

# A run's place in the order, where the largest comes first: its name, which begins with its fire time, and its job.
Rank = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Slice:
    """The fire times that are under way, [from_at, until_at); all later ones are done."""

    from_at: int
    until_at: int | None
    width_s: int = _FIRST_SLICE_S
    # How many of its runs were looked at so far.
    seen: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """The jobs that are asked together: those up to `last_job`, None: all that are left.

    Their runs of the slice from `before` on are done.
    """

    last_job: str | None
    before: Rank | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a walk over the fire times from `from_at` on is: in a slice of time, and there in a chunk of the jobs.

    The jobs up to `after_job` are done in this slice. Jobs that were made after `begun_at` are left out: what they run
    is newer than the walk.
    """

    begun_at: int
    from_at: int
    slice: Slice
    after_job: str = ""
    # None: the next step chooses as many jobs as it can ask.
    chunk: Chunk | None = None

    @classmethod
    def start(cls, now: float, from_at: int, until_at: int | None) -> Place:
        """Of a walk over the fire times in [from_at, until_at)."""
        return cls(int(now), from_at, Slice(from_at, until_at))

    @property
    def until_at(self) -> int | None:
        """All runs at or after this are done; None: none is yet."""
        return self.slice.until_at

    @property
    def before(self) -> Rank | None:
        """The run behind which the chunk goes on; None: at its beginning."""
        return self.chunk.before if self.chunk else None

    def opened(self, job_ids: list[str], *, more: bool, sliced: bool) -> Place:
        """With its chunk, which is `job_ids`. `more`: there are jobs behind it, for which time is `sliced` or not."""
        place = replace(self, chunk=Chunk(job_ids[-1] if more else None, self.before))
        if more and sliced and not self.after_job:
            until_at = self.begun_at if self.until_at is None else self.until_at
            from_at = max(self.from_at, until_at - self.slice.width_s)
            place = replace(place, slice=replace(self.slice, from_at=from_at))
        return place

    def next_place(self, rank: Rank, seen: int) -> Place:
        """In the same chunk, behind a run; `seen` more were looked at."""
        assert self.chunk, "a step opens a chunk first"
        return replace(self, chunk=replace(self.chunk, before=rank), slice=self._seen(seen))

    def onward(self, seen: int) -> Place | None:
        """Behind the chunk; None if nothing is left."""
        here = self._seen(seen)
        if self.chunk and self.chunk.last_job:
            return replace(self, slice=here, after_job=self.chunk.last_job, chunk=None)
        if here.from_at <= self.from_at:
            return None
        following = Slice(self.from_at, here.from_at, next_width_s(here.width_s, here.seen))
        return Place(self.begun_at, self.from_at, following)

    def _seen(self, more: int) -> Slice:
        return replace(self.slice, seen=self.slice.seen + more)

    @property
    def complete_from_at(self) -> int | None:
        """From when on nothing more comes; None if that is not known yet."""
        if self.chunk and self.chunk.last_job is None and self.chunk.before:  # the other jobs are done
            fire_at = _fire_at(self.chunk.before[0])
            return self.until_at if fire_at is None else fire_at + 1
        return self.until_at

    def to_text(self) -> str:
        """For a cursor: a list without names. Its job is null without a chunk, and empty for all jobs that are left."""
        last_job = (self.chunk.last_job or "") if self.chunk else None
        here = self.slice
        values = [
            *(self.begun_at, self.from_at, here.from_at, here.until_at, here.width_s),
            *(self.after_job, last_job, self.before, here.seen),
        ]
        return json.dumps(values, separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> Place:
        """The inverse, of a text that may be made by hand. Raises ValueError."""
        values = json.loads(text)
        if not isinstance(values, list) or len(values) != 9:
            raise ValueError(text)
        begun_at, from_at, slice_from, until_at, width_s, after_job, last_job, before, seen = values
        counts = (begun_at, from_at, slice_from, until_at or 0, width_s, seen)
        valid = (
            all(type(count) is int and 0 <= count < _LATEST for count in counts)
            and from_at <= slice_from
            and (until_at is None or slice_from < until_at)
            and _LEAST_SLICE_S <= width_s <= _MOST_SLICE_S
            and (after_job == "" or _is_job_id(after_job))
            and (last_job in ("", None) or (_is_job_id(last_job) and after_job < last_job))
            and (before is None or last_job is not None)
        )
        if not valid:
            raise ValueError(text)
        rank = None if before is None else _rank(before, slice_from)
        chunk = None if last_job is None else Chunk(last_job or None, rank)
        return cls(begun_at, from_at, Slice(slice_from, until_at, width_s, seen), after_job, chunk)


def _rank(before: Any, slice_from: int) -> Rank:
    name, job_id = before
    fire_at = _fire_at(name)
    if fire_at is None or fire_at < slice_from or not _is_job_id(job_id):
        raise ValueError(before)
    return name, job_id


def next_width_s(width_s: int, seen: int) -> int:
    """How wide the next slice is, after one of `width_s` in which `seen` runs were looked at."""
    if seen < _FEW:
        return min(2 * width_s, _MOST_SLICE_S)
    return max(width_s // 2, _LEAST_SLICE_S) if seen > _MANY else width_s


def _fire_at(run_name: object) -> int | None:
    named = split_run_name(run_name)
    return named[0] if named else None


def _is_job_id(value: object) -> bool:
    return is_id(value, JOB_ID_CHARS)
