"""Idempotent requests: a request with an idempotency key takes effect once, even if its client repeats it.

The result is stored with the key for a day, in the job's own transaction. After a crash either both exist or neither
does, so a repeated request can never create a second job or go unanswered. Nothing is stored of a refused request: a
repetition is checked anew.

draft-ietf-httpapi-idempotency-key-header-07, sections 2.4 to 2.7
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from typing import Any, Final

from common.errors import KeyReused
from common.jobs.job import Job
from common.storage import keys
from common.storage.tables import Expression, Table, Transaction
from common.timing.instants import DAY_S

KEPT_S: Final = DAY_S


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

    def created(self, jobs: Table, now: float) -> Job | None:
        """The job that the request created, as it was then. Raises KeyReused."""
        item = jobs.get(self.item_key)
        if item is None or item["expires_at"] <= now:
            return None
        if item["fingerprint"] != self.fingerprint:
            raise KeyReused(self.key)
        return Job.from_item(item["job"])

    def remember(self, tx: Transaction, jobs: Table, job: Job, now: float) -> None:
        """Store the created job with the key in `tx`, unless the key is taken."""
        item = {
            **self.item_key,
            "fingerprint": self.fingerprint,
            "job": job.to_item(),
            "expires_at": math.floor(now) + KEPT_S,
        }
        # DynamoDB removes expired items only after some time, up to days.
        free = Expression("attribute_not_exists(pk) OR #expires_at <= :now", {":now": now})
        tx.put(jobs, item, free)
