"""What a client may write as a job, and its validation. Nothing is stored without it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from msgspec import NODEFAULT, Meta, Struct, structs, to_builtins

from common.declared import Check, read
from common.errors import InvalidInput
from common.ids import PACE_KEY_CHARS, id_pattern
from common.jobs.payload_formats import PayloadFormats
from common.jobs.spec import PAYLOAD_PATCH, Alert, Policies
from common.registration import target_definitions
from common.registration.payload_checks import PayloadChecks
from common.registration.schedule_text import MAX_PER_SECOND, MAX_TOLERANCE_S, TOLERANCE_S, written_as_object
from common.registration.several_schedules import MAX_SCHEDULES
from common.tenants.web_address import is_public, is_public_or_loopback, read_url

# The time that the executor needs around a call: locking, claiming, recording.
EXECUTOR_MARGIN_S = 10
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


def _check_json(path: str, value: object) -> None:
    """Half of a surrogate pair is JSON, and no UTF-8; NaN is neither."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, TypeError, RecursionError):
        raise InvalidInput(path, "must be JSON in Unicode", value=value, accepted="any JSON") from None


# Any JSON. It must be possible to store it as UTF-8.
Json = Annotated[Any, Check(_check_json)]


class ExcludeDefinition(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Dates on which a job does not fire."""

    dates: Annotated[
        list[str], Meta(description="Local dates (2026-12-24) on which the job does not fire.")
    ] = []
    calendars: Annotated[list[str], Meta(description="Names of the tenant's calendars.")] = []


class PaceDefinition(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many executions a second all jobs with the same key may have, and how far that may delay them."""

    per_second: Annotated[
        int, Meta(ge=1, le=MAX_PER_SECOND, description="At most so many executions are due at one second.")
    ]
    tolerance_s: Annotated[
        int,
        Meta(
            ge=1,
            le=MAX_TOLERANCE_S,
            description="An execution is due at most so many seconds later, to keep to the pace.",
        ),
    ] = TOLERANCE_S
    key: Annotated[
        Annotated[str, Meta(pattern=id_pattern(PACE_KEY_CHARS))] | None,
        Meta(description="Jobs with the same key share the pace; without it those with the same target."),
    ] = None


class SingleSchedule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Fire times: exactly one of `cron`, `every` and `at`."""

    cron: Annotated[
        str | None,
        Meta(description="Five fields, or six with seconds first; or by `dialect`.", examples=["30 2 * * *"]),
    ] = None
    every: Annotated[
        str | int | None,
        Meta(
            description="Elapsed time: 90m, PT90M, or seconds. With timezone local days: 2w, 3mo.",
            examples=["90m"],
        ),
    ] = None
    at: Annotated[str | None, Meta(description="One instant, RFC 3339, or a local time with timezone.")] = (
        None
    )
    timezone: Annotated[
        str | None, Meta(description="IANA zone; UTC if none.", examples=["Europe/Paris"])
    ] = None
    dialect: Annotated[
        Literal["minute8", "eventbridge"],
        Meta(
            description="How `cron` is read; eventbridge: minutes hours day-of-month month day-of-week year."
        ),
    ] = "minute8"
    dst: Annotated[
        Literal["minute8", "eventbridge"],
        Meta(
            description="The rule for clock changes; eventbridge: skipped times do not fire, repeated ones fire once."
        ),
    ] = "minute8"
    anchor: Annotated[str | None, Meta(description="An instant that `every` counts from.")] = None
    start_at: Annotated[str | None, Meta(description="Nothing fires before (RFC 3339).")] = None
    end_at: Annotated[str | None, Meta(description="Nothing fires at or after (RFC 3339).")] = None
    exclude: ExcludeDefinition | None = None
    include_calendars: Annotated[
        list[str],
        Meta(description="Names of calendars: the job fires only on dates that are in one of them."),
    ] = []
    on_excluded: Annotated[
        Literal["skip", "next", "previous"],
        Meta(
            description="On an excluded date the job does not fire, or at that time on the next or previous other date."
        ),
    ] = "skip"


class OneOfSchedules(SingleSchedule, frozen=True, kw_only=True):
    """One of a job's schedules, with what it changes of the payload."""

    payload_patch: Annotated[
        Json,
        Meta(description="A JSON merge patch (RFC 7396) of the payload, for the runs of this schedule."),
    ] = None


class ScheduleDefinition(SingleSchedule, frozen=True, kw_only=True):
    """When the job fires: exactly one of `cron`, `every`, `at` and `schedules`."""

    schedules: Annotated[
        Annotated[list[OneOfSchedules], Meta(min_length=1, max_length=MAX_SCHEDULES)] | None,
        Meta(
            description="Several schedules; an instant that some share fires once, with the patch of the first."
        ),
    ] = None
    max_runs: Annotated[
        int | None,
        Meta(description="The job ends after so many fire times; pauses, also with edits, do not count."),
    ] = None
    spread_s: Annotated[
        int | None,
        Meta(
            description="All runs are due the same 0 to n seconds later, by the job's id; "
            "without it the tenant's default."
        ),
    ] = None
    jitter_s: Annotated[int | None, Meta(description="Spread: each run is due 0 to n seconds later.")] = None
    pace: PaceDefinition | None = None

    def written(self) -> dict[str, Any]:
        """The schedule as the client wrote it, without absent fields and defaults."""
        return _written(self)

    def singles(self) -> Iterator[tuple[str, SingleSchedule]]:
        """Each of several schedules, or itself, with its place in the definition."""
        if self.schedules is None:
            yield "schedule", self
        for place, schedule in enumerate(self.schedules or ()):
            yield f"schedule.schedules.{place}", schedule

    def patches(self) -> Iterator[tuple[int, Any]]:
        """The payload patches, with the places of their schedules."""
        for place, schedule in enumerate(self.schedules or ()):
            if schedule.payload_patch is not None:
                yield place, schedule.payload_patch


def _written(part: Struct) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for known in structs.fields(part):
        value = getattr(part, known.name)
        default = [] if known.default is NODEFAULT else known.default
        if value is None or value == default:
            continue
        if isinstance(value, Struct):
            value = _written(value)
        elif known.name == "schedules":
            value = [_written(schedule) for schedule in value]
        written[known.name] = value
    return written


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
            description="What the target gets: any JSON, with placeholders, and secrets for `secret://name`."
        ),
    ] = None


def parse_definition(raw: object, limits: Limits) -> JobDefinition:
    """Validate what a client sent, except the meaning of the schedule (`schedule_text.parse_schedule` does that).

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
    payloads = PayloadChecks(stored_target, limits.payload_formats, limits.payload_bytes)
    payloads.check(definition.payload)
    for place, patch in definition.schedule.patches():
        payloads.check_patch(definition.payload, patch, f"schedule.schedules.{place}.{PAYLOAD_PATCH}")
    definition = _with_completion(definition)
    _check_end(definition)
    if isinstance(target, target_definitions.HttpTarget):
        check_url(target.url, limits)
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


def _check_end(definition: JobDefinition) -> None:
    """Whether it is known when a run ends, where the job needs that. Raises InvalidInput."""
    ends_known = definition.completion == "callback" or target_definitions.is_awaited(definition.target)
    if definition.overlap != "allow" and not ends_known:
        raise InvalidInput(
            "overlap",
            "needs to know when a run ends, and this target only takes the event",
            value=definition.overlap,
            accepted=f"allow; or {_KNOWN_ENDS}",
        )
    if definition.concurrency and not ends_known:
        raise InvalidInput(
            "concurrency",
            "needs to know when a run ends, and this target only takes the event",
            value=to_builtins(definition.concurrency),
            accepted=f"null; or {_KNOWN_ENDS}",
        )
    if definition.alert:
        _check_alert(definition.alert, ends_known)


_KNOWN_ENDS: Final = (
    "a target that is waited for: lambda with RequestResponse, http, or any with completion callback"
)


def _with_completion(definition: JobDefinition) -> JobDefinition:
    """A job with callbacks gets the default time if it names none. Raises InvalidInput."""
    if definition.completion == "answer":
        if definition.callback_timeout_s is not None:
            raise InvalidInput(
                "callback_timeout_s",
                "is only for jobs whose targets call back",
                value=definition.callback_timeout_s,
                accepted="null; or completion callback",
            )
        return definition
    target = target_definitions.stored(definition.target)
    gets_payload_alone = (
        target["kind"] == "aws_operation" or not target.get("envelope", True) or "schedule_arn" in target
    )
    if gets_payload_alone and target["kind"] != "http":
        raise InvalidInput(
            "completion",
            "needs the event's envelope, which has the address and the token of the callback",
            value=definition.completion,
            accepted="answer; or a target http, or one that gets the envelope",
        )
    if definition.callback_timeout_s is not None:
        return definition
    return structs.replace(definition, callback_timeout_s=_CALLBACK_S)


def _check_alert(alert: Alert, ends_known: bool) -> None:
    """Raises InvalidInput."""
    if alert.thresholds and not ends_known:
        raise InvalidInput(
            "alert",
            "needs to know when a run ends, and this target only takes the event",
            value=alert.thresholds,
            accepted=f"null; or {_KNOWN_ENDS}",
        )
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
