"""Calls about runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from minute8_client.jobs import job_path
from minute8_client.shapes import FailureGroup, FailureGroups, Run, RunPage, RunSummary, TenantRunPage
from minute8_client.transport import Json, Transport, path_of

# In the place of a payload: the job's own.
JOBS_PAYLOAD: Final = object()
# The statuses of a run that has ended.
ENDED: Final = frozenset({"succeeded", "failed", "skipped", "dispatched"})


class RunCalls(Transport):
    """Read runs, and start them manually."""

    def runs_page(
        self,
        job_id: str | None = None,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: str | None = None,
        trigger: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> RunPage | TenantRunPage:
        """A page of a job's runs, newest first, with fire times in [from_at, until_at) (RFC 3339).

        Without a job: the runs of all jobs, by default of the last 24 hours.
        """
        query = {
            "limit": limit,
            "cursor": cursor,
            "status": status,
            "trigger": trigger,
            "from_at": from_at,
            "until_at": until_at,
        }
        path = "/v1/runs" if job_id is None else f"{job_path(job_id)}/runs"
        page = self.call("GET", path, query=query)
        return cast(TenantRunPage, page) if job_id is None else cast(RunPage, page)

    def runs(self, job_id: str | None = None, **wanted: str | None) -> Iterator[Run]:
        """The runs of a job or of all jobs, newest first, page by page while they are consumed.

        `wanted` as for `runs_page`. A run of all jobs is yielded when no newer one can follow.
        """
        if job_id is None:
            return in_order(lambda cursor: self.runs_page(limit=200, cursor=cursor, **wanted))
        return all_runs(lambda cursor: self.runs_page(job_id, limit=100, cursor=cursor, **wanted))

    def summary_page(
        self,
        job_id: str | None = None,
        *,
        cursor: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
        values: bool = False,
    ) -> RunSummary:
        """Totals of the next 10,000 runs of a job, or of all jobs, by day; 7 days by default."""
        query = {
            "cursor": cursor,
            "from_at": from_at,
            "until_at": until_at,
            "values": "true" if values else None,
        }
        path = "/v1/summary" if job_id is None else f"{job_path(job_id)}/summary"
        return cast("RunSummary", self.call("GET", path, query=query))

    def summaries(
        self,
        job_id: str | None = None,
        *,
        from_at: str | None = None,
        until_at: str | None = None,
        values: bool = False,
    ) -> Iterator[RunSummary]:
        """The parts of a complete summary, one per 10,000 runs. Counts can be added, percentiles cannot."""
        cursor = None
        while True:
            part = self.summary_page(job_id, cursor=cursor, from_at=from_at, until_at=until_at, values=values)
            yield part
            if not (cursor := part["next_cursor"]):
                return

    def failures_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        from_at: str | None = None,
        job_id: str | None = None,
        tag: str | None = None,
    ) -> RunPage:
        """A page of failed runs: since an instant, of a job, of jobs with a tag."""
        query = {"limit": limit, "cursor": cursor, "from_at": from_at, "job_id": job_id, "tag": tag}
        return cast(RunPage, self.call("GET", "/v1/failures", query=query))

    def failures(self, **wanted: str | None) -> Iterator[Run]:
        """The failed runs of all jobs, latest failure first; `wanted` as for `failures_page`."""
        return all_runs(lambda cursor: self.failures_page(limit=100, cursor=cursor, **wanted))

    def failure_groups(self, **wanted: str | None) -> list[FailureGroup]:
        """The failed runs of the last 7 days by job and error, the latest first; `wanted` as for `failures_page`."""
        groups: dict[tuple[str, str], FailureGroup] = {}
        cursor = None
        while True:
            page = cast(
                FailureGroups, self.call("GET", "/v1/failures/groups", query={"cursor": cursor, **wanted})
            )
            for group in page["groups"]:
                newer = groups.setdefault((group["job_id"], group["fingerprint"]), group)
                if newer is not group:
                    newer["count"] += group["count"]
                    newer["first_at"] = min(newer["first_at"], group["first_at"])
            if not (cursor := page["next_cursor"]):
                return list(groups.values())

    def get_run(self, execution_id: str) -> Run:
        return cast(Run, self.call("GET", path_of("runs", execution_id)))

    # Manual commands

    def run_job(self, job_id: str, nonce: str | None = None, payload: Any = JOBS_PAYLOAD) -> Run:
        """Run a job now, with its payload or another; the same nonce starts it once, for a day."""
        body: dict[str, Any] = {"nonce": nonce} if nonce else {}
        if payload is not JOBS_PAYLOAD:
            body["payload"] = payload
        return cast("Run", self.call("POST", f"{job_path(job_id)}/run", body, repeatable=nonce is not None))

    def wait_for_run(self, execution_id: str, timeout_s: float = 300.0, every_s: float = 1.0) -> Run:
        """The run once it has ended, or as it is after `timeout_s`."""
        for _ in range(max(1, math.ceil(timeout_s / every_s))):
            if (run := self.get_run(execution_id))["status"] in ENDED:
                return run
            self._sleep(every_s)
        return self.get_run(execution_id)

    def retry_run(self, execution_id: str) -> Run:
        """Give a failed run one more attempt."""
        return cast("Run", self.call("POST", path_of("runs", execution_id, "retry"), repeatable=False))

    def cancel_run(self, execution_id: str, note: str = "") -> Run:
        """Stop an execution that has not started, or that waits for its next attempt."""
        path = path_of("runs", execution_id, "cancel")
        return cast("Run", self.call("POST", path, {"note": note}, repeatable=False))

    def start_backfill(self, job_id: str, wanted: Json) -> dict[str, Any]:
        """Run the fire times of a past range, or with `dry_run` count them."""
        answer = self.call(
            "POST", f"{job_path(job_id)}/backfills", wanted, repeatable=bool(wanted.get("dry_run"))
        )
        return cast("dict[str, Any]", answer)

    def backfill_progress(self, job_id: str, backfill_id: str) -> dict[str, Any]:
        path = path_of("jobs", job_id, "backfills", backfill_id)
        return cast("dict[str, Any]", self.call("GET", path))

    def cancel_backfill(self, job_id: str, backfill_id: str, note: str = "") -> dict[str, Any]:
        """Cancel what a backfill has not started; repeating it changes nothing."""
        path = path_of("jobs", job_id, "backfills", backfill_id, "cancel")
        return cast("dict[str, Any]", self.call("POST", path, {"note": note}))


def all_runs(page_at: Callable[[str | None], RunPage | TenantRunPage]) -> Iterator[Run]:
    cursor = None
    while True:
        page = page_at(cursor)
        yield from page["runs"]
        if not (cursor := page["next_cursor"]):
            return


def in_order(page_at: Callable[[str | None], RunPage | TenantRunPage]) -> Iterator[Run]:
    """Merge pages that are each in order: yields what is complete, newest first."""
    cursor, waiting = None, []
    while True:
        page = page_at(cursor)
        cursor, complete_from_at = page["next_cursor"], cast(TenantRunPage, page).get("complete_from_at")
        waiting += page["runs"]
        # All are in UTC and in whole seconds, so they sort as texts.
        waiting.sort(key=lambda run: run["fire_at"], reverse=True)
        ready = [run for run in waiting if not cursor or run["fire_at"] >= (complete_from_at or "~")]
        yield from ready
        waiting = waiting[len(ready) :]
        if not cursor:
            return
