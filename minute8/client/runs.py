"""Operations on runs that need several requests."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from minute8.client.generated import TenantOperations
from minute8.client.operations import Listing, ListSteps, Operation, Request, Steps, Wait
from minute8.client.shapes import FailedInHour, FailureGroup, FailureGroups, Run, TenantRunPage

# The statuses of a run that has ended.
ENDED: Final = frozenset({"succeeded", "failed", "skipped", "dispatched"})


def _hours_of(hours: Iterable[FailedInHour]) -> list[FailedInHour]:
    """The failures of hours that several pages have, added up."""
    counts: Counter[str] = Counter()
    for hour in hours:
        counts[hour["at"]] += hour["failed"]
    return [{"at": at, "failed": count} for at, count in sorted(counts.items())]


class RunCalls:
    """Lists that are merged, and waiting."""

    @Listing
    def list_runs(self, /, **filters: str | None) -> ListSteps[Run]:
        """The runs of all jobs, newest first, page by page while they are consumed; filters as for `list_runs_page`.

        A run is yielded when no newer one can follow.
        """
        return _in_order(
            lambda cursor: TenantOperations.list_runs_page.request(limit=200, cursor=cursor, **filters)
        )

    @Operation
    def list_failure_groups(self, /, **filters: str | None) -> Steps[list[FailureGroup]]:
        """The failed runs of the last 7 days by job and error, the latest first; filters as for `list_failures`."""
        groups: dict[tuple[str, str], FailureGroup] = {}
        cursor = None
        while True:
            page: FailureGroups = yield Request(
                "GET", "/v1/failures/groups", query={"cursor": cursor, **filters}
            )
            for group in page["groups"]:
                newer = groups.setdefault((group["job_id"], group["fingerprint"]), group)
                if newer is not group:
                    newer["count"] += group["count"]
                    newer["first_at"] = min(newer["first_at"], group["first_at"])
                    newer["hours"] = _hours_of([*group["hours"], *newer["hours"]])
            if not (cursor := page["next_cursor"]):
                return list(groups.values())

    @Operation
    def wait_for_run(self, execution_id: str, timeout_s: float = 300.0, every_s: float = 1.0) -> Steps[Run]:
        """The run once it has ended, or as it is after `timeout_s`."""
        for _ in range(max(1, math.ceil(timeout_s / every_s))):
            run: Run = yield TenantOperations.get_run.request(execution_id)
            if run["status"] in ENDED:
                return run
            yield Wait(every_s)
        run = yield TenantOperations.get_run.request(execution_id)
        return run


def _in_order(page_at: Callable[[str | None], Request[TenantRunPage]]) -> ListSteps[Run]:
    """Merge pages that are each in order: yields what is complete, newest first."""
    cursor: str | None = None
    waiting: list[Run] = []
    while True:
        page: TenantRunPage = yield page_at(cursor)
        cursor, complete_from_at = page["next_cursor"], page.get("complete_from_at")
        waiting += page["runs"]
        # All are in UTC and in whole seconds, so they sort as texts.
        waiting.sort(key=lambda run: run["fire_at"], reverse=True)
        ready = [run for run in waiting if not cursor or run["fire_at"] >= (complete_from_at or "~")]
        yield ready
        waiting = waiting[len(ready) :]
        if not cursor:
            return
