"""The routes of failed runs: as a list, and grouped by job and error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from api.http.cursors import read_place, write_cursor
from api.http.ranges import INSTANT
from api.http.requests import Request
from api.http.routing import CURSOR, LIMIT, MAX_PAGE, PAGE, THOUSANDS, Query, Reply, Route
from api.services import Services
from api.views import run_view
from common.errors import InvalidInput
from common.history.failed_runs import FailureCursor, FailureFilter, FailureGroup
from common.ids import JOB_ID_CHARS, is_id
from common.planning.execution import execution_id, split_run_name
from common.timing.durations import parse_instant
from common.timing.instants import DAY_S, rfc3339

_LATEST: Final = 1e11
_GROUPED_DAYS: Final = 7
_TAG_CHARS: Final = 200


def failures(services: Services, request: Request) -> Reply:
    """GET /v1/failures"""
    limit = request.number("limit", PAGE, MAX_PAGE)
    wanted = _filter(request, 0)
    list_name = f"failures:{_named(request)}"
    before = _read_place(request, list_name)
    page, place = services.failed_runs.page(request.tenant, wanted, limit=limit, before=before)
    return Reply(
        {"runs": [run_view(item) for item in page], "next_cursor": _cursor(request, list_name, place)}
    )


def groups(services: Services, request: Request) -> Reply:
    """GET /v1/failures/groups"""
    wanted = _filter(request, max(0, int(request.now) - _GROUPED_DAYS * DAY_S))
    list_name = f"failure groups:{_named(request)}"
    found, place = services.failed_runs.groups(request.tenant, wanted, _read_place(request, list_name))
    return Reply(
        {
            "from_at": rfc3339(wanted.from_at),
            "groups": [_group_view(group) for group in found],
            "next_cursor": _cursor(request, list_name, place),
        }
    )


def _group_view(group: FailureGroup) -> dict[str, Any]:
    latest = group.latest
    return {
        "job_id": group.job_id,
        "fingerprint": group.fingerprint,
        "error_type": group.error_type,
        "error": group.error,
        "count": group.count,
        "first_at": rfc3339(int(group.first_at)),
        "last_at": rfc3339(int(group.last_at)),
        "last_execution_id": execution_id(latest["tenant"], latest["job_id"], latest["sk"]),
    }


def _filter(request: Request, from_at: int) -> FailureFilter:
    query = request.query
    for parameter in _FILTERS:
        most = parameter.schema.get("maxLength")
        if most and len(query.get(parameter.name, "")) > most:
            raise InvalidInput(
                parameter.name,
                "is too long",
                value=query[parameter.name],
                accepted=f"at most {most} characters",
            )
    return FailureFilter(
        from_at=parse_instant(query["from_at"], "from_at") if "from_at" in query else from_at,
        job_id=_text(query, "job_id", JOB_ID_CHARS),
        tag=_text(query, "tag", _TAG_CHARS),
    )


def _text(query: Mapping[str, str], name: str, most: int) -> str:
    """A filter's text; empty if it is not given. Raises InvalidInput."""
    text = query.get(name, "")
    if len(text) > most or (name in query and not text):
        raise InvalidInput(name, "has a wrong length", value=text, accepted=f"1 to {most} characters")
    return text


def _named(request: Request) -> str:
    return json.dumps([request.query.get(name) for name in ("from_at", "job_id", "tag")])


def _cursor(request: Request, list_name: str, place: FailureCursor | None) -> str | None:
    return write_cursor(request.tenant, list_name, json.dumps(place)) if place else None


def _read_place(request: Request, list_name: str) -> FailureCursor | None:
    return read_place(request.tenant, list_name, request.query.get("cursor"), place_of)


def place_of(text: str) -> FailureCursor:
    """The failure after which the list continues, for `read_place`. Raises ValueError, TypeError."""
    failed_at, job_id, run_name = json.loads(text)
    # Neither true, which counts as 1, nor a number that DynamoDB cannot hold.
    if type(failed_at) not in (int, float) or not 1 <= failed_at < _LATEST:
        raise ValueError
    if not is_id(job_id, JOB_ID_CHARS) or split_run_name(run_name) is None:
        raise ValueError
    return failed_at, job_id, run_name


_FILTERS: Final = (
    Query("from_at", "Only those that failed at or after this.", INSTANT),
    Query("job_id", "Only those of this job.", {"type": "string", "minLength": 1, "maxLength": JOB_ID_CHARS}),
    Query(
        "tag",
        "Only those of jobs that have this tag now.",
        {"type": "string", "minLength": 1, "maxLength": _TAG_CHARS},
    ),
)

ROUTES = (
    Route(
        "GET", "/v1/failures", "list_failures", failures, "read",
        "The failed runs of all jobs, latest failure first", "RunPage", query=(LIMIT, CURSOR, *_FILTERS),
    ),
    Route(
        "GET", "/v1/failures/groups", "list_failure_groups", groups, "read",
        f"The failed runs of the last {_GROUPED_DAYS} days by job and error, latest failure first", "FailureGroups",
        query=(CURSOR, *_FILTERS), weight=THOUSANDS,
    ),
)  # fmt: skip
