"""Calls about runs: what ran, what is due, and commands by hand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from minute8.client.jobs import job_path
from minute8.client.operations import (
    Json,
    Listing,
    ListSteps,
    Operation,
    Request,
    Steps,
    Wait,
    pages,
    path_of,
    whole_pages,
)
from minute8.client.shapes import (
    CallbackAnswer,
    ChangedJob,
    ClockChangePage,
    ComingExecution,
    ConcurrencyKey,
    EndedRun,
    ErasedRun,
    ExpectedOfJob,
    ExpectedPage,
    Explanation,
    FailedInHour,
    FailureGroup,
    FailureGroups,
    MinuteDensity,
    MovedJob,
    MutedGroup,
    MutedGroupList,
    Run,
    RunPage,
    RunSummary,
    TenantDensity,
    TenantOverview,
    TenantRunPage,
    TzdataChangePage,
    UpcomingPage,
)

# In the place of a payload: the job's own.
JOBS_PAYLOAD: Final = object()
# The statuses of a run that has ended.
ENDED: Final = frozenset({"succeeded", "failed", "skipped", "dispatched"})


def _hours_of(hours: Iterable[FailedInHour]) -> list[FailedInHour]:
    """The failures of hours that several pages have, added up."""
    counts: Counter[str] = Counter()
    for hour in hours:
        counts[hour["at"]] += hour["failed"]
    return [{"at": at, "failed": count} for at, count in sorted(counts.items())]


class RunCalls:
    """Read runs, and start them manually."""

    @Operation
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
        tag: str | None = None,
        target: str | None = None,
    ) -> Request[RunPage | TenantRunPage]:
        """A page of a job's runs, newest first, with fire times in [from_at, until_at) (RFC 3339).

        Without a job: the runs of all jobs, by default of the last 24 hours; also of those with a tag or a target.
        """
        query = {
            "limit": limit,
            "cursor": cursor,
            "status": status,
            "trigger": trigger,
            "from_at": from_at,
            "until_at": until_at,
            "tag": tag,
            "target": target,
        }
        path = "/v1/runs" if job_id is None else f"{job_path(job_id)}/runs"
        return Request("GET", path, query=query)

    @Listing
    def runs(self, /, job_id: str | None = None, **filters: str | None) -> ListSteps[Run]:
        """The runs of a job or of all jobs, newest first, page by page while they are consumed.

        `wanted` as for `runs_page`. A run of all jobs is yielded when no newer one can follow.
        """
        if job_id is None:
            return _in_order(lambda cursor: RunCalls.runs_page.request(limit=200, cursor=cursor, **filters))
        return pages(
            lambda cursor: RunCalls.runs_page.request(job_id, limit=100, cursor=cursor, **filters),
            lambda page: page["runs"],
        )

    @Operation
    def summary_page(
        self,
        job_id: str | None = None,
        *,
        cursor: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
        values: bool = False,
    ) -> Request[RunSummary]:
        """Totals of the next 10,000 runs of a job, or of all jobs, by day; 7 days by default."""
        query = {
            "cursor": cursor,
            "from_at": from_at,
            "until_at": until_at,
            "values": "true" if values else None,
        }
        path = "/v1/summary" if job_id is None else f"{job_path(job_id)}/summary"
        return Request("GET", path, query=query)

    @Listing
    def summaries(
        self,
        job_id: str | None = None,
        *,
        from_at: str | None = None,
        until_at: str | None = None,
        values: bool = False,
    ) -> ListSteps[RunSummary]:
        """The parts of a complete summary, one per 10,000 runs. Counts can be added, percentiles cannot."""
        return whole_pages(
            lambda cursor: RunCalls.summary_page.request(
                job_id, cursor=cursor, from_at=from_at, until_at=until_at, values=values
            )
        )

    @Operation
    def overview(self) -> Request[TenantOverview]:
        """What a first look needs: jobs, 24 hours back and ahead by hour, what fails."""
        return Request("GET", "/v1/overview")

    @Operation
    def failures_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        from_at: str | None = None,
        job_id: str | None = None,
        tag: str | None = None,
    ) -> Request[RunPage]:
        """A page of failed runs: since an instant, of a job, of jobs with a tag."""
        query = {"limit": limit, "cursor": cursor, "from_at": from_at, "job_id": job_id, "tag": tag}
        return Request("GET", "/v1/failures", query=query)

    @Listing
    def failures(self, /, **filters: str | None) -> ListSteps[Run]:
        """The failed runs of all jobs, latest failure first; `wanted` as for `failures_page`."""
        return pages(
            lambda cursor: RunCalls.failures_page.request(limit=100, cursor=cursor, **filters),
            lambda page: page["runs"],
        )

    @Operation
    def failure_groups(self, /, **filters: str | None) -> Steps[list[FailureGroup]]:
        """The failed runs of the last 7 days by job and error, the latest first; `wanted` as for `failures_page`."""
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
    def mute_failures(
        self, job_id: str, fingerprint: str, note: str = "", until_at: str | None = None
    ) -> Request[MutedGroup]:
        """Mute a group of failures until an instant (RFC 3339), at most 30 days ahead, or until it changes."""
        until = {} if until_at is None else {"until_at": until_at}
        return Request("PUT", _mute_path(job_id, fingerprint), {"note": note, **until})

    @Operation
    def unmute_failures(self, job_id: str, fingerprint: str) -> Request[None]:
        return Request("DELETE", _mute_path(job_id, fingerprint))

    @Operation
    def muted_failures(self) -> Request[list[MutedGroup]]:
        """The groups of failures that are muted now."""
        return Request("GET", "/v1/failures/muted", shape=_muted)

    @Operation
    def get_run(self, execution_id: str) -> Request[Run]:
        return Request("GET", path_of("runs", execution_id))

    # Manual commands

    @Operation
    def run_job(self, job_id: str, nonce: str | None = None, payload: Any = JOBS_PAYLOAD) -> Request[Run]:
        """Run a job now, with its payload or another; the same nonce starts it once, for a day."""
        body: dict[str, Any] = {"nonce": nonce} if nonce else {}
        if payload is not JOBS_PAYLOAD:
            body["payload"] = payload
        return Request("POST", f"{job_path(job_id)}/run", body, repeatable=nonce is not None)

    @Operation
    def wait_for_run(self, execution_id: str, timeout_s: float = 300.0, every_s: float = 1.0) -> Steps[Run]:
        """The run once it has ended, or as it is after `timeout_s`."""
        for _ in range(max(1, math.ceil(timeout_s / every_s))):
            run: Run = yield RunCalls.get_run.request(execution_id)
            if run["status"] in ENDED:
                return run
            yield Wait(every_s)
        run = yield RunCalls.get_run.request(execution_id)
        return run

    @Operation
    def retry_run(self, execution_id: str) -> Request[Run]:
        """Give a failed run one more attempt."""
        return Request("POST", path_of("runs", execution_id, "retry"), repeatable=False)

    @Operation
    def cancel_run(self, execution_id: str, note: str = "") -> Request[Run]:
        """End an execution at once; what it started is stopped or told, if it can be."""
        path = path_of("runs", execution_id, "cancel")
        return Request("POST", path, {"note": note}, repeatable=False)

    @Operation
    def end_run(self, execution_id: str, note: str = "") -> Request[EndedRun]:
        """End a run by force, and free what other runs wait for, even if its work goes on. For administrators."""
        return Request("POST", path_of("runs", execution_id, "end"), {"note": note})

    @Operation
    def erase_run(self, execution_id: str) -> Request[ErasedRun]:
        """Erase a run's payload, answer, log and error texts; the record stays. For admins."""
        return Request("DELETE", path_of("runs", execution_id, "details"))

    @Operation
    def call_back(
        self, /, execution_id: str, token: str, status: str, **fields: Any
    ) -> Request[CallbackAnswer]:
        """As the run's target: tell that it goes on (`running`), or that it `succeeded` or `failed`. Needs no key.

        `fields` are `percent` and `text` of one that goes on, `result` of an end; `error_type`, `error`, `permanent`
        and `retry_after_s` of a failure.
        """
        body = {"token": token, "status": status, **fields}
        return Request("POST", path_of("runs", execution_id, "callback"), body, repeatable=True)

    @Operation
    def start_backfill(self, job_id: str, backfill: Json) -> Request[dict[str, Any]]:
        """Run the fire times of a past range, or with `dry_run` count them."""
        return Request(
            "POST", f"{job_path(job_id)}/backfills", backfill, repeatable=bool(backfill.get("dry_run"))
        )

    @Operation
    def backfills(self, job_id: str) -> Request[list[Any]]:
        """A job's backfills of the last 90 days, the newest first."""
        return Request("GET", f"{job_path(job_id)}/backfills", shape=_backfills)

    @Operation
    def backfill_progress(self, job_id: str, backfill_id: str) -> Request[dict[str, Any]]:
        path = path_of("jobs", job_id, "backfills", backfill_id)
        return Request("GET", path)

    @Operation
    def cancel_backfill(self, job_id: str, backfill_id: str, note: str = "") -> Request[dict[str, Any]]:
        """Cancel what a backfill has not started; repeating it changes nothing."""
        path = path_of("jobs", job_id, "backfills", backfill_id, "cancel")
        return Request("POST", path, {"note": note})

    @Operation
    def expected_page(
        self,
        job_id: str | None = None,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
        problems: bool = False,
    ) -> Request[ExpectedOfJob | ExpectedPage]:
        """A page of the due instants of a job, or of all jobs, with fire times in [from_at, until_at) (RFC 3339).

        A day on each side of now by default. With `problems`, only what needs attention is listed.
        """
        query = {
            "limit": limit,
            "cursor": cursor,
            "from_at": from_at,
            "until_at": until_at,
            "problems": "true" if problems else None,
        }
        path = "/v1/expected" if job_id is None else f"{job_path(job_id)}/expected"
        return Request("GET", path, query=query)

    @Listing
    def expected(
        self,
        job_id: str | None = None,
        *,
        from_at: str | None = None,
        until_at: str | None = None,
        problems: bool = False,
    ) -> ListSteps[ExpectedOfJob | ExpectedPage]:
        """All pages, each when it is consumed."""
        return whole_pages(
            lambda cursor: RunCalls.expected_page.request(
                job_id, cursor=cursor, limit=5_000, from_at=from_at, until_at=until_at, problems=problems
            )
        )

    @Operation
    def explain(self, job_id: str, at: str | None = None) -> Request[Explanation]:
        """Why a job was, is or is not due at an instant (RFC 3339, or a local time of its zone); now by default."""
        return Request("GET", f"{job_path(job_id)}/explain", query={"at": at})

    @Operation
    def upcoming_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        from_at: str | None = None,
        until_at: str | None = None,
    ) -> Request[UpcomingPage]:
        """The next executions of all jobs with fire times in [from_at, until_at); a day from now by default."""
        query = {"limit": limit, "cursor": cursor, "from_at": from_at, "until_at": until_at}
        return Request("GET", "/v1/upcoming", query=query)

    @Listing
    def upcoming(
        self, *, from_at: str | None = None, until_at: str | None = None
    ) -> ListSteps[ComingExecution]:
        """The same, page by page while they are consumed."""
        return pages(
            lambda cursor: RunCalls.upcoming_page.request(
                limit=1_000, cursor=cursor, from_at=from_at, until_at=until_at
            ),
            lambda page: page["executions"],
        )

    @Operation
    def list_permits(self, key: str) -> Request[ConcurrencyKey]:
        """Who has the permits of a concurrency key, and who waits."""
        return Request("GET", "/v1/permits", query={"key": key})

    @Operation
    def density(self, *, from_at: str | None = None, until_at: str | None = None) -> Request[TenantDensity]:
        """How many executions of all jobs are due in each minute, for a day by default."""
        return Request("GET", "/v1/density", query={"from_at": from_at, "until_at": until_at})

    @Operation
    def density_of_minute(self, minute_at: str) -> Request[MinuteDensity]:
        """Which jobs are due in the minute that holds an instant, by second."""
        return Request("GET", "/v1/density/minute", query={"minute_at": minute_at})

    @Listing
    def clock_changes(self) -> ListSteps[MovedJob]:
        """The jobs that the next clock change of their time zones moves."""
        return pages(
            lambda cursor: Request[ClockChangePage]("GET", "/v1/clock-changes", query={"cursor": cursor}),
            lambda page: page["moved"],
        )

    @Listing
    def tzdata_changes(self, since: str | None = None) -> ListSteps[ChangedJob]:
        """The jobs whose coming year differs from that by an earlier tzdata release; the one before by default."""
        return pages(
            lambda cursor: Request[TzdataChangePage](
                "GET", "/v1/tzdata-changes", query={"cursor": cursor, "since": since}
            ),
            lambda page: page["moved"],
        )


def _mute_path(job_id: str, fingerprint: str) -> str:
    return path_of("failures", "groups", job_id, fingerprint, "mute")


def _muted(answer: MutedGroupList) -> list[MutedGroup]:
    return answer["groups"]


def _backfills(answer: Json) -> list[Any]:
    return list(answer["backfills"])


def _in_order(page_at: Callable[[str | None], Request[RunPage | TenantRunPage]]) -> ListSteps[Run]:
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
