"""The jobs that a filter takes and that failed with an error, for the routes that do one thing to many jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from api.http.job_filter import JobFilter
from api.services import Services
from common.history.failed_runs import FailureCursor, FailureGroup, cursor_after
from common.jobs.job import Job, exists
from common.timing.instants import DAY_S

# How far back the error filter looks: as far as the groups of failures.
SINCE_S: Final = 7 * DAY_S
# How many jobs are in memory at a time, with payloads of up to 128 KB.
_LOADED_AT_ONCE: Final = 25


def failing_jobs(
    services: Services, tenant: str, groups: Sequence[FailureGroup], wanted: JobFilter
) -> Iterator[tuple[Job, FailureCursor]]:
    """The jobs of these groups, the one that failed last first, each once, with its place among the failures."""
    newest = list({group.job_id: group for group in reversed(groups)}.values())[::-1]
    for start in range(0, len(newest), _LOADED_AT_ONCE):
        some = newest[start : start + _LOADED_AT_ONCE]
        jobs = services.store.load_all(tenant, [group.job_id for group in some])
        for group in some:
            job = jobs.get(group.job_id)
            if job and exists(job) and wanted.takes(job):
                yield job, cursor_after(group.latest)
