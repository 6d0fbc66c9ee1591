"""Changes a part of a job: a JSON merge patch (RFC 7396) on its definition."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from common.errors import InvalidInput
from common.jobs.job import Job, existing
from common.registration.defined_job import defined
from common.registration.definition import JobDefinition
from common.registration.registry import Registry

_DEFINED = tuple(JobDefinition.model_fields)


def definition_of(job: Job) -> dict[str, Any]:
    """The job as a client could have written it, for `parse_definition`."""
    stored = {name: _plain(getattr(job, name)) for name in _DEFINED}
    return {**stored, "schedule": job.schedule_given}


def patch(
    registry: Registry, tenant: str, job_id: str, changes: object, expected_revision: int | None = None
) -> Job:
    """Merge `changes` into the definition; None resets a field to its default. Nothing is stored if nothing changes.

    Raises InvalidInput, NotFound, RevisionMismatch, Busy.
    """
    if not isinstance(changes, Mapping):
        raise InvalidInput("job", "must be an object", value=changes, accepted="a JSON object")

    def change(old: Job | None, now: float) -> Job:
        job = existing(old, job_id, expected_revision)
        definition, limits = registry.checked(tenant, job_id, merged(definition_of(job), changes))
        return changed(job, defined(tenant, job_id, definition, job, now, limits))

    return registry.store.change(tenant, job_id, change)


def changed(old: Job, new: Job) -> Job:
    """The new job, or the object `old` if their definitions are the same."""
    return old if same_json(definition_of(new), definition_of(old)) else new


def same_json(one: Any, other: Any) -> bool:
    """Whether both are the same JSON. Unlike Python's ==, true is not 1, and 1 is not 1.0."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def merged(value: Any, patch: Any) -> Any:
    """RFC 7396, section 2."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(value) if isinstance(value, Mapping) else {}
    for name, change in patch.items():
        if change is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), change)
    return result


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return list(value) if isinstance(value, tuple) else value
