"""Schedules of EventBridge Scheduler as jobs: of an AWS account, or as `aws scheduler get-schedule` prints them.

The jobs are those that EventBridge Scheduler's API here makes of the same schedules, apart from what is named in notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from common.errors import InvalidInput
from common.limits import NAME_CHARS
from minute8.cli.sources.source_job import (
    Defaults,
    Known,
    NoEquivalent,
    SourceJob,
    left_out,
    literal,
    loads,
    payload_of,
)
from minute8.eventbridge.import_lines import check_schedule
from minute8.eventbridge.mapping import definition_of, instant, moment
from minute8.eventbridge.moving.rules import is_rule, rule_jobs
from minute8.eventbridge.names import DEFAULT_GROUP, AwsAccount, job_id_of
from minute8.eventbridge.shapes import GROUP, check, check_name, without_nulls

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
        "DeadLetterConfig": {"Arn": None},
        "SqsParameters": {"MessageGroupId": None},
        "EventBridgeParameters": {"DetailType": None, "Source": None},
        # A test compares their members with the API's.
        **dict.fromkeys(("EcsParameters", "KinesisParameters", "SageMakerPipelineParameters")),
    },
}
_WHY = {
    "Target.RoleArn": "Minute8's own role makes the call; role_arn names one that trusts it",
    "KmsKeyArn": "the deployment's tables are encrypted by their own key",
}


# Of a group, also what AWS adds to it.
_GROUP_FIELDS = ("Name", "Tags", "Arn", "State", "CreationDate", "LastModificationDate")
# AWS adds these fields to a schedule, or they are not imported.
_ADDED = ("Arn", "CreationDate", "LastModificationDate", "KmsKeyArn")
# It stands for a target that --target replaces.
_ANY = "arn:aws:sns:us-east-1:000000000000:any"
# https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
_ATTRIBUTES = {
    "scheduled-time": "{{fire_time}}",
    "execution-id": "{{execution_id}}",
    "attempt-number": "{{attempt}}",
}
_ATTRIBUTE = re.compile(r"<aws\.scheduler\.([A-Za-z-]*)>")


def read(text: str, defaults: Defaults) -> Iterator[SourceJob]:
    """Each schedule, group and rule of the text, or why it cannot become a job."""
    try:
        schedules = _schedules(text)
    except ValueError as error:
        yield SourceJob("file", refusal=f"not JSON: {error}")
        return
    for number, schedule in enumerate(schedules, 1):
        where = f"schedule {number}"
        try:
            if is_rule(schedule):
                yield from rule_jobs(schedule, defaults)
            else:
                yield _group(schedule) if _is_group(schedule) else _job(schedule, defaults)
        except NoEquivalent as refusal:
            yield SourceJob(where, refusal=str(refusal))
        except (
            KeyError,
            TypeError,
            AttributeError,
            ValueError,
            OverflowError,
            OSError,
            RecursionError,
        ) as error:
            yield SourceJob(where, refusal=f"not a whole schedule: {error!r}")


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


def _is_group(value: object) -> bool:
    """Whether this is a group: CreateScheduleGroup's request with its Tags, or AWS's description with its Arn.

    A name alone is a schedule whose other fields are lost.
    """
    if not isinstance(value, Mapping) or {"Target", "ScheduleExpression"} & value.keys():
        return False
    return "Tags" in value or ":schedule-group/" in str(value.get("Arn"))


def _check_whole(schedule: Mapping[str, Any]) -> None:
    """Whether a schedule has what each has. Raises NoEquivalent."""
    lacking = [name for name in ("Name", "ScheduleExpression", "Target") if schedule.get(name) is None]
    if not lacking and schedule["Target"].get("Arn") is None:
        lacking = ["Target.Arn"]
    if lacking:
        raise NoEquivalent(
            f"{', '.join(lacking)}: missing; accepted: a schedule as `aws scheduler get-schedule` prints it, "
            "a group with its Tags, a rule with its Targets"
        )


def _group(request: Mapping[str, Any]) -> SourceJob:
    name = request["Name"]
    try:
        check_name(name)
        check(GROUP, {"Tags": request.get("Tags") or []})
    except InvalidInput as error:
        raise NoEquivalent(str(error)) from None
    tags = {tag["Key"]: tag["Value"] for tag in request.get("Tags") or []}
    notes = tuple(left_out(request, dict.fromkeys(_GROUP_FIELDS), {}))
    return SourceJob(f"group {name}", notes=notes, group=(name, tags))


def _job(schedule: Mapping[str, Any], defaults: Defaults) -> SourceJob:
    _check_whole(schedule)
    group, name, target = schedule.get("GroupName") or DEFAULT_GROUP, schedule["Name"], schedule["Target"]
    notes = []
    if defaults.target:
        notes.append(f"Target.Arn {target['Arn']} is left out: --target takes its place")
    try:
        definition = definition_of(
            _imported(schedule, defaults),
            schedule.get("Arn") or _arn(group, name, target["Arn"], replaced=bool(defaults.target)),
        )
    except InvalidInput as error:
        raise NoEquivalent(str(error)) from None
    if defaults.target:
        definition |= {"target": defaults.target, "payload": _payload(schedule)}
    notes += [*_timing_notes(schedule, definition["schedule"]), *_input_notes(schedule, defaults)]
    if len(schedule.get("Description") or "") > NAME_CHARS:
        notes.append(f"Description is cut to {NAME_CHARS} characters")
    known = dict(KNOWN)
    api_schedule = None
    if defaults.target:
        known["Target"] = dict.fromkeys(("Arn", "Input", "RetryPolicy"))
    if schedule.get("ActionAfterCompletion") in ("DELETE", "NONE"):
        known["ActionAfterCompletion"] = None
    notes += left_out(schedule, known, _WHY)
    if not defaults.target:
        api_schedule = _request(schedule)
        try:
            check_schedule(api_schedule)
        except InvalidInput as error:
            api_schedule = None
            notes.append(f"EventBridge's API here will not list it: {error}")
    return SourceJob(
        f"{group}/{name}",
        job_id_of(group, name),
        definition,
        notes=tuple(notes),
        suspended=schedule.get("State") == "DISABLED",
        schedule=api_schedule,
    )


def _request(schedule: Mapping[str, Any]) -> dict[str, Any]:
    """The schedule as CreateSchedule takes it: without what AWS adds, times as epoch seconds."""
    kept = {name: value for name, value in without_nulls(dict(schedule)).items() if name not in _ADDED}
    for name in {"StartDate", "EndDate"} & kept.keys():
        at = moment(kept[name]).timestamp()
        kept[name] = int(at) if at.is_integer() else at
    return kept


def _arn(group: str, name: str, target_arn: str, replaced: bool) -> str:
    """The ARN of a schedule whose export does not have it: in the account of its target.

    Raises NoEquivalent: the target names no account, and is not `replaced` by another one.
    """
    account = AwsAccount.of_arn(target_arn)
    if not ((account.region and account.account_id) or replaced):
        raise NoEquivalent(
            f"Arn: missing, and Target.Arn {target_arn} names no region and account that would replace it; "
            "accepted: the schedule's Arn, as `aws scheduler get-schedule` prints it"
        )
    return account.schedule_arn(group, name)


def _payload(schedule: Mapping[str, Any]) -> Any:
    """`Input` as the payload of another target. What EventBridge Scheduler replaces in it becomes a placeholder."""
    text = schedule["Target"].get("Input")
    if not text:
        return None
    try:
        value = loads(text)
    except ValueError:
        if _ATTRIBUTE.search(text) and text.lstrip()[:1] in ("{", "["):
            raise NoEquivalent(
                "Target.Input is JSON only after its context attributes are replaced: quote them"
            ) from None
        value = text
    return payload_of(value, lambda value: _with_placeholders(value, schedule), "Target.Input")


def _with_placeholders(text: str, schedule: Mapping[str, Any]) -> str:
    """A text of `Input` with its context attributes as placeholders. Raises NotHere."""
    parts = _ATTRIBUTE.split(text)  # text, name, text, name, text
    for n, name in enumerate(parts[1::2]):
        before = parts[2 * n]
        if name == "schedule-arn" and schedule.get("Arn"):
            parts[2 * n + 1] = literal(schedule["Arn"])
        elif name not in _ATTRIBUTES:
            raise NoEquivalent(f"Target.Input: <aws.scheduler.{name}> has no equal here")
        elif (len(before) - len(before.rstrip("{"))) % 2:
            raise NoEquivalent(
                f"Target.Input: a {{ right before <aws.scheduler.{name}> cannot be written here"
            )
        else:
            parts[2 * n + 1] = _ATTRIBUTES[name]
    parts[::2] = map(literal, parts[::2])
    return "".join(parts)


def _imported(schedule: Mapping[str, Any], defaults: Defaults) -> dict[str, Any]:
    """The part of the schedule that is imported. With --target, any target stands for the schedule's own."""
    target = {name: value for name, value in schedule["Target"].items() if value is not None}
    if defaults.target:
        target = {"Arn": _ANY, **{name: target[name] for name in ("RetryPolicy",) if name in target}}
    return {name: value for name, value in schedule.items() if value is not None} | {"Target": target}


def _timing_notes(schedule: Mapping[str, Any], timing: dict[str, Any]) -> Iterator[str]:
    """Notes about the schedule; a rate without a start counts from when it was created."""
    if "at" in timing:
        for name in ("StartDate", "EndDate"):
            if schedule.get(name):
                yield f"{name} is left out: at(…) has no bounds"
    if "every" in timing:
        zone = schedule.get("ScheduleExpressionTimezone") or "UTC"
        if zone != "UTC":
            yield f"ScheduleExpressionTimezone {zone} is left out: a rate is elapsed time"
        if "anchor" not in timing and schedule.get("CreationDate"):
            timing["anchor"] = instant(schedule["CreationDate"])
        if "anchor" not in timing:
            yield "neither StartDate nor CreationDate is given, so the rate counts from the first import on"


def _input_notes(schedule: Mapping[str, Any], defaults: Defaults) -> Iterator[str]:
    text = schedule["Target"].get("Input") or ""
    if not defaults.target:
        return
    if not text:
        yield "Target.Input is not given: AWS then sends an event of its own, here the payload is null"
    elif defaults.target.get("envelope", True):
        yield "Target.Input arrives as `payload` in the event, beside `minute8`"
    if "<aws.scheduler.execution-id>" in text:
        yield "<aws.scheduler.execution-id> differs between attempts, {{execution_id}} does not"
