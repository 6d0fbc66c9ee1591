"""The claim of an attempt, and what it writes."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from common.planning.execution import Execution
from common.storage.tables import Expression, Item
from common.timing.instants import DAY_S

RETENTION_S: Final = 30 * DAY_S
# The run's first claim decides these, or what queued it.
_FIRST: Final = ("trigger", "due_at", "lateness_s", "first_started_at")


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to make one attempt, as the run's record shows it."""

    execution: Execution
    message_id: str
    started_at: float
    lease_until: float
    # How long the record is kept.
    kept_s: int = RETENTION_S
    # Unique for this try: if the answer is lost and botocore repeats the write, the record shows that it is ours.
    token: str = field(default_factory=lambda: secrets.token_hex(16))


def fields(claim: Claim, status: str) -> Item:
    """The record of a run that is claimed for the first time, without its key."""
    execution = claim.execution
    return {
        "tenant": execution.tenant,
        "job_id": execution.job_id,
        "fire_at": execution.fire_at,
        "status": status,
        "attempt": execution.attempt,
        "claimed_by": claim.message_id,
        "claim_token": claim.token,
        "started_at": claim.started_at,
        "lease_until": claim.lease_until,
        "expires_at": int(claim.started_at) + claim.kept_s,
        "schedule_revision": execution.schedule_revision,
        "trigger": execution.trigger,
        "due_at": execution.due_at,
        "lateness_s": max(0.0, claim.started_at - execution.due_at),
        "first_started_at": claim.started_at,
        "claims": 1,
    }


def claiming(claim: Claim, status: str) -> Expression:
    """The update by which a run is claimed, for the first time or again."""
    written = fields(claim, status)
    return Expression(_words(tuple(written)), {f":{name}": value for name, value in written.items()})


@lru_cache(maxsize=8)
def _words(names: tuple[str, ...]) -> str:
    assigned = [
        f"#{name} = if_not_exists(#{name}, :{name})" if name in _FIRST else f"#{name} = :{name}"
        for name in names
        if name != "claims"
    ]
    return f"SET {', '.join(assigned)} ADD #claims :claims"
