"""Paces: no second gets more executions of a key than its `per_second`. Pure.

Executions take places first come, first served, by the second at which they are due. What finds no place within its
tolerance starts all the same, spread over the tolerance, and is counted.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from common.planning.execution import Execution
from common.timing.schedule import Pace


class Part(NamedTuple):
    """A planner's part of a pace: the seconds that leave `nth` when divided by `of`."""

    nth: int = 0
    of: int = 1

    def first(self, second: int) -> int:
        """The first of its seconds from `second` on."""
        return second + (self.nth - second) % self.of


WHOLE: Final = Part()


class Name(NamedTuple):
    """A pace: of one tenant, with one key."""

    tenant: str
    key: str


@dataclass(frozen=True, slots=True)
class Paced:
    """An execution that is to keep to a pace."""

    execution: Execution
    pace: Pace

    @property
    def name(self) -> Name:
        """The pace to which it keeps."""
        return Name(self.execution.tenant, self.pace.key)


@dataclass(slots=True)
class Places:
    """What is taken of one pace: second -> executions. `own` is what was taken here, `over` how many were too many."""

    part: Part = WHOLE
    taken: Counter[int] = field(default_factory=Counter)
    own: Counter[int] = field(default_factory=Counter)
    over: int = 0
    per_second: int = 0

    def place(self, paced: Iterable[Paced], now: float) -> Iterator[Execution]:
        """The executions with their places, the same for the same executions in any order.

        The smallest `per_second` among them counts. What was due before `now` keeps its due time and waits for its
        place from `now` on, so that it counts as late.
        """
        waiting = sorted(paced, key=lambda one: _turn(one, now))
        known = [self.per_second] if self.per_second else []
        self.per_second = min([*known, *(one.pace.per_second for one in waiting)], default=1)
        free = _Free(self.taken, self.per_second, self.part)
        for one in waiting:
            begin, tolerance_s, *_ = _turn(one, now)
            second, is_over = free.take(begin, tolerance_s)
            self.taken[second] += 1
            self.own[second] += 1
            self.over += is_over
            yield _moved(one.execution, begin, second)


class Foreseen(NamedTuple):
    """What a pace does with executions: how many are due later, by how much at most, and how many are too many."""

    executions: int
    delayed: int
    longest_s: int
    over: int


def foreseen(due: Iterable[tuple[int, int]], per_second: int) -> Foreseen:
    """Of executions that are due at these seconds, each with its tolerance, if no others share the pace."""
    taken: Counter[int] = Counter()
    free = _Free(taken, per_second, WHOLE)
    delays: Counter[int] = Counter()
    over = 0
    for begin, tolerance_s in sorted(due):
        second, is_over = free.take(begin, tolerance_s)
        taken[second] += 1
        delays[second - begin] += 1
        over += is_over
    return Foreseen(delays.total(), delays.total() - delays[0], max(delays, default=0), over)


def _turn(one: Paced, now: float) -> tuple[int, int, int, str, int]:
    """From when on it may start, and who comes first of those that may start at the same second."""
    execution = one.execution
    begin = max(execution.due_at, math.ceil(now))
    return begin, one.pace.tolerance_s, execution.fire_at, execution.job_id, execution.schedule_revision


def _moved(execution: Execution, begin: int, second: int) -> Execution:
    if second == begin:
        return execution
    if begin == execution.due_at:
        return replace(execution, due_at=second)
    return replace(execution, not_before_at=second)


class _Free:
    """Finds places for executions that come in the order of their seconds.

    The first level holds `per_second` executions a second, each further one another: these are for what is too much.
    For each level it keeps the first second that is not full. Of a higher level this is never later.
    """

    def __init__(self, taken: Mapping[int, int], per_second: int, part: Part) -> None:
        self._taken = taken
        self._per_second = per_second
        self._part = part
        self._levels: list[int] = []

    def take(self, begin: int, tolerance_s: int) -> tuple[int, bool]:
        """The place of the next execution, and whether it is one too many."""
        end = begin + tolerance_s
        if self._part.first(begin) > end:  # no second of this part is within the tolerance
            return begin, True
        while not self._levels or self._on(len(self._levels) - 1, begin) > end:
            self._levels.append(begin)
        level = bisect_left(range(len(self._levels)), True, key=lambda nth: self._on(nth, begin) <= end)
        return self._levels[level], level > 0

    def _on(self, level: int, begin: int) -> int:
        second = self._part.first(max(begin, self._levels[level]))
        while self._taken.get(second, 0) >= self._per_second + level:
            second += self._part.of
        self._levels[level] = second
        return second
