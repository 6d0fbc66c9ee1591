"""The definition that a job's answer holds."""

from __future__ import annotations

from typing import Any

from minute8_client.shapes import Job

# What the API adds to a definition; everything else of a job can be sent back.
_ADDED = frozenset(
    (
        "job_id",
        "schedule_resolved",
        "state",
        "note",
        "revision",
        "schedule_revision",
        "created_at",
        "updated_at",
        "next_fire_at",
    )
)


def definition_in(job: Job) -> dict[str, Any]:
    """The definition that an answer holds, also with fields that this client does not know."""
    return {name: value for name, value in job.items() if name not in _ADDED}
