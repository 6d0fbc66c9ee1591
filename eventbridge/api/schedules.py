"""Schedules: each is a job, which Minute8's own API, command and console show and govern as any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

from api.services import Services
from common.errors import AlreadyExists, InvalidInput, NotFound, UndoneSince
from common.jobs.job import ACTIVE, DELETED, PAUSED, Job, exists
from common.jobs.revisions import deleted, next_second
from common.timing.groups import group_key
from common.timing.schedule import EveryTiming
from eventbridge.api import schedules_read as reading
from eventbridge.api.operation import Asked, Operation
from eventbridge.mapping import definition_of, in_their_words
from eventbridge.names import DEFAULT_GROUP, job_id_of
from eventbridge.origin import is_known, of_deleted, origin_of, requests_of, schedule_of, with_known
from eventbridge.shapes import CLIENT_TOKEN, MAX_RESULTS, NAME, NEXT_TOKEN, SCHEDULE, STATE, check

# How far back a StartDate may be.
STARTED_S: Final = 300
# What AWS does not know of a job. UpdateSchedule replaces the rest and keeps this.
_OURS: Final = (
    *("owner", "runbook", "tags", "pause_after_failures", "start_deadline_s", "catch_up", "timeout_s"),
    "on_crash",
)


def create(services: Services, asked: Asked) -> Mapping[str, Any]:
    """CreateSchedule"""
    group, request, token = _read(asked)

    def change(old: Job | None, made: Callable[[], Job], now: float) -> Job:
        if old is not None and is_known(requests_of(old), token):
            if "ClientToken" in request and not schedule_of(old):
                raise UndoneSince("schedule", asked.label, is_creation=True)
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
        before = _existing(old, asked.label)
        if is_known(before.origin, token):
            return before
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


def delete(services: Services, asked: Asked) -> Mapping[str, Any]:
    """DeleteSchedule"""
    group = reading.group_of(asked)
    given = asked.query.get("clientToken")
    token = asked.token(given)

    def change(old: Job | None, now: float) -> Job:
        if old is not None and old.state == DELETED and is_known(requests_of(old), token):
            return old
        job = _existing(old, asked.label)
        if is_known(job.origin, token):
            if given:
                raise UndoneSince("schedule", asked.label, is_creation=False)
            return job
        tombstone = deleted(job, now)
        return replace(tombstone, origin=with_known(of_deleted(requests_of(job)), token, now))

    services.store.change(asked.tenant, job_id_of(group, asked.label), change)
    return {}


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
        origin = origin_of(group, asked.label, request, new.payload, requests_of(old))
        return replace(new, origin=with_known(origin, token, now))

    with _their_words():
        services.registry.replace_with(asked.tenant, job_id_of(group, asked.label), raw, with_origin)
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
    if old is None or not schedule_of(old):
        raise NotFound("schedule", name)
    return old


OPERATIONS = (
    Operation("POST", "schedules", "CreateSchedule", "write", create, takes_body=True),
    Operation("PUT", "schedules", "UpdateSchedule", "write", update, takes_body=True),
    Operation("GET", "schedules", "GetSchedule", "read", reading.get, query={"groupName": NAME}),
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
        reading.list_page,
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
