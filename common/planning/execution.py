"""An execution: job × fire time, and the message that carries it through the queue.

Its id is derived, never random: if it is enqueued twice, the executor's claim and the target can both detect it. The
fire time travels in the message and is never recomputed.
"""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Any

from msgspec import Meta, Struct, json
from msgspec.structs import replace

from common.errors import Minute8Error, NotFound
from common.ids import TENANT_ID_CHARS, id_pattern, is_id
from common.limits import JOB_ID_CHARS, NONCE_CHARS
from common.timing.instants import LAST_AT, compact_time, parse_compact

MESSAGE_VERSION = 1
# Our own messages have at most some 600 bytes; longer ones are not parsed.
_MAX_BODY = 8_192
SCHEDULE = "schedule"
MANUAL = "manual"
BACKFILL = "backfill"
RETRY = "retry"
# A trigger id is a prefix and the client's name of the manual run or the backfill.
MANUAL_PREFIX = "m-"
# For a manual run with a payload of its own, which is stored beside the job.
OWN_PAYLOAD_PREFIX = "p-"
BACKFILL_PREFIX = "b-"
# Of the record of a window that could not be planned for a job, under the window's start.
UNPLANNED_PREFIX = "u-"
_TRIGGERS = {
    "": SCHEDULE,
    MANUAL_PREFIX: MANUAL,
    OWN_PAYLOAD_PREFIX: MANUAL,
    BACKFILL_PREFIX: BACKFILL,
    UNPLANNED_PREFIX: SCHEDULE,
}
_TRIGGER_ID_CHARS = 2 + NONCE_CHARS
_RUN_NAME = re.compile(r"([0-9]{8}T[0-9]{6}Z)(?::(.+))?", re.ASCII)


class UnreadableMessage(Minute8Error):
    """Not an execution in a version that this code reads. It belongs in the dead-letter queue."""


_Unsigned = Annotated[int, Meta(ge=0, le=LAST_AT)]


class Execution(
    Struct,
    frozen=True,
    rename={"job_id": "job", "schedule_revision": "rev"},
    tag_field="v",
    tag=MESSAGE_VERSION,
    omit_defaults=True,
):
    """One planned call of a job's target. Fields with their defaults are not set.

    Ids have the rules of a registration, so no message can use keys outside one tenant's job.

    - `due_at`: when this attempt is to start; of attempt 1 the fire time and its jitter.
    - `schedule_revision`: of the schedule that planned it. A hint for `jobs/revisions.py`, and no part of its id.
    - `trigger`: `schedule`, `manual`, `backfill`, or `retry` by hand. `trigger_id` distinguishes executions with the
      same fire time; a schedule's executions have none.
    - `throttles`: the attempts that the target refused before the work began. The retry policy does not count them.
    - `not_before_at`: when the message is to be delivered again, although it was due earlier. The execution waits.
    - `first_due_at`: from when the execution's age counts, if not from its fire time (jitter, backfills, catch-up).
    """

    tenant: Annotated[str, Meta(pattern=id_pattern(TENANT_ID_CHARS) + r"(?!\n)")]
    job_id: Annotated[str, Meta(pattern=id_pattern(JOB_ID_CHARS) + r"(?!\n)")]
    fire_at: _Unsigned
    due_at: _Unsigned
    schedule_revision: _Unsigned
    attempt: _Unsigned = 1
    trigger: Annotated[str, Meta(min_length=1)] = SCHEDULE
    trigger_id: str = ""
    throttles: _Unsigned = 0
    not_before_at: _Unsigned = 0
    first_due_at: _Unsigned = 0

    @property
    def run_name(self) -> str:
        """The run's sort key: fire time first, so that a job's runs sort by it."""
        name = compact_time(self.fire_at)
        return f"{name}:{self.trigger_id}" if self.trigger_id else name

    @property
    def execution_id(self) -> str:
        """The idempotency key, unique over all tenants: tenant:job:fire time."""
        return execution_id(self.tenant, self.job_id, self.run_name)

    @property
    def log_fields(self) -> dict[str, Any]:
        """The fields of each log line about the execution."""
        return {
            "tenant": self.tenant,
            "job_id": self.job_id,
            "execution_id": self.execution_id,
            "attempt": self.attempt,
            "trace_id": trace_id(self.execution_id),
        }

    def retry(self, due_at: int, *, throttled: bool = False) -> Execution:
        """The same execution's next attempt; `throttled` if the target refused this one.

        The attempt number always increases, since claims use it to distinguish attempts.
        """
        return replace(
            self,
            attempt=self.attempt + 1,
            due_at=due_at,
            throttles=self.throttles + int(throttled),
            not_before_at=0,
            first_due_at=self.aged_from_at if self.aged_from_at != self.fire_at else 0,
        )

    @property
    def aged_from_at(self) -> int:
        """The time from which the retry policy's age counts."""
        return self.first_due_at or (self.due_at if self.attempt == 1 else self.fire_at)

    @property
    def visible_at(self) -> int:
        """When the message is to become visible in the queue."""
        return max(self.due_at, self.not_before_at)

    def encode(self) -> str:
        """The message body; `decode` is its inverse."""
        return _writer.encode(self).decode()

    @classmethod
    def decode(cls, body: object) -> Execution:
        """Read a message, or whatever else somebody has put in its place.

        Raises:
            UnreadableMessage: the body is not an execution.
        """
        if not isinstance(body, str):
            raise UnreadableMessage(f"not a text: {body!r}"[:300])
        if len(body) > _MAX_BODY:
            raise UnreadableMessage(f"a body of {len(body)} characters, an execution has at most {_MAX_BODY}")
        try:
            execution = _messages.decode(body)
            if not body.startswith(_BEGINNING) and version_of(body) is None:
                raise ValueError("it has no version")
        except (ValueError, RecursionError) as error:
            if (version := version_of(body)) not in (None, MESSAGE_VERSION):
                raise UnreadableMessage(
                    f"message version {version}, this code reads {MESSAGE_VERSION}"
                ) from error
            raise UnreadableMessage(f"not an execution: {body[:200]!r} ({error!r})") from error
        return execution


class _Versioned(Struct):
    v: _Unsigned


_messages, _writer = json.Decoder(Execution), json.Encoder()
# Of what `encode` writes.
_BEGINNING = f'{{"v":{MESSAGE_VERSION},'


def version_of(body: str) -> int | None:
    """The version of a message that this code does not read; None if it has none."""
    try:
        return json.decode(body, type=_Versioned).v
    except (ValueError, RecursionError):
        return None


def execution_id(tenant: str, job_id: str, run_name: str) -> str:
    """tenant:job:fire time[:trigger id]. No part can contain a colon."""
    return f"{tenant}:{job_id}:{run_name}"


def trace_id(execution_id: str) -> str:
    """The W3C trace id of an execution, the same in each attempt."""
    return hashlib.sha256(execution_id.encode()).hexdigest()[:32]


def traceparent(execution_id: str, attempt: int) -> str:
    """The W3C traceparent of an attempt: its span is the parent of what the target does.

    https://www.w3.org/TR/trace-context/#traceparent-header
    """
    digest = hashlib.sha256(execution_id.encode()).hexdigest()
    span = (int(digest[32:48], 16) + attempt) % 2**64 or 1  # of zeros only is not valid
    return f"00-{digest[:32]}-{span:016x}-01"


def split_execution_id(text: str) -> tuple[str, str, str] | None:
    """Tenant, job id and run name, the inverse of `execution_id`; None if the text is not an execution id."""
    tenant, _, rest = text.partition(":")
    job_id, _, run_name = rest.partition(":")
    valid = is_id(tenant, TENANT_ID_CHARS) and is_id(job_id, JOB_ID_CHARS) and split_run_name(run_name)
    return (tenant, job_id, run_name) if valid else None


def split_run_name(text: object) -> tuple[int, str] | None:
    """Fire time and trigger id of a run's name; None if it is not a run's name."""
    match = _RUN_NAME.fullmatch(text) if isinstance(text, str) else None
    if match is None or (match[2] is not None and not is_id(match[2], _TRIGGER_ID_CHARS)):
        return None
    fire_at = parse_compact(match[1])
    return None if fire_at is None else (fire_at, match[2] or "")


def trigger_of(run_name: str) -> str:
    """What started the run of this name; empty if the name tells nothing."""
    parts = split_run_name(run_name)
    return _TRIGGERS.get(parts[1][:2], "") if parts else ""


def parse_execution_id(tenant: str, text: str) -> Execution:
    """The execution of an id. Which schedule planned it is not known.

    Raises:
        NotFound: not an id, or another tenant's id: the error is the same for both.
    """
    parts = split_execution_id(text)
    run = split_run_name(parts[2]) if parts and parts[0] == tenant else None
    if not parts or not run:
        raise NotFound("run", text)
    fire_at, trigger_id = run
    trigger = _TRIGGERS.get(trigger_id[:2])
    if trigger is None:
        raise NotFound("run", text)
    return Execution(
        tenant=tenant,
        job_id=parts[1],
        fire_at=fire_at,
        due_at=fire_at,
        schedule_revision=0,
        trigger=trigger,
        trigger_id=trigger_id,
    )


def job_key(tenant: str, job_id: str) -> str:
    """The seed of H and jitter. Neither part can contain a slash, so no two jobs share a key."""
    return f"{tenant}/{job_id}"
