"""Job items that cannot be read: somebody has edited them. They are listed by name, and can be replaced and deleted."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from common.cache import convert
from common.jobs.job import CORRUPT, NO_PAYLOAD, Job
from common.jobs.spec import JobSpec
from common.jobs.stored_text import StoredText
from common.storage import keys
from common.storage.expressions import PRESENT, Attribute, Condition
from common.storage.wire import DAMAGE
from common.timing.schedule import Schedule

_NEVER: Final = Schedule(at=0)


def stored_job(item: Mapping[str, Any]) -> Job:
    """The job of an item. One that cannot be read has the state `corrupt`, the reason as its note, and never fires."""
    try:
        job = Job.from_item(item)
        problem = _problem(job, item)
    except DAMAGE as error:
        problem = f"unreadable: {error!r}"[:300]
    return _corrupt(item, problem) if problem else job


def readable(items: Iterable[Mapping[str, Any]]) -> Iterator[Job]:
    """The jobs of items, without those that cannot be read. An item may lack its key."""
    for item in items:
        with suppress(*DAMAGE):
            job = Job.from_item(item)
            if not _problem(job, item):
                yield job


def _problem(job: Job, item: Mapping[str, Any]) -> str:
    """What is wrong with a job that was read; empty if nothing is. Raises one of DAMAGE."""
    if job.payload.text is not None:
        json.loads(job.payload.text)
    if "pk" in item and (item["pk"], item["sk"].partition("#")[2]) != (job.tenant, job.job_id):
        return f"it says that it is {job.tenant}/{job.job_id}"[:300]
    if job.state == CORRUPT:
        return "its state is 'corrupt'"
    return ""


def _corrupt(item: Mapping[str, Any], problem: str) -> Job:
    """What is left of the item: its name, its revision, and where its due entry may be."""
    return Job(
        tenant=item["pk"],
        job_id=item["sk"].removeprefix(keys.JOB_PREFIX),
        spec=JobSpec(schedule={}, target={}),
        schedule=_schedule(item),
        payload=_payload(item),
        state=CORRUPT,
        note=problem,
        revision=_number(item, "revision"),
        schedule_revision=_number(item, "schedule_revision"),
        effective_at=0,
        created_at=0,
        updated_at=0,
        shard=_number(item, "shard"),
        group=_text(item, "group"),
        not_running=_text(item, "not_running"),
    )


def _number(item: Mapping[str, Any], name: str) -> int:
    value = item.get(name)
    return value if type(value) is int and 0 <= value < 10**9 else 0


def _text(item: Mapping[str, Any], name: str) -> str:
    return value if isinstance(value := item.get(name), str) else ""


def _schedule(item: Mapping[str, Any]) -> Schedule:
    try:
        return convert(item["schedule"], Schedule)
    except DAMAGE:
        return _NEVER


def _payload(item: Mapping[str, Any]) -> StoredText:
    """So that a large text expires with the job."""
    try:
        return StoredText.from_attribute(item.get("payload", "null"))
    except DAMAGE:
        return NO_PAYLOAD


def unchanged_corrupt(old: Job) -> Condition:
    """The condition that nobody has replaced or deleted the corrupt job since it was read."""
    if old.revision:
        return Attribute("revision") == old.revision
    # Whoever replaces it gives it the revision 1.
    return PRESENT & (Attribute("revision").is_absent | (Attribute("revision") != 1))
