"""What a client may write as a job, and its validation. Nothing is stored without it.

pydantic is imported by the API and the CLI only; the stages read the stored `Job`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
)
from pydantic.config import JsonDict
from pydantic_core import PydanticCustomError

from common.errors import InvalidInput
from common.ids import NAME_CHARS
from common.jobs.payload_formats import PayloadFormats
from common.jobs.spec import MAX_ATTEMPTS, PAYLOAD_PATCH, Retry
from common.registration import target_definitions
from common.registration.payload_checks import PayloadChecks
from common.registration.problems import invalid_input
from common.registration.schedule_text import TOLERANCE_S
from common.registration.several_schedules import MAX_SCHEDULES
from common.tenants.web_address import is_public, is_public_or_loopback, read_url
from common.timing.instants import DAY_S

# The time that the executor needs around a call: locking, claiming, recording.
EXECUTOR_MARGIN_S = 10
RUNBOOK_CHARS: Final = 500
# How long a run waits for each callback of its target, in seconds.
MIN_CALLBACK_TIMEOUT_S: Final = 60
MAX_CALLBACK_TIMEOUT_S: Final = 7 * DAY_S
_CALLBACK_S: Final = 3_600
# Each take and end writes the item of the key, which names the runs that go.
MAX_CONCURRENCY: Final = 100

_RETRY = Retry()
_LINK: Final = re.compile(r"https?://[!-~]+", re.ASCII)


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


def _as_stored(number: float) -> float:
    """A number as DynamoDB returns it: 2 for 2.0."""
    return int(number) if number == int(number) else number


class Strict(BaseModel):
    """A part of a definition."""

    # strict: "60" is not a number and 1 is not a boolean. An unknown field is probably a typing error, so it is
    # refused.
    model_config = ConfigDict(extra="forbid", strict=True)


class ExcludeDefinition(Strict):
    """Dates on which a job does not fire."""

    dates: list[str] = Field(
        default=[], description="Local dates (2026-12-24) on which the job does not fire."
    )
    calendars: list[str] = Field(default=[], description="Names of the tenant's calendars.")


class PaceDefinition(Strict):
    """How many executions a second all jobs with the same key may have, and how far that may delay them."""

    per_second: int = Field(description="At most so many executions are due at one second.")
    tolerance_s: int = Field(
        default=TOLERANCE_S,
        description="An execution is due at most so many seconds later, to keep to the pace.",
    )
    key: str | None = Field(
        default=None,
        description="Jobs with the same key share the pace; without it those with the same target.",
    )


class ConcurrencyDefinition(Strict):
    """How many attempts of all jobs with the same key go at a time, and what a run does that finds no place."""

    key: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")] = Field(
        description="Jobs of the tenant with the same key share the places."
    )
    limit: int = Field(ge=1, le=MAX_CONCURRENCY, description="A run of this job begins if fewer go.")
    when_full: Literal["wait", "skip"] = Field(
        default="wait", description="What a run does that finds no place."
    )
    max_wait_s: int = Field(
        default=3_600, ge=1, le=DAY_S, description="After so long a run that waits is skipped."
    )


# For OpenAPI; `common.registration.schedule_text` checks the meaning of a schedule.
_ONE_TIMING: Final[list[JsonDict]] = [
    {"required": ["cron"], "properties": {"cron": {"type": "string"}}},
    {"required": ["every"], "properties": {"every": {"type": ["string", "integer"]}}},
    {"required": ["at"], "properties": {"at": {"type": "string"}}},
]


class SingleSchedule(Strict):
    """Fire times: exactly one of `cron`, `every` and `at`."""

    model_config = ConfigDict(json_schema_extra={"oneOf": list(_ONE_TIMING)})

    cron: str | None = Field(
        default=None,
        description="Five fields, or six with seconds first; or by `dialect`.",
        examples=["30 2 * * *"],
    )
    every: str | int | None = Field(
        default=None,
        description="Elapsed time: 90m, PT90M, or seconds. With timezone local days: 2w, 3mo.",
        examples=["90m"],
    )
    at: str | None = Field(default=None, description="One instant, RFC 3339, or a local time with timezone.")
    timezone: str | None = Field(
        default=None, description="IANA zone; UTC if none.", examples=["Europe/Paris"]
    )
    dialect: Literal["minute8", "eventbridge"] = Field(
        default="minute8",
        description="How `cron` is read; eventbridge: minutes hours day-of-month month day-of-week year.",
    )
    dst: Literal["minute8", "eventbridge"] = Field(
        default="minute8",
        description="The rule for clock changes; eventbridge: skipped times do not fire, repeated ones fire once.",
    )
    anchor: str | None = Field(default=None, description="An instant that `every` counts from.")
    start_at: str | None = Field(default=None, description="Nothing fires before (RFC 3339).")
    end_at: str | None = Field(default=None, description="Nothing fires at or after (RFC 3339).")
    exclude: ExcludeDefinition | None = None
    include_calendars: list[str] = Field(
        default=[], description="Names of calendars: the job fires only on dates that are in one of them."
    )
    on_excluded: Literal["skip", "next", "previous"] = Field(
        default="skip",
        description="On an excluded date the job does not fire, or at that time on the next or previous other date.",
    )


class OneOfSchedules(SingleSchedule):
    """One of a job's schedules, with what it changes of the payload."""

    payload_patch: JsonValue = Field(
        default=None,
        description="A JSON merge patch (RFC 7396) of the payload, for the runs of this schedule.",
    )


class ScheduleDefinition(SingleSchedule):
    """When the job fires: exactly one of `cron`, `every`, `at` and `schedules`."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                *_ONE_TIMING,
                {"required": ["schedules"], "properties": {"schedules": {"type": "array"}}},
            ]
        }
    )

    schedules: list[OneOfSchedules] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_SCHEDULES,
        description="Several schedules; an instant that some share fires once, with the patch of the first.",
    )
    max_runs: int | None = Field(
        default=None,
        description="The job ends after so many fire times; pauses, also with edits, do not count.",
    )
    spread_s: int | None = Field(
        default=None,
        description="All runs are due the same 0 to n seconds later, by the job's id; without it the tenant's default.",
    )
    jitter_s: int | None = Field(default=None, description="Spread: each run is due 0 to n seconds later.")
    pace: PaceDefinition | None = None

    def written(self) -> dict[str, Any]:
        """The schedule as the client wrote it, without absent fields."""
        return self.model_dump(exclude_none=True, exclude_defaults=True)

    def singles(self) -> Iterator[tuple[str, SingleSchedule]]:
        """Each of several schedules, or itself, with its place in the definition."""
        if self.schedules is None:
            yield "schedule", self
        for place, schedule in enumerate(self.schedules or ()):
            yield f"schedule.schedules.{place}", schedule

    def patches(self) -> Iterator[tuple[int, JsonValue]]:
        """The payload patches, with the places of their schedules."""
        for place, schedule in enumerate(self.schedules or ()):
            if schedule.payload_patch is not None:
                yield place, schedule.payload_patch


class RetryDefinition(Strict):
    """When a failed attempt is retried: base · factor^(n-1), at most cap, with jitter, within the maximum age."""

    max_attempts: int = Field(
        description="The number of attempts in all.", default=_RETRY.max_attempts, ge=1, le=MAX_ATTEMPTS
    )
    base_s: int = Field(
        description="The wait before the second attempt.", default=_RETRY.base_s, ge=1, le=DAY_S
    )
    factor: Annotated[float, Field(ge=1, le=10, strict=False), AfterValidator(_as_stored)] = Field(
        default=_RETRY.factor, description="Each wait is so many times the wait before."
    )
    cap_s: int = Field(
        description="The longest wait between two attempts.", default=_RETRY.cap_s, ge=1, le=DAY_S
    )
    max_age_s: int = Field(
        description="No attempt begins later than this after the run was due.",
        default=_RETRY.max_age_s,
        ge=1,
        le=14 * DAY_S,
    )


def _link(url: str) -> str:
    if url and not _LINK.fullmatch(url):  # pages show it as a link, so no other scheme may pass
        raise PydanticCustomError("bad_link", "must be an http or https URL of printable ASCII characters")
    return url


class AlertDefinition(Strict):
    """When subscribers hear of a job whose runs do not fail. Times are in seconds."""

    longer_than_s: int | None = Field(
        default=None,
        ge=1,
        le=14 * DAY_S,
        description="A run takes longer, from its first start to its end, with retries; also while it is going.",
    )
    shorter_than_s: int | None = Field(
        default=None, ge=1, le=DAY_S, description="A run succeeds, and its last call took less."
    )
    no_success_for_s: int | None = Field(
        default=None, ge=60, le=28 * DAY_S, description="The job is active, and no run succeeds for so long."
    )


class JobDefinition(Strict):
    """A job as a client writes it."""

    name: Annotated[str, StringConstraints(max_length=NAME_CHARS)] = Field(
        default="", description="A name for people."
    )
    tags: list[Annotated[str, StringConstraints(min_length=1, max_length=64)]] = Field(
        description="Labels; lists filter by them.", default=[], max_length=20
    )
    schedule: ScheduleDefinition = Field(description="When the job fires.")
    target: target_definitions.Target = Field(description="What the job calls.")
    payload: JsonValue = Field(
        default=None,
        description="What the target gets: any JSON, with placeholders, and secrets for `secret://name`.",
    )
    timeout_s: int = Field(default=60, ge=1, description="After this a call is given up as timed out.")
    completion: Literal["answer", "callback"] = Field(
        default="answer",
        description="What ends an attempt: the call's answer, or a callback of the target.",
    )
    callback_timeout_s: int | None = Field(
        default=None,
        ge=MIN_CALLBACK_TIMEOUT_S,
        le=MAX_CALLBACK_TIMEOUT_S,
        description="With completion callback: how long a run waits for each sign of the target; an hour if none.",
    )
    retry: RetryDefinition = Field(
        default=RetryDefinition(), description="When a failed attempt is tried again."
    )
    start_deadline_s: int | None = Field(
        default=None, ge=1, le=14 * DAY_S, description="Later than this after it was due, a run is skipped."
    )
    catch_up: Literal["none", "latest", "all"] = Field(
        default="latest", description="Which missed fire times still run after an outage of over ten minutes."
    )
    overlap: Literal["allow", "skip", "queue_one"] = Field(
        default="allow", description="What happens when the previous run is still going."
    )
    pause_after_failures: int | None = Field(
        default=None, ge=1, le=1_000, description="Pause the job after so many failed runs in a row."
    )
    on_crash: Literal["retry", "fail"] = Field(
        default="retry",
        description="If the executor dies during a call: call again, or end the run as failed (at most one call).",
    )
    after_completion: Literal["keep", "delete"] = Field(
        default="keep", description="Whether the job is deleted when its last run has ended."
    )
    dead_letter: Annotated[str, StringConstraints(pattern=target_definitions.STANDARD_QUEUE_ARN)] | None = (
        Field(
            default=None,
            description="The ARN of a standard SQS queue that gets a message of each run that fails.",
        )
    )
    alert: AlertDefinition | None = Field(
        default=None,
        description="When subscribers hear of runs that are too long, too short, or do not succeed.",
    )
    concurrency: ConcurrencyDefinition | None = Field(
        default=None, description="How many attempts of several jobs go at a time."
    )
    owner: Annotated[str, StringConstraints(max_length=NAME_CHARS)] = Field(
        default="", description="Who answers for the job; failure events contain it."
    )
    runbook: Annotated[str, StringConstraints(max_length=RUNBOOK_CHARS), AfterValidator(_link)] = Field(
        default="", description="The URL of what to do when it fails; failure events contain it."
    )


def parse_definition(raw: object, limits: Limits) -> JobDefinition:
    """Validate what a client sent, except the meaning of the schedule (`schedule_text.parse_schedule` does that).

    Raises:
        InvalidInput: with the first problem, and the others in `also`.
    """
    if not isinstance(raw, Mapping):
        raise InvalidInput("job", "must be an object", value=raw, accepted="a JSON object")
    try:
        definition = JobDefinition.model_validate(raw)
    except ValidationError as error:
        raise invalid_input(error, "job", JobDefinition) from None
    if "timeout_s" not in definition.model_fields_set:
        definition.timeout_s = min(definition.timeout_s, limits.longest_timeout_s)
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
    _check_completion(definition)
    ends_known = definition.completion == "callback" or target_definitions.is_awaited(target)
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
            value=definition.concurrency.model_dump(),
            accepted=f"null; or {_KNOWN_ENDS}",
        )
    if definition.alert:
        _check_alert(definition.alert, ends_known)
    if isinstance(target, target_definitions.HttpTarget):
        check_url(target.url, limits)
    return definition


_KNOWN_ENDS: Final = (
    "a target that is waited for: lambda with RequestResponse, http, or any with completion callback"
)


def _check_completion(definition: JobDefinition) -> None:
    """Raises InvalidInput. A job with callbacks gets the default time if it names none."""
    if definition.completion == "answer":
        if definition.callback_timeout_s is not None:
            raise InvalidInput(
                "callback_timeout_s",
                "is only for jobs whose targets call back",
                value=definition.callback_timeout_s,
                accepted="null; or completion callback",
            )
        return
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
    if definition.callback_timeout_s is None:
        definition.callback_timeout_s = _CALLBACK_S


def _check_alert(alert: AlertDefinition, ends_known: bool) -> None:
    """Raises InvalidInput."""
    if alert.model_dump(exclude_none=True) and not ends_known:
        raise InvalidInput(
            "alert",
            "needs to know when a run ends, and this target only takes the event",
            value=alert.model_dump(exclude_none=True),
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
