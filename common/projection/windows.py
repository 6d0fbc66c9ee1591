"""The projection of a tenant's runs: one item for each ten minutes of fire times, with the runs and their outcomes.

A run is stored under its job, so what looks across jobs would ask every job. The projection has the runs of all jobs
by time. It is made from the records after the fact (`scheduler/projector.py`), and can be made again at any time
(`rebuild.py`). Nothing on the way of an execution reads or writes it.

An item of a few runs holds them itself. A larger window has its runs in chunks, and the item has their totals and
where each chunk begins. A chunk is never changed: a change writes a new one, and then the item, on the condition
that nobody else has written it. So an item and its chunks always agree. Merging the same runs again changes nothing.

A tenant may have a million runs in ten minutes: however large a window is, the runs of a chunk at a time are read.
"""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import chain
from typing import Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from common.errors import Busy, Damaged
from common.projection.entry import RunEntry, RunKey, window_of
from common.projection.totals import RunTotals
from common.storage import keys
from common.storage.aws import readable
from common.storage.conflicts import ConditionFailed
from common.storage.stored import Stored
from common.storage.table import Query, Table
from common.storage.wire import Expression, Item
from common.timing.instants import DAY_S, rfc3339

# So many runs are held by the item itself: some 5 KB.
MAX_INLINE: Final = 300
# Runs of a new chunk, some 50 KB, and their text before compression, which random ids do not make shorter. A chunk
# that has grown to twice of one of these is divided.
CHUNK_RUNS: Final = 3_000
_CHUNK_CHARS: Final = 180_000
# So many chunks are read in a request: compressed some 400 KB, at most 3 MB.
_READ_AT_ONCE: Final = 8
# A line beside its ids.
_LINE_CHARS: Final = 40
_MAX_TRIES: Final = 5
_START_DIGITS: Final = 10


class ChunkStart(Struct, frozen=True, array_like=True):
    """Where a chunk begins, and its name, which no other chunk has."""

    first: RunKey
    name: str


class ProjectedWindow(Stored, frozen=True, omit_defaults=True):
    """The runs of a window, either themselves, or as chunks and their totals.

    Somebody has damaged a window with neither: it shows no runs, and only a rebuild writes it anew.
    """

    packed: ClassVar = ("runs", "chunks", "totals_of_chunks")

    tenant: str
    start: int
    version: int
    expires_at: int = 0
    runs: list[RunEntry] | None = None
    chunks: tuple[ChunkStart, ...] = ()
    totals_of_chunks: RunTotals | None = None

    @property
    def key(self) -> keys.Key:
        return keys.projected_window(self.tenant, self.start)

    @property
    def is_damaged(self) -> bool:
        return self.runs is None and (not self.chunks or self.totals_of_chunks is None)

    @property
    def totals(self) -> RunTotals:
        """The totals of its runs; of none if it is damaged."""
        return self.totals_of_chunks or totals_of(self.runs or ())

    def place_of(self, key: RunKey) -> int:
        """In which of the chunks a run is, if the window has it."""
        return max(0, bisect_right(self.chunks, key, key=lambda chunk: chunk.first) - 1)

    @classmethod
    def shown(cls, item: Mapping[str, Any]) -> ProjectedWindow:
        """What an item has, damaged or not."""
        try:
            return cls.from_item(item)
        except Damaged:
            start = item["sk"][:_START_DIGITS]
            return cls("", int(start) if start.isdecimal() else 0, 0)


class ProjectedChunk(Stored, frozen=True):
    """Some of the runs of a large window."""

    packed: ClassVar = ("runs",)

    tenant: str
    start: int
    name: str
    runs: list[RunEntry]
    expires_at: int

    @property
    def key(self) -> keys.Key:
        return keys.projected_chunk(self.tenant, self.start, self.name)


Changes = Mapping[RunKey, RunEntry | None]


class ProjectedRuns:
    """The projection, in the runs table. Every key begins with the tenant."""

    def __init__(self, runs: Table) -> None:
        self._table = runs

    def merge(
        self, tenant: str, start: int, changes: Changes, expires_at: int, *, likely_new: bool = False
    ) -> ProjectedWindow:
        """Put runs into the window that starts at `start`; None takes a run out. Returns the window.

        `likely_new` saves a read if the window has no item. Raises Busy; Damaged: its other runs would be lost.
        """
        stored = None if likely_new else self._item(tenant, start)
        for _ in range(_MAX_TRIES):
            window = ProjectedWindow.shown(stored) if stored else ProjectedWindow(tenant, start, 0, runs=[])
            self.require_readable(tenant, window)
            written: list[str] = []
            with ExitStack() as undo:  # what was written for nothing goes, whatever happens
                undo.callback(self._drop, tenant, start, written)
                after = self._changed(tenant, window, changes, expires_at, written)
                undo.pop_all()
            if after is None:
                return window
            try:
                self._write(tenant, after)
            except ConditionFailed as conflict:
                self._drop(tenant, start, written)
                stored = conflict.existing or self._item(tenant, start)
                continue
            kept = {chunk.name for chunk in after.chunks}
            self._drop(tenant, start, (old.name for old in window.chunks if old.name not in kept))
            return after
        raise Busy(f"the runs of {tenant!r} from {start} on are being written by others")

    def window(self, tenant: str, start: int) -> ProjectedWindow | None:
        """The window that starts at `start`; None if no run is known there."""
        item = self._item(tenant, start)
        return ProjectedWindow.shown(item) if item else None

    def is_whole(self, tenant: str, window: ProjectedWindow) -> bool:
        """Whether all of it can be read."""
        parts = self._chunks(tenant, window, range(len(window.chunks)))
        return not window.is_damaged and all(runs is not None for _, runs in parts)

    def require_readable(self, tenant: str, window: ProjectedWindow) -> None:
        """Raises Damaged."""
        if window.is_damaged:
            raise _damaged(tenant, window)

    def remove(self, tenant: str, start: int) -> None:
        """Remove a window, so that it can be made anew from its runs."""
        key_only = ("pk", "sk")
        chunks = Query(keys.projected_chunks(tenant), sk_prefix=f"{start:010d}#", attributes=key_only)
        windows = Query(keys.projected_windows(tenant), sk_prefix=f"{start:010d}", attributes=key_only)
        for item in [*self._table.query(chunks), *self._table.query(windows)]:
            self._table.delete(keys.key_of(item))

    def between(
        self,
        tenant: str,
        start: int,
        end: int,
        *,
        newest_first: bool = False,
        consistent: bool = False,
    ) -> Iterator[ProjectedWindow]:
        """The windows that start in [start, end) and have runs."""
        span = f"{start:010d}", f"{end - 1:010d}"
        query = Query(
            keys.projected_windows(tenant),
            sk_between=span,
            newest_first=newest_first,
            consistent=consistent,
        )
        for item in self._table.query(query):
            yield ProjectedWindow.shown(item)

    def runs_of(
        self, tenant: str, window: ProjectedWindow, *, passes_over: bool = True
    ) -> Iterator[RunEntry]:
        """All runs of a window, the newest first, chunk by chunk, each read when the caller comes to it.

        It passes over what is damaged; else it raises Damaged.
        """
        last: RunKey | None = None
        for runs in self._parts_of(tenant, window):
            if runs is None and not passes_over:
                raise _damaged(tenant, window)
            for run in reversed(runs or []):
                if last is None or run.key < last:
                    yield run
                    last = run.key

    def _parts_of(self, tenant: str, window: ProjectedWindow) -> Iterator[list[RunEntry] | None]:
        """The parts of a window, the newest first; None: damaged. If it changes meanwhile, some come again."""
        if window.is_damaged or window.runs is not None:
            yield None if window.is_damaged else window.runs
            return
        for chunk in reversed(window.chunks):
            key = keys.projected_chunk(tenant, window.start, chunk.name)
            item = self._table.get(key, consistent=False) or self._table.get(key)
            newer = self.window(tenant, window.start) if item is None else None
            if newer and newer.version != window.version:  # a change has replaced the chunk meanwhile
                yield from self._parts_of(tenant, newer)
                return
            yield _decoded(item) if item else None

    def entries(
        self, tenant: str, windows: Mapping[int, ProjectedWindow | None], run_keys: Iterable[RunKey]
    ) -> dict[RunKey, RunEntry]:
        """What the windows have of these runs. Windows that are not among `windows` are read."""
        by_start: defaultdict[int, list[RunKey]] = defaultdict(list)
        for key in run_keys:
            by_start[window_of(key[0])].append(key)
        entries: dict[RunKey, RunEntry] = {}
        for start, keys_of_window in by_start.items():
            window = windows[start] if start in windows else self.window(tenant, start)
            if window is None or window.is_damaged:
                continue
            places = sorted({window.place_of(key) for key in keys_of_window})
            parts = self._chunks(tenant, window, places) if window.runs is None else [(0, window.runs)]
            names = set(keys_of_window)
            for _, runs in parts:
                entries |= {run.key: run for run in runs or () if run.key in names}
        return entries

    def _item(self, tenant: str, start: int) -> Item | None:
        return self._table.get(keys.projected_window(tenant, start))

    def _changed(
        self, tenant: str, window: ProjectedWindow, changes: Changes, expires_at: int, written: list[str]
    ) -> ProjectedWindow | None:
        """The window with the changes; None if it has them already. `written` gets the names of its new chunks."""
        totals = RunTotals()
        totals.merge(window.totals)
        version, expires_at = window.version + 1, max(window.expires_at, expires_at)
        after = replace(window, version=version, expires_at=expires_at)
        if window.runs is not None:
            runs, is_changed = _merged(window.runs, changes, totals)
            if not is_changed:
                return None
            if len(runs) <= MAX_INLINE:
                return replace(after, runs=runs)
            stored = tuple(self._stored(tenant, after, runs, written))
            return replace(after, runs=None, chunks=stored, totals_of_chunks=totals)
        touched: defaultdict[int, dict[RunKey, RunEntry | None]] = defaultdict(dict)
        for key, entry in changes.items():
            touched[window.place_of(key)][key] = entry
        unchanged = [[chunk] for chunk in window.chunks]
        chunks = unchanged.copy()
        for place, before in self._chunks(tenant, window, sorted(touched)):
            if before is None and self.window(tenant, window.start) == window:
                # No step of ours removes a chunk without a change of the item.
                raise _damaged(tenant, window)
            runs, is_changed = _merged(before or [], touched.pop(place), totals)
            if is_changed or before is None:
                chunks[place] = list(self._stored(tenant, after, runs, written))
        if chunks == unchanged:
            return None
        present = tuple(chain.from_iterable(chunks))
        if not present:
            return replace(after, runs=[], chunks=(), totals_of_chunks=None)
        return replace(after, chunks=present, totals_of_chunks=totals)

    def _stored(
        self, tenant: str, window: ProjectedWindow, runs: list[RunEntry], written: list[str]
    ) -> Iterator[ChunkStart]:
        """Write runs as new chunks. Raises Busy."""
        for part in _parts(runs):
            written.append(name := secrets.token_hex(5))
            chunk = ProjectedChunk(tenant, window.start, name, part, window.expires_at)
            self._table.put(chunk.to_item())
            yield ChunkStart(part[0].key, name)

    def _chunks(
        self, tenant: str, window: ProjectedWindow, places: Sequence[int]
    ) -> Iterator[tuple[int, list[RunEntry] | None]]:
        """The runs of the chunks in these places, one chunk at a time; None: it is gone or damaged."""
        for first in range(0, len(places), _READ_AT_ONCE):
            named = {window.chunks[place].name: place for place in places[first : first + _READ_AT_ONCE]}
            chunk_keys = [keys.projected_chunk(tenant, window.start, name) for name in named]
            items = {_name(item): item for item in self._table.get_many(chunk_keys)}
            for name, place in named.items():
                yield place, _decoded(items[name]) if name in items else None

    def _write(self, tenant: str, window: ProjectedWindow) -> None:
        """Write the item, whose new chunks are stored. Raises ConditionFailed, Busy."""
        unchanged = Expression("attribute_not_exists(pk)", {})
        if window.version > 1:
            unchanged = Expression("#version = :before", {":before": window.version - 1})
        item = window.to_item()
        try:
            self._table.put(item, unchanged)
        except ConditionFailed as conflict:
            # If the answer was lost and botocore repeated the write, the item is ours.
            if conflict.existing != item:
                raise

    def _drop(self, tenant: str, start: int, names: Iterable[str]) -> None:
        for name in names:
            self._table.delete(keys.projected_chunk(tenant, start, name))


def totals_of(runs: Iterable[RunEntry]) -> RunTotals:
    """The totals of some runs. Pure."""
    totals = RunTotals()
    for run in runs:
        totals.add_entry(run)
    return totals


def _merged(runs: Sequence[RunEntry], changes: Changes, totals: RunTotals) -> tuple[list[RunEntry], bool]:
    """The runs after the changes, in order, and whether they differ. Moves `totals` along. Pure."""
    by_key = {run.key: run for run in runs}
    is_changed = False
    for key, entry in changes.items():
        before = by_key.get(key)
        if before == entry:
            continue
        is_changed = True
        if before:
            totals.take_entry(before)
            del by_key[key]
        if entry:
            totals.add_entry(entry)
            by_key[key] = entry
    return sorted(by_key.values(), key=lambda run: run.key), is_changed


def _parts(runs: list[RunEntry]) -> list[list[RunEntry]]:
    """One chunk, or several if there are too many runs or too long ones; none without runs. Pure."""
    if len(runs) <= 2 * CHUNK_RUNS and sum(map(_chars, runs)) <= 2 * _CHUNK_CHARS:
        return [runs] if runs else []
    parts: list[list[RunEntry]] = []
    size = 0
    for run in runs:
        size += _chars(run)
        if not parts or len(parts[-1]) == CHUNK_RUNS or size > _CHUNK_CHARS:
            parts.append([])
            size = _chars(run)
        parts[-1].append(run)
    return parts


def _chars(run: RunEntry) -> int:
    return len(run.run_name) + len(run.job_id) + _LINE_CHARS


def _damaged(tenant: str, window: ProjectedWindow) -> Damaged:
    at = rfc3339(window.start)
    return Damaged(
        f"what is kept of the runs of {tenant!r} from {at} on is damaged: minute8 check --fix makes it anew"
    )


def _decoded(item: Mapping[str, Any]) -> list[RunEntry] | None:
    """The runs of a chunk; None: somebody has damaged it."""
    try:
        return ProjectedChunk.from_item(item).runs
    except Damaged:
        return None


def _name(item: Mapping[str, Any]) -> str:
    return str(item["sk"].partition("#")[2])


RETENTION_S: Final = 8 * DAY_S
# Of one item: at most 250 KB before compression, whatever the ids are.
_RUNS_IN_ITEM: Final = 1_000
# A run that its window no longer has.
GONE: Final = ""


class LateNote(Stored, frozen=True):
    """Runs as they are after a window was followed; a status of GONE: the window has it no more."""

    packed: ClassVar = ("runs",)

    tenant: str
    at: int
    name: str
    runs: list[RunEntry]
    expires_at: int

    @property
    def key(self) -> keys.Key:
        return keys.projected_late(self.tenant, self.at, self.name)


class LateRuns:
    """Notes of runs that were put into a window after it had been followed: retries, changes by hand and the like.

    Who keeps something that is made of windows reads here what has changed since. The note is written before the
    window, so that no change is without one; it may be there for a change that never came.
    """

    def __init__(self, runs: Table) -> None:
        self._table = runs

    def note(self, tenant: str, changes: Changes, now: float) -> None:
        """Note what a window is about to get; None: a run that it loses. Raises Busy."""
        entries = [entry or RunEntry(*key, GONE) for key, entry in sorted(changes.items())]
        self._table.put_many(
            [
                LateNote(
                    tenant,
                    int(now),
                    secrets.token_hex(4),
                    entries[first : first + _RUNS_IN_ITEM],
                    int(now) + RETENTION_S,
                ).to_item()
                for first in range(0, len(entries), _RUNS_IN_ITEM)
            ]
        )

    def since(self, tenant: str, at: float) -> Iterator[tuple[RunKey, RunEntry | None]]:
        """What was noted from `at` on, the earliest first, as changes of a window."""
        span = f"{keys.LATE_PREFIX}{int(at):010d}", f"{keys.LATE_PREFIX}{keys.LAST}"
        query = Query(keys.projected_days(tenant), sk_between=span, consistent=False)
        for note in readable(self._table.query(query), LateNote.from_item):
            for entry in note.runs:
                yield entry.key, entry if entry.status != GONE else None


def late_changes(changes: Mapping[int, Changes], followed_until: int) -> Changes:
    """Those changes of windows that start before `followed_until`. Pure."""
    late = (of_window for start, of_window in changes.items() if start < followed_until)
    return {key: entry for of_window in late for key, entry in of_window.items()}
