"""A job's definition as a schedule of EventBridge Scheduler: the inverse of `mapping.py`, as far as there is one. Pure.

What AWS's API cannot say is refused by the job's own name for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from common.errors import InvalidInput
from common.registration.cron_text import read_cron
from common.timing.compiled import in_all_clocks
from common.timing.durations import parse_duration, parse_instant
from common.timing.eventbridge_cron import compile_eventbridge, read_eventbridge
from common.timing.instants import DAY_S
from common.timing.schedule import EVENTBRIDGE, CronTiming
from minute8.eventbridge.mapping import OTHER_PARAMETERS
from minute8.eventbridge.shapes import DESCRIPTION_CHARS
from minute8.eventbridge.universal import is_universal

# The fields of a schedule that AWS's can say, in one form or another.
_TIMING: Final = {"cron", "every", "at", "timezone", "dialect", "dst", "anchor", "start_at", "end_at"}
_DELAYS: Final = {"jitter_s", "spread_s"}
_UNITS_S: Final = ((DAY_S, "day"), (3_600, "hour"), (60, "minute"))
_MAX_RETRIES: Final = 185
_AGES_S: Final = (60, DAY_S)
_PARAMETERS: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "sqs": ("SqsParameters", {"message_group_id": "MessageGroupId"}),
    "event_bus": ("EventBridgeParameters", {"source": "Source", "detail_type": "DetailType"}),
}
# The members of a request that a changed field of the job replaces.
_REPLACED: Final[Mapping[str, tuple[str, ...]]] = {
    "schedule": ("ScheduleExpressionTimezone", "StartDate", "EndDate"),
    "target": ("SqsParameters", "EventBridgeParameters"),
    "payload": ("Input",),
    "retry": ("RetryPolicy",),
    "name": ("Description",),
    "after_completion": (),
    "dead_letter": ("DeadLetterConfig",),
}
# Fields of targets that AWS's say otherwise, or that change nothing of the call.
_PLAIN: Final = {"kind", "arn", "invocation", "role_arn", "external_id", "schedule_arn", "envelope"}
_KINDS: Final = ("lambda", "sqs", "sns", "step_functions", "event_bus", "aws_operation")


class Inexpressible(Exception):
    """AWS's API cannot say this. The text begins with the job's field."""


def request_parts(definition: Mapping[str, Any]) -> dict[str, Callable[[], dict[str, Any]]]:
    """By the job's field, a function that returns the members of the schedule, and raises Inexpressible.

    `payload` and `target` are members of `Target`.
    """
    target = definition["target"]
    return {
        "schedule": lambda: _schedule(definition["schedule"]),
        "target": lambda: _target(target),
        "payload": lambda: _input(target, definition.get("payload")),
        "retry": lambda: {"RetryPolicy": _retry(definition.get("retry") or {})},
        "name": lambda: _description(definition.get("name")),
        "after_completion": lambda: _completion(definition.get("after_completion")),
        "dead_letter": lambda: _dead_letter(definition.get("dead_letter")),
    }


# The job's fields that are in a schedule's Target.
IN_TARGET: Final = ("target", "payload", "retry", "dead_letter")


def with_changes(
    request_fields: Mapping[str, Any], changed: Sequence[str], spec: Mapping[str, Any], payload: str
) -> dict[str, Any]:
    """The request with the members that say what changed. `spec` is the job's. Raises Inexpressible."""
    parts = request_parts({**spec, "payload": json.loads(payload)})
    target = dict(request_fields["Target"])
    fields = {**request_fields, "Target": target}
    if set(changed) & {"target", "payload"}:
        if spec["target"]["kind"] == "aws_operation":
            # A templated target is here an operation with all its parameters.
            changed = (*changed, "target", "payload")
            for name in (*_REPLACED["target"], *OTHER_PARAMETERS):
                target.pop(name, None)
        elif is_universal(target["Arn"]):
            raise Inexpressible(f"{changed[0]}: the target was a universal one")
    for part in dict.fromkeys(changed):
        place = target if part in IN_TARGET else fields
        for name in _REPLACED[part]:
            place.pop(name, None)
        place.update(parts[part]())
    return fields


def _schedule(schedule: Mapping[str, Any]) -> dict[str, Any]:
    """The expression, its zone, its bounds and the window."""
    if other := sorted(schedule.keys() - _TIMING - _DELAYS):
        raise Inexpressible(f"schedule.{other[0]}: AWS's schedules have no such field")
    if schedule.get("spread_s"):
        raise Inexpressible("schedule.spread_s: AWS's schedules have no spread")
    expression, zone = _expression(schedule)
    parts: dict[str, Any] = {"ScheduleExpression": expression, "FlexibleTimeWindow": _window(schedule)}
    if zone != "UTC":
        parts["ScheduleExpressionTimezone"] = zone
    for name, aws_name in (("start_at", "StartDate"), ("end_at", "EndDate")):
        if schedule.get(name) is not None and "at" not in schedule:
            parts[aws_name] = parse_instant(schedule[name], f"schedule.{name}")
    return parts


def _expression(schedule: Mapping[str, Any]) -> tuple[str, str]:
    """The expression and its zone."""
    zone = schedule.get("timezone", "UTC")
    if "every" in schedule:
        if "timezone" in schedule:
            raise Inexpressible("schedule.every: a rate of AWS's is elapsed time")
        return _rate(schedule), "UTC"
    if "at" in schedule:
        if "timezone" in schedule:
            return f"at({str(schedule['at'])[:19]})", zone
        at = datetime.fromtimestamp(parse_instant(schedule["at"], "schedule.at"), UTC)
        return f"at({at:%Y-%m-%dT%H:%M:%S})", "UTC"
    if schedule.get("dst") != EVENTBRIDGE and zone != "UTC":
        raise Inexpressible("schedule.dst: AWS's rule for clock changes differs from Minute8's")
    if schedule.get("dialect") == EVENTBRIDGE:
        return f"cron({schedule['cron']})", zone
    return f"cron({as_eventbridge(schedule['cron'])})", zone


def _rate(schedule: Mapping[str, Any]) -> str:
    interval_s = parse_duration(schedule["every"])
    anchor, start = schedule.get("anchor"), schedule.get("start_at")
    if anchor is not None and start is not None and parse_instant(anchor, "") != parse_instant(start, ""):
        raise Inexpressible("schedule.anchor: a rate of AWS's counts from its StartDate")
    for unit_s, unit in _UNITS_S:
        count, rest = divmod(interval_s, unit_s)
        if not rest:
            return f"rate({count} {unit}{'' if count == 1 else 's'})"
    raise Inexpressible("schedule.every: a rate of AWS's is whole minutes")


def as_eventbridge(expression: object) -> str:
    """The expression in AWS's dialect with the same fires. Raises Inexpressible."""
    try:
        text = read_cron(expression, job_key="")
        fires = in_all_clocks(CronTiming(text, "UTC"))
        for candidate in _candidates(text):
            try:
                same = compile_eventbridge(read_eventbridge(candidate)) == fires
            except InvalidInput:
                continue
            if same:
                return candidate
    except InvalidInput as error:
        raise Inexpressible(f"schedule.cron: {error.message}") from None
    raise Inexpressible(f"schedule.cron: AWS has no expression that fires as {expression!r} does")


def _candidates(text: str) -> Iterator[str]:
    """Expressions of AWS's that may mean the same."""
    fields = text.split(" ")
    if len(fields) == 6 and fields[0] == "0":  # seconds
        fields = fields[1:]
    if len(fields) != 5:
        return
    minute, hour, day, month, weekday = fields
    days = ",".join(_weekday(item) for item in weekday.split(","))
    if day != "*" and weekday == "*":
        yield f"{minute} {hour} {day} {month} ? *"
    if weekday != "*" and day == "*":
        yield f"{minute} {hour} ? {month} {days} *"
    if weekday == day == "*":
        yield f"{minute} {hour} * * ? *" if month == "*" else f"{minute} {hour} * {month} ? *"


def _weekday(item: str) -> str:
    """0-6 from Sunday become 1-7; L5, the last Friday, is 6L."""
    if item.startswith("L") and item[1:].isdigit():
        return f"{int(item[1:]) % 7 + 1}L"
    days, mark, rest = item, "", ""
    for sign in "#/":
        if sign in item:
            days, mark, rest = item.partition(sign)
            break
    moved = "-".join(str(int(part) % 7 + 1) if part.isdigit() else part for part in days.split("-"))
    return moved + mark + rest


def _window(schedule: Mapping[str, Any]) -> dict[str, Any]:
    """The window's end is not in it."""
    jitter_s = int(schedule.get("jitter_s") or 0)
    if not jitter_s:
        return {"Mode": "OFF"}
    minutes, rest = divmod(jitter_s + 1, 60)
    if rest or not 1 <= minutes <= 1_440:
        raise Inexpressible("schedule.jitter_s: a window of AWS's is 1 to 1440 whole minutes")
    return {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": minutes}


def _target(target: Mapping[str, Any]) -> dict[str, Any]:
    kind = target["kind"]
    if kind not in _KINDS:
        raise Inexpressible(f"target.kind: AWS's schedules have no target of the kind {kind!r}")
    if kind == "lambda" and target.get("invocation") != "Event":
        raise Inexpressible("target.invocation: AWS's schedules call functions asynchronously (Event)")
    name, fields = _PARAMETERS.get(kind, ("", {}))
    if other := sorted(target.keys() - _PLAIN - fields.keys()):
        raise Inexpressible(f"target.{other[0]}: AWS's schedules have no such field")
    parameters = {aws_name: target[field] for field, aws_name in fields.items() if field in target}
    return {"Arn": target["arn"], **({name: parameters} if parameters else {})}


def _input(target: Mapping[str, Any], payload: Any) -> dict[str, Any]:
    if "schedule_arn" in target:
        return {} if payload is None else {"Input": payload}
    if target.get("envelope", True) and target["kind"] != "aws_operation":
        raise Inexpressible("target.envelope: on AWS the target gets the Input alone")
    text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    if "{{" in text:
        raise Inexpressible("payload: its placeholders are not AWS's")
    if payload in (None, ""):
        raise Inexpressible("payload: without an Input AWS sends a notification of its own")
    return {"Input": text}


def _retry(retry: Mapping[str, Any]) -> dict[str, Any]:
    policy: dict[str, Any] = {}
    if (attempts := retry.get("max_attempts")) is not None:
        if attempts - 1 > _MAX_RETRIES:
            raise Inexpressible(f"retry.max_attempts: AWS retries {_MAX_RETRIES} times at most")
        policy["MaximumRetryAttempts"] = int(attempts) - 1
    if (age_s := retry.get("max_age_s")) is not None:
        if not _AGES_S[0] <= age_s <= _AGES_S[1]:
            raise Inexpressible(f"retry.max_age_s: AWS accepts {_AGES_S[0]} to {_AGES_S[1]}")
        policy["MaximumEventAgeInSeconds"] = int(age_s)
    return policy


def _description(name: str | None) -> dict[str, Any]:
    return {"Description": name[:DESCRIPTION_CHARS]} if name else {}


def _completion(after: str | None) -> dict[str, Any]:
    return {"ActionAfterCompletion": "DELETE" if after == "delete" else "NONE"}


def _dead_letter(queue: str | None) -> dict[str, Any]:
    return {"DeadLetterConfig": {"Arn": queue}} if queue else {}
