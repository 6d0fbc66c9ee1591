"""A job as it is stored: what to call, when, and how. `spec.py` declares what a client says of it.

All stages import this file, so it imports nothing heavy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple

from msgspec import Struct, to_builtins
from msgspec.json import Decoder, Encoder
from msgspec.structs import replace

from common.cache import convert
from common.errors import NONE_YET, Conflict, NotFound, RevisionMismatch
from common.jobs.spec import JobSpec
from common.jobs.stored_text import StoredText
from common.planning.due_entry import DueEntry
from common.planning.execution import job_key
from common.timing.schedule import Schedule

ACTIVE: Final = "active"
PAUSED: Final = "paused"
# A deleted job is kept under a key of its own (`former_jobs.py`).
DELETED: Final = "deleted"
# An item that cannot be read has this state in memory (`corrupt.py`).
CORRUPT: Final = "corrupt"

# No function of Lambda runs longer, and of other targets nobody knows.
MAX_WORK_S: Final = 900
# Its environment may have to be made before its timeout begins.
_INIT_S: Final = 15
# How long an endpoint's work counts as going on after its connection was closed (docs/decisions/executing.md, 0064).
HTTP_WORK_S: Final = 60

NO_PAYLOAD: Final = StoredText("null")


class Pause(NamedTuple):
    """A time in which the job was paused: no fire time in it runs."""

    from_at: int
    until_at: int


class Job(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One job of one tenant. `spec` is what the client wrote; `schedule` is resolved (`H` and the anchor).

    `revision` increases with every change, `schedule_revision` if the times change or a pause ends. Nothing is planned
    before `effective_at`. `group` and `shard` say where the due entry of an active job is.
    """

    tenant: str
    job_id: str
    state: Literal["active", "paused", "deleted", "corrupt"]
    revision: int
    schedule_revision: int
    effective_at: int
    created_at: int
    updated_at: int
    group: str
    shard: int
    note: str = ""
    # Whether the last run failed, as the executor notes; `failures.py` counts. A change of the job resets both.
    is_failing: bool = False
    failures_in_row: int = 0
    # Why it does not run, by the names of `not_running.py`.
    not_running: str = ""
    # Coming fire times that are cancelled beforehand (`store.py`).
    skips: tuple[int, ...] = ()
    # The last ones; a pause that goes on is the last one, and has no end yet (`revisions.py`).
    pauses: tuple[Pause, ...] = ()
    # Fire times before `effective_at` that count for `max_runs` (`revisions.py`).
    runs_before: int = 0
    # The names of the secrets that its target and payload name (`placeholders.py`).
    secrets: tuple[str, ...] = ()
    # The timeout of the Lambda function that is its target, as it was when the job was registered; 0: not known.
    function_timeout_s: int = 0
    spec: JobSpec
    schedule: Schedule
    payload: StoredText = NO_PAYLOAD
    # What the room of another API keeps about a job of this id. Only that room reads it.
    imported_from: Mapping[str, Any] | None = None

    @property
    def key(self) -> str:
        """The seed of H and jitter."""
        return job_key(self.tenant, self.job_id)

    @property
    def has_failures(self) -> bool:
        """Whether its last run may have failed."""
        return self.is_failing or self.failures_in_row > 0

    @property
    def has_streak(self) -> bool:
        """Whether a run that ends well changes what is noted of the job."""
        return self.has_failures or bool(self.not_running)

    @property
    def work_s(self) -> int:
        """How long the work of a call can last, whoever waits for its answer."""
        if self.spec.target["kind"] == "http" and self.spec.completion == "answer":
            return self.spec.timeout_s + HTTP_WORK_S
        return (self.function_timeout_s or MAX_WORK_S) + _INIT_S

    @property
    def texts(self) -> Iterator[StoredText]:
        """What may have items of its own."""
        yield self.payload
        yield from (value for value in (self.imported_from or {}).values() if isinstance(value, StoredText))

    def due_entry(self) -> DueEntry:
        """The job's entry in the due index."""
        return DueEntry(
            self.tenant,
            self.job_id,
            self.schedule,
            self.effective_at,
            self.schedule_revision,
            self.spec.catch_up,
        )

    def to_item(self) -> dict[str, Any]:
        """The attributes of its item, without the key. The spec is one JSON text: a map's floats would be rounded."""
        imported_from = _imported_item(self.imported_from) if self.imported_from else None
        spec, payload = _ENCODER.encode(self.spec).decode(), self.payload.attribute
        item: dict[str, Any] = to_builtins(
            replace(self, spec=spec, payload=payload, imported_from=imported_from)
        )
        return item

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Job:
        """The inverse of `to_item`. Raises one of DAMAGE."""
        parts = {"spec": read_spec(item), "payload": StoredText.from_attribute(item["payload"])}
        imported_from = _imported_from(item["imported_from"]) if "imported_from" in item else None
        return convert({**item, **parts, "imported_from": imported_from}, cls)


_ENCODER: Final = Encoder()
_DECODER: Final = Decoder(JobSpec)


def read_spec(item: Mapping[str, Any]) -> JobSpec:
    """What a job's item says of the definition. Raises one of DAMAGE."""
    return _DECODER.decode(item["spec"])


def _imported_item(imported_from: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: value.attribute if isinstance(value, StoredText) else value
        for name, value in imported_from.items()
    }


def _imported_from(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """The inverse. Only large texts of an `imported_from` are a StoredText."""
    large = {
        name: StoredText.from_attribute(value)
        for name, value in item.items()
        if isinstance(value, Mapping) and "sha256" in value
    }
    return {**item, **large} if large else item


def responsible(job: Job | None) -> dict[str, str]:
    """The owner and the runbook that a job names, for an event."""
    names = {"owner": job.spec.owner, "runbook": job.spec.runbook} if job else {}
    return {name: value for name, value in names.items() if value}


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
