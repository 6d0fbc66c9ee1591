"""The routes of the audit: who changed what of the tenant's, from what, to what, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from api.cursors import read_cursor, write_cursor
from api.requests import Request
from api.routing import CURSOR, LIMIT, LONGEST_PAGE, PAGE, Query, Reply, Route
from api.services import Services
from common.audit import Entry, EntryFilter
from common.duration import parse_instant
from common.errors import InvalidInput
from common.instants import rfc3339

_LONGEST_WORD: Final = 200


def list_page(services: Services, request: Request) -> Reply:
    """GET /v1/audit"""
    return page_of(services, request, request.tenant)


def page_of(services: Services, request: Request, owner: str) -> Reply:
    """A page of the entries of `owner`, a tenant or the platform itself, as the query of the request wants it."""
    wanted = _filter(request.query)
    limit = request.number("limit", PAGE, LONGEST_PAGE)
    list_name = f"audit:{wanted}"
    before = read_cursor(owner, list_name, request.query.get("cursor"))
    entries, behind = services.audit.page(owner, wanted, limit=limit, before_id=before)
    cursor = write_cursor(owner, list_name, behind) if behind else None
    return Reply({"entries": [entry_view(entry) for entry in entries], "next_cursor": cursor})


def entry_view(entry: Entry) -> dict[str, Any]:
    """An entry as JSON."""
    return {
        "entry_id": entry.entry_id,
        "at": rfc3339(entry.at),
        "by": entry.by,
        "action": entry.action,
        "subject": entry.subject,
        "before": _fields(entry.before),
        "after": _fields(entry.after),
    }


def _fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: rfc3339(value) if name.endswith("_at") and isinstance(value, int | float) else value
        for name, value in fields.items()
    }


def _filter(query: Mapping[str, str]) -> EntryFilter:
    for name in ("subject", "action"):
        word = query.get(name, "")
        if len(word) > _LONGEST_WORD:
            raise InvalidInput(
                name, "is too long", value=word, accepted=f"at most {_LONGEST_WORD} characters"
            )
    bounds = {name: parse_instant(query[name], name) for name in ("from_at", "until_at") if name in query}
    return EntryFilter(**bounds, subject=query.get("subject", ""), action=query.get("action", ""))


_INSTANT: Final = {"type": "string", "format": "date-time"}
FILTERS: Final = (
    Query("subject", "Only changes of this job, calendar or key, by its id.", {"type": "string"}),
    Query("action", "Only this action (`job.paused`), or this kind (`job`).", {"type": "string"}),
    Query("from_at", "Only changes at or after this.", _INSTANT),
    Query("until_at", "Only changes before this.", _INSTANT),
)

ROUTES = (
    Route(
        "GET", "/v1/audit", "list_audit", list_page, "admin", "Who changed what, newest first", "AuditPage",
        query=(LIMIT, CURSOR, *FILTERS),
    ),
)  # fmt: skip
