"""What a client may write as a job, and its validation. Nothing is stored without it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final

from msgspec import Meta, structs, to_builtins

from common.declared import read
from common.errors import InvalidInput
from common.jobs.payload_formats import PayloadFormats
from common.jobs.placeholders import OF_CALLBACKS, names_callback
from common.jobs.spec import PAYLOAD_PATCH, Alert, Policies, returns_result
from common.limits import EXECUTOR_MARGIN_S, RENDERED_BYTES
from common.registration import target_definitions
from common.registration.payload_checks import PayloadChecks
from common.registration.schedule_definition import Json, ScheduleDefinition
from common.registration.schedule_text import written_as_object
from common.tenants.web_address import is_public, is_public_or_loopback, read_url

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
