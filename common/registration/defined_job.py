"""The job that a definition makes: a new one, or the next revision of the stored one. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from common.errors import InvalidInput
from common.jobs.job import ACTIVE, Job, exists
from common.jobs.payload_formats import PayloadFormats
from common.jobs.revisions import next_second
from common.jobs.spec import JobSpec, Policies
from common.jobs.stored_text import StoredText
from common.planning.execution import job_key
from common.registration import target_definitions
from common.registration.definition import JobDefinition, Limits
from common.registration.payload_checks import Named, named_by, secret_names
from common.registration.schedule_definition import anchored_as
from common.registration.schedule_text import parse_schedule
from common.tenants.web_address import read_url
from common.timing.groups import group_key
from common.timing.max_runs import limited
from common.timing.schedule import AtTiming, Schedule


def build_job(
    tenant: str, job_id: str, definition: JobDefinition, old: Job | None, now: float, limits: Limits
) -> Job:
    """The job of a definition: a new one, or the next revision of `old`."""
    before = old if exists(old) else None
    schedule, written = _schedule(tenant, job_id, definition, before, now, limits)
    same_times = before is not None and schedule == before.schedule
    state = before.state if before else ACTIVE
    spec = _spec(definition, written)
    return Job(
        tenant=tenant,
        job_id=job_id,
        spec=spec,
        schedule=schedule,
        payload=StoredText.of(definition.payload),
        state=state,
        note=before.note if before else "",
        revision=old.revision + 1 if old else 1,
        schedule_revision=_next_schedule_revision(old, same_times),
        effective_at=before.effective_at if before and same_times else next_second(now),
        created_at=before.created_at if before else int(now),
        updated_at=int(now),
        group=group_key(schedule) if state == ACTIVE else "",
        shard=0,
        origin=before.origin if before else None,
        secrets=secret_names(named_secrets(definition, limits.payload_formats)),
        # Others wait for the work of its calls.
        function_timeout_s=limits.function_timeout_s(spec.target) if spec.is_limited else 0,
    )


def _spec(definition: JobDefinition, written: Mapping[str, Any]) -> JobSpec:
    """What the job keeps of the definition. An alert without any threshold is none."""
    policies = {name: getattr(definition, name) for name in Policies.__struct_fields__}
    if definition.alert and not definition.alert.thresholds:
        policies["alert"] = None
    return JobSpec(schedule=written, target=target_definitions.stored(definition.target), **policies)


def named_secrets(definition: JobDefinition, formats: PayloadFormats) -> tuple[Named, ...]:
    """The secrets that the job names. Raises InvalidInput."""
    target = target_definitions.stored(definition.target)
    return named_by(target, definition.payload, definition.schedule.patches(), formats)


def _schedule(
    tenant: str, job_id: str, definition: JobDefinition, before: Job | None, now: float, limits: Limits
) -> tuple[Schedule, Mapping[str, Any]]:
    """The schedule, and its fields as the client wrote them.

    An unchanged schedule stays as it is: a one-off may be past by now, and `every` keeps its anchor.
    """
    written = definition.schedule.written()
    target = target_definitions.stored(definition.target)
    if before and before.spec.schedule == written:
        return _paced_by(before.schedule, written, target), written
    schedule = parse_schedule(
        written,
        job_key=job_key(tenant, job_id),
        now=int(now),
        shortest_interval_s=limits.shortest_interval_s,
        default_spread_s=limits.spread_s,
    )
    if not limits.past_at:
        _check_future(schedule, written, before.schedule.parts if before else (), now)
    if before:
        schedule = anchored_as(before.schedule, before.spec.schedule, schedule, written)
    return _paced_by(schedule, written, target), written


def as_written(job: Job, known: Schedule) -> Schedule:
    """What the job's written schedule means; what nobody wrote (an anchor, a spread) is as in `known`.

    Raises InvalidInput: it can be read no longer.
    """
    written = job.spec.schedule
    schedule = parse_schedule(written, job_key=job.key, now=job.created_at)
    if len(known.parts) == len(schedule.parts):
        schedule = anchored_as(known, written, schedule, written)
    if "spread_s" not in written:
        schedule = replace(schedule, spread_s=known.spread_s)
    schedule = limited(schedule, written, job.runs_before, job.effective_at)
    return _paced_by(schedule, written, job.spec.target)


def _paced_by(schedule: Schedule, written: Mapping[str, Any], target: Mapping[str, Any]) -> Schedule:
    """The schedule; its pace gets the target (an ARN, or a host) as its key if it has none of its own."""
    if schedule.pace is None or written.get("pace", {}).get("key"):
        return schedule
    key = read_url(target["url"]).host_header if "url" in target else target["arn"]
    return replace(schedule, pace=replace(schedule.pace, key=key))


def _check_future(
    schedule: Schedule, written: Mapping[str, Any], known: Sequence[Schedule], now: float
) -> None:
    """A past `at` is probably a mistake, unless the job has it already. Raises InvalidInput."""
    for place, part in enumerate(schedule.parts):
        if isinstance(part.timing, AtTiming) and part.timing.at <= int(now):
            several = written.get("schedules")
            if any(part.timing == before.timing for before in known):
                continue
            raise InvalidInput(
                f"schedule.schedules.{place}.at" if several else "schedule.at",
                "is past, so it would never fire" if several else "is past, so the job would never fire",
                value=(several[place] if several else written)["at"],
                accepted="a later instant; with past=true also a past one",
            )


def _next_schedule_revision(old: Job | None, same_times: bool) -> int:
    if old is None:
        return 1
    return old.schedule_revision if same_times else old.schedule_revision + 1


def definition_of(job: Job) -> dict[str, Any]:
    """The job as a client could have written it, for `parse_definition`. Its payload must have been read."""
    return {**_fields(job.spec), "payload": job.payload.value}


def old_if_same(old: Job, new: Job) -> Job:
    """The new job, or the object `old` if their definitions are the same, and mean the same."""
    return new if old.schedule != new.schedule or changed_fields(old, new) else old


def changed_fields(old: Job, new: Job) -> tuple[str, ...]:
    """The fields of the definition that differ. No payload is read."""
    before, after = _fields(old.spec), _fields(new.spec)
    changed = [name for name in after if not same_json(before[name], after[name])]
    return (*changed, "payload") if old.payload != new.payload else tuple(changed)


def _fields(spec: JobSpec) -> dict[str, Any]:
    """The fields of a definition, with a whole number for a whole factor."""
    fields: dict[str, Any] = to_builtins(spec)
    if (factor := spec.retry.factor) == int(factor):
        fields["retry"]["factor"] = int(factor)
    return fields


def same_json(value: Any, other: Any) -> bool:
    """Whether both are the same JSON. Unlike Python's ==, true is not 1, and 1 is not 1.0."""
    return json.dumps(value, sort_keys=True) == json.dumps(other, sort_keys=True)
