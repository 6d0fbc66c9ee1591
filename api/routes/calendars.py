"""The routes of calendars: dates on which the jobs that name them do not fire."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from api.http.cursors import read_cursor, write_cursor
from api.http.requests import Request
from api.http.routing import CURSOR, LIMIT, MAX_PAGE, PAGE, Reply, Route
from api.services import Services
from common.ids import CALENDAR_NAME_CHARS
from common.jobs.calendars import Calendar
from common.registration.calendar_store import CalendarStore
from common.timing.instants import rfc3339


def put(services: Services, request: Request) -> Reply:
    """PUT /v1/calendars/{name}"""
    calendar = _calendars(services).put(
        request.tenant, request.path["name"], request.object(), request.now, request.if_match()
    )
    return _reply(calendar, HTTPStatus.CREATED if calendar.revision == 1 else HTTPStatus.OK)


def get(services: Services, request: Request) -> Reply:
    """GET /v1/calendars/{name}"""
    return _reply(_calendars(services).get(request.tenant, _existing(request)))


def delete(services: Services, request: Request) -> Reply:
    """DELETE /v1/calendars/{name}"""
    _calendars(services).delete(request.tenant, _existing(request), request.now)
    return Reply(status=HTTPStatus.NO_CONTENT)


def list_page(services: Services, request: Request) -> Reply:
    """GET /v1/calendars"""
    limit = request.number("limit", PAGE, MAX_PAGE)
    after = read_cursor(request.tenant, "calendars", request.query.get("cursor"))
    found = list(_calendars(services).list_calendars(request.tenant, after, limit + 1))
    page = found[:limit]
    cursor = write_cursor(request.tenant, "calendars", page[-1].name) if len(found) > limit else None
    return Reply({"calendars": [_view(calendar) for calendar in page], "next_cursor": cursor})


def _calendars(services: Services) -> CalendarStore:
    return CalendarStore(services.store.jobs, services.store.audited)


def _existing(request: Request) -> str:
    return request.path_id("name", "calendar", CALENDAR_NAME_CHARS)


def _reply(calendar: Calendar, status: HTTPStatus = HTTPStatus.OK) -> Reply:
    return Reply(_view(calendar), status, {"ETag": f'"{calendar.revision}"'})


def _view(calendar: Calendar) -> dict[str, Any]:
    return {
        "name": calendar.name,
        "dates": list(calendar.dates),
        "source": dict(calendar.source),
        "revision": calendar.revision,
        "created_at": rfc3339(calendar.created_at),
        "updated_at": rfc3339(calendar.updated_at),
    }


ROUTES = (
    Route(
        "GET", "/v1/calendars", "list_calendars", list_page, "read", "List calendars", "CalendarPage",
        query=(LIMIT, CURSOR),
    ),
    Route("GET", "/v1/calendars/{name}", "get_calendar", get, "read", "Get a calendar", "CalendarView"),
    Route(
        "PUT", "/v1/calendars/{name}", "put_calendar", put, "write", "Create or replace a calendar", "CalendarView",
        also=HTTPStatus.CREATED, takes="NewCalendar", if_match=True,
    ),
    Route(
        "DELETE", "/v1/calendars/{name}", "delete_calendar", delete, "write",
        "Delete a calendar that no job names", "", HTTPStatus.NO_CONTENT,
    ),
)  # fmt: skip
