"""The routes of calendars: dates on which the jobs that name them do not fire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from common.errors import InvalidInput
from common.jobs.calendars import Calendar
from common.limits import CALENDAR_NAME_CHARS, MAX_PAGE
from common.registration.calendar_store import CalendarStore, jobs_that_end
from common.timing.instants import rfc3339
from minute8.api.http.paging import read_key, write_cursor
from minute8.api.http.requests import Request
from minute8.api.http.routing import A_THOUSAND_JOBS, CURSOR, LIMIT, PAGE, Response, Routes
from minute8.api.services import Services

if TYPE_CHECKING:
    from minute8.api.shapes.calendars import NewCalendar

_WARNINGS_SHOWN: Final = 20

ROUTES = Routes()


@ROUTES.add(
    "PUT",
    "/v1/calendars/{name}",
    "write",
    response="CalendarView",
    other_status=HTTPStatus.CREATED,
    body="NewCalendar",
    if_match=True,
    if_none_match=True,
    weight=A_THOUSAND_JOBS,
)
def put_calendar(services: Services, request: Request) -> Response:
    """Create or replace a calendar.

    An added date stops executions that have not begun. A removed date takes effect with the next window, at most 25
    minutes later. With `If-Match` only if that is the current revision, with `If-None-Match: *` only if there is
    none yet. The same dates change nothing. `conflict`: the tenant has 100 calendars.
    `warnings` name the jobs that fire never again by these dates. A change reads the tenant's jobs.
    """
    _refuse_sources(request.object())
    body: NewCalendar = request.shaped()
    calendar = _calendars(services).put(
        request.tenant, request.path["name"], to_builtins(body), request.now, request.expected_revision()
    )
    status = HTTPStatus.CREATED if calendar.revision == 1 else HTTPStatus.OK
    ended = jobs_that_end(services.store, request.tenant, calendar.name) if calendar.revision > 1 else {}
    return _reply(calendar, status, [f"{job_id}: {why}" for job_id, why in ended.items()])


@ROUTES.add("GET", "/v1/calendars/{name}", "read", response="CalendarView", revision=True)
def get_calendar(services: Services, request: Request) -> Response:
    """Get a calendar.

    The dates, the note of their origin, and the revision, which is the ETag. One read.
    """
    return _reply(_calendars(services).get(request.tenant, _existing(request)))


@ROUTES.add("DELETE", "/v1/calendars/{name}", "write", status=HTTPStatus.NO_CONTENT, weight=A_THOUSAND_JOBS)
def delete_calendar(services: Services, request: Request) -> Response:
    """Delete a calendar that no job names.

    `conflict`: a job names it; the problem lists three of them. It reads the tenant's jobs, and takes one
    transaction.
    """
    _calendars(services).delete(request.tenant, _existing(request), request.now)
    return Response(status=HTTPStatus.NO_CONTENT)


@ROUTES.add("GET", "/v1/calendars", "read", response="CalendarPage", query=(LIMIT, CURSOR))
def list_calendars(services: Services, request: Request) -> Response:
    """List calendars.

    Calendars with their dates, in the order of their names. A page reads one query of up to `limit` entries.
    """
    limit = request.number("limit", PAGE, MAX_PAGE)
    after = read_key(request.tenant, "calendars", request.query.get("cursor"))
    calendars = list(_calendars(services).list_calendars(request.tenant, after, limit + 1))
    page = calendars[:limit]
    cursor = write_cursor(request.tenant, "calendars", page[-1].name) if len(calendars) > limit else None
    return Response({"calendars": [_view(calendar) for calendar in page], "next_cursor": cursor})


def _refuse_sources(fields: Mapping[str, Any]) -> None:
    """Raises InvalidInput if a field names a source that only the command resolves."""
    for kind in ("icalendar", "country"):
        if fields.get(kind) is not None:
            raise InvalidInput(
                kind,
                "is not resolved here",
                accepted='{"dates": […]}; the minute8 command resolves countries and iCalendar files and sends their'
                " dates",
            )


def _calendars(services: Services) -> CalendarStore:
    return CalendarStore(services.store.jobs, services.store.audited)


def _existing(request: Request) -> str:
    return request.path_id("name", "calendar", CALENDAR_NAME_CHARS)


def _reply(calendar: Calendar, status: HTTPStatus = HTTPStatus.OK, warnings: Sequence[str] = ()) -> Response:
    return Response(
        _view(calendar) | {"warnings": list(warnings)[:_WARNINGS_SHOWN]},
        status,
        {"ETag": f'"{calendar.revision}"'},
    )


def _view(calendar: Calendar) -> dict[str, Any]:
    return {
        "name": calendar.name,
        "dates": list(calendar.dates),
        "source": dict(calendar.source),
        "revision": calendar.revision,
        "created_at": rfc3339(calendar.created_at),
        "updated_at": rfc3339(calendar.updated_at),
    }
