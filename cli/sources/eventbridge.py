"""EventBridge Scheduler, as `aws scheduler get-schedule` prints: one schedule, a list, or one per line.

The jobs are those that EventBridge Scheduler's API here makes of the same schedules, apart from what is named in notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cli.sources.found import Defaults, Found, Known, NotHere, left_out
from cli.sources.text import loads
from common.errors import InvalidInput
from common.eventbridge.names import DEFAULT_GROUP, job_id_of
from common.registration.eventbridge_mapping import definition_of, instant
from common.texts import NAME_CHARS

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
    group, name, target = given.get("GroupName") or DEFAULT_GROUP, given["Name"], given["Target"]
    notes = []
    if defaults.target:
        notes.append(f"Target.Arn {target['Arn']} is left out: --target takes its place")
    try:
        definition = definition_of(_taken(given), given.get("Arn") or "", defaults.target)
    except InvalidInput as error:
        raise NotHere(str(error)) from None
    notes += [*_timing_notes(given, definition["schedule"]), *_input_notes(given, defaults)]
    if len(given.get("Description") or "") > NAME_CHARS:
        notes.append(f"Description is cut to {NAME_CHARS} characters")
    known = dict(KNOWN)
    if defaults.target:
        known["Target"] = dict.fromkeys(("Arn", "Input", "RetryPolicy"))
    if given.get("ActionAfterCompletion") in ("DELETE", "NONE"):
        known["ActionAfterCompletion"] = None
    notes += left_out(given, known, _WHY)
    return Found(
        f"{group}/{name}",
        job_id_of(group, name),
        definition,
        notes=tuple(notes),
        suspended=given.get("State") == "DISABLED",
    )


def _taken(given: Mapping[str, Any]) -> dict[str, Any]:
    """The schedule without what an import leaves out."""
    target = {name: value for name, value in given["Target"].items() if value is not None}
    target.pop("DeadLetterConfig", None)
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
    if text and defaults.target and defaults.target.get("envelope", True):
        yield "Target.Input arrives as `payload` in the event, beside `minute8`"
    if "<aws.scheduler.execution-id>" in text:
        yield "<aws.scheduler.execution-id> differs between attempts, {{execution_id}} does not"
