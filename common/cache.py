"""A cache whose values have a lifetime.

Not cachetools: its TTLCache reads a clock of its own and has no lock, and each cold start would load it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


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
