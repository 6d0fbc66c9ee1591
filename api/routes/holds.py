"""The routes of the platform's holds: targets that no tenant's run calls until they are released."""

from __future__ import annotations

from typing import Any

from api.http.requests import Request
from api.http.routing import Reply, Route
from api.services import Services
from common.errors import InvalidInput
from common.platform.views import hold_view
from common.tenants.allowed_targets import Hold


def list_all(services: Services, request: Request) -> Reply:
    """GET /v1/holds"""
    return _reply(services.holds.all())


def hold(services: Services, request: Request) -> Reply:
    """POST /v1/holds"""
    fields = request.fields("pattern", "note")
    note = fields.get("note", "")
    return _reply(services.holds.hold(_pattern(fields), note, request.now, by=request.credential.by))


def release(services: Services, request: Request) -> Reply:
    """POST /v1/holds/release"""
    pattern = _pattern(request.fields("pattern"))
    return _reply(services.holds.release(pattern, request.now, by=request.credential.by))


def _pattern(fields: dict[str, Any]) -> str:
    pattern = fields.get("pattern")
    if not isinstance(pattern, str) or not pattern:
        raise InvalidInput(
            "pattern", "must be a pattern of targets", value=pattern, accepted="such as * or an ARN"
        )
    return pattern


def _reply(holds: list[Hold]) -> Reply:
    return Reply({"holds": [hold_view(one) for one in holds]})


ROUTES = (
    Route("GET", "/v1/holds", "list_holds", list_all, "operator", "The targets that the platform holds", "Holds"),
    Route(
        "POST", "/v1/holds", "hold_target", hold, "operator",
        "Skip the runs of all tenants that would call a target", "Holds", takes="NewHold",
    ),
    Route(
        "POST", "/v1/holds/release", "release_target", release, "operator", "Let a held target be called again",
        "Holds", takes="Release",
    ),
)  # fmt: skip
