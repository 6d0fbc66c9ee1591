"""An HTTP target's URL, and which network addresses may be called.

Registration, the allowed patterns and the call all use this parser. If two parsers read a URL differently, one host
would be checked and another one called.
https://cheatsheetseries.owasp.org/cheatsheets/Server_Side_Request_Forgery_Prevention_Cheat_Sheet.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Final

from common.limits import URL_CHARS

IpAddress = IPv4Address | IPv6Address

_DEFAULT_PORTS: Final = {"https": 443, "http": 80}
# Ports below belong to mail, shells and so on; no request may be smuggled into those protocols.
_FIRST_FREE_PORT: Final = 1024

_URL: Final = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>\[[0-9a-f:.]{2,45}\]|[a-z0-9.-]{1,253})"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[A-Za-z0-9._~:/@!$&'()*+,;=%-]*)?"
    r"(?P<query>\?[A-Za-z0-9._~:/?@!$&'()*+,;=%-]*)?",
    re.ASCII,
)
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
# Other spellings of an IPv4 address that some resolvers accept: 2130706433, 0x7f.1, 0177.0.0.1.
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)

# https://www.iana.org/assignments/iana-ipv4-special-registry/ and multicast. Written out, because
# `ipaddress.is_global` differs between versions of Python for some of them.
_REFUSED_V4: Final = tuple(
    ip_network(block)
    for block in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15"),
        *("198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
)
# Of IPv6 only global unicast is allowed, without its special ranges: Teredo and other protocol assignments, 6to4,
# documentation. This excludes IPv4 in IPv6 (mapped, compatible, NAT64), ULA (AWS's fd00:ec2::254) and link-local.
# https://www.iana.org/assignments/iana-ipv6-special-registry/
_GLOBAL_V6: Final = ip_network("2000::/3")
_REFUSED_V6: Final = tuple(
    ip_network(block) for block in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
_LOOPBACK_V4: Final = ip_network("127.0.0.0/8")
_LOOPBACK_V6: Final = IPv6Address("::1")


class BadUrl(ValueError):
    """Minute8 does not call this URL; the message says why."""


@dataclass(frozen=True, slots=True)
class WebAddress:
    """A URL in its parts. `host` is a DNS name in lower case, or the text of `ip`."""

    scheme: str
    host: str
    port: int
    target: str
    """Path and query, as the request line has it."""
    ip: IpAddress | None = None

    @property
    def host_header(self) -> str:
        """The value of the Host header: https://www.rfc-editor.org/rfc/rfc9110#name-host-and-authority"""
        host = f"[{self.host}]" if isinstance(self.ip, IPv6Address) else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def read_url(text: str) -> WebAddress:
    """Read an absolute http(s) URL: scheme and host in lower case, ASCII, without user, fragment or trailing dot.

    Raises BadUrl.
    """
    if len(text) > URL_CHARS:
        raise BadUrl(f"is longer than {URL_CHARS} characters")
    match = _URL.fullmatch(text)
    if match is None:
        raise BadUrl("must be an absolute https URL in lower-case ASCII, without user name and fragment")
    scheme = match["scheme"]
    port = int(match["port"] or _DEFAULT_PORTS[scheme])
    if port != _DEFAULT_PORTS[scheme] and not _FIRST_FREE_PORT <= port <= 65_535:
        raise BadUrl(
            f"names port {port}; possible are {_DEFAULT_PORTS[scheme]} and {_FIRST_FREE_PORT} to 65535"
        )
    host, ip = _read_host(match["host"])
    return WebAddress(scheme, host, port, (match["path"] or "/") + (match["query"] or ""), ip)


def _read_host(text: str) -> tuple[str, IpAddress | None]:
    if text.startswith("["):
        try:
            ip: IpAddress = IPv6Address(text[1:-1])
        except ValueError:
            raise BadUrl("names a host that is no IPv6 address") from None
        return str(ip), ip
    labels = text.split(".")
    if not all(_LABEL.fullmatch(label) for label in labels):
        raise BadUrl("names a host that is no DNS name (labels of a-z 0-9 -, no trailing dot)")
    if not _NUMBER.fullmatch(labels[-1]):
        return text, None
    try:
        ip = IPv4Address(text)
    except ValueError:
        raise BadUrl("names an IPv4 address that is not written as four decimal numbers") from None
    return text, ip


def is_public_or_loopback(ip: IpAddress) -> bool:
    """For the embedded AWS, where the executor runs on the developer's machine."""
    return ip == _LOOPBACK_V6 or (isinstance(ip, IPv4Address) and ip in _LOOPBACK_V4) or is_public(ip)


def is_public(ip: IpAddress) -> bool:
    """Whether an address is one host on the public internet: not private, local, shared, special or multicast."""
    if isinstance(ip, IPv4Address):
        return not any(ip in block for block in _REFUSED_V4)
    # A scope (fe80::1%eth0) selects an interface of this machine. A name server must not choose that.
    return ip.scope_id is None and ip in _GLOBAL_V6 and not any(ip in block for block in _REFUSED_V6)
