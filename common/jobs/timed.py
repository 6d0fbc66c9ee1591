"""What decides when a job fires, read without the rest of the job: a quarter of the time for lists of many jobs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from common.planning.execution import job_key
from common.timing.schedule import Schedule


@dataclass(frozen=True, slots=True)
class TimedJob:
    """Some fields of a `Job`, with the same names and meanings."""

    tenant: str
    job_id: str
    schedule_given: Mapping[str, Any]
    schedule: Schedule
    state: str
    effective_at: int

    @property
    def key(self) -> str:
        """The seed of H, spread and jitter."""
        return job_key(self.tenant, self.job_id)

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> TimedJob:
        """From a job's item, of which only the ATTRIBUTES are needed."""
        return cls(
            **{name: item[name] for name in ATTRIBUTES} | {"schedule": Schedule.from_item(item["schedule"])}
        )


ATTRIBUTES = tuple(one.name for one in fields(TimedJob))
