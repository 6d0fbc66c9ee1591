"""A job as it is stored: what to call, when, and how.

`definition.py` validates what a person sends. All stages import this file, so it imports nothing heavy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from decimal import Decimal
from typing import Any, Literal

from common.errors import NONE_YET, Conflict, NotFound, RevisionMismatch
from common.jobs.stored_text import StoredText
from common.planning.due_entry import CatchUp, DueEntry
from common.planning.execution import job_key
from common.planning.pace import pace_number
from common.timing.instants import DAY_S
from common.timing.schedule import Schedule

ACTIVE = "active"
PAUSED = "paused"
# A deleted job is kept under a key of its own (`former_jobs.py`). Earlier versions kept it with this state for 15 days.
DELETED = "deleted"
# An item that cannot be read has this state in memory (`corrupt.py`).
CORRUPT = "corrupt"

# EventBridge Scheduler's first attempt and its 185 retries.
MAX_ATTEMPTS = 186

NO_PAYLOAD = StoredText("null")
# The field of one of several schedules that changes the payload of its runs: a JSON merge patch (RFC 7396).
PAYLOAD_PATCH = "payload_patch"

# What a reference to a secret begins with (`secret_references.py`), and the most of a job. Each can add 4 KB to a call.
SECRET_MARK = "secret://"
MAX_SECRET_REFERENCES = 20

# The attribute that stores the origin of a job that another API no longer has: it knows former requests alone.
FORMER_REQUESTS = "former_requests"

Overlap = Literal["allow", "skip", "queue_one"]
OnCrash = Literal["retry", "fail"]
AfterCompletion = Literal["keep", "delete"]
ByWhat = Literal["answer", "callback"]


@dataclass(frozen=True, slots=True)
class Retry:
    """When a failed attempt is retried: after base_s · factor^(n-1), at most cap_s, minus a deterministic jitter.

    No attempt starts later than `max_age_s` after the execution was due.
    """

    max_attempts: int = 3
    base_s: int = 30
    factor: float = 2
    cap_s: int = 900
    max_age_s: int = DAY_S


@dataclass(frozen=True, slots=True)
class Alert:
    """When subscribers hear of a job whose runs do not fail: whole seconds; None is never.

    A run takes longer, from its first start to its end; a call succeeds faster; no run succeeds for so long.
    """

    longer_than_s: int | None = None
    shorter_than_s: int | None = None
    no_success_for_s: int | None = None

    def to_item(self) -> dict[str, int]:
        """The thresholds that it has."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True)
class Concurrency:
    """At most `limit` attempts of all the tenant's jobs with this key go at a time, by this job's limit.

    A run without a slot is skipped, or waits for `max_wait_s` seconds at most.
    """

    key: str
    limit: int
    when_full: Literal["wait", "skip"] = "wait"
    max_wait_s: int = 3_600


@dataclass(frozen=True, slots=True)
class Job:
    """One job of one tenant.

    `schedule_given` is what the client wrote; `schedule` is resolved (`H` and the anchor). `revision` increases with
    every change, `schedule_revision` only if the times change. Nothing fires before `effective_at`. `group` and `shard`
    say where the due entry of an active job is. The executor counts `failures_in_row`; a change of the job resets it.
    """

    tenant: str
    job_id: str
    schedule_given: Mapping[str, Any]
    schedule: Schedule
    target: Mapping[str, Any]
    payload: StoredText = NO_PAYLOAD
    timeout_s: int = 60
    # How long a run waits for each callback of its target; None: the call's answer is the end.
    callback_timeout_s: int | None = None
    retry: Retry = field(default_factory=Retry)
    start_deadline_s: int | None = None
    catch_up: CatchUp = "latest"
    overlap: Overlap = "allow"
    pause_after_failures: int | None = None
    on_crash: OnCrash = "retry"
    after_completion: AfterCompletion = "keep"
    dead_letter: str | None = None
    alert: Alert | None = None
    concurrency: Concurrency | None = None
    owner: str = ""
    runbook: str = ""
    name: str = ""
    tags: tuple[str, ...] = ()
    state: str = ACTIVE
    note: str = ""
    revision: int = 1
    schedule_revision: int = 1
    effective_at: int = 0
    created_at: int = 0
    updated_at: int = 0
    group: str = ""
    shard: int = 0
    # Whether the last run failed; `failures.py` counts. Items of earlier versions have the count itself.
    is_failing: bool = False
    failures_in_row: int = 0
    # Coming fire times that are cancelled beforehand (`skips.py`).
    skips: tuple[int, ...] = ()
    # Fire times before `effective_at` that count for `max_runs` (`revisions.py`).
    runs_before: int = 0
    # What the room of another API keeps about a job of this id. Only that room reads it.
    origin: Mapping[str, Any] | None = None
    # The names of the secrets that its target and payload name (`secret_references.py`).
    secrets: tuple[str, ...] = ()

    def may_name_secrets(self, payload: str | None) -> bool:
        """Whether a call with this payload may need secrets.

        A version before secrets leaves out the list of a job that it writes, and keeps the texts. It may also have
        stored a text that only looks like a reference.
        """
        if self.secrets:
            return True
        return 0 < f"{self.target}{payload}".count(SECRET_MARK) <= MAX_SECRET_REFERENCES

    @property
    def key(self) -> str:
        """The seed of H and jitter."""
        return job_key(self.tenant, self.job_id)

    @property
    def completion(self) -> ByWhat:
        """What ends an attempt."""
        return "answer" if self.callback_timeout_s is None else "callback"

    @property
    def texts(self) -> Iterator[StoredText]:
        """What may have items of its own."""
        yield self.payload
        yield from (value for value in (self.origin or {}).values() if isinstance(value, StoredText))

    @property
    def pace_number(self) -> int:
        """The number of its pace, by which its shard is found; 0 without one."""
        return pace_number(self.tenant, self.schedule.pace)

    def due_entry(self) -> DueEntry:
        """The job's entry in the due index."""
        return DueEntry(
            self.tenant, self.job_id, self.schedule, self.effective_at, self.schedule_revision, self.catch_up
        )

    def to_item(self) -> dict[str, Any]:
        """The attributes of its item, without the key."""
        item: dict[str, Any] = {
            "tenant": self.tenant,
            "job_id": self.job_id,
            "schedule_given": _with_patches(self.schedule_given, json.dumps),
            "schedule": self.schedule.to_item(),
            "target": dict(self.target),
            "payload": self.payload.attribute,
            "timeout_s": self.timeout_s,
            "retry": asdict(self.retry) | {"factor": Decimal(str(self.retry.factor))},
            "catch_up": self.catch_up,
            "overlap": self.overlap,
            "state": self.state,
            "revision": self.revision,
            "schedule_revision": self.schedule_revision,
            "effective_at": self.effective_at,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "group": self.group,
            "shard": self.shard,
        }
        optional = {
            "callback_timeout_s": self.callback_timeout_s,
            "start_deadline_s": self.start_deadline_s,
            "pause_after_failures": self.pause_after_failures,
            "on_crash": self.on_crash if self.on_crash != "retry" else None,
            "after_completion": self.after_completion if self.after_completion != "keep" else None,
            "dead_letter": self.dead_letter,
            "alert": self.alert.to_item() if self.alert else None,
            "concurrency": asdict(self.concurrency) if self.concurrency else None,
        }
        item |= {name: value for name, value in optional.items() if value is not None}
        often_empty = {
            "is_failing": self.is_failing,
            "failures_in_row": self.failures_in_row,
            "skips": list(self.skips),
            "secrets": list(self.secrets),
            "runs_before": self.runs_before,
            "owner": self.owner,
            "runbook": self.runbook,
            "name": self.name,
            "tags": list(self.tags),
            "note": self.note,
        }
        item |= {name: value for name, value in often_empty.items() if value}
        if self.origin:
            item |= self.origin if FORMER_REQUESTS in self.origin else {"origin": _origin_item(self.origin)}
        return item

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Job:
        """The inverse of `to_item`."""
        return cls(
            tenant=item["tenant"],
            job_id=item["job_id"],
            schedule_given=_with_patches(item["schedule_given"], json.loads),
            schedule=Schedule.from_item(item["schedule"]),
            target=item["target"],
            payload=StoredText.from_attribute(item.get("payload", "null")),  # see WITHOUT_PAYLOAD
            timeout_s=item["timeout_s"],
            callback_timeout_s=item.get("callback_timeout_s"),
            retry=Retry(**item["retry"]),
            start_deadline_s=item.get("start_deadline_s"),
            catch_up=item["catch_up"],
            overlap=item.get("overlap", "allow"),  # older items have no overlap policy
            pause_after_failures=item.get("pause_after_failures"),
            is_failing=item.get("is_failing", False),
            failures_in_row=item.get("failures_in_row", 0),
            skips=tuple(item.get("skips", ())),
            secrets=tuple(item.get("secrets", ())),
            runs_before=int(item.get("runs_before", 0)),
            on_crash=item.get("on_crash", "retry"),
            after_completion=item.get("after_completion", "keep"),
            dead_letter=item.get("dead_letter"),
            alert=Alert(**item["alert"]) if item.get("alert") else None,
            concurrency=Concurrency(**item["concurrency"]) if item.get("concurrency") else None,
            owner=item.get("owner", ""),
            runbook=item.get("runbook", ""),
            name=item.get("name", ""),
            tags=tuple(item.get("tags", ())),
            state=item["state"],
            note=item.get("note", ""),
            revision=item["revision"],
            schedule_revision=item["schedule_revision"],
            effective_at=item["effective_at"],
            created_at=item["created_at"],
            updated_at=item["updated_at"],
            group=item["group"],
            shard=item["shard"],
            origin=_origin(item.get("origin", {}))
            or {name: item[name] for name in (FORMER_REQUESTS,) if name in item}
            or None,
        )


def _with_patches(written: Mapping[str, Any], form: Callable[[Any], Any]) -> dict[str, Any]:
    """The schedule with its payload patches in another form. Stored is JSON text, since items keep no null members."""
    if "schedules" not in written:
        return dict(written)
    schedules = [
        {name: form(value) if name == PAYLOAD_PATCH else value for name, value in part.items()}
        for part in written["schedules"]
    ]
    return {**written, "schedules": schedules}


def _origin_item(origin: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.attribute if isinstance(value, StoredText) else value for name, value in origin.items()
    }


def _origin(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The inverse. Only large texts of an origin are a StoredText."""
    large = {
        name: StoredText.from_attribute(value)
        for name, value in item.items()
        if isinstance(value, Mapping) and "sha256" in value
    }
    return {**item, **large} if large else item


# To read many jobs: all attributes but the payload. Earlier versions stored up to 128 KB there. It is null then.
WITHOUT_PAYLOAD = (*(field.name for field in fields(Job) if field.name != "payload"), FORMER_REQUESTS)


def exists(job: Job | None) -> bool:
    """Whether the job is stored, not deleted, and can be read."""
    return job is not None and job.state not in (DELETED, CORRUPT)


def existing(job: Job | None, job_id: str, expected_revision: int | None) -> Job:
    """The job. Raises NotFound, RevisionMismatch (if a revision is expected), Conflict (its item cannot be read)."""
    if job is None or job.state == DELETED:
        raise NotFound("job", job_id)
    if job.state == CORRUPT:
        raise Conflict(f"job {job_id!r} is damaged: put it again, or delete it; its item is {job.note}")
    check_revision(job, job_id, expected_revision)
    return job


def check_revision(job: Job | None, job_id: str, expected_revision: int | None) -> None:
    """Raises NotFound or RevisionMismatch if a revision is expected and is not the job's. See also NONE_YET."""
    if expected_revision is None:
        return
    if job is None or job.state == DELETED:
        if expected_revision == NONE_YET:
            return
        raise NotFound("job", job_id)
    if job.revision != expected_revision:
        raise RevisionMismatch(job_id, expected_revision, job.revision)


@dataclass(frozen=True, slots=True)
class ScheduledJob:
    """The fields of a `Job` that decide when it fires: a list of many jobs reads these in a quarter of the time."""

    tenant: str
    job_id: str
    schedule_given: Mapping[str, Any]
    schedule: Schedule
    state: str
    effective_at: int
    concurrency: Mapping[str, Any] | None = None

    @property
    def key(self) -> str:
        """The seed of H, spread and jitter."""
        return job_key(self.tenant, self.job_id)

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> ScheduledJob:
        """From a job's item, of which only the SCHEDULED_JOB_ATTRIBUTES are needed."""
        return cls(
            **{name: item[name] for name in SCHEDULED_JOB_ATTRIBUTES if name != "concurrency"}
            | {"schedule": Schedule.from_item(item["schedule"]), "concurrency": item.get("concurrency")}
        )


SCHEDULED_JOB_ATTRIBUTES = tuple(field.name for field in fields(ScheduledJob))
