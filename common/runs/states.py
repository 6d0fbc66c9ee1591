"""The states of a run, and the words of its reasons and triggers. `moves.py` has the moves between the states."""

from __future__ import annotations

from typing import Final

# No record yet: planned, queued in SQS, or unknown.
NONE: Final = "none"
# It waits for its turn and already has a record: started manually, or waiting for an earlier run to end.
QUEUED: Final = "queued"
RUNNING: Final = "running"
# It waits for its next attempt.
RETRYING: Final = "retrying"
# A service accepted the event; the result of the work is not known (yet).
DISPATCHED: Final = "dispatched"
SUCCEEDED: Final = "succeeded"
FAILED: Final = "failed"
SKIPPED: Final = "skipped"

# It has ended, unless a person reopens it or a target reports the result of a dispatched run.
ENDED: Final = frozenset({SUCCEEDED, FAILED, SKIPPED, DISPATCHED})

# Why a run was skipped, and the meaning of each reason.
DELETED_JOB: Final = "deleted"
PAUSED_JOB: Final = "paused"
RESCHEDULED: Final = "rescheduled"
EXCLUDED: Final = "excluded"
MISFIRE: Final = "misfire"
MISSED: Final = "missed"
SUSPENDED_TENANT: Final = "suspended"
TARGET_NOT_ALLOWED: Final = "target_not_allowed"
BLOCKED: Final = "blocked"
INVALID: Final = "invalid"
OVERLAP: Final = "overlap"
CONCURRENCY: Final = "concurrency"
CANCELLED: Final = "cancelled"
REASONS: Final[dict[str, str]] = {
    DELETED_JOB: "since this was planned, the job or its tenant was deleted, or was deleted and created again",
    PAUSED_JOB: "the job was paused at its fire time, or is now",
    RESCHEDULED: "the job's schedule no longer has this fire time",
    EXCLUDED: "the calendars that the job names exclude its date",
    MISFIRE: "it could not start within the job's `start_deadline_s`",
    MISSED: "no tick planned it within ten minutes; one record stands for all, see `skipped_count`",
    OVERLAP: "the job's previous run was still going",
    CONCURRENCY: "as many runs of its concurrency key as the job allows were going; `detail` says how long it waited",
    CANCELLED: "a person or program cancelled it",
    SUSPENDED_TENANT: "the platform has suspended the tenant",
    TARGET_NOT_ALLOWED: "the platform does not let the tenant call this target (any more)",
    BLOCKED: "the platform blocks the target: no tenant's run calls it",
    INVALID: "it could not be planned or enqueued; `detail` says why",
}

# Skips that somebody asked for. All others are of what was due.
SKIPPED_ON_REQUEST: Final = frozenset({DELETED_JOB, PAUSED_JOB, RESCHEDULED, EXCLUDED, CANCELLED})

# What started the run.
TRIGGERS: Final[dict[str, str]] = {
    "schedule": "its schedule",
    "manual": "*run now*",
    "backfill": "a backfill of a past range",
    "retry": "a manual retry of a failed run; only in the message: the run keeps its trigger",
}
