"""The log of planning: which executions were enqueued for each window, and how its planning went.

The log is divided by tenant into buckets, so that a look at one tenant's newest runs reads a small part of it. Beside
what is planned it has runs that change: started by hand, backfilled, skipped, cancelled, reopened, written before the
change; and runs that the projection (common/projection/) looks at again, in the window in which it does. So who follows
the log reads one range of a bucket.

Later ticks compare the log of executions with the runs, and so find executions without a record. A chunk holds the
messages of thousands of executions of one window, compressed to some 20 bytes each. It is written after they are
enqueued, and before planned_until moves. So each execution in the log was enqueued, and an execution whose planning was
interrupted is planned again. A chunk is named by its content: if two ticks plan the same, it is stored once. A
chunk that cannot be written is reported, and planning goes on.

The record of a window is for people, and names the chunks that were written. Ticks and planners write it after their
work. If records do not join, or their chunks are not there, ticks plan again from there on: what ran does not run
again (scheduler/comparison.py).
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError
from msgspec import Struct

from common.cache import convert
from common.errors import Busy, Minute8Error
from common.planning.execution import Execution
from common.storage import keys
from common.storage.expressions import change
from common.storage.table import Query, Table
from common.storage.wire import DAMAGE, Item
from common.telemetry import tolerated
from common.timing.instants import DAY_S
from common.timing.windows import window_start

_NAME_CHARS: Final = 16
# Some 100 KB with ids that are short or alike.
_MAX_CHUNK_EXECUTIONS: Final = 5_000
# Compressed. The compressor keeps back up to 40 KB more, and base64 adds a third: an item holds 400 KB.
MAX_CHUNK_BYTES: Final = 200_000
_CHUNK_TTL_S: Final = 2 * DAY_S
_LOOKS_TTL_S: Final = 8 * DAY_S
# A window of ten minutes has one record: TTL bounds their number to about 1,100.
_WINDOW_TTL_S: Final = 8 * DAY_S
_PLACES: Final = "places_"
_FAR_AT: Final = 9_999_999_999


# What is enqueued; what changes beside the plan; what is looked at again, and of that what must have a record, and
# what had one.
PLANNED, CHANGED, AGAIN = "planned", "changed", "again"
AGAIN_PLANNED, AGAIN_RECORDED = f"{AGAIN}-planned", f"{AGAIN}-recorded"


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some executions of the window that starts at `window`. Those with spread are in the window of their due time."""

    window: int
    # Of a chunk that is written; its reader counts the bodies.
    count: int
    data: str
    bucket: int = 0
    kind: str = PLANNED
    # Once it is stored.
    key: keys.Key | None = None

    @property
    def name(self) -> str:
        """It is named by its content: the same is stored once."""
        return hashlib.sha256(self.data.encode()).hexdigest()[:_NAME_CHARS]

    @property
    def place(self) -> str:
        """Where it is stored, in a word."""
        return f"{self.bucket}#{keys.logged(self.bucket, self.window, self.kind, self.name)['sk']}"

    @property
    def is_intact(self) -> bool:
        """Whether a stored chunk holds what its name says."""
        return self.key == keys.logged(self.bucket, self.window, self.kind, self.name)

    def bodies(self) -> list[str]:
        """Their messages; `Execution.decode` reads them."""
        return zlib.decompress(base64.b64decode(self.data)).decode().split("\n")

    def to_item(self) -> Item:
        """The item of the due table."""
        return {
            **keys.logged(self.bucket, self.window, self.kind, self.name),
            "count": self.count,
            "data": self.data,
            "expires_at": self.window + (_LOOKS_TTL_S if self.kind.startswith(AGAIN) else _CHUNK_TTL_S),
        }


@dataclass(frozen=True, slots=True)
class UnwrittenChunk:
    """Executions that were enqueued and are not in the log: nobody notices if one of their messages is lost."""

    window: int
    count: int
    reason: str

    def __str__(self) -> str:
        return f"{self.count} executions were enqueued and are not in the log of planning: {self.reason}"


@dataclass(slots=True)
class _ChunkBuilder:
    """Compresses the messages of one chunk."""

    compressor: zlib._Compress = field(default_factory=lambda: zlib.compressobj(1))
    data: bytearray = field(default_factory=bytearray)
    count: int = 0

    def add(self, body: str) -> None:
        self.data += self.compressor.compress((f"\n{body}" if self.count else body).encode())
        self.count += 1

    @property
    def is_full(self) -> bool:
        """Whether the chunk takes no more."""
        return self.count >= _MAX_CHUNK_EXECUTIONS or len(self.data) >= MAX_CHUNK_BYTES

    def build(self, window: int, bucket: int, kind: str) -> Chunk:
        data = base64.b64encode(self.data + self.compressor.flush()).decode()
        return Chunk(window, self.count, data, bucket, kind)


@dataclass(slots=True)
class LogWriter:
    """Collects executions that are about to be enqueued at `now`. After they are enqueued, `write` stores them."""

    table: Table
    now: float
    kind: str = PLANNED
    # The places of what was stored.
    places: list[str] = field(default_factory=list)
    _builders: defaultdict[tuple[int, int, str], _ChunkBuilder] = field(
        default_factory=lambda: defaultdict(_ChunkBuilder)
    )
    _full: list[Chunk] = field(default_factory=list)

    def recording(self, executions: Iterable[Execution]) -> Iterator[Execution]:
        """The same executions. Each is collected when the caller takes it."""
        for execution in executions:
            self.add(execution)
            yield execution

    def add(self, execution: Execution) -> None:
        """Collect an execution."""
        # A late execution goes to the present window, since its own may have been compared already.
        self.add_at(window_start(max(execution.visible_at, int(self.now))), execution, self.kind)

    def add_at(self, window: int, execution: Execution, kind: str) -> None:
        """Collect an execution of this window and kind."""
        place = window, keys.log_bucket(execution.tenant), kind
        builder = self._builders[place]
        builder.add(execution.encode())
        if builder.is_full:
            self._full.append(self._builders.pop(place).build(*place))

    def write_all(self) -> None:
        """Store what was collected. Raises Busy if anything could not be stored."""
        if unwritten := self.write():
            raise Busy(str(unwritten[0]))

    def write(self) -> list[UnwrittenChunk]:
        """Store the collected executions, after all of them are enqueued. Returns what could not be stored.

        It raises nothing. An error here would plan the window again, and send all its messages twice.
        """
        chunks = [*self._full, *(builder.build(*place) for place, builder in self._builders.items())]
        self._full.clear()
        self._builders.clear()
        if len(chunks) > 1:
            # A few requests for all of them: a tick has chunks of each bucket.
            with tolerated("the log of a window is written one by one", chunks=len(chunks)):
                self.table.put_many([chunk.to_item() for chunk in chunks])
                self.places += [chunk.place for chunk in chunks]
                return []
        return [unwritten for chunk in chunks if (unwritten := self._unwritten(chunk))]

    def _unwritten(self, chunk: Chunk) -> UnwrittenChunk | None:
        """Store a chunk, which may be stored already; or say why that failed."""
        try:
            self.table.put(chunk.to_item())
            self.places.append(chunk.place)
        except (
            BotoCoreError,
            ClientError,
            Minute8Error,
        ) as error:  # it only serves to find lost messages later
            return UnwrittenChunk(chunk.window, chunk.count, repr(error))
        return None


class ExecutionLog:
    """The chunks, in the due table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def writer(self, now: float) -> LogWriter:
        """A writer for executions that are about to be enqueued."""
        return LogWriter(self._table, now)

    def note(self, executions: Iterable[Execution], now: float) -> None:
        """Write executions down before their runs change. Raises whatever a write raises."""
        writer = LogWriter(self._table, now, CHANGED)
        for execution in executions:
            writer.add(execution)
        writer.write_all()

    def look_again(self, looks: Iterable[tuple[int, Execution, str]]) -> None:
        """Write down when to look at runs again, and of which kind that is. Raises Busy."""
        writer = LogWriter(self._table, 0)
        for at, execution, kind in looks:
            writer.add_at(window_start(at), execution, kind)
        writer.write_all()

    def forget(self, looks: Iterable[Chunk]) -> None:
        """Remove looks that are done."""
        self._table.delete_many([look.key for look in looks if look.key])

    def chunks(self, start: int, end: int, bucket: int | None = None) -> Iterator[Chunk]:
        """The chunks of the windows that start in [start, end), read while the caller consumes them.

        What nobody can read of a chunk is found by `bodies`.
        """
        span = keys.logged_between(start, end)
        for number in range(keys.LOG_BUCKETS) if bucket is None else (bucket,):
            query = Query(keys.log_partition(number), sk_between=span, attributes=("pk", "sk", "data"))
            for item in self._table.query(query):
                window, kind = keys.logged_place(item["sk"])
                yield Chunk(window, 0, item.get("data", ""), number, kind, keys.key_of(item))

    def planned(self, start: int, end: int, bucket: int | None = None) -> Iterator[Chunk]:
        """Those of them that were enqueued."""
        return (chunk for chunk in self.chunks(start, end, bucket) if chunk.kind == PLANNED)


class PlannedWindow(Struct, frozen=True, rename={"bad_entries": "bad"}):
    """The window from `start` to `end`, and the work on it from `began_at` to `ended_at`. Instants are epoch seconds.

    `planned` counts executions that were handed over, again each time that a window was planned again.
    """

    start: int
    end: int
    began_at: float
    ended_at: float
    planned: int = 0
    missed: int = 0
    bad_entries: int = 0
    # The ticks and planners that worked at the window.
    ticks: int = 0
    planners: int = 0
    # The places of its chunks.
    places: tuple[str, ...] = ()


class PlannedWindows:
    """The records of windows, in the due table."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def add(self, part: PlannedWindow) -> None:
        """Add what a tick or a planner did to the record of its window."""
        counts = {
            "planned": part.planned,
            "missed": part.missed,
            "bad": part.bad_entries,
            "ticks": part.ticks,
            "planners": part.planners,
        }
        ended: Item = {"ended_at": part.ended_at, "expires_at": int(part.ended_at) + _WINDOW_TTL_S}
        if part.places:  # of each tick and planner its own
            places = " ".join(part.places)
            ended[f"{_PLACES}{hashlib.sha256(places.encode()).hexdigest()[:_NAME_CHARS]}"] = places
        began = {"start": part.start, "began_at": part.began_at}
        self._table.update(keys.planned_window(part.end), change(ended, keep=began, add=counts))

    def forget(self, since: int) -> None:
        """Remove the records of windows that end after an instant: they are planned again."""
        query = Query(
            keys.WINDOWS, sk_between=keys.logged_between(since + 1, _FAR_AT), attributes=("pk", "sk")
        )
        self._table.delete_many([keys.key_of(item) for item in self._table.query(query)])

    def newest(self, limit: int, until: int = _FAR_AT) -> list[PlannedWindow]:
        """The last windows that end by `until`, the newest first."""
        windows, span = [], keys.logged_between(0, until)
        for item in self._table.query(Query(keys.WINDOWS, sk_between=span, newest_first=True, limit=limit)):
            with suppress(*DAMAGE):  # it is for people, and others follow it
                windows.append(_window(item))
        return windows


def _window(item: Item) -> PlannedWindow:
    texts = (str(item[name]) for name in item if name.startswith(_PLACES))
    places = [place for text in texts for place in text.split(" ")]
    return convert({**item, "end": int(item["sk"]), "places": places}, PlannedWindow)
