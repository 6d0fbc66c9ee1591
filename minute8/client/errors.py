"""The API's refusals as exceptions."""

from __future__ import annotations

from typing import Any

import httpx

from minute8.client.shapes import BulkLine

_TYPE = "urn:minute8:problem:"


class Minute8Problem(Exception):
    """The API refused. Programs can branch on `name`, which is stable; `errors` names the invalid fields."""

    def __init__(self, status: int, document: dict[str, Any]) -> None:
        self.status = status
        self.document = document
        self.name = str(document.get("type", "")).removeprefix(_TYPE)
        self.title = str(document.get("title", ""))
        self.detail = str(document.get("detail", ""))
        self.errors: list[dict[str, Any]] = document.get("errors", [])
        self.request_id = str(document.get("request_id", ""))
        super().__init__(self.detail or self.title or f"HTTP {status}")

    def __reduce__(self) -> tuple[type[Minute8Problem], tuple[int, dict[str, Any]]]:
        """What makes it again: a worker process raises it in its caller's too."""
        return type(self), (self.status, self.document)


class InvalidInput(Minute8Problem):
    """Something in the request is not valid; nothing was stored."""


class Unauthenticated(Minute8Problem):
    """The API key is not valid."""


class Forbidden(Minute8Problem):
    """The key's role does not allow this."""


class TenantSuspended(Forbidden):
    """The platform has suspended the tenant: it can read everything and change nothing."""


class QuotaExceeded(Forbidden):
    """The tenant's quota does not allow this; waiting does not help."""

    @property
    def quota(self) -> dict[str, Any]:
        """The quota's `name` and `most`, how much is `used`, and how much more was `wanted`."""
        return dict(self.document["quota"])


class NotFound(Minute8Problem):
    """It does not exist."""


class Conflict(Minute8Problem):
    """Its state does not allow this."""


class AlreadyExists(Conflict):
    """It exists already."""


class RevisionMismatch(Minute8Problem):
    """It has changed since it was read."""

    @property
    def current_revision(self) -> int:
        return int(self.document["current_revision"])


class Unavailable(Minute8Problem):
    """The API could not do it, even after repeated requests."""


class LinesBusy(Unavailable):
    """Some lines of a bulk request were refused as busy each time. The others are done."""

    @property
    def results(self) -> list[BulkLine]:
        """The results of all lines."""
        return list(self.document["results"])


class Unreachable(Exception):
    """No answer came from the API."""


_BY_STATUS = {
    400: InvalidInput,
    401: Unauthenticated,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: RevisionMismatch,
    413: InvalidInput,
    415: InvalidInput,
    422: InvalidInput,
}
_BY_NAME = {
    "already-exists": AlreadyExists,
    "tenant-suspended": TenantSuspended,
    "quota-exceeded": QuotaExceeded,
}


def _foreign(response: httpx.Response) -> str:
    """Words for a refusal that is not the API's own."""
    quoted = "" if response.text.lstrip()[:1] in ("", "<") else f": {response.text[:500]}"
    address = response.request.url.copy_with(query=None)
    return (
        f"{address} answers {response.status_code}, but not as Minute8's API; is the address right?{quoted}"
    )


def problem_of(response: httpx.Response) -> Minute8Problem:
    """The exception for a refusal, also one from a gateway."""
    try:
        document = response.json()
    except ValueError:
        document = None
    if not isinstance(document, dict):
        document = {"title": response.reason_phrase, "detail": _foreign(response)}
    document.setdefault("detail", str(document.get("message", "")))
    name = str(document.get("type", "")).removeprefix(_TYPE)
    kind = _BY_NAME.get(name) or _BY_STATUS.get(response.status_code, Minute8Problem)
    if response.status_code == 429 or response.status_code >= 500:
        kind = Unavailable
    return kind(response.status_code, document)
