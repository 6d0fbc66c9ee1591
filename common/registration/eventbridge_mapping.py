"""A schedule of EventBridge Scheduler as a job's definition: for its API, and for importing. Pure.

What a job cannot express is refused by the name that AWS gives it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

from common.errors import InvalidInput
from common.eventbridge.universal import Home, from_universal, is_universal
from common.registration.eventbridge_text import as_minute8
from common.texts import NAME_CHARS
from common.timing.instants import DAY_S
from common.timing.schedule import EVENTBRIDGE

# What AWS takes where a schedule says nothing.
RETRIES: Final = 185
AGE_S: Final = DAY_S

_UNITS: Final = {"minute": "m", "hour": "h", "day": "d"}
_RATE: Final = re.compile(r"rate\(([1-9][0-9]{0,8}) (minute|hour|day)s?\)", re.ASCII)
_AT: Final = re.compile(r"at\(([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})\)", re.ASCII)
_CRON: Final = re.compile(r"cron\(([^()]*)\)", re.ASCII)
# The kind of a target by its ARN.
_KINDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "lambda": {"kind": "lambda", "invocation": "Event"},
    "sqs": {"kind": "sqs"},
    "sns": {"kind": "sns"},
    "states": {"kind": "step_functions"},
    "events": {"kind": "event_bus"},
}
# The parameters of a kind of target, and the names of their fields in Minute8.
_PARAMETERS: Final[tuple[tuple[str, str, Mapping[str, str]], ...]] = (
    ("SqsParameters", "sqs", {"MessageGroupId": "message_group_id"}),
    ("EventBridgeParameters", "event_bus", {"Source": "source", "DetailType": "detail_type"}),
)
# https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
_ATTRIBUTES: Final = {
    "scheduled-time": "{{fire_time}}",
    "execution-id": "{{execution_id}}",
    "attempt-number": "{{attempt}}",
}
_ATTRIBUTE: Final = re.compile(r"<aws\.scheduler\.([A-Za-z-]*)>")
# Our fields, and those of AWS's that they are made of.
_THEIRS: Final = (
    ("schedule.timezone", "ScheduleExpressionTimezone"),
    ("schedule.start_at", "StartDate"),
    ("schedule.end_at", "EndDate"),
    ("schedule.jitter_s", "FlexibleTimeWindow.MaximumWindowInMinutes"),
    ("schedule", "ScheduleExpression"),
    ("target.message_group_id", "Target.SqsParameters.MessageGroupId"),
    ("target.source", "Target.EventBridgeParameters.Source"),
    ("target.detail_type", "Target.EventBridgeParameters.DetailType"),
    ("target", "Target.Arn"),
    ("payload", "Target.Input"),
    ("retry.max_attempts", "Target.RetryPolicy.MaximumRetryAttempts"),
    ("retry.max_age_s", "Target.RetryPolicy.MaximumEventAgeInSeconds"),
    ("name", "Description"),
)


def definition_of(
    given: Mapping[str, Any], arn: str, target: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The definition of a checked schedule (`common/eventbridge/shapes.py`); `arn` is the schedule's own.

    With `target` the job calls this one instead. Raises InvalidInput, with AWS's name of the field.
    """
    theirs = given["Target"]
    text = theirs.get("Input")
    called = dict(target) if target is not None else {}
    if not called:
        called, text = _target(theirs, arn)
    policy = theirs.get("RetryPolicy") or {}
    definition: dict[str, Any] = {
        "schedule": {**_timing(given), **_window(given.get("FlexibleTimeWindow") or {})},
        "target": called,
        "payload": _payload(text, arn, str(called["kind"])),
        "retry": {
            "max_attempts": policy.get("MaximumRetryAttempts", RETRIES) + 1,
            "max_age_s": policy.get("MaximumEventAgeInSeconds", AGE_S),
        },
    }
    if description := given.get("Description"):
        definition["name"] = description[:NAME_CHARS]
    if given.get("ActionAfterCompletion") == "DELETE":
        definition["after_completion"] = "delete"
    if theirs.get("DeadLetterConfig"):
        raise InvalidInput("Target.DeadLetterConfig", "is not taken", value=theirs["DeadLetterConfig"])
    return definition


def in_their_words(error: InvalidInput) -> InvalidInput:
    """The error with AWS's names of the fields."""
    field = next(
        (theirs for ours, theirs in _THEIRS if error.field == ours or error.field.startswith(f"{ours}.")),
        error.field,
    )
    renamed = InvalidInput(field, error.message, accepted=error.accepted, position=error.position)
    renamed.value = error.value
    renamed.also = tuple(in_their_words(one) for one in error.also)
    return renamed


def _timing(given: Mapping[str, Any]) -> dict[str, Any]:
    expression = given["ScheduleExpression"]
    zone = given.get("ScheduleExpressionTimezone") or "UTC"
    bounds = {
        name: instant(given[theirs])
        for name, theirs in (("start_at", "StartDate"), ("end_at", "EndDate"))
        if given.get(theirs) is not None
    }
    if at := _AT.fullmatch(expression):
        return {"at": at[1], "timezone": zone}  # AWS ignores the bounds of a one-off
    if rate := _RATE.fullmatch(expression):
        anchor = {"anchor": bounds["start_at"]} if "start_at" in bounds else {}
        return {"every": f"{rate[1]}{_UNITS[rate[2]]}", **anchor, **bounds}
    if cron := _CRON.fullmatch(expression):
        return {**_cron(cron[1], zone, expression), "timezone": zone, **bounds}
    raise _invalid_expression(expression)


def _cron(text: str, zone: str, expression: str) -> dict[str, Any]:
    """In Minute8's dialect if it has the same expression, else in theirs; by their rule for clock changes."""
    try:
        known = as_minute8(text)
    except InvalidInput as error:
        raise _invalid_expression(expression, error) from None
    dialect = {"dialect": EVENTBRIDGE} if known is None else {}
    dst = {"dst": EVENTBRIDGE} if zone != "UTC" else {}
    return {"cron": known or text, **dialect, **dst}


def _invalid_expression(expression: str, why: InvalidInput | None = None) -> InvalidInput:
    detail = f" {why.message}: {why.value}" if why else ""
    accepted = why.accepted if why else "cron(0 3 * * ? *), rate(5 minutes), at(2026-12-01T03:00:00)"
    return InvalidInput(
        "ScheduleExpression", f"Invalid Schedule Expression {expression}.{detail}", accepted=accepted
    )


def _window(window: Mapping[str, Any]) -> dict[str, Any]:
    minutes = window.get("MaximumWindowInMinutes")
    mode = window.get("Mode", "OFF")
    if mode not in ("OFF", "FLEXIBLE"):
        raise InvalidInput("FlexibleTimeWindow.Mode", "is not known", value=mode, accepted="OFF or FLEXIBLE")
    flexible = mode == "FLEXIBLE"
    if flexible != (minutes is not None):
        raise InvalidInput(
            "FlexibleTimeWindow.MaximumWindowInMinutes",
            "is given with the mode FLEXIBLE, and with no other",
            value=minutes,
            accepted="1 to 1440 with FLEXIBLE, nothing with OFF",
        )
    return {"jitter_s": minutes * 60} if minutes is not None else {}


def instant(value: str | float) -> str:
    """A time, as AWS's JSON or its command prints it, in RFC 3339."""
    moment = datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(value, UTC)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.astimezone(UTC).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def _target(given: Mapping[str, Any], schedule_arn: str) -> tuple[dict[str, Any], str | None]:
    """The target, and the text that it gets. Of a universal target, both are in the schedule's Input."""
    if is_universal(given["Arn"]):
        for parameters, *_ in _PARAMETERS:
            _check_parameters(given, parameters, "that is universal", fits=False)
        partition, _, region, account = ([*schedule_arn.split(":"), *[""] * 5])[1:5]
        found = from_universal(given["Arn"], given.get("Input"), Home(region, account, partition))
        return {**found.target, "envelope": False}, found.text or "{}"
    return _templated(given), given.get("Input")


def _check_parameters(given: Mapping[str, Any], name: str, kind: str, *, fits: bool) -> None:
    if given.get(name) and not fits:
        raise InvalidInput(f"Target.{name}", f"does not belong to a target {kind}", value=given[name])


def _templated(given: Mapping[str, Any]) -> dict[str, Any]:
    arn = given["Arn"]
    service = [*arn.split(":"), "", "", ""][2] if arn.startswith("arn:aws") else ""
    if service not in _KINDS:
        raise InvalidInput(
            "Target.Arn",
            "is of no kind that Minute8 calls",
            value=arn,
            accepted="the ARN of a Lambda function, an SQS queue, an SNS topic, a state machine or an event bus",
        )
    target = {**_KINDS[service], "arn": arn, "envelope": False}
    for parameters, wanted, names in _PARAMETERS:
        fields = given.get(parameters) or {}
        _check_parameters(given, parameters, f"of the kind {target['kind']}", fits=target["kind"] == wanted)
        target |= {ours: fields[theirs] for theirs, ours in names.items() if theirs in fields}
    if target["kind"] == "event_bus" and "source" not in target:
        raise InvalidInput("Target.EventBridgeParameters", "is missing, and an event bus needs it")
    return target


def _payload(text: str | None, arn: str, kind: str) -> Any:
    """`Input` as the payload: of a message its own text, of other targets JSON.

    What EventBridge Scheduler replaces in it becomes a placeholder. Without `Input` AWS sends an event of its own.
    """
    if text is None:
        return _notification(arn)

    def written(one: str) -> str:
        return _with_placeholders(one, arn)

    if kind in ("sqs", "sns"):
        return written(text)
    try:
        value = json.loads(text, object_pairs_hook=_without_doubles, parse_constant=_no_number)
        return _in_texts(value, written)
    except (ValueError, RecursionError) as error:
        quoted = ": quote its context attributes" if _ATTRIBUTE.search(text) else ""
        raise InvalidInput(
            "Target.Input",
            f"must be JSON for this target{quoted} ({error})",
            value=text,
            accepted='such as {"n": 1}',
        ) from None


def _notification(arn: str) -> dict[str, Any]:
    """What AWS delivers where a schedule has no Input."""
    region, account = ([*arn.split(":"), *[""] * 5])[3:5]
    return {
        "version": "0",
        "id": "{{execution_id}}",
        "detail-type": "Scheduled Event",
        "source": "aws.scheduler",
        "account": account,
        "time": "{{fire_time}}",
        "region": region,
        "resources": [literal(arn)],
        "detail": "{}",
    }


def literal(text: str) -> str:
    """The text with escaped placeholders."""
    return text.replace("{{", "{{{{")


def _with_placeholders(text: str, arn: str) -> str:
    """A text of `Input` with its context attributes as placeholders."""
    parts = _ATTRIBUTE.split(text)  # text, name, text, name, text
    for n, name in enumerate(parts[1::2]):
        before = parts[2 * n]
        if name == "schedule-arn" and arn:
            parts[2 * n + 1] = literal(arn)
        elif name not in _ATTRIBUTES:
            raise InvalidInput(
                "Target.Input",
                "has no such context attribute",
                value=f"<aws.scheduler.{name}>",
                accepted=", ".join(f"<aws.scheduler.{one}>" for one in ("schedule-arn", *_ATTRIBUTES)),
            )
        elif (len(before) - len(before.rstrip("{"))) % 2:
            raise InvalidInput(
                "Target.Input",
                "has a { right before a context attribute, which cannot be written here",
                value=f"{{<aws.scheduler.{name}>",
            )
        else:
            parts[2 * n + 1] = _ATTRIBUTES[name]
    parts[::2] = map(literal, parts[::2])
    return "".join(parts)


def _in_texts(value: Any, written: Callable[[str], str]) -> Any:
    """The value with each text in it converted."""
    if isinstance(value, str):
        return written(value)
    if isinstance(value, list):
        return [_in_texts(one, written) for one in value]
    if isinstance(value, dict):
        return {name: _in_texts(one, written) for name, one in value.items()}
    return value


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name appears twice in one object")
    return fields


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number in JSON")
