"""Everything that Minute8 refuses or fails at on purpose. Errors are part of the interface: each names the value."""

from __future__ import annotations

_SHOWN_VALUE_CHARS = 120


class Minute8Error(Exception):
    """Base of all errors raised on purpose; `str(error)` is a sentence for a person."""


class InvalidInput(Minute8Error):
    """Input that is refused before anything is stored.

    `field` is a dotted path (`schedule.cron`), `position` a 0-based character index into a text value,
    `accepted` says what would have been accepted, `also` holds what else was wrong with the same input.
    """

    def __init__(
        self,
        field: str,
        message: str,
        *,
        value: object = None,
        accepted: str = "",
        position: int | None = None,
        also: tuple[InvalidInput, ...] = (),
    ) -> None:
        self.field = field
        self.message = message
        self.value = shown(value)
        self.accepted = accepted
        self.position = position
        self.also = also
        super().__init__(field, message)

    def __str__(self) -> str:
        at = f" at position {self.position}" if self.position is not None else ""
        got = f" (got {self.value})" if self.value else ""
        wanted = f"; accepted: {self.accepted}" if self.accepted else ""
        return f"{self.field}{at}: {self.message}{got}{wanted}"


class NotFound(Minute8Error):
    """What was asked for does not exist for this tenant (a foreign one does not exist either)."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"no {kind} {shown(name)}")


class AlreadyExists(Minute8Error):
    """A create met something of the same name."""

    def __init__(self, kind: str, name: str) -> None:
        self.kind = kind
        self.name = name
        super().__init__(f"{kind} {shown(name)} exists already")


class RevisionMismatch(Minute8Error):
    """A change was made against a revision that is no longer the current one."""

    def __init__(self, name: str, expected: int | None, current: int, *, kind: str = "job") -> None:
        self.name = name
        self.expected = expected
        self.current = current
        super().__init__(f"{kind} {name!r} is at revision {current}, the change expected {expected}")


class Conflict(Minute8Error):
    """What was asked for does not fit the state in which the thing is."""


class Busy(Minute8Error):
    """Too many writers changed the same thing at once, or DynamoDB throttles; the call can be repeated."""


class KeyReused(Minute8Error):
    """An idempotency key came again with another request; nothing was stored."""

    def __init__(self, key: str) -> None:
        super().__init__(
            f"the key {shown(key)} was sent before, and with another request; "
            "send what it was sent with, or a new key"
        )


class RequestUnderWay(Minute8Error):
    """A request with the same idempotency key is being done at this moment; ask again for its answer."""

    def __init__(self, key: str) -> None:
        super().__init__(f"a request with the key {shown(key)} is under way; repeat this one for its answer")


class Unauthenticated(Minute8Error):
    """No credential, or one that is not valid (unknown, malformed, expired, revoked: never told apart)."""

    def __init__(self, message: str = "the API key or token is not valid") -> None:
        super().__init__(message)


class Forbidden(Minute8Error):
    """The credential is valid, and its role does not allow this."""

    def __init__(self, role: str, needed: str) -> None:
        self.role = role
        self.needed = needed
        super().__init__(f"the role {role!r} may not do this; it needs the role {needed!r}")


class TenantSuspended(Minute8Error):
    """The platform has suspended the tenant: it can look at everything, and change nothing."""


class QuotaExceeded(Minute8Error):
    """The change needs more than the platform has given the tenant. Waiting does not help, and so it is no 429."""

    def __init__(self, quota: str, most: int, used: int, wanted: int) -> None:
        self.quota = quota
        self.most = most
        self.used = used
        self.wanted = wanted
        super().__init__(
            f"quota {quota}: {used} of {most} are in use, and this needs {wanted} more; "
            "delete or slow down other jobs, or have the platform raise it"
        )


class RateExceeded(Minute8Error):
    """The tenant has asked too often; it may again after `retry_after_s`."""

    def __init__(self, most: int, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__(f"over {most} requests in this minute; try again in {retry_after_s} s")


def shown(value: object) -> str:
    """A value as an error shows it: its repr, cut, so that hostile input cannot flood a log. Never raises."""
    if value is None:
        return ""
    try:
        text = repr(value[: _SHOWN_VALUE_CHARS + 1]) if isinstance(value, str) else repr(value)
    except Exception:  # noqa: BLE001  a hostile __repr__, or an int of over 4,300 digits
        return f"<{type(value).__name__}>"
    return text if len(text) <= _SHOWN_VALUE_CHARS else text[:_SHOWN_VALUE_CHARS] + "…"
