"""EventBridge Scheduler, as `aws scheduler get-schedule` prints: one schedule, a list, or one per line.

A cron expression becomes one of Minute8's own dialect if there is an equal one; else it stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from cli.sources.found import Defaults, Found, Known, NotHere, left_out
from cli.sources.text import literal, loads, payload_of
from common.errors import InvalidInput
from common.jobs.job import MOST_ATTEMPTS
from common.registration.eventbridge_text import as_minute8
from common.texts import NAME_CHARS
from common.timing.instants import DAY_S
from common.timing.schedule import EVENTBRIDGE

_UNITS = {"minute": "m", "hour": "h", "day": "d"}
# The kind of a target by its ARN, and the field that names it.
_KINDS = (
    (r"arn:aws[a-z-]*:lambda:", {"kind": "lambda", "invocation": "Event"}),
    (r"arn:aws[a-z-]*:sqs:", {"kind": "sqs"}),
    (r"arn:aws[a-z-]*:sns:", {"kind": "sns"}),
    (r"arn:aws[a-z-]*:states:", {"kind": "step_functions"}),
    (r"arn:aws[a-z-]*:events:", {"kind": "event_bus"}),
)
# The parameters of a kind of target, and the names of their fields in Minute8.
_PARAMETERS: tuple[tuple[str, str, Mapping[str, str]], ...] = (
    ("SqsParameters", "sqs", {"MessageGroupId": "message_group_id"}),
    ("EventBridgeParameters", "event_bus", {"Source": "source", "DetailType": "detail_type"}),
)


# The fields that are read, and those that AWS adds. A test compares them with the API's own description.
KNOWN: Known = {
    **dict.fromkeys(
        ("Arn", "CreationDate", "LastModificationDate", "Name", "GroupName", "Description", "State")
    ),
    **dict.fromkeys(("ScheduleExpression", "ScheduleExpressionTimezone", "StartDate", "EndDate")),
    "FlexibleTimeWindow": {"Mode": None, "MaximumWindowInMinutes": None},
    "Target": {
        "Arn": None,
        "Input": None,
        "RetryPolicy": {"MaximumRetryAttempts": None, "MaximumEventAgeInSeconds": None},
        "SqsParameters": {"MessageGroupId": None},
        "EventBridgeParameters": {"DetailType": None, "Source": None},
    },
}
_WHY = {
    "Target.RoleArn": "Minute8's own role makes the call; role_arn names one that trusts it",
    "Target.DeadLetterConfig": "failed runs are kept and listed here",
    "KmsKeyArn": "the deployment's tables are encrypted by their own key",
}
# https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
_ATTRIBUTES = {
    "scheduled-time": "{{fire_time}}",
    "execution-id": "{{execution_id}}",
    "attempt-number": "{{attempt}}",
}
_ATTRIBUTE = re.compile(r"<aws\.scheduler\.([A-Za-z-]*)>")


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
        except NotHere as refusal:
            yield Found(where, refusal=str(refusal))
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError, OSError) as error:
            yield Found(where, refusal=f"not a whole schedule: {error!r}")


def _schedules(text: str) -> list[Any]:
    try:
        value = loads(text)
    except ValueError:
        lines = [line for line in text.split("\n") if line.strip()]
        if len(lines) < 2:
            raise
        return [loads(line) for line in lines]
    if isinstance(value, Mapping):
        value = value.get("Schedules", [value])
    return value if isinstance(value, list) else [value]


def _job(given: Mapping[str, Any], defaults: Defaults) -> Found:
    group, name, target = given.get("GroupName") or "default", given["Name"], given["Target"]
    schedule, notes = _timing(given)
    _set_jitter(given.get("FlexibleTimeWindow") or {}, schedule)
    if defaults.target:
        notes.append(f"Target.Arn {target['Arn']} is left out: --target takes its place")
    payload, payload_notes = _payload(given)
    definition: dict[str, Any] = {
        "schedule": schedule,
        "target": defaults.target or _target(target),
        "payload": payload,
        "retry": _retry(target.get("RetryPolicy") or {}),
    }
    if description := given.get("Description"):
        definition["name"] = description[:NAME_CHARS]
        if len(description) > NAME_CHARS:
            notes.append(f"Description is cut to {NAME_CHARS} characters")
    known = dict(KNOWN)
    if defaults.target:
        known["Target"] = dict.fromkeys(("Arn", "Input", "RetryPolicy"))
    match given.get("ActionAfterCompletion"):
        case "DELETE":
            definition["after_completion"] = "delete"
            known["ActionAfterCompletion"] = None
        case "NONE":
            known["ActionAfterCompletion"] = None
    notes += [*payload_notes, *left_out(given, known, _WHY)]
    job_id = name if group == "default" else f"{group}.{name}"
    return Found(
        f"{group}/{name}", job_id, definition, notes=tuple(notes), suspended=given.get("State") == "DISABLED"
    )


def _set_jitter(window: Mapping[str, Any], schedule: dict[str, Any]) -> None:
    mode = window.get("Mode", "OFF")
    if mode == "FLEXIBLE":
        schedule["jitter_s"] = window["MaximumWindowInMinutes"] * 60
    elif mode != "OFF":
        raise NotHere(f"FlexibleTimeWindow.Mode {mode!r}; accepted: OFF, FLEXIBLE")


def _retry(policy: Mapping[str, Any]) -> dict[str, Any]:
    """Without a policy EventBridge Scheduler tries 185 times again within a day."""
    return {
        "max_attempts": policy.get("MaximumRetryAttempts", MOST_ATTEMPTS - 1) + 1,
        "max_age_s": policy.get("MaximumEventAgeInSeconds", DAY_S),
    }


def _timing(given: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The schedule, and notes about it."""
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
        return {**_cron(inner, zone), "timezone": zone, **bounds}, []
    if kind == "at":
        notes = [
            f"{name} is left out: at(…) has no bounds" for name in ("StartDate", "EndDate") if given.get(name)
        ]
        return {"at": inner, "timezone": zone}, notes
    if kind == "rate" and (rate := re.fullmatch(r"(\d+)\s+(minute|hour|day)s?", inner, re.ASCII)):
        notes = (
            []
            if zone == "UTC"
            else [f"ScheduleExpressionTimezone {zone} is left out: a rate is elapsed time"]
        )
        begun = given.get("StartDate") or given.get("CreationDate")
        if not begun:
            notes.append(
                "neither StartDate nor CreationDate is given, so the rate counts from the first import on"
            )
        anchor = {"anchor": _instant(begun)} if begun else {}
        return {"every": f"{rate[1]}{_UNITS[rate[2]]}"} | anchor | bounds, notes
    raise NotHere(f"{given['Name']}: cannot read {expression!r}")


def _cron(expression: str, zone: str) -> dict[str, Any]:
    """In Minute8's dialect if it has the same expression, else in theirs; by their rule for clock changes."""
    try:
        known = as_minute8(expression)
    except InvalidInput as error:
        raise NotHere(f"cron({expression}): {error}") from None
    dialect = {"dialect": EVENTBRIDGE} if known is None else {}
    dst = {"dst": EVENTBRIDGE} if zone != "UTC" else {}
    return {"cron": known or expression} | dialect | dst


def _instant(value: str | float) -> str:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(value, UTC)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def _target(given: Mapping[str, Any]) -> dict[str, Any]:
    kind = next((kind for pattern, kind in _KINDS if re.match(pattern, given["Arn"])), None)
    if kind is None:
        raise NotHere(f"target {given['Arn']!r} is of no kind that is called here; --target names another")
    target = kind | {"arn": given["Arn"]}
    for parameters, wanted, names in _PARAMETERS:
        fields = given.get(parameters) or {}
        if fields and kind["kind"] != wanted:
            raise NotHere(f"Target.{parameters} is given, and the target is of kind {kind['kind']}")
        target |= {ours: fields[theirs] for theirs, ours in names.items() if fields.get(theirs)}
    return target


def _payload(given: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """`Input` as the payload, and notes. What EventBridge Scheduler replaces in it becomes a placeholder."""
    text = given["Target"].get("Input")
    if not text:
        return None, [
            "Target.Input is not given: AWS then sends an event of its own, here the payload is null"
        ]
    notes = ["Target.Input arrives as `payload` in the event, beside `minute8`"]
    if "<aws.scheduler.execution-id>" in text:
        notes.append("<aws.scheduler.execution-id> differs between attempts, {{execution_id}} does not")
    try:
        value = loads(text)
    except ValueError:
        if _ATTRIBUTE.search(text) and text.lstrip()[:1] in ("{", "["):
            raise NotHere(
                "Target.Input is JSON only after its context attributes are replaced: quote them"
            ) from None
        value = text
    return payload_of(value, lambda one: _with_placeholders(one, given), "Target.Input"), notes


def _with_placeholders(text: str, given: Mapping[str, Any]) -> str:
    """A text of `Input` with its context attributes as placeholders. Raises NotHere."""
    parts = _ATTRIBUTE.split(text)  # text, name, text, name, text
    for n, name in enumerate(parts[1::2]):
        before = parts[2 * n]
        if name == "schedule-arn" and given.get("Arn"):
            parts[2 * n + 1] = literal(given["Arn"])
        elif name not in _ATTRIBUTES:
            raise NotHere(f"Target.Input: <aws.scheduler.{name}> has no equal here")
        elif (len(before) - len(before.rstrip("{"))) % 2:
            raise NotHere(f"Target.Input: a {{ right before <aws.scheduler.{name}> cannot be written here")
        else:
            parts[2 * n + 1] = _ATTRIBUTES[name]
    parts[::2] = map(literal, parts[::2])
    return "".join(parts)
