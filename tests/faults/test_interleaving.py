"""The player of orders itself: it leaves out orders that make no difference, and no others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tests.faults.interleaving import Choose, every_order, play, some_orders
from tests.faults.wire import ELSEWHERE, Touched, Wire, commute

Items = dict[str, int]


def item(name: str, writes: bool) -> Touched:
    return {("table", name, "", writes)}


def read(wire: Wire, items: Items, name: str) -> int:
    value: int = wire.call("get_item", lambda: items.get(name, 0), Exception, touched=item(name, False))
    return value


def write(wire: Wire, items: Items, name: str, value: int) -> None:
    wire.call("put_item", lambda: items.update({name: value}), Exception, touched=item(name, True))


def increment(wire: Wire, items: Items, name: str) -> None:
    """Loses an update if another process writes in between: the planted fault."""
    write(wire, items, name, read(wire, items, name) + 1)


def results(orders: list[Choose] | None, steps: dict[str, Callable[[Wire, Items], None]]) -> list[Items]:
    """The items after each order that is played."""
    ends = []
    for choose in orders or every_order():
        wire, items = Wire(), Items()
        play(wire, {name: partial(step, wire, items) for name, step in steps.items()}, choose)
        ends.append(items)
    return ends


def test_a_lost_update_is_found() -> None:
    same = partial(increment, name="a")
    ends = results(None, {"one": same, "two": same})
    assert {"a": 1} in ends and {"a": 2} in ends


def test_processes_that_share_nothing_are_played_in_few_orders() -> None:
    steps = {name: partial(increment, name=name) for name in "abc"}
    orders = results(None, steps)
    assert orders[0] == {"a": 1, "b": 1, "c": 1}
    assert len(orders) < 20  # all orders of six steps: 90


def test_readers_of_one_item_are_played_in_few_orders() -> None:
    def reads(wire: Wire, items: Items) -> None:
        read(wire, items, "a")

    assert len(results(None, {"one": reads, "two": reads, "three": reads})) < 10


@pytest.mark.parametrize("shared", ["first", "last", "none"])
def test_every_end_of_a_sample_is_also_an_end_of_the_orders_played(shared: str) -> None:
    def process(wire: Wire, items: Items, name: str) -> None:
        increment(wire, items, "x" if shared == "first" else f"own-{name}")
        increment(wire, items, f"own-{name}")
        increment(wire, items, "x" if shared == "last" else f"own-{name}")

    steps = {name: partial(process, name=name) for name in ("one", "two", "three")}
    played = results(None, steps)
    assert all(end in played for end in results(list(some_orders(200)), steps))


def test_what_commutes() -> None:
    assert commute(item("a", True), item("b", True))
    assert commute(item("a", False), item("a", False))
    assert not commute(item("a", True), item("a", False))
    assert not commute({("table", "a", None, False)}, item("a", True))  # a query and a write of its partition
    assert not commute(ELSEWHERE, ELSEWHERE)
    assert commute(ELSEWHERE, item("a", True))
