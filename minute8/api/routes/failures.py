"""The routes of failures: the failed runs of all jobs, their groups by error, and which of these are muted."""

from __future__ import annotations

import json
import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from common.errors import InvalidInput, NotFound
from common.history.failed_runs import FailureFilter, FailureGroup, error_of
from common.jobs.muted_groups import Muted, MutedGroup, Mutes
from common.limits import JOB_ID_CHARS, MAX_PAGE
from common.projection.entry import fire_time
from common.storage.bounded import FailurePosition
from common.timing.durations import parse_instant
from common.timing.instants import DAY_S, rfc3339
from minute8.api.http.paging import INSTANT, read_cursor, write_cursor
from minute8.api.http.requests import Request
from minute8.api.http.routing import CURSOR, LIMIT, PAGE, THOUSANDS, Query, Response, Routes
from minute8.api.routes.jobs import existing_id
from minute8.api.routes.runs import JOB_TAG, TAG_CHARS, filter_text, page_view
from minute8.api.services import Services

if TYPE_CHECKING:
    from minute8.api.shapes.runs import NewMute

_GROUPED_DAYS: Final = 7
_FINGERPRINT: Final = re.compile(r"[0-9a-f]{12}")
_MUTED_ERROR_CHARS: Final = 300
_GROUP: Final = "group of failures"
_FAILURE_FILTERS: Final = (
    Query("from_at", "Only those that failed at or after this.", INSTANT),
    Query("job_id", "Only those of this job.", {"type": "string", "minLength": 1, "maxLength": JOB_ID_CHARS}),
    JOB_TAG,
)

ROUTES = Routes()


@ROUTES.add("GET", "/v1/failures", "read", response="RunPage", query=(LIMIT, CURSOR, *_FAILURE_FILTERS))
def list_failures(services: Services, request: Request) -> Response:
    """The failed runs of all jobs, latest failure first.

    One query of an index of failed runs, which has them as long as the runs are kept. With `tag` the jobs of the
    page are read, too.
    """
    limit = request.number("limit", PAGE, MAX_PAGE)
    failure_filter = _failure_filter(request, 0)
    list_name = f"failures:{_failure_filter_text(request)}"
    before = _read_failure_cursor(request, list_name)
    page = services.failed_runs.page(request.tenant, failure_filter, limit=limit, before=before)
    rest = {"next_cursor": write_cursor(request.tenant, list_name, page.after)}
    return Response(page_view(page, request.now) | rest)


@ROUTES.add(
    "GET",
    "/v1/failures/groups",
    "read",
    response="FailureGroups",
    query=(CURSOR, *_FAILURE_FILTERS),
    weight=THOUSANDS,
)
def list_failure_groups(services: Services, request: Request) -> Response:
    """The failed runs of the last 7 days by job and error, latest failure first.

    Errors that differ only in numbers and ids are one group. A request reads up to 2,000 failed runs; if there are
    more, the same group can be on two pages, and its counts add up.
    """
    failure_filter = _failure_filter(request, max(0, int(request.now) - _GROUPED_DAYS * DAY_S))
    list_name = f"failure groups:{_failure_filter_text(request)}"
    groups, cursor = services.failed_runs.groups(
        request.tenant, failure_filter, _read_failure_cursor(request, list_name)
    )
    muted = services.muted.now_muted(request.tenant, request.now) if groups else Muted()
    return Response(
        {
            "from_at": rfc3339(failure_filter.from_at),
            "groups": [group_view(group, muted) for group in groups],
            "next_cursor": write_cursor(request.tenant, list_name, cursor),
        }
    )


@ROUTES.add("GET", "/v1/failures/muted", "read", response="MutedGroupList")
def list_muted_groups(services: Services, request: Request) -> Response:
    """The groups of failures that are muted now.

    Two reads; a tenant has 200 at most.
    """
    muted = services.muted.now_muted(request.tenant, request.now)
    return Response({"groups": [_muted_group_view(group) for group in muted.groups.values()]})


@ROUTES.add(
    "PUT",
    "/v1/failures/groups/{job_id}/{fingerprint}/mute",
    "write",
    response="MutedGroup",
    weight=THOUSANDS,
)
def mute_failures(services: Services, request: Request, body: NewMute) -> Response:
    """Mute a group of failures: somebody knows of it.

    The overview counts it no more, and subscriptions report it no more. Its runs stay listed. It ends at `until_at`;
    without that when the group changes: when the job, having succeeded or having been changed, fails again. Another
    error is another group. `conflict`: 200 groups are muted. It reads up to 2,000 failed runs, and takes one
    transaction.
    """
    job_id, fingerprint = _group_of(request)
    filters = FailureFilter(job_id=job_id, fingerprint=fingerprint)
    page = services.failed_runs.page(request.tenant, filters, limit=1)
    if not page.items and not page.after:
        raise NotFound(_GROUP, fingerprint)
    error_type, error = error_of(page.items[0]) if page.items else ("", "")
    group = MutedGroup(
        request.tenant,
        job_id,
        fingerprint,
        int(request.now),
        body.until_at,
        body.note,
        error_type,
        error[:_MUTED_ERROR_CHARS],
    )
    return Response(_muted_group_view(_mutes(services).mute(group, request.now)))


@ROUTES.add(
    "DELETE",
    "/v1/failures/groups/{job_id}/{fingerprint}/mute",
    "write",
    status=HTTPStatus.NO_CONTENT,
)
def unmute_failures(services: Services, request: Request) -> Response:
    """Unmute a group of failures.

    It counts again, and its next failure is reported. One read and one transaction.
    """
    _mutes(services).unmute(request.tenant, *_group_of(request), request.now)
    return Response(status=HTTPStatus.NO_CONTENT)


def _mutes(services: Services) -> Mutes:
    return Mutes(services.muted, services.store.audited)


def _group_of(request: Request) -> tuple[str, str]:
    """Job and fingerprint in the path. Raises NotFound if these cannot be any."""
    fingerprint = request.path["fingerprint"]
    if not _FINGERPRINT.fullmatch(fingerprint):
        raise NotFound(_GROUP, fingerprint)
    return existing_id(request), fingerprint


def _mute_view(group: MutedGroup) -> dict[str, Any]:
    return {
        "note": group.note,
        "muted_at": rfc3339(group.muted_at),
        "until_at": None if group.until_at is None else rfc3339(group.until_at),
        "ends_at": rfc3339(group.expires_at),
    }


def _muted_group_view(group: MutedGroup) -> dict[str, Any]:
    return {
        **_mute_view(group),
        "job_id": group.job_id,
        "fingerprint": group.fingerprint,
        "error_type": group.error_type,
        "error": group.error,
    }


def group_view(group: FailureGroup, muted: Muted) -> dict[str, Any]:
    """A group of failures."""
    latest, mute = group.latest, muted.groups.get(group.key)
    return {
        "job_id": group.job_id,
        "fingerprint": group.fingerprint,
        "error_type": group.error_type,
        "error": group.error,
        "count": group.count,
        "first_at": rfc3339(int(group.first_at)),
        "last_at": rfc3339(int(group.last_at)),
        "last_execution_id": latest.execution_id,
        "hours": [{"at": rfc3339(hour), "failed": count} for hour, count in sorted(group.hours.items())],
        "muted": _mute_view(mute) if mute else None,
    }


def _failure_filter(request: Request, from_at: int) -> FailureFilter:
    query = request.query
    for parameter in _FAILURE_FILTERS:
        max_chars = parameter.schema.get("maxLength")
        if max_chars and len(query.get(parameter.name, "")) > max_chars:
            raise InvalidInput(
                parameter.name,
                "is too long",
                value=query[parameter.name],
                accepted=f"at most {max_chars} characters",
            )
    return FailureFilter(
        from_at=parse_instant(query["from_at"], "from_at") if "from_at" in query else from_at,
        job_id=filter_text(query, "job_id", JOB_ID_CHARS),
        tag=filter_text(query, "tag", TAG_CHARS),
    )


def _failure_filter_text(request: Request) -> str:
    return json.dumps([request.query.get(name) for name in ("from_at", "job_id", "tag")])


def _read_failure_cursor(request: Request, list_name: str) -> FailurePosition | None:
    text = request.query.get("cursor")
    position: FailurePosition | None = read_cursor(
        request.tenant, list_name, text, FailurePosition, check_failure
    )
    return position


def check_failure(position: FailurePosition) -> None:
    """Refuse a position that is none. Raises ValueError."""
    fire_time(position[2])
