"""The job definition inside an answer."""

from __future__ import annotations

from typing import Any

from minute8_client.shapes import Job

# The fields that the API adds to a definition; all others can be sent back.
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
    """The definition in an answer, including fields that this client does not know."""
    return {name: value for name, value in job.items() if name not in _ADDED}
