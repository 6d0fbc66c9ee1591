"""A schedule of EventBridge Scheduler as a job's definition: for its API, and for importing. Pure.

What a job cannot express is refused by the name that AWS gives it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from common.errors import InvalidInput
from common.texts import NAME_CHARS
from common.timing.instants import DAY_S
from common.timing.schedule import EVENTBRIDGE
from eventbridge.cron import as_minute8
from eventbridge.universal import Home, from_universal, is_universal

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
    ("dead_letter", "Target.DeadLetterConfig.Arn"),
)


def definition_of(given: Mapping[str, Any], arn: str) -> dict[str, Any]:
    """The definition of a checked schedule (`eventbridge/shapes.py`); `arn` is the schedule's own.

    Raises InvalidInput, with AWS's name of the field.
    """
    theirs = given["Target"]
    target, text = _target(theirs, arn)
    policy = theirs.get("RetryPolicy") or {}
    definition: dict[str, Any] = {
        "schedule": {**_timing(given), **_window(given.get("FlexibleTimeWindow") or {})},
        "target": {**target, "schedule_arn": arn},
        "payload": text,
        "retry": {
            "max_attempts": policy.get("MaximumRetryAttempts", RETRIES) + 1,
            "max_age_s": policy.get("MaximumEventAgeInSeconds", AGE_S),
        },
    }
    if description := given.get("Description"):
        definition["name"] = description[:NAME_CHARS]
    if given.get("ActionAfterCompletion") == "DELETE":
        definition["after_completion"] = "delete"
    if (dead_letter := (theirs.get("DeadLetterConfig") or {}).get("Arn")) is not None:
        definition["dead_letter"] = dead_letter
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
    """In Minute8's dialect if it has the same expression, else in theirs; by their rule for clock changes.

    The tenant's default spread would delay it, so it has none.
    """
    try:
        known = as_minute8(text)
    except InvalidInput as error:
        raise _invalid_expression(expression, error) from None
    dialect = {"dialect": EVENTBRIDGE} if known is None else {}
    dst = {"dst": EVENTBRIDGE} if zone != "UTC" else {}
    return {"cron": known or text, **dialect, **dst, "spread_s": 0}


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


def moment(value: str | float) -> datetime:
    """A time, as AWS's JSON or its command prints it, in UTC."""
    read = datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(value, UTC)
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)


def instant(value: str | float) -> str:
    """A time, as AWS's JSON or its command prints it, in RFC 3339."""
    return moment(value).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def _target(given: Mapping[str, Any], schedule_arn: str) -> tuple[dict[str, Any], str | None]:
    """The target, and the text that it gets. Of a universal target, both are in the schedule's Input."""
    if is_universal(given["Arn"]):
        for parameters, *_ in _PARAMETERS:
            _check_parameters(given, parameters, "that is universal", fits=False)
        partition, _, region, account = ([*schedule_arn.split(":"), *[""] * 5])[1:5]
        found = from_universal(given["Arn"], given.get("Input"), Home(region, account, partition))
        return dict(found.target), found.text or "{}"
    return _templated(given), given.get("Input")


def _check_parameters(given: Mapping[str, Any], name: str, kind: str, *, fits: bool) -> None:
    if given.get(name) and not fits:
        raise InvalidInput(
            f"Target.{name}",
            f"does not belong to a target {kind}",
            value=given[name],
            accepted=f"no {name}",
        )


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
    target = {**_KINDS[service], "arn": arn}
    for parameters, wanted, names in _PARAMETERS:
        fields = given.get(parameters) or {}
        _check_parameters(given, parameters, f"of the kind {target['kind']}", fits=target["kind"] == wanted)
        target |= {ours: fields[theirs] for theirs, ours in names.items() if theirs in fields}
    if target["kind"] == "event_bus" and "source" not in target:
        raise InvalidInput(
            "Target.EventBridgeParameters",
            "is missing",
            accepted="DetailType and Source: the target is an event bus",
        )
    return target
