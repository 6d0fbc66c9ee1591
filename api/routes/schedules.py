"""The route that previews a schedule before a job uses it."""

from __future__ import annotations

from typing import Any

from api.http.requests import Request
from api.http.routing import Reply, Route
from api.services import Services
from api.views import schedule_view
from common.errors import InvalidInput
from common.ids import JOB_ID_CHARS, check_id
from common.planning.execution import job_key
from common.timing.durations import parse_instant
from common.timing.fires import due_at
from common.timing.instants import rfc3339
from common.timing.schedule import Schedule

_MAX_FIRES = 100
_FIRES = 10


def preview(services: Services, request: Request) -> Reply:
    """POST /v1/schedules/preview"""
    # Imported here: no other route describes schedules in words.
    from common.preview.preview import preview as look_ahead

    fields = _checked(request.fields("schedule", "count", "from_at", "until_at", "job_id"))
    key = job_key(request.tenant, check_id("job_id", fields.get("job_id", "job"), JOB_ID_CHARS))
    ahead = look_ahead(
        fields["schedule"],
        now=parse_instant(fields["from_at"], "from_at") if "from_at" in fields else int(request.now),
        count=fields.get("count", _FIRES),
        until=parse_instant(fields["until_at"], "until_at") if "until_at" in fields else None,
        job_key=key,
        default_spread_s=services.registry.default_spread_s(request.tenant),
    )
    schedule = Schedule.from_item(ahead.schedule)
    return Reply(
        {
            "sentence": ahead.sentence,
            "warnings": list(ahead.warnings),
            "schedule_resolved": schedule_view(schedule),
            "timezone": ahead.timezone,
            "fires": [
                {
                    "fire_at": rfc3339(fire.at),
                    "local": fire.local,
                    "due_at": rfc3339(due_at(schedule, key, fire.at)),
                }
                for fire in ahead.fires
            ],
            "tzdata": ahead.tzdata,
        }
    )


def _checked(body: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(body.get("schedule"), dict):
        raise InvalidInput(
            "schedule",
            "must be an object",
            value=body.get("schedule"),
            accepted='such as {"cron": "30 2 * * *"}',
        )
    count = body.get("count", _FIRES)
    if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= _MAX_FIRES:
        raise InvalidInput("count", "is out of range", value=count, accepted=f"1 to {_MAX_FIRES}")
    return body


ROUTES = (
    Route(
        "POST", "/v1/schedules/preview", "preview_schedule", preview, "read",
        "When a schedule fires, in words, and what may surprise you about it", "SchedulePreview",
        takes="PreviewRequest",
    ),
)  # fmt: skip
