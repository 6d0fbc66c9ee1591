"""Reads the runs that `expected.py` needs of a job.

A query finds all runs of a range. If nothing else can be recorded there than the due instants, they are read by their
names, a hundred in a request: of many jobs with few runs each that takes a tenth of the requests.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from common.history.eras import Due, Eras
from common.history.expected import Moment, Record
from common.jobs.job import Job
from common.jobs.skips import MAX_SKIPPED
from common.planning.execution import Execution
from common.storage import keys
from common.storage.tables import Table

ATTRIBUTES: Final = (
    *("sk", "tenant", "job_id", "fire_at", "due_at", "schedule_revision", "trigger", "status", "reason", "detail"),
    *("lateness_s", "started_at", "finished_at", "attempt", "error_type", "skipped_count", "skipped_from_at"),
)  # fmt: skip
WITH_ERRORS: Final = (*ATTRIBUTES, "error", "attempts")
# Up to this many runs are read by name: a query costs as much as more reads, or less.
FEW: Final = 4
# No tick plans this far ahead, so no run planned before a change of a job comes later after it.
SETTLED_S: Final = 3_600
# How many records after a range are read, to find one that counts missed fire times of the range.
_MAX_AFTER: Final = 200


class ScheduledRuns:
    """The reads are eventually consistent: half the price, and a run of the last second may be missing."""

    def __init__(self, runs: Table) -> None:
        self._runs = runs

    def between(
        self,
        tenant: str,
        job_id: str,
        start: int,
        end: int | None,
        page: int = 1_000,
        attributes: Sequence[str] = ATTRIBUTES,
    ) -> Iterator[Record]:
        """All runs with fire times in [start, end), in order."""
        between = keys.runs_between(start, end)
        if between[0] >= between[1]:
            return iter(())
        partition = keys.runs_of_job(tenant, job_id)
        return self._runs.query(
            partition, sk_between=between, page=page, attributes=attributes, consistent=False
        )

    def after(
        self, tenant: str, job_id: str, until: int, due: list[Due], records: Iterable[Record], moment: Moment
    ) -> list[Record]:
        """A record after the range that counts missed fire times of the range, if one may."""
        named = {(one["fire_at"], one["schedule_revision"]) for one in records}
        unrecorded = any(
            one.due_at <= moment.now and (one.fire_at, one.schedule_revision) not in named for one in due
        )
        if not unrecorded or until > moment.now:
            return []
        following = islice(self.between(tenant, job_id, until, None, _MAX_AFTER), _MAX_AFTER)
        return [one for one in following if one.get("skipped_from_at", until) < until][:1]

    def by_name(
        self, tenant: str, due: Mapping[str, Sequence[Due]], moment: Moment
    ) -> dict[str, list[Record]]:
        """The records of these due instants by job. A job is left out if one of its past instants has none."""
        named = {
            job_id: {
                Execution(tenant, job_id, one.fire_at, one.due_at, one.schedule_revision).run_name: one
                for one in instants
            }
            for job_id, instants in due.items()
        }
        wanted = [keys.run(tenant, job_id, name) for job_id, names in named.items() for name in names]
        found: dict[str, list[Record]] = {job_id: [] for job_id in due}
        for item in self._runs.get_many(wanted, consistent=False, attributes=ATTRIBUTES):
            found[item["job_id"]].append(item)
            del named[item["job_id"]][item["sk"]]
        unexplained = (
            job_id
            for job_id, names in named.items()
            if any(one.fire_at <= moment.now for one in names.values())
        )
        for job_id in unexplained:
            del found[job_id]
        return found


def few_named(job: Job, eras: Eras, due: Sequence[Due], start: int, now: float) -> list[Due] | None:
    """The due instants from `start` on that may have a record; None if other runs may have one, or they are many.

    A coming instant has a record only if it is cancelled, which the job notes.
    """
    is_settled = job.updated_at + SETTLED_S <= start and eras.known_from_at <= start
    if not is_settled or len(job.skips) >= MAX_SKIPPED:
        return None
    named = [one for one in due if one.fire_at <= now or one.fire_at in job.skips]
    return named if len(named) <= FEW else None
