"""Refusals as RFC 9457 problem documents, from one table of errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from common.errors import (
    AlreadyExists,
    Busy,
    Conflict,
    Forbidden,
    InvalidInput,
    KeyReused,
    Minute8Error,
    NotFound,
    QuotaExceeded,
    RateExceeded,
    RequestUnderWay,
    RevisionMismatch,
    TenantSuspended,
    Unauthenticated,
)
from common.limits import MAX_LINE_PROBLEMS
from common.registration.bulk import BulkRefused, LineOutcome, Unfinished

CONTENT_TYPE = "application/problem+json"
_MAX_LINE_PROBLEM_CHARS = 500
_TYPE = "urn:minute8:problem:"


class Malformed(Minute8Error):
    """The body is not valid JSON."""

    def __init__(self, message: str, position: int | None = None) -> None:
        self.position = position
        super().__init__(message)


class TooLarge(Minute8Error):
    """The body has more bytes than the route accepts."""


class UnsupportedMediaType(Minute8Error):
    """The route does not accept the content type of the body."""


class IssuerUnreachable(Minute8Error):
    """The token issuer does not answer, so no token can be checked. API keys still work."""

    def __init__(self, retry_after_s: int) -> None:
        self.retry_after_s = retry_after_s
        super().__init__("the token issuer does not return its keys; try again later, or use an API key")


class NoSuchRoute(Minute8Error):
    """No route has this path."""


class MethodNotAllowed(Minute8Error):
    """The path exists, but not with this method."""

    def __init__(self, method: str, allowed: list[str]) -> None:
        self.allowed = allowed
        super().__init__(f"{method} is not possible here; possible are {', '.join(allowed)}")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of problem. `name` is stable: clients branch on it."""

    status: HTTPStatus
    name: str
    title: str

    @property
    def type(self) -> str:
        return _TYPE + self.name


# The only table of errors and statuses.
KINDS: dict[type[Exception], Kind] = {
    InvalidInput: Kind(HTTPStatus.BAD_REQUEST, "invalid-input", "The input is not valid"),
    Malformed: Kind(HTTPStatus.BAD_REQUEST, "malformed-json", "The body is not readable JSON"),
    Unauthenticated: Kind(HTTPStatus.UNAUTHORIZED, "unauthenticated", "A valid API key or token is needed"),
    Forbidden: Kind(HTTPStatus.FORBIDDEN, "forbidden", "The role does not allow this"),
    TenantSuspended: Kind(HTTPStatus.FORBIDDEN, "tenant-suspended", "The platform has suspended the tenant"),
    QuotaExceeded: Kind(HTTPStatus.FORBIDDEN, "quota-exceeded", "The tenant's quota does not allow this"),
    NotFound: Kind(HTTPStatus.NOT_FOUND, "not-found", "It does not exist"),
    NoSuchRoute: Kind(HTTPStatus.NOT_FOUND, "no-such-route", "There is nothing at this path"),
    MethodNotAllowed: Kind(
        HTTPStatus.METHOD_NOT_ALLOWED, "method-not-allowed", "The path does not take this method"
    ),
    Conflict: Kind(HTTPStatus.CONFLICT, "conflict", "It is not in a state that allows this"),
    AlreadyExists: Kind(HTTPStatus.CONFLICT, "already-exists", "It exists already"),
    RequestUnderWay: Kind(
        HTTPStatus.CONFLICT, "request-under-way", "A request with this key is being done at this moment"
    ),
    RevisionMismatch: Kind(
        HTTPStatus.PRECONDITION_FAILED, "revision-mismatch", "It has changed in the meantime"
    ),
    TooLarge: Kind(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", "The body is too large"),
    UnsupportedMediaType: Kind(
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type", "The body's type is not taken"
    ),
    KeyReused: Kind(
        HTTPStatus.UNPROCESSABLE_ENTITY, "idempotency-key-reused", "The key was sent with another request"
    ),
    RateExceeded: Kind(HTTPStatus.TOO_MANY_REQUESTS, "rate-exceeded", "Too many requests of this tenant"),
    BulkRefused: Kind(HTTPStatus.UNPROCESSABLE_ENTITY, "bulk-refused", "Some lines are refused"),
    Unfinished: Kind(HTTPStatus.SERVICE_UNAVAILABLE, "unfinished", "Some of it is done; send it again"),
    Busy: Kind(HTTPStatus.SERVICE_UNAVAILABLE, "busy", "Too many changes at once; try again"),
    IssuerUnreachable: Kind(
        HTTPStatus.SERVICE_UNAVAILABLE, "issuer-unreachable", "The issuer of tokens does not answer"
    ),
}
_INTERNAL = Kind(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "Minute8 failed; this is not your fault")


@dataclass(frozen=True, slots=True)
class Problem:
    """A refusal, ready to send."""

    kind: Kind
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)


def problem_of(error: Exception, request_id: str) -> Problem:
    """The problem document for any error. For an error that is not in the table it reveals no details."""
    kind = next((kind for known, kind in KINDS.items() if isinstance(error, known)), _INTERNAL)
    body: dict[str, Any] = {"type": kind.type, "title": kind.title, "status": kind.status.value}
    body["detail"] = str(error) if kind is not _INTERNAL else "Tell us the request_id."
    headers = {}
    match error:
        case InvalidInput():
            body["errors"] = list(_errors(error))
        case Malformed(position=int(position)):
            body["errors"] = [{"field": "", "position": position, "message": str(error)}]
        case Unauthenticated():
            headers["WWW-Authenticate"] = 'Bearer realm="minute8"'
        case RevisionMismatch():
            body["current_revision"] = error.current
            headers["ETag"] = f'"{error.current}"'
        case MethodNotAllowed():
            headers["Allow"] = ", ".join(error.allowed)
        case QuotaExceeded():
            body["quota"] = {
                "name": error.quota,
                "most": error.most,
                "used": error.used,
                "wanted": error.needed,
            }
        case RateExceeded() | IssuerUnreachable():
            headers["Retry-After"] = str(error.retry_after_s)
        case BulkRefused():
            body["results"] = [line_view(outcome) for outcome in error.refused]
        case Busy() | Unfinished() | RequestUnderWay():
            headers["Retry-After"] = "1"
    return Problem(kind, body | {"request_id": request_id}, headers)


def line_view(outcome: LineOutcome) -> dict[str, Any]:
    """The result of one line. The problem is shortened, because an answer holds many lines."""
    view: dict[str, Any] = {"line": outcome.number, "job_id": outcome.job_id, "result": outcome.result}
    if outcome.revision is not None:
        view["revision"] = outcome.revision
    if outcome.changed:
        view["changed"] = list(outcome.changed)
    if outcome.warnings:
        view["warnings"] = list(outcome.warnings)
    if outcome.error:
        problem = problem_of(outcome.error, "").body
        problem |= {"line": outcome.number, "detail": _cut(problem["detail"])}
        if "errors" in problem:
            shown = problem["errors"][:MAX_LINE_PROBLEMS]
            problem["errors"] = [{name: _cut(value) for name, value in entry.items()} for entry in shown]
        del problem["request_id"]
        view["problem"] = problem
    return view


def _cut(value: Any) -> Any:
    return (
        value[:_MAX_LINE_PROBLEM_CHARS] + "…"
        if isinstance(value, str) and len(value) > _MAX_LINE_PROBLEM_CHARS
        else value
    )


def _errors(error: InvalidInput) -> Iterator[dict[str, Any]]:
    for refusal in (error, *error.also):
        fields = {
            "field": refusal.field,
            "position": refusal.position,
            "message": refusal.message,
            "value": refusal.value or None,
            "accepted": refusal.accepted or None,
        }
        yield {name: value for name, value in fields.items() if value is not None}
