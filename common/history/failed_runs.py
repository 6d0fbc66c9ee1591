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

from common.history.run_lists import MAX_READ_RECORDS, MAX_RETRIES, retries_in
from common.jobs.job import DELETED, read_spec
from common.jobs.muted_groups import GroupKey, Muted
from common.projection.totals import HOUR_S
from common.runs.outcome import last_attempt
from common.storage import keys
from common.storage.table import Query, Table
from common.storage.wire import Item

_PAGE: Final = 200
# Errors of one cause differ in ids, addresses, times and numbers.
_DIFFERS: Final = re.compile(
    r"0x[0-9a-f]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b(?=[a-f]*\d)[0-9a-f]{12,}\b|\d+",
    re.IGNORECASE,
)

_ERROR_ATTRIBUTES: Final = ("job_id", "sk", "error_type", "error", "attempts")

# A job, and the part of the execution id that names its run.
JobRun = tuple[str, str]
# The last failure that was read: when it failed, its job, its run's name.
FailureCursor = tuple[float, str, str]


@dataclass(frozen=True, slots=True)
class FailureFilter:
    """Failures at or after `from_at` (and before `until_at`), of one job, of jobs that have a tag now, of one error."""

    from_at: int = 0
    job_id: str = ""
    tag: str = ""
    until_at: int = 0
    error_type: str = ""
    fingerprint: str = ""

    def takes_error(self, item: Item) -> bool:
        """Whether the run failed with the wanted error, in the wanted time."""
        if self.until_at and item["failed_at"] >= self.until_at:
            return False
        error_type, error = error_of(item)
        return self.error_type in ("", error_type) and self.fingerprint in (
            "",
            fingerprint(error_type, error),
        )


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
    latest: Item
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
        self, tenant: str, filters: FailureFilter, *, limit: int, before: FailureCursor | None = None
    ) -> tuple[list[Item], FailureCursor | None]:
        """The failed runs, latest failure first, and where the next page starts."""
        failed: list[Item] = []
        place, retries = before, 0
        for seen, (item, takes) in enumerate(self._from(tenant, filters, before)):
            if seen == MAX_READ_RECORDS or retries >= MAX_RETRIES or (takes and len(failed) == limit):
                return failed, place
            retries += retries_in(item)
            if takes:
                failed.append(item)
            place = cursor_after(item)
        return failed, None

    def groups(
        self,
        tenant: str,
        filters: FailureFilter,
        before: FailureCursor | None = None,
        max_records: int | None = None,
    ) -> tuple[list[FailureGroup], FailureCursor | None]:
        """The next failures by job and error, the group of the latest first; of at most `max_records` failures."""
        read: list[Item] = []
        max_records = MAX_READ_RECORDS if max_records is None else max_records
        place, retries = before, 0
        for seen, (item, takes) in enumerate(self._from(tenant, filters, before)):
            if seen == max_records or retries >= MAX_RETRIES:
                return grouped(read), place
            retries += retries_in(item)
            if takes:  # with the last attempt alone, which holds the error
                read.append({**item, "attempts": item.get("attempts", [])[-1:]})
            place = cursor_after(item)
        return grouped(read), None

    def _from(
        self, tenant: str, filters: FailureFilter, before: FailureCursor | None
    ) -> Iterator[tuple[Item, bool]]:
        """The failures from a place on, and whether the filter takes them."""
        after = None
        if before:
            failed_at, job_id, run_name = before
            after = {**keys.run(tenant, job_id, run_name), "failed_tenant": tenant, "failed_at": failed_at}
        items = self._runs.query(
            Query(tenant, index=keys.FAILURES, after=after, newest_first=True, page=_PAGE)
        )
        tagged: dict[str, bool] = {}
        for page in _pages(items):
            if filters.tag:
                tagged |= self._tagged(tenant, filters.tag, {item["job_id"] for item in page} - tagged.keys())
            for item in page:
                if item["failed_at"] < filters.from_at:
                    return
                of_job = filters.job_id in ("", item["job_id"]) and filters.takes_error(item)
                yield item, of_job and (not filters.tag or tagged[item["job_id"]])

    def _tagged(self, tenant: str, tag: str, job_ids: set[str]) -> dict[str, bool]:
        """Whether each job has the tag; a deleted job has none."""
        filters = [keys.job(tenant, job_id) for job_id in sorted(job_ids)]
        items = self._jobs.get_many(filters, attributes=("job_id", "state", "spec"))
        tagged = {item["job_id"]: tag in read_spec(item).tags for item in items if item["state"] != DELETED}
        return dict.fromkeys(job_ids, False) | tagged


def _pages(items: Iterable[Item]) -> Iterator[list[Item]]:
    """The items in pages. No page holds many more retries than an answer."""
    page: list[Item] = []
    retries = 0
    for item in items:
        page.append(item)
        retries += retries_in(item)
        if len(page) == _PAGE or retries >= MAX_RETRIES:
            yield page
            page, retries = [], 0
    yield page


def grouped(items: Iterable[Item]) -> list[FailureGroup]:
    """Failures by job and error; the latest first, as they come. Pure."""
    groups: dict[tuple[str, str], FailureGroup] = {}
    for item in items:
        error_type, error = error_of(item)
        key = item["job_id"], fingerprint(error_type, error)
        at = float(item["failed_at"])
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
            groups[key] = FailureGroup(*key, error_type, error, 1, at, at, item, Counter({hour: 1}))
    return list(groups.values())


def muted_runs(runs: Table, tenant: str, muted: Muted, failed: Iterable[JobRun]) -> set[JobRun]:
    """Those of these failed runs whose group is muted. Reads only runs of jobs that have a muted group."""
    jobs = {job_id for job_id, _ in muted.groups}
    suspects = [keys.run(tenant, *run) for run in sorted(set(failed)) if run[0] in jobs]
    quiet = set()
    for start in range(0, len(suspects), _PAGE):  # not all attempts at a time
        for item in runs.get_many(
            suspects[start : start + _PAGE], attributes=_ERROR_ATTRIBUTES, consistent=False
        ):
            if (item["job_id"], fingerprint(*error_of(item))) in muted.groups:
                quiet.add((item["job_id"], item["sk"]))
    return quiet


def error_of(item: Item) -> tuple[str, str]:
    """Type and text of the error that ended a run."""
    last = last_attempt(item)
    return (
        item.get("error_type") or last.get("error_type", ""),
        item.get("error") or last.get("error", ""),
    )


def fingerprint(error_type: str, error: str) -> str:
    """The same for errors that differ only in numbers and ids: 12 hexadecimal digits."""
    first_line = error.strip().partition("\n")[0]
    return hashlib.sha256(f"{error_type}\n{_DIFFERS.sub('#', first_line)}".encode()).hexdigest()[:12]


def cursor_after(item: Item) -> FailureCursor:
    """Where a list of failures continues after this one."""
    return float(item["failed_at"]), item["job_id"], item["sk"]
