"""Schedules: each is a job, which Minute8's own API, command and console show and govern as any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from api.eventbridge.operation import Asked, Operation
from api.http.cursors import read_cursor, write_cursor
from api.http.job_filter import MOST_SEEN
from api.services import Services
from common.errors import AlreadyExists, Conflict, InvalidInput, NotFound
from common.eventbridge.names import DEFAULT_GROUP, job_id_of, job_id_prefixes
from common.eventbridge.origin import changed_parts, is_known, origin_of, request_in, with_known
from common.eventbridge.shapes import CLIENT_TOKEN, MAX_RESULTS, NAME, NEXT_TOKEN, SCHEDULE, STATE, check
from common.jobs.job import ACTIVE, DELETED, PAUSED, Job, exists
from common.jobs.schedule_groups import ScheduleGroups
from common.jobs.store import deleted, next_second
from common.registration.eventbridge_mapping import AGE_S, RETRIES, definition_of, in_their_words
from common.storage import keys
from common.storage.tables import Expression
from common.timing.groups import group_key
from common.timing.schedule import EveryTiming

# How far back a StartDate may be.
STARTED_S: Final = 300
_PAGE: Final = 100
# What AWS does not know of a job. UpdateSchedule replaces the rest and keeps this.
_OURS: Final = (
    *(
        "owner",
        "runbook",
        "tags",
        "pause_after_failures",
        "start_deadline_s",
        "catch_up",
        "timeout_s",
        "on_crash",
    ),
)


def create(services: Services, asked: Asked) -> Mapping[str, Any]:
    """CreateSchedule"""
    group, request, token = _read(asked)

    def change(old: Job | None, made: Callable[[], Job], now: float) -> Job:
        if old is not None and is_known(old.origin, token):
            return old
        if exists(old):
            raise AlreadyExists("schedule", asked.label)
        return _started(old, made(), now)

    return _stored(services, asked, group, request, token, change)


def update(services: Services, asked: Asked) -> Mapping[str, Any]:
    """UpdateSchedule"""
    group, request, token = _read(asked)
    state = PAUSED if request.get("State") == "DISABLED" else ACTIVE

    def change(old: Job | None, made: Callable[[], Job], now: float) -> Job:
        if old is not None and is_known(old.origin, token):
            return old
        before = _existing(old, asked.label)
        new = _started(before, made(), now)
        new = replace(new, **{name: getattr(before, name) for name in _OURS})
        if state == PAUSED:
            return replace(new, state=PAUSED, group="", shard=0)
        if before.state == PAUSED:
            return replace(
                new, state=ACTIVE, note="", effective_at=next_second(now), group=group_key(new.schedule)
            )
        return new

    return _stored(services, asked, group, request, token, change)


def get(services: Services, asked: Asked) -> Mapping[str, Any]:
    """GetSchedule"""
    group = _group(asked)
    job_id = job_id_of(group, asked.label)
    job = _existing(services.store.load_all(asked.tenant, [job_id]).get(job_id), asked.label)
    assert job.origin is not None
    if changed := changed_parts(job.origin, job.to_item()):
        raise Conflict(
            f"{', '.join(changed)} of this schedule changed by Minute8's own API, so AWS's may not be able to say it; "
            f"GET /v1/jobs/{job_id} shows it, and UpdateSchedule replaces it"
        )
    return {
        **_with_defaults(request_in(job.origin, job.payload)),
        "Arn": asked.place.schedule_arn(group, asked.label),
        "CreationDate": job.created_at,
        "GroupName": group,
        "LastModificationDate": job.updated_at,
        "Name": asked.label,
        "State": _state(job.state),
    }


def delete(services: Services, asked: Asked) -> Mapping[str, Any]:
    """DeleteSchedule"""
    group = _group(asked)
    token = asked.token(asked.query.get("clientToken"))

    def change(old: Job | None, now: float) -> Job:
        if old is not None and old.state == DELETED and is_known(old.origin, token):
            return old
        job = _existing(old, asked.label)
        assert job.origin is not None
        if is_known(job.origin, token):  # it was created again since
            return job
        return replace(deleted(job, now), origin=with_known(job.origin, token, now))

    services.store.change(asked.tenant, job_id_of(group, asked.label), change)
    return {}


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
        if seen == MOST_SEEN or len(page) == limit:
            return {"Schedules": page, "NextToken": write_cursor(asked.tenant, of, last)}
        last, origin = item["job_id"], item.get("origin")
        if (
            origin
            and group in (None, origin["group"])
            and origin["name"].startswith(prefix)
            and state in (None, _state(item["state"]))
        ):
            page.append(_summary(asked, item))
    return {"Schedules": page}


def _read(asked: Asked) -> tuple[str, dict[str, Any], str]:
    """The group, the checked request, and its token. Raises InvalidInput."""
    check(NAME, asked.label, "Name")
    check(SCHEDULE, asked.body)
    request = dict(asked.body)
    start = request.get("StartDate")
    if (
        start is not None
        and start < asked.now - STARTED_S
        and not request["ScheduleExpression"].startswith("at(")
    ):
        raise InvalidInput(
            "StartDate",
            "is too far in the past",
            value=start,
            accepted=f"at most {STARTED_S // 60} minutes ago",
        )
    return request.get("GroupName", DEFAULT_GROUP), request, asked.token(request.get("ClientToken"))


def _group(asked: Asked) -> str:
    check(NAME, asked.label, "Name")
    return str(asked.query.get("groupName", DEFAULT_GROUP))


def _stored(
    services: Services,
    asked: Asked,
    group: str,
    request: Mapping[str, Any],
    token: str,
    change: Callable[[Job | None, Callable[[], Job], float], Job],
) -> Mapping[str, Any]:
    """Store what `change` decides, with its origin; answer with the ARN."""
    arn = asked.place.schedule_arn(group, asked.label)
    raw = definition_of(request, arn)
    if request.get("State") == "DISABLED":
        raw["state"] = PAUSED

    def with_origin(old: Job | None, made: Callable[[], Job], now: float) -> Job:
        new = change(old, made, now)
        if new is old:
            return new
        before = old.origin if old else None
        origin = origin_of(group, asked.label, request, new.to_item(), before)
        return replace(new, origin=with_known(origin, token, now))

    # AWS accepts a one-off that is past.
    registry = services.registry.accepting_past()
    with _their_words():
        registry.replace_with(asked.tenant, job_id_of(group, asked.label), raw, with_origin)
    return {"ScheduleArn": arn}


@contextmanager
def _their_words() -> Iterator[None]:
    try:
        yield
    except InvalidInput as error:
        raise in_their_words(error) from None


def _started(old: Job | None, new: Job, now: float) -> Job:
    """The job. A new rate without a StartDate fires at once."""
    timing = new.schedule.timing
    kept = exists(old) and old is not None and old.schedule.timing == timing
    if kept or not isinstance(timing, EveryTiming) or "anchor" in new.schedule_given:
        return new
    schedule = replace(new.schedule, timing=replace(timing, anchor_at=next_second(now)))
    return replace(new, schedule=schedule, group=group_key(schedule) if new.group else "")


def _existing(old: Job | None, name: str) -> Job:
    """The job, if it is there and came by this API. Raises NotFound."""
    if old is None or not exists(old) or not old.origin:
        raise NotFound("schedule", name)
    return old


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
        raise InvalidInput("NextToken", error.message, value=asked.query["NextToken"]) from None


def _jobs_after(
    services: Services, tenant: str, prefixes: tuple[str, ...], after: str
) -> Iterator[Mapping[str, Any]]:
    """The tenant's jobs whose ids begin so, after an id, in the order of their ids."""
    there = Expression("#state <> :deleted", {":deleted": DELETED})
    attributes = ("job_id", "origin", "state", "created_at", "updated_at")
    for prefix in prefixes:
        if after >= prefix and not after.startswith(prefix):
            continue  # all of them come before
        start = keys.job(tenant, after) if after.startswith(prefix) and after else None
        yield from services.store.jobs.query(
            tenant,
            sk_prefix=keys.JOB_PREFIX + prefix,
            after=start,
            where=there,
            page=MOST_SEEN + 1,
            attributes=attributes,
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
        "Target": {"Arn": request_in(origin, None)["Target"]["Arn"]},
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
