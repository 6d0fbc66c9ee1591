"""The job definition inside an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minute8_client.shapes import Job

# The fields that the API adds to a definition; all others can be sent back.
_ADDED = frozenset(
    (
        "job_id",
        "schedule_resolved",
        "schedule_words",
        "state",
        "note",
        "revision",
        "schedule_revision",
        "created_at",
        "updated_at",
        "next_fire_at",
    )
)


def definition_to_create(job: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the state and note of a paused job, which are for a job that does not exist yet."""
    definition = {name: value for name, value in job.items() if name not in _ADDED}
    if job.get("state") == "paused":
        definition |= {"state": "paused", "note": job.get("note", "")}
    return definition


def definition_in(job: Job) -> dict[str, Any]:
    """The definition in an answer, including fields that this client does not know."""
    return {name: value for name, value in job.items() if name not in _ADDED}
