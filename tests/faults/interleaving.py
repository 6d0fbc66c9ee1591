"""Several processes at once, one AWS call at a time: in every order that makes a difference, or in a sample.

Each process is a thread that waits for its turn before each call, so a test is the same every time.

Two steps that touch different items, or only read the same ones, commute. `every_order` plays one of such orders, by
sleep sets (Godefroid, Partial-Order Methods, 1996). So what a test checks must be a stored item, or be written by a
recorded step such as a target's call: not a variable that both processes write.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.faults.wire import Touched, Wire, commute
from tests.worlds import Killed

Step = Callable[[], object]
Apart = Callable[[str], bool]


class Choose(Protocol):
    """Decides which process continues."""

    def next(self, waiting: Sequence[str]) -> str:
        """The name of the process that does its next step."""

    def ran(self, name: str, touched: Touched) -> None:
        """The step is done, and touched these items."""


def anywhere(call: str) -> bool:
    """Another process may continue before every call."""
    return True


class _Process(threading.Thread):
    def __init__(self, name: str, step: Step, arrived: threading.Semaphore) -> None:
        super().__init__(name=name, daemon=True)
        self._step, self._arrived = step, arrived
        self._go = threading.Semaphore(0)
        self.touched: Touched = set()
        self.died: BaseException | None = None
        self.ended = False

    def run(self) -> None:
        self.wait_for_turn()
        try:
            self._step()
        except (Exception, Killed) as error:  # noqa: BLE001
            self.died = error
        self.ended = True
        self._arrived.release()

    def wait_for_turn(self) -> None:
        self._arrived.release()
        self._go.acquire()

    def go_on(self) -> Touched:
        """Let it do its next call, and run until the call after that or to its end."""
        self.touched = set()
        self._go.release()
        self._arrived.acquire()
        return self.touched


def play(
    wire: Wire, steps: Mapping[str, Step], choose: Choose, apart: Apart = anywhere
) -> dict[str, BaseException | None]:
    """Do all `steps` at once; before each call that `apart` selects, `choose` selects the next. Returns the errors."""
    arrived = threading.Semaphore(0)
    processes = {name: _Process(name, step, arrived) for name, step in steps.items()}

    def turn(call: str, touched: Touched) -> None:
        process = threading.current_thread()
        if isinstance(process, _Process):
            if apart(call):
                process.wait_for_turn()
            process.touched |= touched

    wire.turn = turn
    try:
        for process in processes.values():
            process.start()
            arrived.acquire()
        while waiting := [name for name, process in processes.items() if not process.ended]:
            name = choose.next(waiting)
            choose.ran(name, processes[name].go_on())
    finally:
        wire.turn = lambda name, touched: None
    return {name: process.died for name, process in processes.items()}


@dataclass
class _Choice:
    """A point of an order: who continued, who was tried here before, and whose next step need not come first here."""

    waiting: Sequence[str]
    asleep: dict[str, Touched]
    chosen: str
    touched: Touched = field(default_factory=set)
    tried: dict[str, Touched] = field(default_factory=dict)

    def go_to_next(self) -> bool:
        """Choose somebody who was not tried; False if nobody is left."""
        self.tried[self.chosen] = self.touched
        untried = [name for name in self.waiting if name not in self.tried and name not in self.asleep]
        self.chosen = untried[0] if untried else self.chosen
        return bool(untried)


class _Order:
    """One order: it repeats `choices`, and goes on with the first process that is not asleep."""

    def __init__(self, choices: list[_Choice]) -> None:
        self._choices, self._depth, self._is_known = choices, 0, False

    def next(self, waiting: Sequence[str]) -> str:
        self._depth += 1
        if self._depth <= len(self._choices):
            return self._choices[self._depth - 1].chosen
        asleep = self._asleep()
        awake = [name for name in waiting if name not in asleep]
        if self._is_known or not awake:  # another order has shown what this one leads to
            self._is_known = True
            return waiting[0]
        self._choices.append(_Choice(waiting, asleep, awake[0]))
        return awake[0]

    def ran(self, name: str, touched: Touched) -> None:
        if not self._is_known:
            self._choices[self._depth - 1].touched = touched

    def _asleep(self) -> dict[str, Touched]:
        if not self._choices:
            return {}
        last = self._choices[-1]
        before = {**last.asleep, **last.tried}
        return {name: touched for name, touched in before.items() if commute(touched, last.touched)}


def every_order() -> Iterator[Choose]:
    """Choices that lead through all orders that differ, depth first. Play each to its end before taking the next."""
    choices: list[_Choice] = []
    while True:
        yield _Order(choices)
        while choices and not choices[-1].go_to_next():
            choices.pop()
        if not choices:
            return


class _Sampled:
    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def next(self, waiting: Sequence[str]) -> str:
        return waiting[self._random.randrange(len(waiting))]

    def ran(self, name: str, touched: Touched) -> None:
        """A sample does not depend on it."""


def some_orders(count: int) -> Iterator[Choose]:
    """A sample of the orders: the same each time."""
    for seed in range(count):
        yield _Sampled(seed)
