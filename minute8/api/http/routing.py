"""A route and its declaration, which authentication, bounds, dispatch and OpenAPI use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final

from common.errors import shown
from common.limits import BODY_BYTES, MAX_PAGE
from common.platform.api_keys import Role
from minute8.api.http.problems import MethodNotAllowed, NoSuchRoute
from minute8.api.http.requests import Request
from minute8.api.services import Services

JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
PAGE: Final = 50
# No id contains other characters, so a path with them cannot match a route.
_PARAMETER: Final = re.compile(r"[-._~()'!*:@,;=+&$%<> \[\]{}|^\w]+")


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

    `body` and `response` are names of shapes in `minute8/api/shapes`. `other_status` is a second success status. A
    suspended tenant may call routes of the role `read`, and with `while_suspended`. A call counts as `weight` requests.
    A client may send a `repeatable` request again after a lost answer. With `idempotency_key` the route accepts the
    header Idempotency-Key: the request then takes effect once. The ETag of a route with `revision` is what it returns;
    other GETs have one of what they return.
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
    repeatable: bool = True
    revision: bool = False
    max_body_bytes: int = BODY_BYTES

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def parameters(self) -> list[str]:
        """The names of the ids in the path."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]

    @property
    def is_revalidated(self) -> bool:
        """Whether If-None-Match with the ETag of an answer is answered by 304 if the answer is still the same."""
        return self.method == "GET" and self.response_type == JSON and not self.revision


# What a route calls: with the services and the request, and with the body if it has a parameter for that.
Handler = Callable[..., Response]


@dataclass(slots=True)
class _Place:
    """What a path can go on with, by its next segment, and the routes that end here, by their methods."""

    named: dict[str, _Place] = field(default_factory=dict)
    any_id: _Place | None = None
    routes: dict[str, Route] = field(default_factory=dict)

    def add(self, segments: list[str], route: Route) -> None:
        if not segments:
            self.routes[route.method] = route
            return
        first, *rest = segments
        if not first.startswith("{"):
            place = self.named.setdefault(first, _Place())
        else:
            place = self.any_id = self.any_id or _Place()
        place.add(rest, route)

    def ends(self, segments: list[str], at: int, ids: tuple[str, ...]) -> Iterator[_End]:
        """Where a path can end, with the ids in it; `/v1/jobs/x` before `/v1/jobs/{job_id}`."""
        if at == len(segments):
            if self.routes:
                yield self.routes, ids
            return
        segment = segments[at]
        if place := self.named.get(segment):
            yield from place.ends(segments, at + 1, ids)
        if self.any_id and _PARAMETER.fullmatch(segment):
            yield from self.any_id.ends(segments, at + 1, (*ids, segment))


_End = tuple[dict[str, Route], tuple[str, ...]]


class Routes(dict[Route, Handler]):
    """Routes with the functions that answer them.

    A function's name is the operation's id in the OpenAPI document; its docstring is the summary and the description.
    """

    def __init__(self, routes: Mapping[Route, Handler] = MappingProxyType({})) -> None:
        super().__init__()
        self._places = _Place()
        for route, handler in routes.items():
            self._declare(route, handler)

    def add(self, method: str, path: str, role: Role | None, **declared: Any) -> Callable[[Handler], Handler]:
        """A decorator that declares the route that a function answers. `declared` are further fields of Route.

        A function with the parameter `body` gets the request's, as its type in `minute8/api/shapes` says.
        """

        def declare(handler: Handler) -> Handler:
            body = handler.__annotations__.get("body", "")
            return self._declare(Route(method, path, role, **{"body": body, **declared}), handler)

        return declare

    def _declare(self, route: Route, handler: Handler) -> Handler:
        self[route] = handler
        self._places.add(route.path.split("/"), route)
        return handler

    def answer(self, route: Route, services: Services, request: Request) -> Response:
        """What the route's function answers. Raises what reading the body raises, and what the function raises."""
        handler = self[route]
        if "body" in handler.__annotations__:
            return handler(services, request, request.shaped())
        return handler(services, request)

    def find(self, method: str, path: str) -> tuple[Route, dict[str, str]]:
        """The route of a request and the parameters in its path. Raises NoSuchRoute, MethodNotAllowed."""
        allowed: set[str] = set()
        for routes, ids in self._places.ends(path.split("/"), 0, ()):
            if route := routes.get(method):
                return route, dict(zip(route.parameters, ids, strict=True))
            allowed |= routes.keys()
        if allowed:
            raise MethodNotAllowed(method, sorted(allowed))
        raise NoSuchRoute(f"nothing is at {shown(path)}")


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
