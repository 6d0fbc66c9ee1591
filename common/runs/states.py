"""The states of a run and every change between them that may happen. Pure; docs/runs.md shows the same table.

The writes themselves (`runs.py`, `run_changes.py`) carry these as conditions, since only DynamoDB can compare and set;
a test drives each write from each state and holds what happens against this table.
"""

from __future__ import annotations

from typing import Final

# No record yet: planned, in the queue, or never heard of.
NONE: Final = "none"
# It waits for its turn, and has a record already: started by hand, or behind a run that is still going.
QUEUED: Final = "queued"
RUNNING: Final = "running"
# The next attempt is to come.
RETRYING: Final = "retrying"
# A service took the event; what became of it there is not known (yet).
DISPATCHED: Final = "dispatched"
SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"

STATES: Final = (NONE, QUEUED, RUNNING, RETRYING, DISPATCHED, SUCCEEDED, FAILED, SKIPPED)
# It has ended, unless a person opens it again or a target tells how a dispatched run went on.
ENDED: Final = frozenset({SUCCEEDED, FAILED, SKIPPED, DISPATCHED})

# What happens to a run -> from which state to which.
TRANSITIONS: Final[dict[str, dict[str, str]]] = {
    "queue": {NONE: QUEUED},
    "claim": {NONE: RUNNING, QUEUED: RUNNING},
    "claim the next attempt": {RETRYING: RUNNING},
    "claim for a hand-over": {NONE: DISPATCHED, QUEUED: DISPATCHED},
    "hand over the next attempt": {RETRYING: DISPATCHED},
    # By the same message, delivered again after its lease: the executor that had it died.
    "take over": {RUNNING: RUNNING, DISPATCHED: RUNNING},
    "take over a hand-over": {RUNNING: DISPATCHED, DISPATCHED: DISPATCHED},
    # By whoever holds the claim; of a dispatched run if the service did not take it, or by what the target tells later.
    "succeed": {RUNNING: SUCCEEDED, DISPATCHED: SUCCEEDED},
    "fail": {RUNNING: FAILED, DISPATCHED: FAILED},
    "retry later": {RUNNING: RETRYING, DISPATCHED: RETRYING},
    "skip": {NONE: SKIPPED, QUEUED: SKIPPED},
    # Before the next attempt: the job was paused or deleted meanwhile, say.
    "give up": {RETRYING: FAILED},
    "miss": {NONE: SKIPPED},
    "cancel": {NONE: SKIPPED, QUEUED: SKIPPED},
    "cancel the next attempt": {RETRYING: FAILED},
    "open again by hand": {FAILED: RETRYING},
}

# Why a run was skipped, and what each word means.
DELETED_JOB: Final = "deleted"
PAUSED_JOB: Final = "paused"
RESCHEDULED: Final = "rescheduled"
EXCLUDED: Final = "excluded"
MISFIRE: Final = "misfire"
MISSED: Final = "missed"
SUSPENDED_TENANT: Final = "suspended"
TARGET_NOT_ALLOWED: Final = "target_not_allowed"
INVALID: Final = "invalid"
OVERLAP: Final = "overlap"
CANCELLED: Final = "cancelled"
REASONS: Final[dict[str, str]] = {
    DELETED_JOB: "since this was planned, the job or its tenant was deleted, or was deleted and created again",
    PAUSED_JOB: "the job was paused at its fire time, or is now",
    RESCHEDULED: "the job's times changed after this was planned",
    EXCLUDED: "its date is in a calendar that the job names",
    MISFIRE: "it could not start within the job's `start_deadline_s`",
    MISSED: "no tick planned it within ten minutes; one record stands for all, see `skipped_count`",
    OVERLAP: "the job's previous run was still going",
    CANCELLED: "a person or program cancelled it",
    SUSPENDED_TENANT: "the platform has suspended the tenant",
    TARGET_NOT_ALLOWED: "the platform does not let the tenant call this target (any more)",
    INVALID: "it could not be planned or enqueued; `detail` says why",
}

# What started it.
TRIGGERS: Final[dict[str, str]] = {
    "schedule": "its schedule",
    "manual": "*run now*",
    "backfill": "a backfill of a past range",
    "retry": "a manual retry of a failed run; only in the message: the run keeps its trigger",
}


def after(state: str, change: str) -> str | None:
    """The state after a change; None if it cannot happen in this one."""
    return TRANSITIONS[change].get(state)
