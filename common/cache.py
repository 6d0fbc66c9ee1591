"""Caches: one whose values have a lifetime, one that tenants share and none can flood, and the types msgspec knows.

Not cachetools: its TTLCache reads a clock of its own and has no lock, and each cold start would load it.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import Future
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
_known: Final[set[Any]] = set()
_learning: Final = threading.Lock()


def convert(value: object, kind: type[Value], read: Callable[[Any, Any], Any] | None = None) -> Value:
    """The value as `kind`; `read` makes the types that msgspec does not know. Raises msgspec.ValidationError.

    msgspec learns a type from its annotations when it first converts to it. Another thread that converts to it
    meanwhile ends the process by a segmentation fault, so one thread at a time learns.
    """
    if kind not in _known:
        decoder(kind, read)
        _known.add(kind)
    return msgspec.convert(value, kind, dec_hook=read)


def decoder(kind: type[Value], read: Callable[[Any, Any], Any] | None = None) -> msgspec.json.Decoder[Value]:
    """What reads texts of JSON as `kind`. Threads may make it at the same time: see `convert`."""
    with _learning:
        return msgspec.json.Decoder(kind, dec_hook=read)


class Kept(NamedTuple, Generic[Value]):
    """A value, and the time at which it was read."""

    at: float
    value: Value


class Cache(Generic[Key, Value]):
    """At most `most` values, each valid for `lifetime_s` seconds; the least recently used one is removed first.

    Threads may share it. Values are read outside its lock, so one slow read does not delay the others.
    """

    def __init__(self, lifetime_s: float, most: int) -> None:
        self._lifetime_s = lifetime_s
        self._most = most
        self._kept: OrderedDict[Key, Kept[Value]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key, now: float) -> Kept[Value] | None:
        """The value, if it is still valid. A value from the future is not valid: the clock was set back."""
        kept = self.whatever_age(key)
        return kept if kept and 0 <= now - kept.at < self._lifetime_s else None

    def whatever_age(self, key: Key) -> Kept[Value] | None:
        """The value at any age; the caller decides whether to use it."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: Key, value: Value, now: float) -> None:
        """Keep a value that was true at `now`."""
        with self._lock:
            self._kept[key] = Kept(now, value)
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)

    def forget(self, key: Key) -> None:
        """Remove the value of the key."""
        with self._lock:
            self._kept.pop(key, None)


class raised_by:
    """Has the future raise what the block raises, in each thread that asks for its result."""

    __slots__ = ("_future",)

    def __init__(self, future: Future[Any]) -> None:
        self._future = future

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> bool:
        if error is not None:
            self._future.set_exception(error)
        return True


class JointReads(Generic[Key, Value]):
    """Threads that need the same value at the same time share one read of it, also if it fails."""

    def __init__(self) -> None:
        self._under_way: dict[Key, Future[Value]] = {}
        self._lock = threading.Lock()

    def get(self, key: Key, read: Callable[[], Value]) -> Value:
        """What `read` returns, in this thread or in another one. Raises what it raises."""
        own: Future[Value] = Future()
        with self._lock:
            under_way = self._under_way.setdefault(key, own)
        if under_way is not own:
            return under_way.result()
        with raised_by(own):
            own.set_result(read())
        with self._lock:
            del self._under_way[key]
        return own.result()


class FairCache(Generic[Value]):
    """The tenant with the most loses its own oldest first.

    Keeps values of at most `most` together; `weigh` says how much one is. Each counts for the tenant that caused it;
    all tenants may use it.
    """

    def __init__(self, most: int, weigh: Callable[[Value], int] = lambda value: 1) -> None:
        self._most = most
        self._weigh = weigh
        self._owners: dict[Hashable, str] = {}
        # By tenant, the least recently used one first.
        self._kept: dict[str, OrderedDict[Hashable, Value]] = {}
        self._weights: Counter[str] = Counter()
        self._lock = threading.Lock()

    def get(self, key: Hashable, tenant: str, build: Callable[[], Value]) -> Value:
        """The value of `key`; built if it is missing. Raises what `build` raises."""
        with self._lock:
            if (owner := self._owners.get(key)) is not None:
                self._kept[owner].move_to_end(key)
                return self._kept[owner][key]
        # Outside the lock: one slow build must not delay other tenants. Two concurrent builds do no harm.
        value = build()
        with self._lock:
            self._remove(key)
            self._owners[key] = tenant
            self._kept.setdefault(tenant, OrderedDict())[key] = value
            self._weights[tenant] += self._weigh(value)
            while self._weights.total() > self._most:
                self._remove_oldest(tenant)
        return value

    def drop(self, key: Hashable) -> None:
        """Remove the value of `key`, if there is one."""
        with self._lock:
            self._remove(key)

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._owners.clear()
            self._kept.clear()
            self._weights.clear()

    def __len__(self) -> int:
        return len(self._owners)

    def __iter__(self) -> Iterator[Value]:
        """All values."""
        return iter([value for kept in self._kept.values() for value in kept.values()])

    def _remove_oldest(self, newcomer: str) -> None:
        """The least recently used key of the tenant with the most; on a tie, the newcomer's if it takes part."""
        greedy = max(self._weights, key=lambda tenant: (self._weights[tenant], tenant == newcomer))
        self._remove(next(iter(self._kept[greedy])))

    def _remove(self, key: Hashable) -> None:
        if (owner := self._owners.pop(key, None)) is None:
            return
        self._weights[owner] -= self._weigh(self._kept[owner].pop(key))
        if not self._kept[owner]:
            del self._kept[owner], self._weights[owner]
