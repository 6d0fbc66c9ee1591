"""Schedules of EventBridge in the lines of bulk requests, as `minute8 import` sends them.

The job of such a line keeps what EventBridge's API must return of the schedule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import ValidationError, convert, to_builtins
from msgspec.structs import replace

from common.errors import InvalidInput
from common.jobs.job import PAUSED, Job
from common.jobs.spec import JobSpec
from common.jobs.store import JobStore
from common.registration.definition import same_json
from common.registration.target_definitions import Target, stored
from minute8.eventbridge.groups import ScheduleGroups, check_room, joined_group
from minute8.eventbridge.imported_from import JOB_FIELDS, imported_from_of, requests_of, schedule_of
from minute8.eventbridge.mapping import definition_of
from minute8.eventbridge.names import DEFAULT_GROUP, job_id_of
from minute8.eventbridge.shapes import NAME, SCHEDULE, Structure, check
from minute8.eventbridge.stored_request import stored_request
from minute8.eventbridge.unmapping import Inexpressible

FIELD: Final = "eventbridge"
_NAMED: Final = Structure({**SCHEDULE.members, "Name": NAME}, (*SCHEDULE.required, "Name"), SCHEDULE.refused)


def check_schedule(schedule: object) -> None:
    """Whether this is a schedule as CreateSchedule takes it, with its Name. Raises InvalidInput."""
    check(_NAMED, schedule, FIELD)


@dataclass(frozen=True, slots=True)
class ScheduleLines:
    """What lines of a bulk request import from schedules."""

    field: str = FIELD

    def group_in(self, schedule: object) -> str:
        """The group of a schedule, before the schedule is checked."""
        group = schedule.get("GroupName") if isinstance(schedule, Mapping) else None
        return group if isinstance(group, str) else DEFAULT_GROUP

    def with_import(self, new: Job, schedule: Any, old: Job | None) -> Job:
        """The job with its schedule, which must describe the job in all that AWS's API can say. Raises InvalidInput."""
        check_schedule(schedule)
        request = {name: value for name, value in schedule.items() if name != "Name"}
        name, group = schedule["Name"], self.group_in(schedule)
        if (job_id := job_id_of(group, name)) != new.job_id:
            raise InvalidInput("job_id", "is not the one of the schedule", value=new.job_id, accepted=job_id)
        expected = definition_of(request, new.spec.target.get("schedule_arn", ""))
        if not _describes(expected, new):
            raise InvalidInput(
                FIELD,
                "does not describe this line's job",
                value=schedule["ScheduleExpression"],
                accepted="what `minute8 import` of the deployment's version sends",
            )
        return replace(
            new, imported_from=imported_from_of(group, name, request, new.payload.value, requests_of(old))
        )

    def resource_of(self, store: JobStore, job: Job) -> dict[str, Any] | None:
        """The schedule, as CreateSchedule takes it; None if the job is none, or says what AWS's API cannot.

        Raises MissingText, Busy.
        """
        if (imported_from := schedule_of(job)) is None:
            return None
        try:
            request = stored_request(store.texts, job)
        except Inexpressible:
            return None
        state = "DISABLED" if job.state == PAUSED else "ENABLED"
        return {"Name": imported_from["name"], "GroupName": imported_from["group"], **request, "State": state}

    def are_same(self, old: Job, new: Job) -> bool:
        """Whether EventBridge's API says the same of both jobs."""
        before, after = schedule_of(old), schedule_of(new)
        if before is None or after is None:
            return before is after
        return all(before[part] == after[part] for part in ("group", "name", "request"))

    def review(self, store: JobStore, tenant: str) -> GroupReview:
        return GroupReview(ScheduleGroups(store.jobs), tenant)

    def ensure_group(self, store: JobStore, tenant: str, group: str) -> None:
        """Create the group, without tags, if it does not exist. Raises QuotaExceeded, Busy."""
        ScheduleGroups(store.jobs).ensure(tenant, group, store.clock.now(), store.audited)


@dataclass(slots=True)
class GroupReview:
    """The groups of a request's schedules: the active ones, and the `new` ones that the request makes."""

    stored: ScheduleGroups
    tenant: str
    active: set[str] = field(default_factory=lambda: {DEFAULT_GROUP})
    new: set[str] = field(default_factory=set)
    # Counted when a line needs a new group.
    stored_count: int | None = None

    def check(self, old: Job | None, new: Job) -> None:
        """Raises Conflict, QuotaExceeded."""
        name = joined_group(old, new)
        if name is None or name in self.active or name in self.new:
            return
        if group := self.stored.get(self.tenant, name):
            group.check_active()
            self.active.add(name)
            return
        if self.stored_count is None:
            self.stored_count = self.stored.count(self.tenant)
        check_room(self.stored_count + len(self.new))

    def take(self, old: Job | None, new: Job) -> None:
        """A schedule goes into its group, which the request makes if there is none."""
        name = joined_group(old, new)
        if name is not None and name not in self.active:
            self.new.add(name)


def _describes(expected: Mapping[str, Any], job: Job) -> bool:
    """Whether the job is the expected one in each field that a schedule determines."""
    try:
        spec = convert({**expected, "target": stored(convert(expected["target"], Target))}, JobSpec)
    except ValidationError:  # such as a target without the schedule's ARN
        return False
    schedule = dict(job.spec.schedule)
    if "anchor" not in spec.schedule:
        schedule.pop("anchor", None)  # only an import knows when a rate began
    before, after = to_builtins(spec), {**to_builtins(job.spec), "schedule": schedule}
    return all(
        same_json(expected["payload"], job.payload.value)
        if part == "payload"
        else same_json(before[part], after[part])
        for part in JOB_FIELDS
    )
