"""The routes for executions without a record: what ticks have found, and running it again."""

from __future__ import annotations

from typing import Final

from api.http.cursors import read_cursor, write_cursor
from api.http.ranges import INSTANT
from api.http.requests import Request
from api.http.routing import CURSOR, LIMIT, MAX_PAGE, PAGE, Query, Reply, Route
from api.services import Services
from common.errors import InvalidInput
from common.platform.unrecorded import unrecorded_view
from common.storage import keys
from common.timing.durations import parse_instant


def list_all(services: Services, request: Request) -> Reply:
    """GET /v1/platform/unrecorded"""
    limit = request.number("limit", PAGE, MAX_PAGE)
    given = request.query.get("from_at", "")
    from_at = parse_instant(given, "from_at") if "from_at" in request.query else 0
    list_name = f"unrecorded:{given}"
    after_id = read_cursor(keys.OPERATORS, list_name, request.query.get("cursor"))
    found, next_id = services.run_again.unrecorded.page(after_id, from_at, limit)
    return Reply(
        {
            "executions": [unrecorded_view(one) for one in found],
            "next_cursor": write_cursor(keys.OPERATORS, list_name, next_id) if next_id else None,
        }
    )


def run(services: Services, request: Request) -> Reply:
    """POST /v1/platform/unrecorded/run"""
    named = request.fields("execution_ids").get("execution_ids")
    if not isinstance(named, list):
        raise InvalidInput("execution_ids", "must be a list", value=named, accepted="a list of execution ids")
    sent, recorded = services.run_again.run(named, by=request.credential.by)
    return Reply({"sent": sent, "recorded": recorded})


_FROM: Final = Query(
    "from_at",
    "Only those that were due at or after this.",
    INSTANT,
)

ROUTES = (
    Route(
        "GET", "/v1/platform/unrecorded", "list_unrecorded", list_all, "operator",
        "The executions that were enqueued and have no record", "UnrecordedPage", query=(LIMIT, CURSOR, _FROM),
    ),
    Route(
        "POST", "/v1/platform/unrecorded/run", "run_unrecorded", run, "operator",
        "Send executions again that have no record", "RanUnrecorded", takes="RunUnrecorded",
    ),
)  # fmt: skip
