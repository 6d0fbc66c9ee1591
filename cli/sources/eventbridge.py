"""EventBridge Scheduler, as `aws scheduler get-schedule` answers: one schedule, a list of them, or one a line.

Its weekdays count from 1 for Sunday, and its cron has a year; the rest of the expression means the same here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from cli.sources.found import Defaults, Found
from common.texts import NAME_CHARS
from common.timing.instants import DAY_S

_UNITS = {"minute": "m", "hour": "h", "day": "d"}
# The kind of a target by its ARN, and the field that names it.
_KINDS = (
    (r"arn:aws[a-z-]*:lambda:", {"kind": "lambda", "invocation": "Event"}),
    (r"arn:aws[a-z-]*:sqs:", {"kind": "sqs"}),
    (r"arn:aws[a-z-]*:sns:", {"kind": "sns"}),
    (r"arn:aws[a-z-]*:states:", {"kind": "step_functions"}),
)


class _NotHere(Exception):
    """It has no equal here."""


def read(text: str, defaults: Defaults) -> Iterator[Found]:
    try:
        schedules = _schedules(text)
    except ValueError as error:
        yield Found("file", refusal=f"not JSON: {error}")
        return
    for number, schedule in enumerate(schedules, 1):
        where = f"schedule {number}"
        try:
            yield _job(schedule, defaults)
        except _NotHere as refusal:
            yield Found(where, refusal=str(refusal))
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            yield Found(where, refusal=f"not a whole schedule: {error!r}")


def _schedules(text: str) -> list[Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    if isinstance(value, Mapping):
        value = value.get("Schedules", [value])
    return list(value)


def _job(given: Mapping[str, Any], defaults: Defaults) -> Found:
    group, name = given.get("GroupName", "default"), given["Name"]
    schedule = _timing(given)
    window = given.get("FlexibleTimeWindow", {})
    if window.get("Mode") == "FLEXIBLE":
        schedule["jitter_s"] = min(3_600, window["MaximumWindowInMinutes"] * 60)
    target, notes = given["Target"], []
    definition: dict[str, Any] = {
        "schedule": schedule,
        "target": defaults.target or _target(target),
        "payload": _payload(target.get("Input")),
    }
    if description := given.get("Description"):
        definition["name"] = description[:NAME_CHARS]
    policy = target.get("RetryPolicy", {})
    attempts = policy.get("MaximumRetryAttempts", 185) + 1
    definition["retry"] = {
        "max_attempts": min(100, attempts),
        "max_age_s": policy.get("MaximumEventAgeInSeconds", DAY_S),
    }
    if target.get("DeadLetterConfig"):
        notes.append("its dead-letter queue is left out: failed runs are kept and listed here")
    job_id = name if group == "default" else f"{group}.{name}"
    return Found(
        f"{group}/{name}", job_id, definition, notes=tuple(notes), suspended=given.get("State") == "DISABLED"
    )


def _timing(given: Mapping[str, Any]) -> dict[str, Any]:
    expression = given["ScheduleExpression"]
    kind, _, inner = expression.partition("(")
    inner = inner.removesuffix(")").strip()
    zone = given.get("ScheduleExpressionTimezone") or "UTC"
    bounds = {
        name: _instant(given[theirs])
        for name, theirs in (("start_at", "StartDate"), ("end_at", "EndDate"))
        if given.get(theirs)
    }
    if kind == "cron":
        return {"cron": _cron(inner), "timezone": zone} | bounds
    if kind == "at":
        return {"at": inner, "timezone": zone}
    if kind == "rate" and (rate := re.fullmatch(r"(\d+)\s+(minute|hour|day)s?", inner)):
        begun = given.get("StartDate") or given.get("CreationDate")
        anchor = {"anchor": _instant(begun)} if begun else {}
        return {"every": f"{rate[1]}{_UNITS[rate[2]]}"} | anchor | bounds
    raise _NotHere(f"{given['Name']}: cannot read {expression!r}")


def _cron(expression: str) -> str:
    minute, hour, day, month, weekday, *year = expression.split()
    if year not in ([], ["*"]):
        raise _NotHere(f"cron({expression}): a year; use StartDate and EndDate instead")
    return " ".join((minute, hour, _any(day), month, _any(_weekday(weekday))))


def _any(field: str) -> str:
    return "*" if field == "?" else field


def _weekday(field: str) -> str:
    """1-7 from Sunday become 0-6, also in 2-6, 2/2 and 2#1; 6L, the last Friday, is L5; L alone is Saturday."""
    return ",".join(_weekday_item(item) for item in field.split(","))


def _weekday_item(item: str) -> str:
    if item == "L":
        return "6"
    if last := re.fullmatch(r"([1-7])L", item):
        return f"L{int(last[1]) - 1}"
    days, mark, rest = re.fullmatch(r"([^#/]*)([#/]?)(.*)", item, re.DOTALL).groups()  # type: ignore[union-attr]
    return re.sub(r"[1-7]", lambda day: str(int(day[0]) - 1), days) + mark + rest


def _instant(value: str | float) -> str:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(value, UTC)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def _target(given: Mapping[str, Any]) -> dict[str, Any]:
    for pattern, target in _KINDS:
        if re.match(pattern, given["Arn"]):
            return target | {"arn": given["Arn"]}
    raise _NotHere(f"target {given['Arn']!r} is of no kind that is called here; --target names another")


def _payload(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text
