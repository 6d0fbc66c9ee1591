"""Schedules. Each is a job: Minute8's own API, command and console show and change it as any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec import structs

from common.errors import AlreadyExists, Conflict, InvalidInput, NotFound, UndoneSince
from common.jobs.corrupt import stored_job
from common.jobs.job import ACTIVE, DELETED, PAUSED, Job, exists
from common.jobs.revisions import deleted, next_second
from common.jobs.spec import Policies
from common.limits import MAX_JOBS_READ
from common.storage import keys
from common.storage.table import Query
from common.timing.groups import group_key
from minute8.api.http.paging import write_cursor
from minute8.api.services import Services
from minute8.eventbridge.api.operation import Operation, SchedulerRequest
from minute8.eventbridge.errors import AwsInvalid
from minute8.eventbridge.groups import ScheduleGroups
from minute8.eventbridge.imported_from import (
    imported_from_of,
    is_known,
    of_deleted,
    requests_of,
    schedule_of,
    target_arn_in,
    with_known,
)
from minute8.eventbridge.mapping import (
    DEFAULT_MAX_AGE_S,
    DEFAULT_RETRIES,
    definition_of,
    in_milliseconds,
    with_aws_names,
)
from minute8.eventbridge.names import DEFAULT_GROUP, job_id_of, job_id_prefixes
from minute8.eventbridge.shapes import (
    CLIENT_TOKEN,
    MAX_RESULTS,
    NAME,
    NEXT_TOKEN,
    SCHEDULE,
    STATE,
    check,
    check_name,
)
from minute8.eventbridge.stored_request import stored_request
from minute8.eventbridge.unmapping import Inexpressible

_PAGE: Final = 100
# Before the request.
MAX_START_AGE_S: Final = 300
# What AWS's schedules have of a job's fields. A payload with callbacks is none of theirs.
_AWS_FIELDS: Final = {
    *("name", "retry", "after_completion", "dead_letter"),
    *("completion", "callback_timeout_s"),
}
# UpdateSchedule keeps the other fields. These need to know when a run ends.
_OF_AWAITED: Final = {"alert", "overlap", "concurrency"}
_OWN_FIELDS: Final = set(Policies.__struct_fields__) - _AWS_FIELDS - _OF_AWAITED

# From the stored job, a function that makes the defined one, and the time, to the job to store.
Change = Callable[[Job | None, Callable[[], Job], float], Job]


@dataclass(frozen=True, slots=True)
class ScheduleWrite:
    """A checked CreateSchedule or UpdateSchedule. `token` is the same for each copy of the request."""

    tenant: str
    group: str
    name: str
    arn: str
    fields: Mapping[str, Any]
    token: str

    @property
    def is_disabled(self) -> bool:
        return self.fields.get("State") == "DISABLED"

    @classmethod
    def read(cls, request: SchedulerRequest) -> ScheduleWrite:
        """Raises InvalidInput."""
        check_name(request.label)
        check(SCHEDULE, request.body)
        fields = in_milliseconds(request.body)
        _check_start(fields, request.now)
        group, name = fields.get("GroupName", DEFAULT_GROUP), request.label
        arn = request.account.schedule_arn(group, name)
        token = request.token(fields.get("ClientToken"))
        return cls(request.tenant, group, name, arn, fields, token)

    def store(self, services: Services, change: Change) -> Mapping[str, Any]:
        """Store the job that `change` returns, with its `imported_from`. Returns the answer: the ARN."""
        definition = definition_of(self.fields, self.arn)
        if self.is_disabled:
            definition["state"] = PAUSED

        def with_import(old: Job | None, define: Callable[[], Job], now: float) -> Job:
            new = change(old, define, now)
            if new is old:
                return new
            imported_from = imported_from_of(
                self.group, self.name, self.fields, new.payload.value, requests_of(old)
            )
            return structs.replace(new, imported_from=with_known(imported_from, self.token, now))

        try:
            services.registry.replace_with(
                self.tenant, job_id_of(self.group, self.name), definition, with_import
            )
        except InvalidInput as error:
            raise with_aws_names(error) from None
        return {"ScheduleArn": self.arn}


def create(services: Services, request: SchedulerRequest) -> Mapping[str, Any]:
    """CreateSchedule"""
    write = ScheduleWrite.read(request)

    def change(old: Job | None, define: Callable[[], Job], now: float) -> Job:
        if old is not None and is_known(requests_of(old), write.token):
            if "ClientToken" in write.fields and not schedule_of(old):
                raise UndoneSince("schedule", write.name, is_creation=True)
            return old
        if exists(old):
            raise AlreadyExists("schedule", write.name)
        return _started(define(), now)

    return write.store(services, change)


def update(services: Services, request: SchedulerRequest) -> Mapping[str, Any]:
    """UpdateSchedule"""
    write = ScheduleWrite.read(request)

    def change(old: Job | None, define: Callable[[], Job], now: float) -> Job:
        before = _existing(old, write.name)
        if is_known(before.imported_from, write.token):
            return before
        # A changed rate counts from now on.
        new = define()
        is_awaited = new.spec.target.get("invocation") == "RequestResponse"
        kept = _OWN_FIELDS | _OF_AWAITED if is_awaited else _OWN_FIELDS
        own = {name: getattr(before.spec, name) for name in kept}
        new = structs.replace(new, spec=structs.replace(new.spec, **own))
        if write.is_disabled:
            return structs.replace(new, state=PAUSED, group="", shard=0)
        if before.state == PAUSED:
            return structs.replace(
                new, state=ACTIVE, note="", effective_at=next_second(now), group=group_key(new.schedule)
            )
        return new

    return write.store(services, change)


def delete(services: Services, request: SchedulerRequest) -> Mapping[str, Any]:
    """DeleteSchedule"""
    group, name = _group_in(request), request.label
    client_token = request.query.get("clientToken")
    token = request.token(client_token)

    def change(old: Job | None, now: float) -> Job:
        if old is not None and old.state == DELETED and is_known(requests_of(old), token):
            return old
        job = _existing(old, name)
        if is_known(job.imported_from, token):
            if client_token:
                raise UndoneSince("schedule", name, is_creation=False)
            return job
        tombstone = deleted(job, now)
        return structs.replace(tombstone, imported_from=with_known(of_deleted(requests_of(job)), token, now))

    services.store.change(request.tenant, job_id_of(group, name), change)
    return {}


def get(services: Services, request: SchedulerRequest) -> Mapping[str, Any]:
    """GetSchedule"""
    group = _group_in(request)
    job_id = job_id_of(group, request.label)
    item = services.store.jobs.get(keys.job(request.tenant, job_id))
    job = _existing(stored_job(item) if item else None, request.label)
    try:
        fields = stored_request(services.store.texts, job)
    except Inexpressible as error:
        raise Conflict(
            f"Minute8's own API changed this schedule to what AWS's cannot say ({error}); "
            f"GET /v1/jobs/{job_id} shows it, and UpdateSchedule replaces it"
        ) from None
    return {
        **_with_defaults(fields),
        "Arn": request.account.schedule_arn(group, request.label),
        "CreationDate": job.created_at,
        "GroupName": group,
        "LastModificationDate": job.updated_at,
        "Name": request.label,
        "State": _state(job.state),
    }


def list_page(services: Services, request: SchedulerRequest) -> Mapping[str, Any]:
    """ListSchedules. A page reads a bounded number of jobs, so it can be empty and still have a next one."""
    group, prefix = request.query.get("ScheduleGroup"), request.query.get("NamePrefix", "")
    state, limit = request.query.get("State"), request.query.get("MaxResults", _PAGE)
    if group is not None and group != DEFAULT_GROUP:
        ScheduleGroups(services.store.jobs).existing(request.tenant, group)
    list_name = f"eventbridge {group} {state} {prefix}"
    page: list[Mapping[str, Any]] = []
    last = after = request.after(list_name)
    for seen, item in enumerate(_jobs_after(services, request.tenant, job_id_prefixes(group, prefix), after)):
        if seen == MAX_JOBS_READ or len(page) == limit:
            return {"Schedules": page, "NextToken": write_cursor(request.tenant, list_name, last)}
        last, imported_from = item["job_id"], item.get("imported_from")
        if (
            imported_from
            and "request" in imported_from
            and item["state"] != DELETED
            and group in (None, imported_from["group"])
            and imported_from["name"].startswith(prefix)
            and state in (None, _state(item["state"]))
        ):
            page.append(_summary(request, item))
    return {"Schedules": page}


def _check_start(fields: Mapping[str, Any], now: float) -> None:
    """Whether a StartDate is recent enough. A one-off has none. Raises InvalidInput."""
    start = fields.get("StartDate")
    if start is None or fields["ScheduleExpression"].startswith("at("):
        return
    if start < now - MAX_START_AGE_S:
        raise AwsInvalid(
            "StartDate",
            "is too far in the past",
            "The StartDate you specify cannot be earlier than 5 minutes ago.",
            value=start,
            accepted=f"at most {MAX_START_AGE_S // 60} minutes ago",
        )


def _started(new: Job, now: float) -> Job:
    """The job. A new rate without a StartDate fires at once."""
    if new.schedule.every_s is None or "anchor" in new.spec.schedule:
        return new
    schedule = structs.replace(new.schedule, anchor_at=next_second(now))
    return structs.replace(new, schedule=schedule, group=group_key(schedule) if new.group else "")


def _existing(old: Job | None, name: str) -> Job:
    """The job, if it is a schedule. Raises NotFound."""
    if old is None or not schedule_of(old):
        raise NotFound("schedule", name)
    return old


def _group_in(request: SchedulerRequest) -> str:
    """The group of the schedule that the path names. Raises InvalidInput."""
    check_name(request.label)
    return str(request.query.get("groupName", DEFAULT_GROUP))


def _state(state: str) -> str:
    return "DISABLED" if state == PAUSED else "ENABLED"


def _with_defaults(request: Mapping[str, Any]) -> dict[str, Any]:
    retry = {"MaximumEventAgeInSeconds": DEFAULT_MAX_AGE_S, "MaximumRetryAttempts": DEFAULT_RETRIES}
    target = request["Target"]
    return {
        "ActionAfterCompletion": "NONE",
        "ScheduleExpressionTimezone": "UTC",
        **request,
        "Target": {**target, "RetryPolicy": {**retry, **target.get("RetryPolicy", {})}},
    }


def _jobs_after(
    services: Services, tenant: str, prefixes: tuple[str, ...], after: str
) -> Iterator[Mapping[str, Any]]:
    """The tenant's jobs with these prefixes after an id, in the order of their ids. Tombstones are among them."""
    attributes = ("job_id", "imported_from", "state", "created_at", "updated_at")
    for prefix in prefixes:
        if after >= prefix and not after.startswith(prefix):
            continue  # all jobs with this prefix come before
        start = keys.job(tenant, after) if after.startswith(prefix) and after else None
        yield from services.store.jobs.query(
            Query(
                tenant,
                sk_prefix=keys.JOB_PREFIX + prefix,
                after=start,
                page=MAX_JOBS_READ + 1,
                attributes=attributes,
            )
        )


def _summary(request: SchedulerRequest, item: Mapping[str, Any]) -> dict[str, Any]:
    imported_from = item["imported_from"]
    return {
        "Arn": request.account.schedule_arn(imported_from["group"], imported_from["name"]),
        "CreationDate": item["created_at"],
        "GroupName": imported_from["group"],
        "LastModificationDate": item["updated_at"],
        "Name": imported_from["name"],
        "State": _state(item["state"]),
        "Target": {"Arn": target_arn_in(imported_from)},
    }


OPERATIONS = (
    Operation("POST", "schedules", "CreateSchedule", "write", create, takes_body=True),
    Operation("PUT", "schedules", "UpdateSchedule", "write", update, takes_body=True),
    Operation("GET", "schedules", "GetSchedule", "read", get, query={"groupName": NAME}),
    Operation(
        "DELETE",
        "schedules",
        "DeleteSchedule",
        "write",
        delete,
        query={"groupName": NAME, "clientToken": CLIENT_TOKEN},
    ),
    Operation(
        "GET",
        "schedules",
        "ListSchedules",
        "read",
        list_page,
        has_label=False,
        query={
            "ScheduleGroup": NAME,
            "NamePrefix": NAME,
            "State": STATE,
            "MaxResults": MAX_RESULTS,
            "NextToken": NEXT_TOKEN,
        },
    ),
)
