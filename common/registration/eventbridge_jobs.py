"""Jobs that `minute8 import` makes of EventBridge schedules, with what its API must return of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from common.errors import InvalidInput
from common.eventbridge.names import DEFAULT_GROUP, job_id_of
from common.eventbridge.origin import origin_of
from common.eventbridge.shapes import NAME, SCHEDULE, Structure, check
from common.jobs.job import Job
from common.registration.defined_job import same_json
from common.registration.eventbridge_mapping import definition_of

FIELD: Final = "eventbridge"
_NAMED: Final = Structure({**SCHEDULE.members, "Name": NAME}, (*SCHEDULE.required, "Name"), SCHEDULE.refused)


def check_schedule(given: object) -> None:
    """Whether this is a schedule as CreateSchedule takes it, with its Name. Raises InvalidInput."""
    check(_NAMED, given, FIELD)


def group_in(given: object) -> str:
    """The group of a schedule, before it is checked."""
    group = given.get("GroupName") if isinstance(given, Mapping) else None
    return group if isinstance(group, str) else DEFAULT_GROUP


def with_schedule(new: Job, given: Any, fields: Any, old: Job | None) -> Job:
    """The job with the schedule that it is made of. `fields` is its definition, which must be that schedule's.

    Raises InvalidInput.
    """
    check_schedule(given)
    request = {name: value for name, value in given.items() if name != "Name"}
    name, group = given["Name"], group_in(given)
    if (job_id := job_id_of(group, name)) != new.job_id:
        raise InvalidInput("job_id", "is not the one of the schedule", value=new.job_id, accepted=job_id)
    expected = definition_of(request, new.target.get("schedule_arn", ""))
    if not same_json(expected, fields if "anchor" in expected["schedule"] else _unanchored(fields)):
        raise InvalidInput(
            FIELD,
            "does not describe this line's job",
            value=given["ScheduleExpression"],
            accepted="what `minute8 import` of the deployment's version sends",
        )
    return replace(new, origin=origin_of(group, name, request, new.payload, old.requests if old else None))


def same_schedule(one: Job, other: Job) -> bool:
    """Whether EventBridge's API says the same of both."""
    if one.origin is None or other.origin is None:
        return one.origin is other.origin
    return all(one.origin[part] == other.origin[part] for part in ("group", "name", "request"))


def _unanchored(definition: Mapping[str, Any]) -> dict[str, Any]:
    """The definition without its anchor: only an import knows when a rate began."""
    schedule = {name: value for name, value in definition["schedule"].items() if name != "anchor"}
    return {**definition, "schedule": schedule}
