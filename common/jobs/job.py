"""A job: the definition of what a tenant wants called when, as it is stored.

Validation of what a person sends is in `definition.py`; this file is what all stages read, and imports nothing heavy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any, Literal

from common.planning.execution import job_key
from common.planning.plan import CatchUp, DueEntry
from common.timing.instants import DAY_S
from common.timing.schedule import Schedule

ACTIVE = "active"
PAUSED = "paused"
# A deleted job leaves a tombstone, so that its messages still in the queue are told apart from garbage, and a job
# re-created under its name goes on counting revisions: old messages can never pass for the new job's.
DELETED = "deleted"
# The longest that SQS keeps a message (14 days), plus a day.
TOMBSTONE_KEPT_S = 15 * DAY_S

Overlap = Literal["allow", "skip", "queue_one"]


@dataclass(frozen=True, slots=True)
class Retry:
    """When a failed attempt is tried again: after base_s · factor^(n-1), at most cap_s, less a deterministic jitter.

    No attempt starts later than `max_age_s` after the execution was due.
    """

    max_attempts: int = 3
    base_s: int = 30
    factor: float = 2
    cap_s: int = 900
    max_age_s: int = DAY_S


@dataclass(frozen=True, slots=True)
class Job:
    """One job of one tenant.

    `schedule_given` is what the client wrote, `schedule` what it means (H resolved, anchor set). `revision` moves with
    every change, `schedule_revision` only when the times move. Nothing fires before `effective_at`. `group` and `shard`
    say where its due entry is while the job is active. The executor counts `failures_in_row`; a change of the job
    starts it anew.
    """

    tenant: str
    job_id: str
    schedule_given: Mapping[str, Any]
    schedule: Schedule
    target: Mapping[str, Any]
    payload: Any = None
    timeout_s: int = 60
    retry: Retry = field(default_factory=Retry)
    start_deadline_s: int | None = None
    catch_up: CatchUp = "latest"
    overlap: Overlap = "allow"
    pause_after_failures: int | None = None
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
    failures_in_row: int = 0

    @property
    def key(self) -> str:
        """What seeds H and jitter."""
        return job_key(self.tenant, self.job_id)

    def due_entry(self) -> DueEntry:
        """What the due index keeps of the job."""
        return DueEntry(
            self.tenant, self.job_id, self.schedule, self.effective_at, self.schedule_revision, self.catch_up
        )

    def to_item(self) -> dict[str, Any]:
        """As attributes of its item; the key is the store's business."""
        item: dict[str, Any] = {
            "tenant": self.tenant,
            "job_id": self.job_id,
            "schedule_given": dict(self.schedule_given),
            "schedule": self.schedule.to_item(),
            "target": dict(self.target),
            # As text: JSON's numbers are not DynamoDB's, and what a tenant sent arrives as it was sent.
            "payload": json.dumps(self.payload, separators=(",", ":"), ensure_ascii=False),
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
            "start_deadline_s": self.start_deadline_s,
            "pause_after_failures": self.pause_after_failures,
            "failures_in_row": self.failures_in_row or None,
            "name": self.name or None,
            "tags": list(self.tags) or None,
            "note": self.note or None,
        }
        item |= {name: value for name, value in optional.items() if value is not None}
        if self.state == DELETED:
            item["expires_at"] = self.updated_at + TOMBSTONE_KEPT_S
        return item

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> Job:
        """The inverse of `to_item`."""
        return cls(
            tenant=item["tenant"],
            job_id=item["job_id"],
            schedule_given=item["schedule_given"],
            schedule=Schedule.from_item(item["schedule"]),
            target=item["target"],
            payload=json.loads(item["payload"]),
            timeout_s=item["timeout_s"],
            retry=Retry(**item["retry"]),
            start_deadline_s=item.get("start_deadline_s"),
            catch_up=item["catch_up"],
            overlap=item.get("overlap", "allow"),  # items of before there was a choice
            pause_after_failures=item.get("pause_after_failures"),
            failures_in_row=item.get("failures_in_row", 0),
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
        )
