"""The platform's view of planning: up to when all is planned, how long that took, and what could not be planned."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any, Final

from api.http.requests import Request
from api.http.routing import Query, Reply, Route
from api.services import Services
from common.planning.due_index import Mark
from common.planning.planned_windows import PlannedWindow
from common.planning.quarantine import SetAside
from common.platform.findings import Finding, Level
from common.platform.planning_checks import findings, ticks_missed
from common.timing.instants import rfc3339

# A day of windows.
_MAX_WINDOWS: Final = 144
_WINDOWS: Final = 36
# The most groups and shares set aside that are shown, the oldest first.
_MAX_SET_ASIDE: Final = 50
_LEVELS: Final = {level: level.name.lower() for level in Level}


def planning(services: Services, request: Request) -> Reply:
    """GET /v1/operator-planning"""
    windows = request.number("windows", _WINDOWS, _MAX_WINDOWS)
    state = services.planning
    mark = state.index().mark()
    quarantine = state.quarantine()
    set_aside = [*islice(quarantine.waiting(), _MAX_SET_ASIDE)]
    set_aside += islice(quarantine.bad_entries(), _MAX_SET_ASIDE - len(set_aside))
    return Reply(
        {
            "mark": _mark_view(mark, request.now) if mark else None,
            "shares_left": len(state.shares().left(mark)) if mark and mark.is_divided else 0,
            "calls_at_once": services.calls_at_once,
            "windows": [_window_view(one, mark) for one in state.index().windows.newest(windows)],
            "set_aside": [_set_aside_view(one) for one in set_aside],
            "findings": [
                {"check": one.check, "level": _LEVELS[one.level], "found": one.found, "remedy": one.remedy}
                for one in [*_alarms(services, request.now), *findings(state)]
            ],
        }
    )


def _alarms(services: Services, now: float) -> list[Finding]:
    found = services.alarms.findings(now) if services.alarms else []
    return [replace(one, check="alarms") for one in found]


def _mark_view(mark: Mark, now: float) -> dict[str, Any]:
    return {
        "planned_until_at": rfc3339(mark.planned_until),
        "planning_until_at": rfc3339(mark.planning_until),
        "lag_s": max(0, round(now - mark.planned_until, 3)),
        "ticks_missed": ticks_missed(mark, now),
        "decided_at": rfc3339(int(mark.decided_at)),
        "divided": mark.is_divided,
        "tzdata": mark.tzdata,
    }


def _window_view(one: PlannedWindow, mark: Mark | None) -> dict[str, Any]:
    return {
        "start_at": rfc3339(one.start),
        "end_at": rfc3339(one.end),
        "began_at": rfc3339(one.began_at),
        "took_s": round(max(0.0, one.ended_at - one.began_at), 3),
        # Negative: it was planned after it had begun.
        "ahead_s": round(one.start - one.ended_at, 3),
        "finished": bool(mark and mark.planned_until >= one.end),
        "executions": one.planned,
        "missed": one.missed,
        "bad_entries": one.bad_entries,
        "ticks": one.ticks,
        "planners": one.planners,
    }


def _set_aside_view(one: SetAside) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "name": one.name,
        "reason": one.reason,
        "seen_at": rfc3339(one.seen_at),
        "start_at": rfc3339(one.start_at) if one.start_at else None,
        "end_at": rfc3339(one.end_at) if one.end_at else None,
        "tries": one.tries,
    }


ROUTES = (
    Route(
        "GET", "/v1/operator-planning", "planning_of_platform", planning, "operator",
        "Up to when all is planned, how the last windows went, what is set aside, and findings", "PlatformPlanning",
        query=(
            Query(
                "windows",
                "How many of the last windows at most.",
                {"type": "integer", "minimum": 1, "maximum": _MAX_WINDOWS, "default": _WINDOWS},
            ),
        ),
    ),
)  # fmt: skip
