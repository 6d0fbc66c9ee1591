"""The runs of one job by time and outcome, newest first: as a list, and as totals by day."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from common.limits import MAX_ATTEMPTS_KEPT, MAX_RETRIES
from common.projection.totals import Summary
from common.runs.run import REQUIRED, Run, read_runs
from common.storage import keys
from common.storage.bounded import Page, bounded
from common.storage.table import Query, Table
from common.storage.unreadable import Unreadable

# Records that a request for a list, and one for a summary, looks at.
MAX_READ_RECORDS: Final = 2_000
MAX_SUMMARISED: Final = 10_000
_RECORDS_IN_QUERY: Final = 200
_SUMMARISED: Final = (*REQUIRED, "reason", "skipped_count", "lateness_s", "duration_s")


@dataclass(frozen=True, slots=True)
class RunFilter:
    """A filter of runs: fire times in [from_at, until_at), a status, a trigger. None and empty set no condition."""

    from_at: int | None = None
    until_at: int | None = None
    status: str = ""
    trigger: str = ""
    # Of the run's job, as it is now; lists over all jobs look at them.
    tag: str = ""
    target: str = ""

    def matches(self, run: Run | Unreadable) -> bool:
        """Whether the run has the status and the trigger of the filter; nobody knows that of a damaged one."""
        if isinstance(run, Unreadable):
            return True
        return self.status in ("", run.status) and self.trigger in ("", run.trigger)


def retries_in(run: Run) -> int:
    """An upper bound of the run's attempts after the first. The run itself may come without attempts."""
    return max(0, min(run.attempt, MAX_ATTEMPTS_KEPT) - 1)


class RunLists:
    """Lists of the runs of a job. The tenant comes from the credential."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def of_job(
        self, tenant: str, job_id: str, run_filter: RunFilter, *, limit: int, before: str | None = None
    ) -> Page[Run, str]:
        """A job's runs that match, newest fire time first, after the run name `before`."""
        runs = self._newest(tenant, job_id, run_filter, before)
        return bounded(
            ((run.key["sk"], run if run_filter.matches(run) else None) for run in runs),
            most=limit,
            most_looked_at=MAX_READ_RECORDS,
            weigh=retries_in,
            most_weight=MAX_RETRIES,
            before=before,
        )

    def summary(
        self, tenant: str, job_id: str, run_filter: RunFilter, before: str | None = None
    ) -> tuple[Summary, str | None]:
        """The totals of a job's next runs by day, and the run name after which the next ones begin; None: the end."""
        runs = self._newest(tenant, job_id, run_filter, before, _SUMMARISED)
        page = bounded(
            ((run.key["sk"], run) for run in runs),
            most=MAX_SUMMARISED,
            most_looked_at=MAX_SUMMARISED,
            before=before,
        )
        return Summary.of_runs(page.items), page.after

    def _newest(
        self,
        tenant: str,
        job_id: str,
        run_filter: RunFilter,
        before: str | None,
        attributes: tuple[str, ...] = (),
    ) -> Iterator[Run | Unreadable]:
        first, last = keys.runs_between(run_filter.from_at, run_filter.until_at)
        if first >= last:
            return iter(())
        items = self._table.query(
            Query(
                keys.runs_of_job(tenant, job_id),
                sk_between=(first, last),
                after=keys.run(tenant, job_id, before) if before else None,
                newest_first=True,
                page=_RECORDS_IN_QUERY,
                attributes=attributes,
            )
        )
        return read_runs(items)
