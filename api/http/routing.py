"""What a route is. A route is declared once; authentication, bounds, dispatch and OpenAPI all follow from that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final

from api.http.requests import Request
from api.services import Services
from common.platform.tenants import Role

# A payload is 128 KiB at most; its JSON may be written with escapes and spaces.
LONGEST_BODY: Final = 512 * 1024
JSON: Final = "application/json"
NDJSON: Final = "application/x-ndjson"
PAGE: Final = 50
LONGEST_PAGE: Final = 200
# Of text: in Lambda's answer of 6 MB a character can take three times what it takes in UTF-8, and an entry follows.
LONGEST_PAGE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Reply:
    """What a route's handler gives back; `body` is the text itself where the route gives no JSON."""

    body: Any = None
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)
    content_type: str = JSON


@dataclass(frozen=True, slots=True)
class Query:
    """One parameter of the query; what is not declared is refused."""

    name: str
    description: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Route:
    """One method of one path, for those whose role is at least `role` (None: for everybody).

    `takes` and `gives` name shapes of `api/shapes`; `also` is another status of a success. A suspended tenant may look,
    which is what the role `read` does, and do what is marked so. `weight` is as how many of the tenant's requests it
    counts. `takes_key` is whether an Idempotency-Key makes it take effect once.
    """

    method: str
    path: str
    name: str
    answer: Callable[[Services, Request], Reply]
    role: Role | None
    summary: str
    gives: str
    status: HTTPStatus = HTTPStatus.OK
    also: HTTPStatus | None = None
    takes: str = ""
    takes_type: str = JSON
    gives_type: str = JSON
    body_optional: bool = False
    query: tuple[Query, ...] = ()
    if_match: bool = False
    while_suspended: bool = False
    weight: int = 1
    takes_key: bool = False
    longest_body: int = LONGEST_BODY


# The weight of a request that may ask or change a thousand jobs.
A_THOUSAND_JOBS: Final = 20

LIMIT: Final = Query(
    "limit",
    "How many at most.",
    {"type": "integer", "minimum": 1, "maximum": LONGEST_PAGE, "default": PAGE},
)
CURSOR: Final = Query("cursor", "The `next_cursor` of the page before.", {"type": "string", "minLength": 1})
