"""The way to the public internet: resolves a host, checks every address, and connects to a checked address.

The name is not resolved again between the check and the connection, so DNS rebinding has no effect. A name with any
address that is not public is refused.

Lookups are bounded, fair by tenant, and each has a time limit. getaddrinfo has none, and the tenant chooses the name
servers. So each lookup has a thread, which stays until the system gives up. Lookups of one name by one tenant share a
thread. The more threads are taken, the fewer a tenant with several gets: a tenant without any finds a free one.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

from common.errors import Minute8Error
from common.limits import ADDRESSES_TRIED, LOOKUP_S, LOOKUPS, RESERVED_LOOKUPS
from common.tenants.web_address import IpAddress, WebAddress, is_public

# A tenant may have half as many as there are free threads besides: a third of all if it is alone.
_FREE_PER_LOOKUP: Final = 2
MAX_TENANT_LOOKUPS: Final = (LOOKUPS - RESERVED_LOOKUPS) // (1 + _FREE_PER_LOOKUP)

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
    outcome: list[str] | Exception = field(default_factory=lambda: OSError("the resolver ended"))


class Resolver:
    """One for a process; `resolve` looks up a name in the caller's thread."""

    def __init__(self, resolve: Resolve = system_resolve) -> None:
        self._resolve = resolve
        self._changed = threading.Condition()
        self._under_way: dict[_Name, _Lookup] = {}
        self._of_tenant: Counter[str] = Counter()

    def addresses(self, tenant: str, host: str, port: int, timeout_s: float) -> list[str]:
        """The addresses of a host, within `timeout_s` and LOOKUP_S. Raises Unreachable, NoLookup."""
        timeout_s = max(0.0, min(timeout_s, LOOKUP_S))
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
        free = LOOKUPS - len(self._under_way)
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
        except (OSError, ValueError) as error:  # of the resolver; of a name that IDNA cannot encode
            lookup.outcome = error
        finally:
            lookup.ended.set()
            with self._changed:
                del self._under_way[name]
                self._of_tenant[name.tenant] -= 1
                if not self._of_tenant[name.tenant]:
                    del self._of_tenant[name.tenant]
                self._changed.notify_all()


class ForbiddenAddress(Minute8Error):
    """The host is, or resolves to, an address that no job may call."""


@dataclass(frozen=True, slots=True)
class NetworkGuard:
    """Tests pass a resolver, and `allows` to reach their own server; production uses the defaults."""

    resolver: Resolver = field(default_factory=Resolver)
    allows: Callable[[IpAddress], bool] = is_public

    def connect(self, address: WebAddress, timeout_s: float, tenant: str = "") -> socket.socket:
        """A connection to the host, made within `timeout_s`. Raises ForbiddenAddress, Unreachable, NoLookup."""
        ends_at = time.monotonic() + timeout_s
        ips = self.checked(address, timeout_s, tenant)[:ADDRESSES_TRIED]
        last_error: OSError | None = None
        for ip in ips:
            remaining_s = ends_at - time.monotonic()
            if remaining_s <= 0:
                break
            try:
                return _connect(ip, address.port, remaining_s)
            except OSError as error:
                last_error = error
        raise Unreachable(
            f"{address.host} port {address.port} ({', '.join(map(str, ips))}): {last_error or 'timed out'}"
        )

    def checked(self, address: WebAddress, timeout_s: float, tenant: str = "") -> list[IpAddress]:
        """All addresses of the host, if all are allowed. Raises ForbiddenAddress, Unreachable, NoLookup."""
        if address.ip is not None:
            ips: list[IpAddress] = [address.ip]
        else:
            texts = self.resolver.addresses(tenant, address.host, address.port, timeout_s)
            ips = [_parsed(text) for text in texts]
        if not ips:
            raise Unreachable(f"{address.host} has no address")
        for ip in ips:
            if not self.allows(ip):
                raise ForbiddenAddress(f"{address.host} is at {ip}, which is not a public address")
        return ips


def _parsed(text: str) -> IpAddress:
    try:
        return ip_address(text)
    except ValueError:
        raise ForbiddenAddress(f"{text!r} is not an address") from None


def _connect(ip: IpAddress, port: int, timeout_s: float) -> socket.socket:
    family = socket.AF_INET if ip.version == 4 else socket.AF_INET6
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout_s)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.connect((str(ip), port))
    except OSError:
        connection.close()
        raise
    return connection
