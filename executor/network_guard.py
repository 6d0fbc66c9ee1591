"""The way to the public internet: resolves a host, checks every address, and connects to a checked address.

The name is not resolved again between the check and the connection, so DNS rebinding has no effect. A name with any
address that is not public is refused.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import ip_address

from common.errors import Minute8Error
from common.tenants.web_address import IpAddress, WebAddress, is_public
from executor.resolver import Resolver, Unreachable

# Hundreds of dead addresses must not use up the time.
_MAX_ADDRESSES = 4


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
        ips = self.checked(address, timeout_s, tenant)[:_MAX_ADDRESSES]
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
    except BaseException:
        connection.close()
        raise
    return connection
