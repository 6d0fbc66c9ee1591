"""Paces: no second gets more executions of a key than its `per_second`. Pure.

Executions reserve seconds first come, first served, by the second at which they are due. An execution that finds no
free second within its tolerance starts all the same, spread over the tolerance, and is counted.

All shards of a pace are planned together. Their numbers name the pace: they are negative, made of a hash of tenant and
key, and of how many shards of the group came before. Code that knows of no paces reads such a shard as any other.
"""

from __future__ import annotations

import hashlib
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from msgspec.structs import replace

from common.planning.execution import Execution
from common.timing.schedule import Pace

# More shards than the entries of any group fill.
_MAX_SHARDS: Final = 1_000_000
# A pace's hash has too many bytes for a tenant to find a key with the hash of another tenant's.
_HASH_BYTES: Final = 8
# Each number of a pace is at least this large. So all have as many digits, and none is a prefix of another.
_MIN_PACE_NUMBER: Final = 10**19

# The numbers of a pace's shards


def pace_number(tenant: str, pace: Pace | None) -> int:
    """The number that names a pace among the shards; 0 without a pace."""
    if pace is None:
        return 0
    digest = hashlib.blake2b(f"{tenant}/{pace.key}".encode(), digest_size=_HASH_BYTES).digest()
    return _MIN_PACE_NUMBER + int.from_bytes(digest)


def pace_of(shard: int) -> int:
    """The number of the pace to which a shard belongs; 0 if it belongs to none."""
    return -shard // _MAX_SHARDS if shard < 0 else 0


def shard_number(pace: int, nth: int) -> int:
    """The number of the nth shard of a group's jobs with this pace."""
    return -(pace * _MAX_SHARDS + nth) if pace else nth


def nth_shard(shard: int) -> int:
    """The inverse of `shard_number`: which of its group and pace the shard is."""
    return -shard % _MAX_SHARDS if shard < 0 else shard


# The seconds of a pace's executions


class PaceSlice(NamedTuple):
    """The seconds of a pace that one planner may use: those that leave `nth` when divided by `of`."""

    nth: int = 0
    of: int = 1

    def first(self, second: int) -> int:
        """The first of its seconds from `second` on."""
        return second + (self.nth - second) % self.of


ALL_SECONDS: Final = PaceSlice()


class PaceName(NamedTuple):
    """A pace: of one tenant, with one key."""

    tenant: str
    key: str


@dataclass(frozen=True, slots=True)
class PacedExecution:
    """An execution that is to keep to a pace."""

    execution: Execution
    pace: Pace


@dataclass(slots=True)
class PaceReservations:
    """The seconds of one pace that are reserved: second -> executions.

    `reserved` counts the executions of all planners, `own` those of this one. `over` is how many found no free second.
    """

    pace_slice: PaceSlice = ALL_SECONDS
    reserved: Counter[int] = field(default_factory=Counter)
    own: Counter[int] = field(default_factory=Counter)
    over: int = 0
    per_second: int = 0

    def reserve(self, paced: Iterable[PacedExecution], now: float) -> Iterator[Execution]:
        """The executions at their seconds: the same seconds for the same executions in any order.

        The smallest `per_second` among them counts. An execution that was due before `now` keeps its due time and waits
        for a second from `now` on. So it counts as late.
        """
        in_order = sorted(paced, key=lambda item: _priority(item, now))
        known = [self.per_second] if self.per_second else []
        self.per_second = min([*known, *(item.pace.per_second for item in in_order)], default=1)
        free = _FreeSeconds(self.reserved, self.per_second, self.pace_slice)
        for item in in_order:
            begin, tolerance_s, *_ = _priority(item, now)
            second, is_over = free.find(begin, tolerance_s)
            self.reserved[second] += 1
            self.own[second] += 1
            self.over += is_over
            yield _at_second(item.execution, begin, second)


class PaceForecast(NamedTuple):
    """What a pace does with executions: how many are due later, by how much at most, and how many are too many."""

    executions: int
    delayed: int
    longest_s: int
    over: int


def forecast(due: Iterable[tuple[int, int]], per_second: int) -> PaceForecast:
    """The forecast for executions that are due at these seconds, each with its tolerance, and alone in their pace."""
    reserved: Counter[int] = Counter()
    free = _FreeSeconds(reserved, per_second, ALL_SECONDS)
    delays: Counter[int] = Counter()
    over = 0
    for begin, tolerance_s in sorted(due):
        second, is_over = free.find(begin, tolerance_s)
        reserved[second] += 1
        delays[second - begin] += 1
        over += is_over
    return PaceForecast(delays.total(), delays.total() - delays[0], max(delays, default=0), over)


def _priority(paced: PacedExecution, now: float) -> tuple[int, int, int, str, int]:
    """When the execution may start, and then its order among executions that may start at the same second."""
    execution = paced.execution
    begin = max(execution.due_at, math.ceil(now))
    return begin, paced.pace.tolerance_s, execution.fire_at, execution.job_id, execution.schedule_revision


def _at_second(execution: Execution, begin: int, second: int) -> Execution:
    if second == begin:
        return execution
    if begin == execution.due_at:
        return replace(execution, due_at=second)
    return replace(execution, not_before_at=second)


class _FreeSeconds:
    """Finds free seconds for executions that come in the order of their seconds.

    The first level has room for `per_second` executions a second. Each further level has room for one more, and is for
    executions that are too many. For each level the class keeps the first second that is not full. In a higher level
    this second is never later.
    """

    def __init__(self, reserved: Mapping[int, int], per_second: int, pace_slice: PaceSlice) -> None:
        self._reserved = reserved
        self._per_second = per_second
        self._slice = pace_slice
        self._levels: list[int] = []

    def find(self, begin: int, tolerance_s: int) -> tuple[int, bool]:
        """The second of the next execution, and whether the execution is one too many."""
        end = begin + tolerance_s
        if self._slice.first(begin) > end:  # the slice has no second within the tolerance
            return begin, True
        while not self._levels or self._advance(len(self._levels) - 1, begin) > end:
            self._levels.append(begin)
        level = bisect_left(range(len(self._levels)), True, key=lambda nth: self._advance(nth, begin) <= end)
        return self._levels[level], level > 0

    def _advance(self, level: int, begin: int) -> int:
        """Move a level to its first second from `begin` on that is not full. Returns that second."""
        second = self._slice.first(max(begin, self._levels[level]))
        while self._reserved.get(second, 0) >= self._per_second + level:
            second += self._slice.of
        self._levels[level] = second
        return second
