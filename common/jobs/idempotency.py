"""Idempotent requests: a request with an idempotency key takes effect once, even if its client repeats it.

What the request created is stored with the key for a day, in the job's own transaction. After a crash either both exist
or neither does, so a repeated request can never create a second job or go unanswered. The record is small: the repeated
request itself holds the definition, from which the answer is built again. Nothing is stored of a refused request: a
repetition is checked anew.

draft-ietf-httpapi-idempotency-key-header-07, sections 2.4 to 2.7
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from common.errors import KeyReused
from common.jobs.job import Job
from common.storage import keys
from common.storage.table import Table
from common.storage.transactions import Transaction
from common.timing.instants import DAY_S

RECORD_LIFETIME_S: Final = DAY_S


@dataclass(frozen=True, slots=True)
class Created:
    """The fields that a job got when it was created, apart from its definition."""

    job_id: str
    revision: int
    schedule_revision: int
    shard: int
    created_at: int


class AlreadyCreated(Exception):
    """The request took effect before."""

    def __init__(self, created: Created) -> None:
        self.created = created
        super().__init__(f"job {created.job_id!r} was created by the same request before")


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """One tenant's request: the key that its client chose, and a fingerprint of the body."""

    tenant: str
    key: str
    fingerprint: str

    @classmethod
    def of(cls, tenant: str, key: str, body: Any) -> IdempotencyKey:
        """`body` is parsed JSON: whitespace and the order of fields do not change the fingerprint."""
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        return cls(tenant, key, hashlib.sha256(text.encode()).hexdigest())

    @property
    def item_key(self) -> keys.Key:
        return keys.idempotency_key(self.tenant, hashlib.sha256(self.key.encode()).hexdigest())

    def check_first(self, jobs: Table) -> None:
        """Require that the request did not take effect before. Raises AlreadyCreated, KeyReused."""
        item = jobs.get(self.item_key)
        if item is None:
            return
        if item["fingerprint"] != self.fingerprint:
            raise KeyReused(self.key)
        # Earlier records hold the whole job.
        raise AlreadyCreated(Created(**{field.name: item["job"][field.name] for field in fields(Created)}))

    def remember(self, tx: Transaction, jobs: Table, job: Job, now: float) -> None:
        """Store in `tx` that the request created the job, unless the key is taken."""
        created = Created(job.job_id, job.revision, job.schedule_revision, job.shard, job.created_at)
        item = {
            **self.item_key,
            "fingerprint": self.fingerprint,
            "job": asdict(created),
            "expires_at": math.floor(now) + RECORD_LIFETIME_S,
        }
        tx.put(jobs, item, jobs.absent)
