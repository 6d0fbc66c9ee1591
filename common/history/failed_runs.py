"""The failed runs of all of a tenant's jobs, through the sparse index `failures`: as a list, and grouped by error.

Each call reads a bounded number of records and returns where the next call continues, even if it found nothing yet.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from common.jobs.corrupt import readable
from common.jobs.muted_groups import GroupKey, Muted
from common.limits import MAX_RETRIES
from common.projection.totals import HOUR_S
from common.runs.run import REQUIRED, Run, read_runs, readable_runs, retries_in
from common.storage import keys
from common.storage.bounded import FailurePosition, Page, bounded
from common.storage.table import Query, Table
from common.storage.unreadable import Unreadable

_PAGE: Final = 200
# Records that a request for a list of runs looks at.
MAX_READ_RECORDS: Final = 2_000
# Errors of one cause differ in ids, addresses, times and numbers.
_DIFFERS: Final = re.compile(
    r"0x[0-9a-f]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b(?=[a-f]*\d)[0-9a-f]{12,}\b|\d+",
    re.IGNORECASE,
)

_ERROR_ATTRIBUTES: Final = (*REQUIRED, "error_type", "error", "attempts", "error_group")

# A job, and the part of the execution id that names its run.
JobRun = tuple[str, str]


@dataclass(frozen=True, slots=True)
class FailureFilter:
    """Failures at or after `from_at` (and before `until_at`), of one job, of jobs that have a tag now, of one error."""

    from_at: int = 0
    job_id: str = ""
    tag: str = ""
    until_at: int = 0
    error_type: str = ""
    fingerprint: str = ""

    def takes_error(self, run: Run) -> bool:
        """Whether the run failed with the wanted error, in the wanted time."""
        if self.until_at and run.failed_at >= self.until_at:
            return False
        error_type, _ = error_of(run)
        return self.error_type in ("", error_type) and self.fingerprint in ("", group_of(run))


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures of one job with one error. `latest` is the newest of them, with its error; `hours` when they failed."""

    job_id: str
    fingerprint: str
    error_type: str
    error: str
    count: int
    first_at: float
    last_at: float
    latest: Run
    hours: Counter[int]

    @property
    def key(self) -> GroupKey:
        return self.job_id, self.fingerprint


class FailedRuns:
    """The tenant always comes from the credential."""

    def __init__(self, jobs: Table, runs: Table) -> None:
        self._jobs = jobs
        self._runs = runs

    def page(
        self,
        tenant: str,
        filters: FailureFilter,
        *,
        limit: int = 0,
        most_looked_at: int = 0,
        before: FailurePosition | None = None,
    ) -> Page[Run, FailurePosition]:
        """The failed runs, latest failure first, and where the next page starts. 0: as many as a request may."""
        return bounded(
            self._from(tenant, filters, before),
            most=limit or MAX_READ_RECORDS,
            most_looked_at=most_looked_at or MAX_READ_RECORDS,
            weigh=retries_in,
            most_weight=MAX_RETRIES,
            before=before,
        )

    def groups(
        self,
        tenant: str,
        filters: FailureFilter,
        before: FailurePosition | None = None,
        most_looked_at: int = 0,
    ) -> tuple[list[FailureGroup], FailurePosition | None]:
        """The next failures by job and error, the group of the latest first; of at most `most_looked_at` failures."""
        page = self.page(tenant, filters, most_looked_at=most_looked_at, before=before)
        return grouped(page.items), page.after

    def _from(
        self, tenant: str, filters: FailureFilter, before: FailurePosition | None
    ) -> Iterator[tuple[FailurePosition | None, Run | Unreadable | None]]:
        """The positions of the failures after `before`, and the runs that the filter takes."""
        after = None
        if before:
            failed_at, job_id, run_name = before
            after = {**keys.run(tenant, job_id, run_name), "failed_tenant": tenant, "failed_at": failed_at}
        items = self._runs.query(
            Query(tenant, index=keys.FAILURES, after=after, newest_first=True, page=_PAGE)
        )
        tagged: dict[str, bool] = {}
        position = before
        for page in _pages(read_runs(items)):
            if filters.tag:
                job_ids = {run.job_id for run in page if isinstance(run, Run)}
                tagged |= self._tagged(tenant, filters.tag, job_ids - tagged.keys())
            for run in page:
                if isinstance(run, Unreadable):
                    yield position, run
                    continue
                position = position_of(run)
                if run.failed_at < filters.from_at:
                    return
                is_taken = filters.job_id in ("", run.job_id) and filters.takes_error(run)
                is_taken = is_taken and (not filters.tag or tagged[run.job_id])
                yield position, run if is_taken else None

    def _tagged(self, tenant: str, tag: str, job_ids: set[str]) -> dict[str, bool]:
        """Whether each job has the tag; a deleted job has none."""
        filters = [keys.job(tenant, job_id) for job_id in sorted(job_ids)]
        jobs = readable(self._jobs.get_many(filters))
        tagged = {job.job_id: tag in job.spec.tags for job in jobs}
        return dict.fromkeys(job_ids, False) | tagged


def _pages(runs: Iterable[Run | Unreadable]) -> Iterator[list[Run | Unreadable]]:
    """The runs in pages. No page holds many more retries than an answer."""
    page: list[Run | Unreadable] = []
    retries = 0
    for run in runs:
        page.append(run)
        retries += retries_in(run) if isinstance(run, Run) else 0
        if len(page) == _PAGE or retries >= MAX_RETRIES:
            yield page
            page, retries = [], 0
    yield page


def grouped(runs: Iterable[Run]) -> list[FailureGroup]:
    """Failures by job and error; the latest first, as they come. Pure."""
    groups: dict[tuple[str, str], FailureGroup] = {}
    for run in runs:
        error_type, error = error_of(run)
        key = run.job_id, group_of(run)
        at = float(run.failed_at)
        hour = int(at) // HOUR_S * HOUR_S
        if group := groups.get(key):
            group.hours[hour] += 1
            groups[key] = replace(
                group,
                count=group.count + 1,
                first_at=min(group.first_at, at),
                last_at=max(group.last_at, at),
            )
        else:
            groups[key] = FailureGroup(*key, error_type, error, 1, at, at, run, Counter({hour: 1}))
    return list(groups.values())


def muted_runs(runs: Table, tenant: str, muted: Muted, failed: Iterable[JobRun]) -> set[JobRun]:
    """Those of these failed runs whose group is muted. Reads only runs of jobs that have a muted group."""
    jobs = {job_id for job_id, _ in muted.groups}
    suspects = [keys.run(tenant, *run) for run in sorted(set(failed)) if run[0] in jobs]
    quiet = set()
    for start in range(0, len(suspects), _PAGE):  # not all attempts at a time
        part = suspects[start : start + _PAGE]
        for run in readable_runs(runs.get_many(part, attributes=_ERROR_ATTRIBUTES, consistent=False)):
            if (run.job_id, group_of(run)) in muted.groups:
                quiet.add((run.job_id, run.run_name))
    return quiet


def error_of(run: Run) -> tuple[str, str]:
    """Type and text of the error that ended a run."""
    last = run.last_attempt
    return run.error_type or (last.error_type if last else ""), run.error or (last.error if last else "")


def group_of(run: Run) -> str:
    """The fingerprint of its error, which an erased run keeps."""
    return run.error_group or fingerprint(*error_of(run))


def fingerprint(error_type: str, error: str) -> str:
    """The same for errors that differ only in numbers and ids: 12 hexadecimal digits."""
    first_line = error.strip().partition("\n")[0]
    return hashlib.sha256(f"{error_type}\n{_DIFFERS.sub('#', first_line)}".encode()).hexdigest()[:12]


def position_of(run: Run) -> FailurePosition:
    """Where a list of failures continues after this one."""
    return run.failed_at, run.job_id, run.run_name
