"""A page of a list: what one request may look at is bounded, and the page says where the next one goes on.

A client can write a cursor itself, so each part of a position says what it may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from msgspec import Meta

from common.clock import CpuBudget
from common.ids import id_pattern
from common.limits import JOB_ID_CHARS, PAGE_CPU_S
from common.storage.unreadable import Unreadable

# `$` alone would let a final line feed pass.
_AT_THE_END = r"(?!\n)"
_JOB_ID = id_pattern(JOB_ID_CHARS).strip("^$")
# Epoch seconds.
Instant = Annotated[int, Meta(ge=0, lt=10**11)]
JobId = Annotated[str, Meta(pattern=f"^{_JOB_ID}${_AT_THE_END}")]
JobIdOrEmpty = Annotated[str, Meta(pattern=f"^({_JOB_ID})?${_AT_THE_END}")]
# What DynamoDB accepts as part of a key.
KeyText = Annotated[str, Meta(pattern=r"^[ -~]{1,1000}$" + _AT_THE_END)]
KeyTextOrEmpty = Annotated[str, Meta(pattern=r"^[ -~]{0,1000}$" + _AT_THE_END)]
# A run's name, and its job.
RunPosition = tuple[KeyText, JobId]
# Of an instant with fractions. Neither is a number that DynamoDB cannot hold.
Moment = Annotated[int, Meta(ge=1, lt=10**11)] | Annotated[float, Meta(ge=1, lt=10**11)]
# When a run failed, its job, its name.
FailurePosition = tuple[Moment, JobId, KeyText]


Item = TypeVar("Item")
Position = TypeVar("Position")


@dataclass(frozen=True, slots=True)
class Page(Generic[Item, Position]):
    """Some items in order. `after`: where the next page goes on; None: the end was reached.

    `is_cut`: a bound ended the page, and not its size. `unreadable`: what is damaged among what it looked at.
    """

    items: list[Item]
    after: Position | None = None
    is_cut: bool = False
    unreadable: tuple[Unreadable, ...] = ()


def bounded(
    source: Iterable[tuple[Position | None, Item | Unreadable | None]],
    *,
    most: int,
    most_looked_at: int,
    weigh: Callable[[Item], int] = lambda item: 0,
    most_weight: int = 0,
    cpu_s: float = PAGE_CPU_S,
    before: Position | None = None,
) -> Page[Item, Position]:
    """The next items of a source, up to `most`, and about `most_weight` of them together.

    The source yields the position of all that it looks at, with None for what the list does not show: so a filter that
    finds nothing still moves on. What is unreadable is named, and has no place among the items. `before` is the
    position at which the source begins.
    """
    items: list[Item] = []
    unreadable: list[Unreadable] = []
    weight, budget = 0, CpuBudget(cpu_s)
    for looked_at, (position, item) in enumerate(source):
        is_full = item is not None and len(items) == most
        is_heavy = bool(most_weight) and weight >= most_weight
        if is_full or is_heavy or looked_at == most_looked_at or (looked_at and budget.is_spent):
            return Page(items, before, is_cut=not is_full, unreadable=tuple(unreadable))
        if isinstance(item, Unreadable):
            unreadable.append(item)
        elif item is not None:
            items.append(item)
            weight += weigh(item)
        before = position
    return Page(items, unreadable=tuple(unreadable))
