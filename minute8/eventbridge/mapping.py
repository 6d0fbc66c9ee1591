"""A schedule of EventBridge Scheduler as a job's definition: for its API, and for importing. Pure.

What a job cannot express is refused by the name that AWS gives it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from common.errors import InvalidInput, shown
from common.limits import NAME_CHARS
from common.registration.cron_text import read_cron
from common.timing.compiled import in_all_clocks
from common.timing.eventbridge_cron import WEEKDAYS, compile_eventbridge, read_eventbridge
from common.timing.instants import DAY_S
from common.timing.schedule import EVENTBRIDGE, CronTiming
from common.timing.zones import check_zone
from minute8.eventbridge.errors import AwsInvalid
from minute8.eventbridge.names import AwsAccount
from minute8.eventbridge.templated import is_templated, operation_text
from minute8.eventbridge.universal import any_operation, from_universal, is_universal

# https://docs.aws.amazon.com/scheduler/latest/APIReference/API_RetryPolicy.html
DEFAULT_RETRIES: Final = 185
DEFAULT_MAX_AGE_S: Final = DAY_S

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
OTHER_PARAMETERS: Final = {
    "EcsParameters": "ecs",
    "KinesisParameters": "kinesis",
    "SageMakerPipelineParameters": "sagemaker",
}
_ALL_PARAMETERS: Final = (*(name for name, *_ in _PARAMETERS), *OTHER_PARAMETERS)
# The fields of a job, and the fields of AWS's that they are made of.
_AWS_NAMES: Final = (
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

# Our words in messages, and AWS's.
_WORDS: Final[Mapping[str, str]] = {
    "start_at": "StartDate",
    "end_at": "EndDate",
    "jitter_s": "FlexibleTimeWindow",
    "timezone": "ScheduleExpressionTimezone",
    "max_attempts": "MaximumRetryAttempts",
    "max_age_s": "MaximumEventAgeInSeconds",
    "dead_letter": "DeadLetterConfig",
    "payload": "Input",
}
_OWN_WORDS: Final = re.compile(rf"(?:schedule\.|retry\.)?\b({'|'.join(_WORDS)})\b")


def definition_of(schedule: Mapping[str, Any], arn: str) -> dict[str, Any]:
    """The definition of a checked schedule (`minute8/eventbridge/shapes.py`) with this ARN.

    Raises InvalidInput, with AWS's name of the field.
    """
    aws_target = schedule["Target"]
    target, text = _target(aws_target, arn)
    policy = aws_target.get("RetryPolicy") or {}
    definition: dict[str, Any] = {
        "schedule": {**_timing(schedule), **_window(schedule.get("FlexibleTimeWindow") or {})},
        "target": {**target, "schedule_arn": arn},
        "payload": text,
        "retry": {
            "max_attempts": policy.get("MaximumRetryAttempts", DEFAULT_RETRIES) + 1,
            "max_age_s": policy.get("MaximumEventAgeInSeconds", DEFAULT_MAX_AGE_S),
        },
    }
    if description := schedule.get("Description"):
        definition["name"] = description[:NAME_CHARS]
    if schedule.get("ActionAfterCompletion") == "DELETE":
        definition["after_completion"] = "delete"
    if (dead_letter := (aws_target.get("DeadLetterConfig") or {}).get("Arn")) is not None:
        definition["dead_letter"] = dead_letter
    return definition


def with_aws_names(error: InvalidInput) -> InvalidInput:
    """The error with AWS's names of the fields."""
    field = next(
        (aws_name for name, aws_name in _AWS_NAMES if f"{error.field}.".startswith(f"{name}.")),
        error.field,
    )
    message, accepted = (_OWN_WORDS.sub(_aws_word, text) for text in (error.message, error.accepted))
    renamed = InvalidInput(field, message, accepted=accepted, position=error.position)
    renamed.value = error.value
    renamed.also = tuple(with_aws_names(problem) for problem in error.also)
    return renamed


def _aws_word(match: re.Match[str]) -> str:
    return _WORDS[match[1]]


def _timing(schedule: Mapping[str, Any]) -> dict[str, Any]:
    expression = schedule["ScheduleExpression"]
    zone = schedule.get("ScheduleExpressionTimezone") or "UTC"
    bounds = {
        name: instant(schedule[aws_name])
        for name, aws_name in (("start_at", "StartDate"), ("end_at", "EndDate"))
        if schedule.get(aws_name) is not None
    }
    if at := _AT.fullmatch(expression):
        try:
            datetime.fromisoformat(at[1])
        except ValueError as error:
            why = InvalidInput("", str(error), value=at[1])
            raise _invalid_expression(expression, why) from None
        return {"at": at[1], "timezone": zone}  # AWS ignores the bounds of a one-off
    if rate := _RATE.fullmatch(expression):
        _check_zone(zone)  # it means nothing for a rate
        anchor = {"anchor": bounds["start_at"]} if "start_at" in bounds else {}
        return {"every": f"{rate[1]}{_UNITS[rate[2]]}", **anchor, **bounds}
    if cron := _CRON.fullmatch(expression):
        return {**_cron(cron[1], zone, expression), "timezone": zone, **bounds}
    raise _invalid_expression(expression)


def _check_zone(zone: str) -> None:
    try:
        check_zone(zone)
    except InvalidInput as error:
        raise with_aws_names(error) from None


def _cron(text: str, zone: str, expression: str) -> dict[str, Any]:
    """In Minute8's dialect if it has the same expression, else in AWS's; with AWS's rule for clock changes.

    There is no spread: the tenant's default spread would delay the job.
    """
    try:
        own_expression = as_minute8(text)
    except InvalidInput as error:
        raise _invalid_expression(expression, error) from None
    dialect = {"dialect": EVENTBRIDGE} if own_expression is None else {}
    dst = {"dst": EVENTBRIDGE} if zone != "UTC" else {}
    return {"cron": own_expression or text, **dialect, **dst, "spread_s": 0}


def _invalid_expression(expression: str, why: InvalidInput | None = None) -> InvalidInput:
    """AWS does not say what is wrong with an expression; our message does."""
    message = f"{why.message}: {why.value}" if why else f"is no expression (got {shown(expression)})"
    accepted = why.accepted if why else "cron(0 3 * * ? *), rate(5 minutes), at(2026-12-01T03:00:00)"
    return AwsInvalid(
        "ScheduleExpression", message, f"Invalid Schedule Expression {expression}.", accepted=accepted
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
    # The window's end is not in it.
    return {"jitter_s": minutes * 60 - 1} if minutes is not None else {}


def moment(value: str | float) -> datetime:
    """A time, as AWS's JSON or its command prints it, in UTC."""
    read = datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(value, UTC)
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)


def in_milliseconds(schedule: Mapping[str, Any]) -> dict[str, Any]:
    """The schedule with its dates in the precision of AWS's JSON: whole seconds, or milliseconds."""
    dates = {
        name: schedule[name] if isinstance(schedule[name], int) else int(schedule[name] * 1_000) / 1_000
        for name in ("StartDate", "EndDate")
        if name in schedule
    }
    return {**schedule, **dates}


def instant(value: str | float) -> str:
    """A time, as AWS's JSON or its command prints it, in RFC 3339."""
    return moment(value).replace(microsecond=0).isoformat().replace("+00:00", "Z")


def _target(aws_target: Mapping[str, Any], schedule_arn: str) -> tuple[dict[str, Any], str | None]:
    """The target, and the text that it gets. The Input of a universal target holds both."""
    if is_universal(aws_target["Arn"]):
        for parameters in _ALL_PARAMETERS:
            _check_parameters(aws_target, parameters, "that is universal", fits=False)
        account = AwsAccount.of_arn(schedule_arn)
        call = from_universal(aws_target["Arn"], aws_target.get("Input"), account, aws_target["RoleArn"])
        return dict(call.target), call.text or "{}"
    if is_templated(aws_target["Arn"]):
        call = any_operation(*_in_order(aws_target))
        return dict(call.target), call.text
    return _templated(aws_target), aws_target.get("Input")


def _in_order(aws_target: Mapping[str, Any]) -> tuple[str, str, str]:
    """The operation, the role, and the parameters of a templated target."""
    service = aws_target["Arn"].split(":")[2]
    for name in _ALL_PARAMETERS:
        fits = OTHER_PARAMETERS.get(name) == service
        _check_parameters(aws_target, name, f"of the service {service}", fits=fits)
    arn, text = operation_text(aws_target)
    return arn, aws_target["RoleArn"], text


def _check_parameters(aws_target: Mapping[str, Any], name: str, kind: str, *, fits: bool) -> None:
    if aws_target.get(name) and not fits:
        raise InvalidInput(
            f"Target.{name}",
            f"does not belong to a target {kind}",
            value=aws_target[name],
            accepted=f"no {name}",
        )


def _templated(aws_target: Mapping[str, Any]) -> dict[str, Any]:
    arn = aws_target["Arn"]
    service = [*arn.split(":"), "", "", ""][2] if arn.startswith("arn:aws") else ""
    if service not in _KINDS:
        raise InvalidInput(
            "Target.Arn",
            "is of no kind that Minute8 calls",
            value=arn,
            accepted="the ARN of a templated target of EventBridge Scheduler, or a universal one",
        )
    target = {**_KINDS[service], "arn": arn}
    for name in OTHER_PARAMETERS:
        _check_parameters(aws_target, name, f"of the kind {target['kind']}", fits=False)
    for parameters, kind, names in _PARAMETERS:
        fields = aws_target.get(parameters) or {}
        fits = target["kind"] == kind
        _check_parameters(aws_target, parameters, f"of the kind {target['kind']}", fits=fits)
        target |= {name: fields[aws_name] for aws_name, name in names.items() if aws_name in fields}
    if target["kind"] == "event_bus" and "source" not in target:
        raise InvalidInput(
            "Target.EventBridgeParameters",
            "is missing",
            accepted="DetailType and Source: the target is an event bus",
        )
    return target


@lru_cache(maxsize=1 << 12)
def as_minute8(expression: str) -> str | None:
    """An expression with the same fires at the same times; None if there is none (a year, `L-3`, a range like 23-3/2).

    Raises InvalidInput if it is no expression of AWS's.
    """
    text = read_eventbridge(expression)
    minute, hour, day, month, weekday, year = text.split(" ")
    day = "31W" if day == "LW" else _any(day)
    candidate = " ".join((minute, hour, day, month, _any(_weekdays(weekday))))
    try:
        read = read_cron(candidate, job_key="")
    except InvalidInput:
        return None
    same = in_all_clocks(CronTiming(read, "UTC")) == compile_eventbridge(text)
    return candidate if same and year == "*" else None


def _any(field: str) -> str:
    return "*" if field == "?" else field


def _weekdays(field: str) -> str:
    """1-7 from Sunday become 0-6, also in 2-6, 2/2 and 2#1; 6L, the last Friday, is L5; L alone is Saturday."""
    return ",".join(_weekday_item(item) for item in field.split(","))


def _weekday_item(item: str) -> str:
    if item == "L":
        return "6"
    if last := re.fullmatch(r"([A-Z]+|[1-7])L", item):
        return f"L{WEEKDAYS.index(last[1]) if last[1] in WEEKDAYS else int(last[1]) - 1}"
    days, mark, rest = re.fullmatch(r"([^#/]*)([#/]?)(.*)", item, re.DOTALL).groups()  # type: ignore[union-attr]
    return re.sub(r"[0-9]+", lambda day: str(int(day[0]) - 1), days) + mark + rest
