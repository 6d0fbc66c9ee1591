"""A cache that tenants share and none can flood: the tenant with the most entries loses its own oldest first."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class FairCache(Generic[Value]):
    """Keeps at most `most` values. Each counts for the tenant that caused it; all tenants may use it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: OrderedDict[Hashable, tuple[str, Value]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, tenant: str, build: Callable[[], Value]) -> Value:
        """The value of `key`; built if it is missing. Raises what `build` raises."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][1]
        # Outside the lock: one slow build must not delay other tenants. Two concurrent builds do no harm.
        value = build()
        with self._lock:
            self._kept[key] = (tenant, value)
            self._kept.move_to_end(key)
            if len(self._kept) > self._most:
                self._remove_one(tenant)
        return value

    def drop(self, key: Hashable) -> None:
        """Remove the value of `key`, if there is one."""
        with self._lock:
            self._kept.pop(key, None)

    def clear(self) -> None:
        """Remove all values."""
        with self._lock:
            self._kept.clear()

    def __len__(self) -> int:
        return len(self._kept)

    def _remove_one(self, newcomer: str) -> None:
        """The least recently used key of the tenant with the most keys; on a tie, the newcomer's if it takes part."""
        counts = Counter(owner for owner, _ in self._kept.values())
        most = max(counts.values())
        greedy = {newcomer} if counts[newcomer] == most else {name for name in counts if counts[name] == most}
        del self._kept[next(key for key, (owner, _) in self._kept.items() if owner in greedy)]
