"""Previews in bulk: one NDJSON line in, one out. Pure; thousands of lines a second.

In: `{"id", "cron" | "every" | "at", "timezone", "from", "count", "until"}` and the other keys of a schedule; `from`
is inclusive, `until` exclusive. Out: `{"id", "fire_times": [RFC 3339 UTC...]}`, or
`{"id", "error": {"type", "message"}}`. A line's `id` seeds `H`.
"""

from __future__ import annotations

import json
from typing import Any, Final

from common.errors import InvalidInput
from common.preview.preview import MAX_COUNT, check_count, read_schedule
from common.timing.durations import parse_instant
from common.timing.fires import next_fires
from common.timing.instants import rfc3339

DEFAULT_COUNT: Final = 10


def answer_line(line: str | bytes, *, now: int) -> str:
    """The answer to one line, without a line end. `now` is used if the line has no `from`. Never raises."""
    name: object = None
    try:
        request = _read(line)
        name = request.pop("id", None)
        return json.dumps({"id": name, "fire_times": _fire_times(request, name, now)})
    except InvalidInput as error:
        return json.dumps({"id": name, "error": {"type": type(error).__name__, "message": str(error)}})


def _read(line: str | bytes) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            "line", f"not JSON: {type(error).__name__}", value=line, accepted="a JSON object"
        ) from error
    if not isinstance(request, dict):
        raise InvalidInput(
            "line", "not a JSON object", value=line, accepted='such as {"id": "a", "every": "1h"}'
        )
    return request


def _fire_times(request: dict[str, Any], name: object, now: int) -> list[str]:
    start, until, count = request.pop("from", None), request.pop("until", None), request.pop("count", None)
    after = now if start is None else parse_instant(start, "from")
    end = None if until is None else parse_instant(until, "until")
    if count is None:
        count = DEFAULT_COUNT if end is None else MAX_COUNT
    schedule, _ = read_schedule(request, job_key=str(name), now=after)
    return [rfc3339(at) for at in next_fires(schedule, after, check_count(count), end)]
