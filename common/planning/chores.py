"""Chores: what follows a tick, or runs each hour. One runner keeps their time and positions, logs and counts.

A chore is a generator that yields its position: all before it is done. The runner stores each position before the next
step begins, and the next round goes on there. So a step may be cut off, repeated, or done by two processes at once.

Each chore has a share of the time, and a second turn with what the others leave. Who has waited longest is first. An
exception ends the chore's own round only. A step that fails three times is listed in the quarantine and passed over.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar

from common import telemetry
from common.clock import Clock
from common.storage import keys
from common.storage.table import Query, Table
from common.storage.wire import Item

T = TypeVar("T")
Position = Mapping[str, Any]

MAX_TRIES: Final = 3
_MAX_LOGGED: Final = 10
_MAX_CHARS: Final = 500
_NEVER_WAITED: Final = 9_999_999_999


@dataclass(slots=True)
class Done:
    """What a chore does in a round, for its log line and metrics. No step begins from `until` on.

    `errors` are for a person to look into; `problems` are left to the next round.
    """

    chore: str
    clock: Clock
    until: float = 0.0
    # How often the first step has failed in earlier rounds.
    tries: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    metrics: dict[str, float] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    passed_over: list[tuple[str, str]] = field(default_factory=list)
    is_cut: bool = False

    @property
    def is_time_up(self) -> bool:
        return self.clock.now() >= self.until

    def problem(self, name: str, error: object) -> None:
        """Note that this is left to the next round."""
        self.problems.append(f"{name}: {error!r}"[:_MAX_CHARS])

    def each(self, items: Sequence[T], act: Callable[[T], object], name: Callable[[T], str] = str) -> list[T]:
        """Act on each item. One that raises is a problem, and the others go on. Returns those that raised."""
        failed: list[T] = []

        def isolated(item: T) -> None:
            try:
                act(item)
            except Exception as error:  # noqa: BLE001  one item holds no other item back
                self.problem(name(item), error)
                failed.append(item)

        for_each(items, isolated)
        return failed

    def step(self, name: str, act: Callable[[], T]) -> T | None:
        """What `act` returns. It may raise twice; the third time it is passed over, and this returns None.

        A step that ended its process so often is not tried again.
        """
        try:
            if self.tries < MAX_TRIES:
                return act()
            why = f"it has ended its process {self.tries} times"
        except Exception as error:  # a step that fails three times is passed over, whatever it raises
            if self.tries + 1 < MAX_TRIES:
                raise
            why = repr(error)[:_MAX_CHARS]
        self.passed_over.append((name, why))
        return None


Steps = Callable[[Position | None, Done], Iterator[Position]]


@dataclass(frozen=True, slots=True)
class Chore:
    """`steps` goes on from the last position; None: the first one. `share`: of the time, beside the others' shares."""

    name: str
    steps: Steps
    share: int = 1


@dataclass(frozen=True, slots=True)
class _State:
    """What is stored of a chore. `waits_since`: its last step, if it did not come to its end; 0: it did."""

    at: Position | None = None
    waits_since: int = 0
    tries: int = 0

    @property
    def order(self) -> tuple[int, int]:
        """Who fails comes last; then who has waited longest is first."""
        return self.tries, self.waits_since or _NEVER_WAITED

    @classmethod
    def of(cls, item: Item) -> _State:
        numbers = (item.get(name) for name in ("waits_since", "tries"))
        return cls(position_in(item), *(number if isinstance(number, int) else 0 for number in numbers))


@dataclass(slots=True)
class _Turn:
    chore: Chore
    done: Done
    state: _State
    steps: Iterator[Position] | None = None


@dataclass(frozen=True, slots=True)
class ChoreRunner:
    """Runs the chores of one function, which calls them its `rounds`."""

    due: Table
    clock: Clock
    rounds: str

    def run(self, chores: Sequence[Chore], stop_at: float) -> list[Done]:
        """Let each chore go on until it ends, or the time is up. Logs and counts what they did. Raises nothing."""
        with telemetry.tolerated("chores left to the next round"):
            all_done = self._run(chores, stop_at)
            for done in all_done:
                publish(done)
            return all_done
        return []

    def _run(self, chores: Sequence[Chore], stop_at: float) -> list[Done]:
        stored = {item["sk"]: item for item in self.due.query(Query(keys.CHORES))}
        this_round = keys.chore(f"#{self.rounds}")
        was_killed = stored.get(this_round["sk"], {}).get("is_over") is False
        self.due.put({**this_round, "is_over": False})
        began_at = int(self.clock.now())
        states = {chore.name: _State.of(stored.get(chore.name, {})) for chore in chores}
        turns = deque(
            _Turn(chore, Done(chore.name, self.clock), states[chore.name])
            for chore in sorted(chores, key=lambda chore: states[chore.name].order)
        )
        ended: list[Done] = []
        while turns:
            turn, now = turns.popleft(), self.clock.now()
            shares = turn.chore.share + sum(other.chore.share for other in turns)
            turn.done.until = now + (stop_at - now) * turn.chore.share / shares
            self._go_on(turn, began_at, was_killed)
            if turn.done.is_cut and self.clock.now() < stop_at:
                turns.append(turn)
            else:
                ended.append(turn.done)
        self.due.put({**this_round, "is_over": True})
        return ended

    def _go_on(self, turn: _Turn, began_at: int, was_killed: bool) -> None:
        """Let the chore take steps until its time is up.

        After a round that was killed, each try is stored before it begins: the next round knows which chore it was.
        """
        done, tries = turn.done, turn.state.tries
        done.is_cut, done.tries = False, tries
        waits_since = turn.state.waits_since or began_at
        try:
            if was_killed:
                self._store(turn, replace(turn.state, tries=tries + 1))
            turn.steps = turn.steps or turn.chore.steps(turn.state.at, done)
            while not done.is_time_up:
                position = next(turn.steps, None)
                done.tries = 0
                if position is None:
                    waits_since = 0
                    break
                self._store(turn, replace(turn.state, at=position, tries=0))
                waits_since = int(self.clock.now())
            else:
                done.is_cut = True
            self._store(turn, replace(turn.state, waits_since=waits_since, tries=0))
        except Exception as error:  # noqa: BLE001  one chore holds no other chore back
            done.errors.append(repr(error)[:_MAX_CHARS])
            failed = replace(turn.state, waits_since=waits_since, tries=done.tries + 1)
            done.each([failed], partial(self._store, turn), lambda _: done.chore)
        done.each(done.passed_over, partial(self._list, done.chore), lambda step: step[0])

    def _store(self, turn: _Turn, state: _State) -> None:
        if state != turn.state:
            self.due.put(
                {
                    **keys.chore(turn.chore.name),
                    "at": state.at,
                    "waits_since": state.waits_since,
                    "tries": state.tries,
                }
            )
            turn.state = state

    def _list(self, chore: str, step: tuple[str, str]) -> None:
        from common.planning.quarantine import Quarantine

        name, why = step
        Quarantine(self.due).add_entry(f"#chore-{chore}-{name}", why, self.clock.now())


def position_in(item: Item | None) -> Position | None:
    """The position in a stored chore; None if it has none that can be read. Pure."""
    at = (item or {}).get("at")
    return at if isinstance(at, Mapping) else None


def publish(done: Done) -> None:
    """Log and count what a chore did. Nothing is logged of one that had nothing to do."""
    for name, value in done.metrics.items():
        telemetry.metrics().add_metric(name, "Count", value)
    kept = {
        "errors": done.errors[:_MAX_LOGGED],
        "problems": done.problems[:_MAX_LOGGED],
        "passed_over": [": ".join(step) for step in done.passed_over[:_MAX_LOGGED]],
        "is_cut": done.is_cut,
    }
    fields: dict[str, Any] = {**done.counts, **{name: value for name, value in kept.items() if value}}
    if fields:
        logger = telemetry.logger()
        is_left = done.problems or done.is_cut
        log = logger.error if done.errors or done.passed_over else logger.warning if is_left else logger.info
        log(done.chore, **fields)


_MAX_SEQUENTIAL: Final = 10
_THREADS: Final = 16


def for_each(items: Sequence[T], do: Callable[[T], object]) -> None:
    """Do it for each item: of few in sequence, of more in several threads. Raises the first error, after all."""
    if len(items) <= _MAX_SEQUENTIAL:
        for item in items:
            do(item)
        return
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="write") as pool:
        futures = [pool.submit(do, item) for item in items]
    for future in futures:
        future.result()
