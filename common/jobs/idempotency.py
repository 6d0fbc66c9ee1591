"""A request that takes effect once, however often its client sends it, because it carries an idempotency key.

What it created is remembered with its key for a day, in the job's own transaction: a crash leaves both or neither, so
that there is no instant in which the request, sent again, could create a second job or go unanswered. Nothing is kept
of a request that was refused: sent again it is judged again.

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
    """One tenant's request: the key that its client chose, and a fingerprint of what it asks for."""

    tenant: str
    key: str
    fingerprint: str

    @classmethod
    def of(cls, tenant: str, key: str, body: Any) -> IdempotencyKey:
        """`body` is JSON's: how it was written, and in which order, makes no other request of it."""
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
        """Have `tx` write down what it creates, unless the key is taken."""
        item = {
            **self.item_key,
            "fingerprint": self.fingerprint,
            "job": job.to_item(),
            "expires_at": math.floor(now) + KEPT_S,
        }
        # DynamoDB removes an expired item when it comes round to it, within days.
        free = Expression("attribute_not_exists(pk) OR #expires_at <= :now", {":now": now})
        tx.put(jobs, item, free)
