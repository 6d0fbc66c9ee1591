"""What is known of the past: changes of jobs from the audit, and when calendars changed last."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from common.jobs.calendars import Calendars, Dates, any_of
from common.jobs.job import Job
from common.tenants.audit import Entry


@dataclass(frozen=True, slots=True)
class History:
    """Each job's changes since `read_from_at` by the audit, the latest first, and for how long records were kept."""

    changes: Mapping[str, list[Entry]]
    read_from_at: float
    kept_s: int

    def of_job(self, job_id: str, job: Job | None) -> list[Entry]:
        """The changes of a job that had been made when the job was read, the latest first."""
        changes = [
            entry for entry in self.changes.get(job_id, ()) if job is None or _revision(entry) <= job.revision
        ]
        # Entries of one millisecond are stored in any order.
        return sorted(changes, key=lambda entry: (entry.at, _revision(entry)), reverse=True)


@dataclass(slots=True)
class CalendarReader:
    """The calendars of one tenant for one answer, each read once, with the time at which one of them changed last."""

    calendars: Calendars
    tenant: str
    _read: dict[str, tuple[Dates | None, float]] = field(default_factory=dict)

    def __call__(self, names: tuple[str, ...]) -> tuple[Container[str], float]:
        found = [self._one(name) for name in names]
        dates = any_of(dates for dates, _ in found if dates)
        return dates, max((at for _, at in found), default=-math.inf)

    def _one(self, name: str) -> tuple[Dates | None, float]:
        if name not in self._read:
            self._read[name] = self._load(name)
        return self._read[name]

    def _load(self, name: str) -> tuple[Dates | None, float]:
        item = self.calendars.find(self.tenant, name)
        if item is None:  # whether it fires is not known
            return None, math.inf
        return Dates(item["dates"]), float(item["updated_at"])


def _revision(entry: Entry) -> int:
    """The revision that a change of a job made; a deletion shows only the one before."""
    if "revision" in entry.after:
        return int(entry.after["revision"])
    return int(entry.before.get("revision", 0)) + 1
