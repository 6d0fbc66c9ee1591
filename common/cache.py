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
    """A value, and the instant at which it was true."""

    at: float
    value: Value


class Cache(Generic[Key, Value]):
    """At most `most` values, each good for `lifetime_s` seconds; the one used longest ago goes first.

    Threads may share it. Reading happens outside its lock, so that one slow answer does not hold up others.
    """

    def __init__(self, lifetime_s: float, most: int) -> None:
        self._lifetime_s = lifetime_s
        self._most = most
        self._kept: OrderedDict[Key, Kept[Value]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key, now: float) -> Kept[Value] | None:
        """What is kept and still good. A value of the future is not: the clock was set back."""
        kept = self.whatever_age(key)
        return kept if kept and 0 <= now - kept.at < self._lifetime_s else None

    def whatever_age(self, key: Key) -> Kept[Value] | None:
        """What is kept, for those who decide for themselves whether it is still good."""
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
        """Keep nothing under the key."""
        with self._lock:
            self._kept.pop(key, None)
