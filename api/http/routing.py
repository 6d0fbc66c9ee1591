"""A route and its declaration, which authentication, bounds, dispatch and OpenAPI use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from api.http.requests import Request
from api.services import Services
from common.platform.credential import Role

# A payload has at most 256 KiB; its JSON may contain escapes and spaces.
MAX_BODY: Final = 512 * 1024
JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
PAGE: Final = 50
MAX_PAGE: Final = 200
# Bytes of UTF-8. In Lambda's answer, which is limited to 6 MB, a character can take three times as many bytes.
MAX_PAGE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Response:
    """What a route's handler returns; `body` is the text itself if the route does not return JSON.

    The ETag of a GET is made of `version`: a text that changes whenever the body says something else. By default it is
    the body; one that says what time it is needs a version.
    """

    body: Any = None
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = JSON
    version: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """One declared parameter of the query. Undeclared parameters are refused."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Route:
    """One method of one path, for credentials with at least the role `role` (None: public).

    `body` and `response` are names of shapes in `api/shapes`. `other_status` is a second success status. A suspended
    tenant may call routes of the role `read`, and routes with `while_suspended`. A call counts as `weight` requests.
    With `idempotency_key` the route accepts the header Idempotency-Key: the request then takes effect once. The ETag of
    a route with `revision` is what it returns; other GETs have one of what they return.
    """

    method: str
    path: str
    role: Role | None
    response: str = ""
    status: HTTPStatus = HTTPStatus.OK
    other_status: HTTPStatus | None = None
    body: str = ""
    body_type: str = JSON
    response_type: str = JSON
    body_optional: bool = False
    query: tuple[Query, ...] = ()
    if_match: bool = False
    if_none_match: bool = False
    while_suspended: bool = False
    weight: int = 1
    idempotency_key: bool = False
    revision: bool = False
    max_body_bytes: int = MAX_BODY

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_revalidated(self) -> bool:
        """Whether If-None-Match with the ETag of an answer is answered by 304 if the answer is still the same."""
        return self.method == "GET" and self.response_type == JSON and not self.revision


Handler = Callable[[Services, Request], Response]


class Routes(dict[Route, Handler]):
    """Routes with the functions that answer them.

    A function's name is the operation's id in the OpenAPI document; its docstring is the summary and the description.
    """

    def add(self, method: str, path: str, role: Role | None, **declared: Any) -> Callable[[Handler], Handler]:
        """A decorator that declares the route that a function answers. `declared` are further fields of Route."""
        route = Route(method, path, role, **declared)

        def declare(handler: Handler) -> Handler:
            self[route] = handler
            return handler

        return declare


# The weight of a request that may read or change a thousand jobs.
A_THOUSAND_JOBS: Final = 20
# The weight of a request that may read thousands of records of one job, or of its tenant's audit.
THOUSANDS: Final = 5

LIMIT: Final = Query(
    "limit",
    "How many at most.",
    {"type": "integer", "minimum": 1, "maximum": MAX_PAGE, "default": PAGE},
)
CURSOR: Final = Query("cursor", "The `next_cursor` of the page before.", {"type": "string", "minLength": 1})
