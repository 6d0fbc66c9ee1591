"""What a client may write as a job, its validation, and the job that it makes. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from msgspec import Meta, structs, to_builtins
from msgspec.structs import replace

from common.declared import read
from common.errors import InvalidInput
from common.jobs.job import ACTIVE, Job, exists
from common.jobs.placeholders import OF_CALLBACKS, PayloadFormats, names_callback
from common.jobs.revisions import next_second
from common.jobs.spec import PAYLOAD_PATCH, Alert, JobSpec, Policies, returns_result
from common.jobs.stored_text import StoredText
from common.limits import EXECUTOR_MARGIN_S, RENDERED_BYTES
from common.planning.execution import job_key
from common.registration import target_definitions
from common.registration.payload_checks import PayloadChecks, named_by, secret_names
from common.registration.schedule_definition import Json, ScheduleDefinition, anchored_as
from common.registration.schedule_text import parse_schedule, written_as_object
from common.tenants.web_address import is_public, is_public_or_loopback, read_url
from common.timing.fires import limited
from common.timing.groups import group_key
from common.timing.schedule import AtTiming, Schedule

# How long a run waits for each callback of its target, in seconds, if the job does not say.
_CALLBACK_S: Final = 3_600


@dataclass(frozen=True, slots=True)
class Limits:
    """What a tenant may request in this deployment."""

    longest_timeout_s: int = 290
    shortest_interval_s: int = 1
    payload_bytes: int = 256 * 1024
    # The spread of jobs that name none and no second of their own.
    spread_s: int = 0
    plain_http: bool = False
    loopback: bool = False
    # Whether `at` may be past. Such a job never fires, so usually it is a mistake.
    past_at: bool = False
    payload_formats: PayloadFormats = field(default_factory=dict)
    # The own timeout of the function that a target calls, in seconds; 0: not known.
    function_timeout_s: Callable[[Mapping[str, Any]], int] = lambda target: 0
    # Whether the target says of its function what the function is. Raises InvalidInput.
    check_function: Callable[[Mapping[str, Any]], None] = lambda target: None

    @classmethod
    def of_executor(
        cls,
        executor_timeout_s: int,
        *,
        plain_http: bool = False,
        loopback: bool = False,
        spread_s: int = 0,
        payload_formats: PayloadFormats,
    ) -> Limits:
        """The limits of an executor whose function has `executor_timeout_s`."""
        return cls(
            longest_timeout_s=max(1, executor_timeout_s - EXECUTOR_MARGIN_S),
            plain_http=plain_http,
            loopback=loopback,
            spread_s=spread_s,
            payload_formats=payload_formats,
        )


class JobDefinition(Policies, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job as a client writes it."""

    schedule: Annotated[
        ScheduleDefinition,
        Meta(
            description="When the job fires.",
            extra={"accepted": "an object with cron, every or at"},
        ),
    ]
    target: Annotated[
        target_definitions.Target,
        Meta(
            description="What the job calls.", extra={"accepted": "an object with a kind, and its arn or url"}
        ),
    ]
    payload: Annotated[
        Json,
        Meta(
            description="What the target gets: any JSON, with placeholders, and secrets for "
            "`secret://name`; at most the "
            f"tenant's `payload_bytes`, and {RENDERED_BYTES // 1024} KiB with placeholders replaced.",
            extra={"page": "targets.md#placeholders"},
        ),
    ] = None


def parse_definition(
    raw: object, limits: Limits, check_target: Callable[[Mapping[str, Any]], None] = lambda target: None
) -> JobDefinition:
    """Validate what a client sent, except the meaning of the schedule (`schedule_text.parse_schedule` does that).

    Checks go from cheap to dear: `check_target` says whether the tenant may call the target at all, before its payload
    is compared with the model of a service, which takes megabytes and tenths of a second.

    Raises:
        InvalidInput: with the first problem, and the others in `also`.
    """
    if not isinstance(raw, Mapping):
        raise InvalidInput("job", "must be an object", value=raw, accepted="a JSON object")
    definition = _read(raw)
    if "timeout_s" not in raw:
        shortest = min(definition.timeout_s, limits.longest_timeout_s)
        definition = structs.replace(definition, timeout_s=shortest)
    if definition.timeout_s > limits.longest_timeout_s:
        raise InvalidInput(
            "timeout_s",
            "is longer than the executor can wait",
            value=definition.timeout_s,
            accepted=f"1 to {limits.longest_timeout_s} s; for longer work use completion callback",
        )
    target = definition.target
    stored_target = target_definitions.stored(target)
    check_target(stored_target)
    payloads = PayloadChecks(stored_target, limits.payload_formats, limits.payload_bytes)
    payloads.check(definition.payload)
    for place, patch in definition.schedule.patches():
        payloads.check_patch(definition.payload, patch, f"schedule.schedules.{place}.{PAYLOAD_PATCH}")
    definition = _with_completion(definition)
    _check_end(definition, stored_target)
    if definition.alert:
        _check_alert(definition.alert)
    if isinstance(target, target_definitions.HttpTarget):
        check_url(target.url, limits)
    limits.check_function(stored_target)
    return definition


def _read(raw: Mapping[str, Any]) -> JobDefinition:
    """By its type. Raises InvalidInput; a schedule that is a text learns how to write it."""
    try:
        return read(raw, JobDefinition, "job")
    except InvalidInput as refused:
        for fault in (refused, *refused.also):
            if fault.field == "schedule" and isinstance(raw.get("schedule"), str):
                fault.accepted = written_as_object(raw["schedule"])
        raise


def _check_end(definition: JobDefinition, target: Mapping[str, Any]) -> None:
    """Whether it is known when a run ends, where the job needs that. Raises InvalidInput."""
    if definition.completion == "callback" or returns_result(target):
        return
    needs_it = (
        ("overlap", definition.overlap if definition.overlap != "allow" else None, "allow"),
        ("concurrency", to_builtins(definition.concurrency), "null"),
        ("alert", definition.alert and definition.alert.thresholds, "null"),
    )
    for field_name, value, without in needs_it:
        if value:
            raise InvalidInput(
                field_name,
                "needs to know when a run ends, and this target only takes the event",
                value=value,
                accepted=f"{without}; or {_KNOWN_ENDS}",
            )


_KNOWN_ENDS: Final = (
    "a target that is waited for: lambda with RequestResponse or durable, http, any with completion callback"
)


def _with_completion(definition: JobDefinition) -> JobDefinition:
    """A job with callbacks gets the default time if it names none. Raises InvalidInput."""
    named = names_callback(definition.payload)
    if definition.completion == "answer":
        if named:
            raise InvalidInput(
                "payload",
                f"names {', '.join(sorted(named))}, and nobody calls back",
                value=definition.payload,
                accepted="completion callback; or a payload without them",
            )
        if definition.callback_timeout_s is not None:
            raise InvalidInput(
                "callback_timeout_s",
                "is only for jobs whose targets call back",
                value=definition.callback_timeout_s,
                accepted="null; or completion callback",
            )
        return definition
    target = target_definitions.stored(definition.target)
    if target.get("durable"):
        raise InvalidInput(
            "completion",
            "is answer for a durable function: Lambda itself tells how it ended",
            value=definition.completion,
            accepted="answer",
        )
    gets_payload_alone = (
        target["kind"] == "aws_operation" or not target.get("envelope", True) or "schedule_arn" in target
    )
    if gets_payload_alone and target["kind"] != "http" and len(named) < len(OF_CALLBACKS):
        raise InvalidInput(
            "completion",
            "needs the address and the token of the callback in what the target gets",
            value=definition.completion,
            accepted="{{callback_url}} and {{callback_token}} in the payload; a target http, or with the envelope",
        )
    if definition.callback_timeout_s is not None:
        return definition
    return structs.replace(definition, callback_timeout_s=_CALLBACK_S)


def _check_alert(alert: Alert) -> None:
    """Raises InvalidInput."""
    if alert.longer_than_s and alert.shorter_than_s and alert.shorter_than_s > alert.longer_than_s:
        raise InvalidInput(
            "alert.shorter_than_s",
            "is more than longer_than_s, so each run would be too long or too short",
            value=alert.shorter_than_s,
            accepted=f"1 to {alert.longer_than_s}",
        )


def check_url(url: str, limits: Limits) -> None:
    """Raises InvalidInput."""
    if url.startswith("http:") and not limits.plain_http:
        raise InvalidInput("target.url", "must be https", value=url, accepted="https://…")
    ip = read_url(url).ip
    if ip is not None and not (is_public_or_loopback if limits.loopback else is_public)(ip):
        raise InvalidInput(
            "target.url",
            "names an address that is not public",
            value=url,
            accepted="such as https://hooks.example.com/minute8",
        )


def build_job(
    tenant: str, job_id: str, definition: JobDefinition, old: Job | None, now: float, limits: Limits
) -> Job:
    """The job of a definition: a new one, or the next revision of `old`."""
    before = old if exists(old) else None
    target = target_definitions.stored(definition.target)
    schedule, written = _schedule(tenant, job_id, definition.schedule, target, before, now, limits)
    same_times = before is not None and schedule == before.schedule
    state = before.state if before else ACTIVE
    spec = _spec(definition, written, target)
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
        imported_from=before.imported_from if before else None,
        secrets=secret_names(
            named_by(target, definition.payload, definition.schedule.patches(), limits.payload_formats)
        ),
        # Others wait for the work of its calls.
        function_timeout_s=limits.function_timeout_s(spec.target) if spec.is_limited else 0,
    )


def _spec(definition: JobDefinition, written: Mapping[str, Any], target: Mapping[str, Any]) -> JobSpec:
    """What the job keeps of the definition. An alert without any threshold is none."""
    policies = {name: getattr(definition, name) for name in Policies.__struct_fields__}
    if definition.alert and not definition.alert.thresholds:
        policies["alert"] = None
    return JobSpec(schedule=written, target=target, **policies)


def _schedule(
    tenant: str,
    job_id: str,
    definition: ScheduleDefinition,
    target: Mapping[str, Any],
    before: Job | None,
    now: float,
    limits: Limits,
) -> tuple[Schedule, Mapping[str, Any]]:
    """The schedule, and its fields as the client wrote them.

    An unchanged schedule stays as it is: a one-off may be past by now, and `every` keeps its anchor.
    """
    written = definition.written()
    if before and before.spec.schedule == written:
        return _paced_by(before.schedule, written, target), written
    schedule = parse_schedule(
        definition,
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
