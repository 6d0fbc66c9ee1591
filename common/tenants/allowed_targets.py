"""Whether a tenant may call a target: globs over ARNs, patterns over hosts. Pure.

Checked when a job is registered and again before every call, because patterns can change after the registration.

    arn:aws:lambda:us-east-1:123456789012:function:reports-*    `*` and `?`, within each part of an ARN
    hooks.example.com, hooks.example.com:8443                   one host; without a port: 443, and 80 for http
    *.example.com                                               every host below it, and not example.com itself
    *                                                           everything
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from common.tenants.tenant import TenantRules
    from common.tenants.web_address import WebAddress

# The same as in minute8/canary/handler.py, which imports nothing.
CANARY_TENANT: Final = "minute8-canary"
_ADDRESS: Final = ("kind", "arn", "url")
_ARN_PARTS = 6
_DEFAULT_PORTS = {"https": 443, "http": 80}


@dataclass(frozen=True, slots=True)
class Block:
    """A pattern of targets that no run calls (`blocks.py`): why, since when, and by whom as in the audit."""

    pattern: str
    note: str
    blocked_at: int
    by: str


def is_allowed(target: Mapping[str, Any], patterns: Iterable[str]) -> bool:
    """Whether the patterns cover everything that a call of the target reaches: its ARN and its role, or its host.

    An empty list of patterns allows nothing. An unreadable target (unknown shape, broken URL) is never allowed.
    """
    patterns = tuple(patterns)
    reached = list(_reached(target))
    return bool(reached) and all(
        any(_covers(pattern, address) for pattern in patterns) for address in reached
    )


def is_minute8_resource(target: Mapping[str, Any]) -> bool:
    """Whether the target is a part of Minute8, of any stage. No job may call these, whatever the patterns say.

    All their names begin with `minute8-`: `…:function:minute8-prod-api`, `…:event-bus/minute8-prod`.
    """
    return ":minute8-" in str(target.get("arn", "")).replace("/", ":")


def may_call(target: Mapping[str, Any], rules: TenantRules | None) -> bool:
    """Whether the platform lets the tenant of these rules call the target now. Without rules there is no tenant."""
    return rules is not None and not is_minute8_resource(target) and is_allowed(target, rules.allowed_targets)


def is_canary(target: Mapping[str, Any]) -> bool:
    """Whether the target is the canary's function, of any stage (deploy/canary.yml)."""
    return ":function:canary-minute8-" in str(target.get("arn", ""))


def _reached(target: Mapping[str, Any]) -> Iterable[str | WebAddress | None]:
    if target.get("kind") == "http":
        yield _address(target.get("url"))
        return
    yield _arn(target.get("arn"))
    if "role_arn" in target:
        yield _arn(target["role_arn"])
    stop = target.get("stop")
    if stop is not None:
        yield _arn(stop.get("arn")) if isinstance(stop, Mapping) else None


def _arn(arn: object) -> str | None:
    return arn if arn and isinstance(arn, str) else None


def _address(url: object) -> WebAddress | None:
    # Most executions call no URL: the first one that does imports how one is read.
    from common.tenants.web_address import BadUrl, read_url

    try:
        return read_url(url) if isinstance(url, str) else None
    except BadUrl:
        return None


def _covers(pattern: object, reached: str | WebAddress | None) -> bool:
    if not isinstance(pattern, str) or reached is None:
        return False
    if isinstance(reached, str):
        return pattern == "*" or _arn_matches(pattern, reached)
    return pattern == "*" or _host_matches(pattern.lower(), reached)


@lru_cache(maxsize=1024)  # each execution asks, most for the same few targets
def _arn_matches(pattern: str, arn: str) -> bool:
    """Compare part by part, so that a wildcard cannot match across parts (from the region into the account, say)."""
    globs, parts = pattern.split(":", _ARN_PARTS - 1), arn.split(":", _ARN_PARTS - 1)
    if len(globs) != _ARN_PARTS or len(parts) != _ARN_PARTS or parts[0] != "arn":
        return False
    return all(glob_matches(glob, part) for glob, part in zip(globs, parts, strict=True))


def _host_matches(pattern: str, address: WebAddress) -> bool:
    host, port = pattern, ""
    if not pattern.endswith("]"):  # colons inside an IPv6 address do not begin a port
        before, colon, after = pattern.rpartition(":")
        host, port = (before, after) if colon else (after, "")
    if port != str(address.port) and (port or address.port != _DEFAULT_PORTS[address.scheme]):
        return False
    if host.startswith("*."):
        return address.ip is None and address.host.endswith(host[1:]) and address.host != host[2:]
    return host in (address.host, f"[{address.host}]")


def glob_matches(glob: str, text: str) -> bool:
    """`*` matches any characters, `?` one; no other character is special.

    Greedy with one point of return: its time is at most the product of the lengths, for any input.
    """
    at_glob = at_text = resume_text = 0
    star = -1
    while at_text < len(text):
        if at_glob < len(glob) and glob[at_glob] == "*":
            star, resume_text = at_glob, at_text
            at_glob += 1
        elif at_glob < len(glob) and glob[at_glob] in ("?", text[at_text]):
            at_glob, at_text = at_glob + 1, at_text + 1
        elif star >= 0:
            resume_text += 1
            at_glob, at_text = star + 1, resume_text
        else:
            return False
    return all(character == "*" for character in glob[at_glob:])


def is_blocked(target: Mapping[str, Any], patterns: Iterable[str]) -> bool:
    """Whether a pattern covers the target's address, whatever role it is called with and whatever stops it."""
    return is_allowed({name: target[name] for name in _ADDRESS if name in target}, patterns)


def patterns_shown(patterns: Iterable[str]) -> str:
    """The patterns for an error message."""
    return ", ".join(patterns) or "none"
