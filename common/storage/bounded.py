"""A page of a list: what one request may look at is bounded, and the page says where the next one goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from common.clock import CpuBudget
from common.limits import PAGE_CPU_S
from common.storage.unreadable import Unreadable

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
