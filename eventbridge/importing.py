"""EventBridge Scheduler, as `aws scheduler get-schedule` prints: one schedule, a list, or one per line.

The jobs are those that EventBridge Scheduler's API here makes of the same schedules, apart from what is named in notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cli.sources.source_job import (
    Defaults,
    Known,
    NoEquivalent,
    SourceJob,
    left_out,
    literal,
    loads,
    payload_of,
)
from common.errors import InvalidInput
from common.texts import NAME_CHARS
from eventbridge.import_lines import check_schedule
from eventbridge.mapping import definition_of, instant, moment
from eventbridge.names import DEFAULT_GROUP, job_id_of
from eventbridge.shapes import without_nulls

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
    },
}
_WHY = {
    "Target.RoleArn": "Minute8's own role makes the call; role_arn names one that trusts it",
    "KmsKeyArn": "the deployment's tables are encrypted by their own key",
}


# What AWS says of a schedule beyond the request that made it, and what is not taken here.
_ADDED = ("Arn", "CreationDate", "LastModificationDate", "KmsKeyArn")
# A target in the place of one that --target replaces.
_ANY = "arn:aws:sns:us-east-1:000000000000:any"
# https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
_ATTRIBUTES = {
    "scheduled-time": "{{fire_time}}",
    "execution-id": "{{execution_id}}",
    "attempt-number": "{{attempt}}",
}
_ATTRIBUTE = re.compile(r"<aws\.scheduler\.([A-Za-z-]*)>")


def read(text: str, defaults: Defaults) -> Iterator[SourceJob]:
    """Each schedule of the text, or why it cannot become a job."""
    try:
        schedules = _schedules(text)
    except ValueError as error:
        yield SourceJob("file", refusal=f"not JSON: {error}")
        return
    for number, schedule in enumerate(schedules, 1):
        where = f"schedule {number}"
        try:
            yield _job(schedule, defaults)
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


def _job(given: Mapping[str, Any], defaults: Defaults) -> SourceJob:
    group, name, target = given.get("GroupName") or DEFAULT_GROUP, given["Name"], given["Target"]
    notes = []
    if defaults.target:
        notes.append(f"Target.Arn {target['Arn']} is left out: --target takes its place")
    try:
        definition = definition_of(
            _taken(given, defaults), given.get("Arn") or _arn(group, name, target["Arn"])
        )
    except InvalidInput as error:
        raise NoEquivalent(str(error)) from None
    if defaults.target:
        definition |= {"target": defaults.target, "payload": _payload(given)}
    notes += [*_timing_notes(given, definition["schedule"]), *_input_notes(given, defaults)]
    if len(given.get("Description") or "") > NAME_CHARS:
        notes.append(f"Description is cut to {NAME_CHARS} characters")
    known = dict(KNOWN)
    schedule = None
    if defaults.target:
        known["Target"] = dict.fromkeys(("Arn", "Input", "RetryPolicy"))
    if given.get("ActionAfterCompletion") in ("DELETE", "NONE"):
        known["ActionAfterCompletion"] = None
    notes += left_out(given, known, _WHY)
    if not defaults.target:
        schedule = _request(given)
        try:
            check_schedule(schedule)
        except InvalidInput as error:
            schedule = None
            notes.append(f"EventBridge's API here will not list it: {error}")
    return SourceJob(
        f"{group}/{name}",
        job_id_of(group, name),
        definition,
        notes=tuple(notes),
        suspended=given.get("State") == "DISABLED",
        schedule=schedule,
    )


def _request(given: Mapping[str, Any]) -> dict[str, Any]:
    """The schedule as CreateSchedule takes it: without what AWS adds, times as epoch seconds."""
    kept = {name: value for name, value in without_nulls(dict(given)).items() if name not in _ADDED}
    for name in {"StartDate", "EndDate"} & kept.keys():
        at = moment(kept[name]).timestamp()
        kept[name] = int(at) if at.is_integer() else at
    return kept


def _arn(group: str, name: str, target_arn: str) -> str:
    """The schedule's ARN, if its export does not say it: where its target is."""
    _, partition, _, region, account, *_ = [*target_arn.split(":"), *[""] * 5]
    return f"arn:{partition}:scheduler:{region}:{account}:schedule/{group}/{name}"


def _payload(given: Mapping[str, Any]) -> Any:
    """`Input` as the payload of another target. What EventBridge Scheduler replaces in it becomes a placeholder."""
    text = given["Target"].get("Input")
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
    return payload_of(value, lambda one: _with_placeholders(one, given), "Target.Input")


def _with_placeholders(text: str, given: Mapping[str, Any]) -> str:
    """A text of `Input` with its context attributes as placeholders. Raises NotHere."""
    parts = _ATTRIBUTE.split(text)  # text, name, text, name, text
    for n, name in enumerate(parts[1::2]):
        before = parts[2 * n]
        if name == "schedule-arn" and given.get("Arn"):
            parts[2 * n + 1] = literal(given["Arn"])
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


def _taken(given: Mapping[str, Any], defaults: Defaults) -> dict[str, Any]:
    """The schedule as far as it is imported: with --target, any target stands for the one that is not called."""
    target = {name: value for name, value in given["Target"].items() if value is not None}
    if defaults.target:
        target = {"Arn": _ANY, **{name: target[name] for name in ("RetryPolicy",) if name in target}}
    return {name: value for name, value in given.items() if value is not None} | {"Target": target}


def _timing_notes(given: Mapping[str, Any], schedule: dict[str, Any]) -> Iterator[str]:
    """Notes about the schedule; a rate without a start counts from when it was created."""
    if "at" in schedule:
        for name in ("StartDate", "EndDate"):
            if given.get(name):
                yield f"{name} is left out: at(…) has no bounds"
    if "every" in schedule:
        zone = given.get("ScheduleExpressionTimezone") or "UTC"
        if zone != "UTC":
            yield f"ScheduleExpressionTimezone {zone} is left out: a rate is elapsed time"
        if "anchor" not in schedule and given.get("CreationDate"):
            schedule["anchor"] = instant(given["CreationDate"])
        if "anchor" not in schedule:
            yield "neither StartDate nor CreationDate is given, so the rate counts from the first import on"


def _input_notes(given: Mapping[str, Any], defaults: Defaults) -> Iterator[str]:
    text = given["Target"].get("Input") or ""
    if not defaults.target:
        return
    if not text:
        yield "Target.Input is not given: AWS then sends an event of its own, here the payload is null"
    elif defaults.target.get("envelope", True):
        yield "Target.Input arrives as `payload` in the event, beside `minute8`"
    if "<aws.scheduler.execution-id>" in text:
        yield "<aws.scheduler.execution-id> differs between attempts, {{execution_id}} does not"
