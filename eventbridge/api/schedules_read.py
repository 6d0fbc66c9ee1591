"""Reads schedules: one, and lists of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api.http.paging import read_cursor, write_cursor
from api.routes.jobs import MAX_JOBS_READ
from api.services import Services
from common.errors import Conflict, InvalidInput, NotFound
from common.jobs.job import DELETED, PAUSED, Job
from common.storage import keys
from common.storage.table import Query
from eventbridge.api.operation import Asked
from eventbridge.groups import ScheduleGroups
from eventbridge.mapping import AGE_S, RETRIES
from eventbridge.names import DEFAULT_GROUP, job_id_of, job_id_prefixes
from eventbridge.origin import changed_parts, request_in, target_arn_in
from eventbridge.shapes import NAME, check

_PAGE: Final = 100


def get(services: Services, asked: Asked) -> Mapping[str, Any]:
    """GetSchedule"""
    group = group_of(asked)
    job_id = job_id_of(group, asked.label)
    # Read the item: making a Job of it takes a fifth of the time, and only a changed one needs it.
    item = services.store.jobs.get(keys.job(asked.tenant, job_id))
    if item is None or item["state"] == DELETED or not item.get("origin"):
        raise NotFound("schedule", asked.label)
    origin = item["origin"]
    if changed := changed_parts(origin, lambda: Job.from_item(item).to_item()):
        raise Conflict(
            f"{', '.join(changed)} of this schedule changed by Minute8's own API, so AWS's may not be able to say it; "
            f"GET /v1/jobs/{job_id} shows it, and UpdateSchedule replaces it"
        )
    return {
        **_with_defaults(request_in(origin, item["payload"])),
        "Arn": asked.place.schedule_arn(group, asked.label),
        "CreationDate": item["created_at"],
        "GroupName": group,
        "LastModificationDate": item["updated_at"],
        "Name": asked.label,
        "State": _state(item["state"]),
    }


def list_page(services: Services, asked: Asked) -> Mapping[str, Any]:
    """ListSchedules. A page reads a bounded number of jobs, so it can be empty and still have a next one."""
    group, prefix = asked.query.get("ScheduleGroup"), asked.query.get("NamePrefix", "")
    state, limit = asked.query.get("State"), asked.query.get("MaxResults", _PAGE)
    if group is not None and group != DEFAULT_GROUP:
        ScheduleGroups(services.store.jobs).existing(asked.tenant, group)
    of = f"eventbridge {group} {state} {prefix}"
    page: list[Mapping[str, Any]] = []
    last = after = _after(asked, of)
    for seen, item in enumerate(_jobs_after(services, asked.tenant, job_id_prefixes(group, prefix), after)):
        if seen == MAX_JOBS_READ or len(page) == limit:
            return {"Schedules": page, "NextToken": write_cursor(asked.tenant, of, last)}
        last, origin = item["job_id"], item.get("origin")
        if (
            origin
            and item["state"] != DELETED
            and group in (None, origin["group"])
            and origin["name"].startswith(prefix)
            and state in (None, _state(item["state"]))
        ):
            page.append(_summary(asked, item))
    return {"Schedules": page}


def group_of(asked: Asked) -> str:
    """The group of the schedule that the path names. Raises InvalidInput."""
    check(NAME, asked.label, "Name")
    return str(asked.query.get("groupName", DEFAULT_GROUP))


def _state(state: str) -> str:
    return "DISABLED" if state == PAUSED else "ENABLED"


def _with_defaults(request: Mapping[str, Any]) -> dict[str, Any]:
    retry = {"MaximumEventAgeInSeconds": AGE_S, "MaximumRetryAttempts": RETRIES}
    target = request["Target"]
    return {
        "ActionAfterCompletion": "NONE",
        "ScheduleExpressionTimezone": "UTC",
        **request,
        "Target": {**target, "RetryPolicy": {**retry, **target.get("RetryPolicy", {})}},
    }


def _after(asked: Asked, of: str) -> str:
    try:
        return read_cursor(asked.tenant, of, asked.query.get("NextToken"))
    except InvalidInput as error:
        raise InvalidInput(
            "NextToken",
            error.message,
            value=asked.query["NextToken"],
            accepted="the NextToken of an earlier answer to the same request",
        ) from None


def _jobs_after(
    services: Services, tenant: str, prefixes: tuple[str, ...], after: str
) -> Iterator[Mapping[str, Any]]:
    """The tenant's jobs whose ids begin so, after an id, in the order of their ids; also deleted ones."""
    attributes = ("job_id", "origin", "state", "created_at", "updated_at")
    for prefix in prefixes:
        if after >= prefix and not after.startswith(prefix):
            continue  # all of them come before
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


def _summary(asked: Asked, item: Mapping[str, Any]) -> dict[str, Any]:
    origin = item["origin"]
    return {
        "Arn": asked.place.schedule_arn(origin["group"], origin["name"]),
        "CreationDate": item["created_at"],
        "GroupName": origin["group"],
        "LastModificationDate": item["updated_at"],
        "Name": origin["name"],
        "State": _state(item["state"]),
        "Target": {"Arn": target_arn_in(origin)},
    }
