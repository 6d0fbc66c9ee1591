"""A job's due entry, and missed fire times.

Only shapes: executors load them too, and compute no times.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, get_args

from common.timing.schedule import Schedule

if TYPE_CHECKING:
    from common.timing.excluded_days import Excluded

CatchUp = Literal["none", "latest", "all"]
_CATCH_UPS: Final = get_args(CatchUp)


@dataclass(frozen=True, slots=True)
class DueEntry:
    """The fields of a job that a tick needs. Kept small: a tick can read a million entries."""

    tenant: str
    job_id: str
    schedule: Schedule
    effective_at: int
    schedule_revision: int
    catch_up: CatchUp

    def encode(self) -> str:
        """As one JSON text: a map of attributes would take three times as long to read."""
        return json.dumps(
            [
                self.tenant,
                self.job_id,
                self.schedule.to_item(),
                self.effective_at,
                self.schedule_revision,
                self.catch_up,
            ],
            separators=(",", ":"),
        )

    @classmethod
    def decode(cls, text: str) -> DueEntry:
        """The inverse of `encode`. Raises ValueError, KeyError or TypeError on anything else."""
        tenant, job_id, schedule, effective_at, schedule_revision, catch_up = json.loads(text)
        if type(effective_at) is not int or type(schedule_revision) is not int or catch_up not in _CATCH_UPS:
            raise TypeError(f"not a due entry: {text[-100:]!r}")
        return cls(tenant, job_id, Schedule.from_item(schedule), effective_at, schedule_revision, catch_up)


@dataclass(frozen=True, slots=True)
class Missed:
    """Fire times that will not run, in one record: how many, the first and the last."""

    tenant: str
    job_id: str
    schedule_revision: int
    count: int
    first_fire_at: int
    last_fire_at: int
    catch_up: CatchUp
    schedule: Schedule
    excluded: Excluded = ()
