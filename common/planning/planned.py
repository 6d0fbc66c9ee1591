"""The log of planned executions: what was enqueued for each window, by which later ticks find what has no record.

A portion holds the messages of thousands of executions of one window, compressed to some 20 bytes each. It is written
after they are enqueued, and before the mark moves. So an execution of the log was enqueued, and one whose planning was
interrupted is planned again. Portions are named by their content: what two ticks planned is stored once.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from common.planning.execution import Execution
from common.storage import keys
from common.storage.table import Query, Table
from common.storage.wire import Item
from common.timing.instants import DAY_S
from common.timing.windows import window_start

# Some 100 KB. With ids that are long and random, 5,000 executions of as many jobs reach 350 KB; an item holds 400 KB.
_A_PORTION: Final = 5_000
_KEPT_S: Final = 2 * DAY_S


@dataclass(frozen=True, slots=True)
class Portion:
    """Some executions of the window that starts at `window`. Those with spread are in the window of their due time."""

    window: int
    count: int
    data: str

    def bodies(self) -> list[str]:
        """Their messages; `Execution.decode` reads them."""
        return zlib.decompress(base64.b64decode(self.data)).decode().split("\n")


class _Compressor(Protocol):
    def compress(self, data: bytes, /) -> bytes: ...
    def flush(self) -> bytes: ...


@dataclass(slots=True)
class _Open:
    """A portion that is being filled."""

    compressor: _Compressor = field(default_factory=lambda: zlib.compressobj(1))
    data: bytearray = field(default_factory=bytearray)
    count: int = 0

    def add(self, body: str) -> None:
        self.data += self.compressor.compress((f"\n{body}" if self.count else body).encode())
        self.count += 1

    def closed(self, window: int) -> Portion:
        return Portion(window, self.count, base64.b64encode(self.data + self.compressor.flush()).decode())


@dataclass(slots=True)
class Noted:
    """Executions that are about to be enqueued at `now`. `write` comes after that."""

    table: Table
    now: float
    _open: defaultdict[int, _Open] = field(default_factory=lambda: defaultdict(_Open))
    _full: list[Portion] = field(default_factory=list)

    def through(self, executions: Iterable[Execution]) -> Iterator[Execution]:
        """The same executions; each is noted when it is taken."""
        for execution in executions:
            # A late execution is noted in the present window, since its own may have been compared already.
            window = window_start(max(execution.visible_at, int(self.now)))
            portion = self._open[window]
            portion.add(execution.encode())
            if portion.count == _A_PORTION:
                self._full.append(self._open.pop(window).closed(window))
            yield execution

    def write(self) -> None:
        """Write what was noted, after all of it is enqueued."""
        for portion in [*self._full, *(left.closed(window) for window, left in self._open.items())]:
            self.table.put(_item(portion))
        self._full.clear()
        self._open.clear()


class PlannedLog:
    """The portions, in the due table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def noted(self, now: float) -> Noted:
        """A new note of executions that are about to be enqueued."""
        return Noted(self._table, now)

    def sizes(self, start: int, end: int) -> dict[int, int]:
        """How many executions the log has of each window that starts in [start, end)."""
        found: defaultdict[int, int] = defaultdict(int)
        for item in self._items(start, end, ("sk", "count")):
            found[keys.enqueued_window(item["sk"])] += item["count"]
        return dict(found)

    def portions(self, start: int, end: int) -> Iterator[Portion]:
        """The portions of the windows that start in [start, end), read while the caller consumes them."""
        for item in self._items(start, end, ("sk", "count", "data")):
            yield Portion(keys.enqueued_window(item["sk"]), item["count"], item["data"])

    def _items(self, start: int, end: int, attributes: tuple[str, ...]) -> Iterator[Item]:
        span = keys.enqueued_between(start, end)
        for partition in keys.enqueued_partitions():
            yield from self._table.query(Query(partition, sk_between=span, attributes=attributes))


def _item(portion: Portion) -> dict[str, Any]:
    name = hashlib.sha256(portion.data.encode()).hexdigest()[:16]
    return {
        **keys.enqueued(portion.window, name),
        "count": portion.count,
        "data": portion.data,
        "expires_at": portion.window + _KEPT_S,
    }
