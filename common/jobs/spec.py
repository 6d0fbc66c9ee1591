"""What a client says of a job: its types, ranges, defaults and descriptions, declared once.

Stored items, requests, answers, the schema and docs/job.md are made from these classes. Meaning, such as that of a cron
expression, is checked in `common/registration`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from common.limits import MAX_ATTEMPTS, MAX_CALLBACK_TIMEOUT_S, NAME_CHARS
from common.timing.instants import DAY_S

# Each take and end writes the item of the key, which names the runs that go.
MAX_CONCURRENCY: Final = 100
# How long a run waits for each callback of its target, in seconds.
MIN_CALLBACK_TIMEOUT_S: Final = 60
RUNBOOK_CHARS: Final = 500

# The field of one of several schedules that changes the payload of its runs: a JSON merge patch (RFC 7396).
PAYLOAD_PATCH: Final = "payload_patch"

_ARN: Final = (
    r"^arn:aws[a-z-]{{0,20}}:{service}:[a-z]{{2}}(-[a-z]{{1,20}}){{1,4}}-[0-9]:[0-9]{{12}}:{resource}$"
)


def arn_pattern(service: str, resource: str) -> str:
    """The pattern of a service's ARNs."""
    return _ARN.format(service=service, resource=resource)


# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html
STANDARD_QUEUE_ARN: Final = arn_pattern("sqs", r"[A-Za-z0-9-_]{1,80}")


def returns_result(target: Mapping[str, Any]) -> bool:
    """Whether the call of a stored target returns the result of the work, or only that the event was accepted."""
    if target["kind"] == "lambda":
        return target["invocation"] == "RequestResponse" or bool(target.get("durable"))
    return bool(target["kind"] == "http")


Overlap = Literal["allow", "skip", "queue_one"]
CatchUp = Literal["none", "latest", "all"]
ByWhat = Literal["answer", "callback"]


class Retry(Struct, frozen=True, kw_only=True):
    """When a failed attempt is retried: base · factor^(n-1), at most cap, with jitter, within the maximum age."""

    max_attempts: Annotated[
        int, Meta(ge=1, le=MAX_ATTEMPTS, description="The number of attempts in all.")
    ] = 3
    base_s: Annotated[int, Meta(ge=1, le=DAY_S, description="The wait before the second attempt.")] = 30
    factor: Annotated[float, Meta(ge=1, le=10, description="Each wait is so many times the wait before.")] = (
        2.0
    )
    cap_s: Annotated[int, Meta(ge=1, le=DAY_S, description="The longest wait between two attempts.")] = 900
    max_age_s: Annotated[
        int,
        Meta(ge=1, le=14 * DAY_S, description="No attempt begins later than this after the run was due."),
    ] = DAY_S


class Alert(Struct, frozen=True, kw_only=True):
    """When subscribers hear of a job whose runs do not fail. Times are in seconds."""

    longer_than_s: Annotated[
        Annotated[int, Meta(ge=1, le=14 * DAY_S)] | None,
        Meta(
            description="A run takes longer, from its first start to its end, with retries; also while "
            "it is going."
        ),
    ] = None
    shorter_than_s: Annotated[
        Annotated[int, Meta(ge=1, le=DAY_S)] | None,
        Meta(description="A run succeeds, and its last call took less; at most `longer_than_s`."),
    ] = None
    no_success_for_s: Annotated[
        Annotated[int, Meta(ge=60, le=28 * DAY_S)] | None,
        Meta(
            description="The job is active, and no run succeeds for so long, from when it became active "
            "or changed its times."
        ),
    ] = None

    @property
    def thresholds(self) -> dict[str, int]:
        """The thresholds that it has."""
        every = {name: getattr(self, name) for name in self.__struct_fields__}
        return {name: value for name, value in every.items() if value is not None}


CONCURRENCY_KEY: Final = r"^[A-Za-z0-9._-]{1,64}$"


class Concurrency(Struct, frozen=True, kw_only=True):
    """How many attempts of all jobs with the same key go at a time, and what a run does that finds no place."""

    key: Annotated[
        str,
        Meta(
            pattern=CONCURRENCY_KEY,
            description="Jobs of the tenant with the same key share the places.",
            extra={"accepted": "1 to 64 letters, digits, ._-"},
        ),
    ]
    limit: Annotated[int, Meta(ge=1, le=MAX_CONCURRENCY, description="A run of this job begins if fewer go.")]
    when_full: Annotated[
        Literal["wait", "skip"],
        Meta(description="What a run does that finds no place; later attempts and backfills always wait."),
    ] = "wait"
    max_wait_s: Annotated[
        int,
        Meta(
            ge=1,
            le=DAY_S,
            description="After so long a run that waits is skipped, with the reason `concurrency`.",
        ),
    ] = 3_600


class Policies(Struct, frozen=True, kw_only=True):
    """What a job has besides its schedule, its target and its payload."""

    name: Annotated[str, Meta(max_length=NAME_CHARS, description="A name for people.")] = ""
    tags: Annotated[
        list[Annotated[str, Meta(min_length=1, max_length=64)]],
        Meta(max_length=20, description="Labels; lists filter by them."),
    ] = []
    timeout_s: Annotated[
        int,
        Meta(
            ge=1,
            description="After this a call is given up as timed out; at most 10 s less than the "
            "executor's time limit (290 usually).",
        ),
    ] = 60
    completion: Annotated[
        ByWhat,
        Meta(
            description="What ends an attempt: the call's answer, or a callback of the target.",
            extra={"page": "targets.md#work-that-ends-later"},
        ),
    ] = "answer"
    callback_timeout_s: Annotated[
        Annotated[int, Meta(ge=MIN_CALLBACK_TIMEOUT_S, le=MAX_CALLBACK_TIMEOUT_S)] | None,
        Meta(
            description="With completion callback: how long a run waits for each sign of the target; an "
            "hour if none."
        ),
    ] = None
    retry: Annotated[Retry, Meta(description="When a failed attempt is tried again.")] = Retry()
    start_deadline_s: Annotated[
        Annotated[int, Meta(ge=1, le=14 * DAY_S)] | None,
        Meta(description="Later than this after it was due, a run is skipped."),
    ] = None
    catch_up: Annotated[
        CatchUp, Meta(description="Which missed fire times still run after an outage of over ten minutes.")
    ] = "latest"
    overlap: Annotated[
        Overlap,
        Meta(
            description="What happens when the previous run is still going; not `allow` needs a target "
            "that Minute8 waits for, or `callback`.",
            extra={"page": "runs.md#overlap"},
        ),
    ] = "allow"
    pause_after_failures: Annotated[
        Annotated[int, Meta(ge=1, le=1_000)] | None,
        Meta(description="Pause the job after so many failed runs in a row."),
    ] = None
    on_crash: Annotated[
        Literal["retry", "fail"],
        Meta(
            description="If the executor dies during a call: call again, or end the run as failed (at "
            "most one call).",
            extra={"page": "runs.md#a-crash-during-a-call"},
        ),
    ] = "retry"
    after_completion: Annotated[
        Literal["keep", "delete"],
        Meta(
            description="Whether the job is deleted when its last run has ended.",
            extra={"page": "runs.md#after-the-last-run"},
        ),
    ] = "keep"
    dead_letter: Annotated[
        Annotated[
            str,
            Meta(
                pattern=STANDARD_QUEUE_ARN,
                extra={"accepted": "arn:aws:sqs:<region>:<account>:<queue>, not a FIFO queue"},
            ),
        ]
        | None,
        Meta(
            description="The ARN of a standard SQS queue, which the tenant may call, that gets a message "
            "of each run that fails.",
            extra={"page": "targets.md#dead-letters"},
        ),
    ] = None
    alert: Annotated[
        Alert | None,
        Meta(
            description="When subscribers hear of runs that are too long, too short, or do not succeed; "
            "needs what `skip` needs."
        ),
    ] = None
    concurrency: Annotated[
        Concurrency | None,
        Meta(description="How many attempts of several jobs go at a time; needs what `skip` needs."),
    ] = None
    owner: Annotated[
        str, Meta(max_length=NAME_CHARS, description="Who answers for the job; failure events contain it.")
    ] = ""
    runbook: Annotated[
        str,
        Meta(
            max_length=RUNBOOK_CHARS,
            pattern=r"^(https?://[!-~]+)?$",  # pages show it as a link, so no other scheme may pass
            description="The URL of what to do when it fails; failure events contain it.",
            extra={"accepted": "an http or https URL of printable ASCII characters"},
        ),
    ] = ""


class JobSpec(Policies, frozen=True, kw_only=True):
    """What a job's item keeps of a definition: `schedule` and `target` as the client wrote them, and no payload."""

    schedule: Mapping[str, Any]
    target: Mapping[str, Any]

    @property
    def is_limited(self) -> bool:
        """Whether its attempts need permits."""
        return self.overlap != "allow" or self.concurrency is not None
