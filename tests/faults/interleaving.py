"""Several processes at once, one AWS call at a time, in every order or in a sample of the orders.

Each process is a thread that waits for its turn before each call, so a test is the same every time.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Mapping

from tests.faults.wire import Wire
from tests.worlds import Killed

Choose = Callable[[int], int]
Step = Callable[[], object]
Apart = Callable[[str], bool]


def anywhere(call: str) -> bool:
    """Another process may continue before every call."""
    return True


class _Process(threading.Thread):
    def __init__(self, name: str, step: Step, arrived: threading.Semaphore) -> None:
        super().__init__(name=name, daemon=True)
        self._step, self._arrived = step, arrived
        self._go = threading.Semaphore(0)
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

    def go_on(self) -> None:
        """Let it do its next call, and run until the call after that or to its end."""
        self._go.release()
        self._arrived.acquire()


def play(
    wire: Wire, steps: Mapping[str, Step], choose: Choose, apart: Apart = anywhere
) -> dict[str, BaseException | None]:
    """Do all `steps` at once; before each call that `apart` selects, `choose` selects the next. Returns the errors."""
    arrived = threading.Semaphore(0)
    processes = {name: _Process(name, step, arrived) for name, step in steps.items()}

    def turn(call: str) -> None:
        process = threading.current_thread()
        if isinstance(process, _Process) and apart(call):
            process.wait_for_turn()

    wire.turn = turn
    try:
        for process in processes.values():
            process.start()
            arrived.acquire()
        while going := [process for process in processes.values() if not process.ended]:
            going[choose(len(going))].go_on()
    finally:
        wire.turn = lambda name: None
    return {name: process.died for name, process in processes.items()}


def every_order() -> Iterator[Choose]:
    """Choices that lead through all orders, depth first. Play each one to its end before taking the next."""
    path: list[int] = []
    while True:
        choices: list[tuple[int, int]] = []

        def choose(
            alternatives: int, path: list[int] = path, choices: list[tuple[int, int]] = choices
        ) -> int:
            chosen = path[len(choices)] if len(choices) < len(path) else 0
            choices.append((chosen, alternatives))
            return chosen

        yield choose
        while choices and choices[-1][0] + 1 == choices[-1][1]:
            choices.pop()
        if not choices:
            return
        path = [chosen for chosen, _ in choices]
        path[-1] += 1


def some_orders(count: int) -> Iterator[Choose]:
    """A sample of the orders: the same each time."""
    for seed in range(count):
        yield random.Random(seed).randrange
