"""Resolves names: a bounded number at a time, fairly by tenant, each for a bounded time.

getaddrinfo has no time limit, and the tenant chooses the name servers. So each lookup has a thread, which stays until
the system gives up. Lookups of one name by one tenant share a thread. The more threads are taken, the fewer a tenant
with several gets: a tenant without any finds a free one.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from common.errors import Minute8Error

MAX_LOOKUPS: Final = 64
# Only for tenants without any lookup under way.
RESERVED_LOOKUPS: Final = 16
# A tenant may have half as many as there are free threads besides: a third of all if it is alone.
_FREE_PER_LOOKUP: Final = 2
MAX_TENANT_LOOKUPS: Final = (MAX_LOOKUPS - RESERVED_LOOKUPS) // (1 + _FREE_PER_LOOKUP)
MAX_LOOKUP_S: Final = 5.0

Resolve = Callable[[str, int], list[str]]


class Unreachable(Minute8Error):
    """The host does not resolve or does not answer; this may be temporary."""


class NoLookup(Minute8Error):
    """Minute8 could not look up the name now, for reasons that are not the tenant's."""


def system_resolve(host: str, port: int) -> list[str]:
    """The addresses of a host from the system's resolver. Raises OSError."""
    addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in addresses))


@dataclass(frozen=True, slots=True)
class _Name:
    tenant: str
    host: str
    port: int


@dataclass(slots=True)
class _Lookup:
    """A lookup under way; `outcome` is set before `ended`."""

    ended: threading.Event = field(default_factory=threading.Event)
    outcome: list[str] | Exception = field(default_factory=list)


class Resolver:
    """One for a process; `resolve` looks up a name in the caller's thread."""

    def __init__(self, resolve: Resolve = system_resolve) -> None:
        self._resolve = resolve
        self._changed = threading.Condition()
        self._under_way: dict[_Name, _Lookup] = {}
        self._of_tenant: Counter[str] = Counter()

    def addresses(self, tenant: str, host: str, port: int, timeout_s: float) -> list[str]:
        """The addresses of a host, within `timeout_s` and MAX_LOOKUP_S. Raises Unreachable, NoLookup."""
        timeout_s = max(0.0, min(timeout_s, MAX_LOOKUP_S))
        ends_at = time.monotonic() + timeout_s
        lookup = self._lookup(_Name(tenant, host, port), ends_at)
        if not lookup.ended.wait(max(0.0, ends_at - time.monotonic())):
            raise Unreachable(f"{host} was not resolved within {timeout_s:g} s")
        if isinstance(lookup.outcome, Exception):
            raise Unreachable(f"{host} does not resolve: {lookup.outcome}") from lookup.outcome
        return lookup.outcome

    def _lookup(self, name: _Name, ends_at: float) -> _Lookup:
        """The lookup of this name that is under way, or a new one. Waits for a thread."""
        with self._changed:
            while (lookup := self._under_way.get(name)) is None and not self._has_room(name.tenant):
                if not self._changed.wait(max(0.0, ends_at - time.monotonic())):
                    raise self._refusal(name)
            return lookup or self._start(name)

    def _has_room(self, tenant: str) -> bool:
        free = MAX_LOOKUPS - len(self._under_way)
        if tenant not in self._of_tenant:
            return free > 0
        return self._of_tenant[tenant] * _FREE_PER_LOOKUP < free - RESERVED_LOOKUPS

    def _refusal(self, name: _Name) -> Minute8Error:
        if (under_way := self._of_tenant[name.tenant]) >= MAX_TENANT_LOOKUPS:
            return Unreachable(f"{name.host} was not resolved: {under_way} other names of the tenant hang")
        return NoLookup(f"{name.host} was not resolved: {len(self._under_way)} other names hang")

    def _start(self, name: _Name) -> _Lookup:
        lookup = _Lookup()
        thread = threading.Thread(target=self._run, args=(name, lookup), name="resolve", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the process can start no more threads
            raise NoLookup(f"{name.host} was not resolved: {error}") from error
        self._under_way[name] = lookup
        self._of_tenant[name.tenant] += 1
        return lookup

    def _run(self, name: _Name, lookup: _Lookup) -> None:
        try:
            lookup.outcome = self._resolve(name.host, name.port)
        except Exception as error:  # noqa: BLE001  the caller raises it
            lookup.outcome = error
        lookup.ended.set()
        with self._changed:
            del self._under_way[name]
            self._of_tenant[name.tenant] -= 1
            if not self._of_tenant[name.tenant]:
                del self._of_tenant[name.tenant]
            self._changed.notify_all()
