"""Job items that cannot be read: somebody has edited them. They are listed by name, and can be replaced and deleted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from common.jobs.job import ACTIVE, CORRUPT, DELETED, NO_PAYLOAD, PAUSED, Job
from common.jobs.stored_text import StoredText
from common.storage import keys
from common.storage.wire import Expression
from common.texts import UNREADABLE
from common.timing.schedule import AtTiming, Schedule

# What reading a stored item of wrong types raises.
BROKEN: Final = (*UNREADABLE, AttributeError, OverflowError)
_NUMBERS: Final = (
    *("revision", "schedule_revision", "effective_at", "created_at", "updated_at", "shard", "timeout_s"),
)
_TEXTS: Final = ("tenant", "job_id", "group", "note", "name", "owner", "runbook", "catch_up", "overlap")
_NEVER: Final = Schedule(AtTiming(0))


def stored_job(item: Mapping[str, Any]) -> Job:
    """The job of an item. One that cannot be read has the state `corrupt`, the reason as its note, and never fires."""
    try:
        job = Job.from_item(item)
        problem = _problem(job, item)
    except BROKEN as error:
        problem = f"unreadable: {error!r}"[:300]
    return _corrupt(item, problem) if problem else job


def readable(items: Iterable[Mapping[str, Any]]) -> Iterator[Job]:
    """The jobs of items, without those that cannot be read. An item may lack its key."""
    for item in items:
        with suppress(*BROKEN):
            job = Job.from_item(item)
            if not _problem(job, item):
                yield job


def _problem(job: Job, item: Mapping[str, Any]) -> str:
    """What is wrong with a job that was read; empty if nothing is. Raises one of BROKEN."""
    if job.payload.text is not None:
        json.loads(job.payload.text)
    if "pk" in item and (item["pk"], item["sk"].partition("#")[2]) != (job.tenant, job.job_id):
        return f"it says that it is {job.tenant}/{job.job_id}"[:300]
    if job.state not in (ACTIVE, PAUSED, DELETED):
        return f"its state is {job.state!r}"[:300]
    if job.state == ACTIVE and not job.group:
        return "it is active and has no group"
    wrong = _of_wrong_types(job)
    return f"of another type than they should be: {', '.join(wrong)}" if wrong else ""


def _of_wrong_types(job: Job) -> list[str]:
    wrong = [name for name in _NUMBERS if type(getattr(job, name)) is not int]
    wrong += [name for name in _TEXTS if not isinstance(getattr(job, name), str)]
    wrong += [name for name in ("target", "schedule_given") if not isinstance(getattr(job, name), Mapping)]
    if not all(isinstance(tag, str) for tag in job.tags):
        wrong.append("tags")
    return wrong


def _corrupt(item: Mapping[str, Any], problem: str) -> Job:
    """What is left of the item: its name, its revision, and where its due entry may be."""
    return Job(
        tenant=item["pk"],
        job_id=item["sk"].removeprefix(keys.JOB_PREFIX),
        schedule_given={},
        schedule=_schedule(item),
        target={},
        payload=_payload(item),
        state=CORRUPT,
        note=problem,
        revision=_number(item, "revision"),
        schedule_revision=_number(item, "schedule_revision"),
        group=group if isinstance(group := item.get("group"), str) else "",
        shard=_number(item, "shard"),
    )


def _number(item: Mapping[str, Any], name: str) -> int:
    value = item.get(name)
    return value if type(value) is int and 0 <= value < 10**9 else 0


def _schedule(item: Mapping[str, Any]) -> Schedule:
    try:
        return Schedule.from_item(item["schedule"])
    except BROKEN:
        return _NEVER


def _payload(item: Mapping[str, Any]) -> StoredText:
    """So that a large text expires with the job."""
    try:
        return StoredText.from_attribute(item.get("payload", "null"))
    except BROKEN:
        return NO_PAYLOAD


def unchanged_corrupt(old: Job) -> Expression:
    """The condition that nobody has replaced or deleted the corrupt job since it was read."""
    if old.revision:
        return Expression("#revision = :old", {":old": old.revision})
    # Whoever replaces it gives it the revision 1.
    words = "attribute_exists(pk) AND (attribute_not_exists(#revision) OR #revision <> :one)"
    return Expression(words, {":one": 1})
