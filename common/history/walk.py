"""Where a walk over the runs of all of a tenant's jobs is, newest first, step by step. Pure; `tenant_runs.py` reads.

Runs are kept by job, since an index by tenant would be a second write for each. So a step asks each job for its newest
runs and merges them; how many jobs it asks is bounded. A tenant with no more jobs than that has its runs in one order.
With more of them a list cuts time into slices, newest first, and within a slice a chunk of the jobs is done after the
other, each newest first; a sum, which has no order, does one chunk after the other over the whole range.
`complete_from_at` says from which instant on nothing more comes, in every case.
"""

from __future__ import annotations

import json
from dataclasses import astuple, dataclass, replace
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
class Place:
    """All runs at or after `until_at` are done, and those from `slice_from` on are under way.

    Of these the jobs up to `after_job` are done, and of the jobs behind it up to `last_job` (empty: of all others;
    None: of as many as a step can ask) the runs from `before` on. Jobs that were made after `begun_at` are left out:
    what they run is newer than the walk.
    """

    begun_at: int
    from_at: int
    slice_from: int
    until_at: int | None
    width_s: int = _FIRST_SLICE_S
    after_job: str = ""
    last_job: str | None = None
    before: Rank | None = None
    # In this slice so far.
    seen: int = 0

    @classmethod
    def start(cls, now: float, from_at: int, until_at: int | None) -> Place:
        """Of a walk over the fire times in [from_at, until_at)."""
        return cls(int(now), from_at, from_at, until_at)

    def opened(self, job_ids: list[str], *, more: bool, sliced: bool) -> Place:
        """With its chunk, which is `job_ids`. `more`: there are jobs behind it, for which time is `sliced` or not."""
        place = replace(self, last_job=job_ids[-1] if more else "")
        if more and sliced and not self.after_job:
            until_at = self.begun_at if self.until_at is None else self.until_at
            place = replace(place, slice_from=max(self.from_at, until_at - self.width_s))
        return place

    def next_place(self, rank: Rank, seen: int) -> Place:
        """In the same chunk, behind a run; `seen` more were looked at."""
        return replace(self, before=rank, seen=self.seen + seen)

    def onward(self, seen: int) -> Place | None:
        """Behind the chunk; None if nothing is left."""
        seen += self.seen
        if self.last_job:
            return replace(self, after_job=self.last_job, last_job=None, before=None, seen=seen)
        if self.slice_from <= self.from_at:
            return None
        return replace(
            self,
            slice_from=self.from_at,
            until_at=self.slice_from,
            width_s=next_width_s(self.width_s, seen),
            after_job="",
            last_job=None,
            before=None,
            seen=0,
        )

    @property
    def complete_from_at(self) -> int | None:
        """From when on nothing more comes; None if that is not known yet."""
        if self.last_job == "" and self.before:  # the other jobs are done
            fire_at = _fire_at(self.before[0])
            return self.until_at if fire_at is None else fire_at + 1
        return self.until_at

    def to_text(self) -> str:
        """For a cursor."""
        return json.dumps(astuple(self), separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> Place:
        """The inverse, of a text that may be made by hand. Raises ValueError."""
        values = json.loads(text)
        if not isinstance(values, list) or len(values) != len(cls.__slots__):
            raise ValueError(text)
        place = cls(*values)
        counts = (
            place.begun_at,
            place.from_at,
            place.slice_from,
            place.until_at or 0,
            place.width_s,
            place.seen,
        )
        valid = (
            all(type(count) is int and 0 <= count < _LATEST for count in counts)
            and place.from_at <= place.slice_from
            and (place.until_at is None or place.slice_from < place.until_at)
            and _LEAST_SLICE_S <= place.width_s <= _MOST_SLICE_S
            and (place.after_job == "" or _is_job_id(place.after_job))
            and (place.last_job in ("", None) or _is_job_id(place.last_job))
            and (not place.last_job or place.after_job < place.last_job)
        )
        if not valid:
            raise ValueError(text)
        return place if place.before is None else replace(place, before=place._rank(place.before))

    def _rank(self, before: Any) -> Rank:
        name, job_id = before
        fire_at = _fire_at(name)
        if fire_at is None or fire_at < self.slice_from or not _is_job_id(job_id):
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
