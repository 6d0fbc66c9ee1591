"""Calls about runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from minute8_client.jobs import job_path
from minute8_client.shapes import Run, RunPage
from minute8_client.transport import Json, Transport, path_of


class RunCalls(Transport):
    """Look at runs, and start them by hand."""

    def runs_page(
        self,
        job_id: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: str | None = None,
        trigger: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> RunPage:
        """A page of a job's runs, newest first, with fire times in [from_at, until_at) (RFC 3339)."""
        query = {
            "limit": limit,
            "cursor": cursor,
            "status": status,
            "trigger": trigger,
            "from_at": from_at,
            "until_at": until_at,
        }
        return cast(RunPage, self.call("GET", f"{job_path(job_id)}/runs", query=query))

    def runs(self, job_id: str, **wanted: str | None) -> Iterator[Run]:
        """A job's runs, newest first, page by page as they are consumed; `wanted` as for `runs_page`."""
        return all_runs(lambda cursor: self.runs_page(job_id, limit=100, cursor=cursor, **wanted))

    def failures_page(self, *, limit: int | None = None, cursor: str | None = None) -> RunPage:
        return cast(RunPage, self.call("GET", "/v1/failures", query={"limit": limit, "cursor": cursor}))

    def failures(self) -> Iterator[Run]:
        """The failed runs of all jobs, latest failure first."""
        return all_runs(lambda cursor: self.failures_page(limit=100, cursor=cursor))

    def get_run(self, execution_id: str) -> Run:
        return cast(Run, self.call("GET", path_of("runs", execution_id)))

    # By hand

    def run_job(self, job_id: str, nonce: str | None = None) -> Run:
        """Run a job now; the same nonce in the same second starts it once."""
        body = {"nonce": nonce} if nonce else {}
        return cast("Run", self.call("POST", f"{job_path(job_id)}/run", body, repeatable=nonce is not None))

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


def all_runs(page_at: Callable[[str | None], RunPage]) -> Iterator[Run]:
    cursor = None
    while True:
        page = page_at(cursor)
        yield from page["runs"]
        if not (cursor := page["next_cursor"]):
            return
