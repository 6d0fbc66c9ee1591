"""Calls about jobs."""

from __future__ import annotations

import uuid
from typing import Any

from minute8_client.operations import Json, Listing, ListSteps, Operation, Request, pages, path_of
from minute8_client.shapes import Fires, Job, JobHealth, JobPage, RestoredFires, SkippedFires


class JobCalls:
    """Register and read jobs."""

    @Operation
    def create_job(self, definition: Json, job_id: str | None = None, *, past: bool = False) -> Request[Job]:
        """Create a job with your id or a generated one; `past` accepts an `at` that is past.

        Raises AlreadyExists, InvalidInput.

        The request has an idempotency key, so it can be repeated after a lost answer and still creates one job.
        """
        body = {**definition, **({"job_id": job_id} if job_id else {})}
        return Request("POST", "/v1/jobs", body, query=_past(past), key=str(uuid.uuid4()))

    @Operation
    def put_job(
        self, job_id: str, definition: Json, revision: int | None = None, *, past: bool = False
    ) -> Request[Job]:
        """Create or replace a job; with `revision` only if that is the current one."""
        return Request("PUT", job_path(job_id), definition, revision, query=_past(past))

    @Operation
    def get_job(self, job_id: str) -> Request[Job]:
        return Request("GET", job_path(job_id))

    @Operation
    def patch_job(
        self, job_id: str, changes: Json, revision: int | None = None, *, past: bool = False
    ) -> Request[Job]:
        """Change a part of a job (RFC 7396): None resets a field to its default."""
        return Request("PATCH", job_path(job_id), changes, revision, query=_past(past))

    @Operation
    def jobs_page(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        state: str | None = None,
        tag: str | None = None,
        name_prefix: str | None = None,
        target: str | None = None,
        health: bool = False,
    ) -> Request[JobPage]:
        """A page of jobs. With `health`, also the health of each: one query more for each job."""
        query = {
            "limit": limit,
            "cursor": cursor,
            "state": state,
            "tag": tag,
            "name_prefix": name_prefix,
            "target": target,
            "health": "true" if health else None,
        }
        return Request("GET", "/v1/jobs", query=query)

    @Listing
    def jobs(self, /, **wanted: Any) -> ListSteps[Job]:
        """All jobs, page by page while they are consumed; `wanted` as for `jobs_page`."""
        return pages(
            lambda cursor: JobCalls.jobs_page.request(limit=200, cursor=cursor, **wanted),
            lambda page: page["jobs"],
        )

    @Listing
    def jobs_with_health(self, /, **wanted: Any) -> ListSteps[tuple[Job, JobHealth]]:
        """All jobs with their health; `wanted` as for `jobs_page`."""
        return pages(
            lambda cursor: JobCalls.jobs_page.request(limit=200, cursor=cursor, health=True, **wanted),
            lambda page: [(job, page["health"][job["job_id"]]) for job in page["jobs"]],
        )

    @Operation
    def job_health(self, job_id: str) -> Request[JobHealth]:
        """The last runs, failures in a row, and whether a run is overdue."""
        return Request("GET", f"{job_path(job_id)}/health")

    @Operation
    def delete_job(self, job_id: str, revision: int | None = None) -> Request[None]:
        return Request("DELETE", job_path(job_id), revision=revision)

    @Operation
    def pause_job(self, job_id: str, note: str = "", revision: int | None = None) -> Request[Job]:
        return Request("POST", f"{job_path(job_id)}/pause", {"note": note}, revision)

    @Operation
    def resume_job(self, job_id: str, revision: int | None = None) -> Request[Job]:
        return Request("POST", f"{job_path(job_id)}/resume", revision=revision)

    @Operation
    def skip_fires(self, job_id: str, count: int = 1, note: str = "") -> Request[SkippedFires]:
        """Cancel the next fire times beforehand; the job stays active."""
        body = {"count": count, "note": note}
        return Request("POST", f"{job_path(job_id)}/skip", body)

    @Operation
    def unskip_fires(self, job_id: str) -> Request[RestoredFires]:
        """Undo the cancellation of the next fire times, 50 at most. Those within a minute stay cancelled."""
        return Request("DELETE", f"{job_path(job_id)}/skip")

    @Operation
    def preview_schedule(self, schedule: Json, count: int | None = None) -> Request[dict[str, Any]]:
        """When a schedule fires, its description, and warnings about surprises."""
        body = {"schedule": schedule, **({"count": count} if count is not None else {})}
        return Request("POST", "/v1/schedules/preview", body)

    @Operation
    def next_fires(self, job_id: str, count: int | None = None) -> Request[Fires]:
        return Request("GET", f"{job_path(job_id)}/next", query={"count": count})


def _past(past: bool) -> dict[str, str]:
    return {"past": "true"} if past else {}


def job_path(job_id: str) -> str:
    return path_of("jobs", job_id)
