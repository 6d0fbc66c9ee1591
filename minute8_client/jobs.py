"""Calls about jobs."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any, cast

from minute8_client.shapes import Fires, Job, JobHealth, JobPage, SkippedFires
from minute8_client.transport import Json, Transport, path_of


class JobCalls(Transport):
    """Register and read jobs."""

    def create_job(self, definition: Json, job_id: str | None = None, *, past: bool = False) -> Job:
        """Create a job with your id or a generated one; `past` accepts an `at` that is past.

        Raises AlreadyExists, InvalidInput.

        The request has an idempotency key, so it can be repeated after a lost answer and still creates one job.
        """
        body = {**definition, **({"job_id": job_id} if job_id else {})}
        return cast(Job, self.call("POST", "/v1/jobs", body, query=_past(past), key=str(uuid.uuid4())))

    def put_job(
        self, job_id: str, definition: Json, revision: int | None = None, *, past: bool = False
    ) -> Job:
        """Create or replace a job; with `revision` only if that is the current one."""
        return cast(Job, self.call("PUT", job_path(job_id), definition, revision, query=_past(past)))

    def get_job(self, job_id: str) -> Job:
        return cast(Job, self.call("GET", job_path(job_id)))

    def patch_job(
        self, job_id: str, changes: Json, revision: int | None = None, *, past: bool = False
    ) -> Job:
        """Change a part of a job (RFC 7396): None resets a field to its default."""
        return cast(Job, self.call("PATCH", job_path(job_id), changes, revision, query=_past(past)))

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
    ) -> JobPage:
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
        return cast(JobPage, self.call("GET", "/v1/jobs", query=query))

    def jobs(self, **wanted: Any) -> Iterator[Job]:
        """All jobs, page by page while they are consumed; `wanted` as for `jobs_page`."""
        cursor = None
        while True:
            page = self.jobs_page(limit=200, cursor=cursor, **wanted)
            yield from page["jobs"]
            if not (cursor := page["next_cursor"]):
                return

    def jobs_with_health(self, **wanted: Any) -> Iterator[tuple[Job, JobHealth]]:
        """All jobs with their health; `wanted` as for `jobs_page`."""
        cursor = None
        while True:
            page = self.jobs_page(limit=200, cursor=cursor, health=True, **wanted)
            for job in page["jobs"]:
                yield job, page["health"][job["job_id"]]
            if not (cursor := page["next_cursor"]):
                return

    def job_health(self, job_id: str) -> JobHealth:
        """The last runs, failures in a row, and whether a run is overdue."""
        return cast(JobHealth, self.call("GET", f"{job_path(job_id)}/health"))

    def delete_job(self, job_id: str, revision: int | None = None) -> None:
        self.call("DELETE", job_path(job_id), revision=revision)

    def pause_job(self, job_id: str, note: str = "", revision: int | None = None) -> Job:
        return cast(Job, self.call("POST", f"{job_path(job_id)}/pause", {"note": note}, revision))

    def resume_job(self, job_id: str, revision: int | None = None) -> Job:
        return cast(Job, self.call("POST", f"{job_path(job_id)}/resume", revision=revision))

    def skip_fires(self, job_id: str, count: int = 1, note: str = "") -> SkippedFires:
        """Cancel the next fire times beforehand; the job stays active."""
        body = {"count": count, "note": note}
        return cast("SkippedFires", self.call("POST", f"{job_path(job_id)}/skip", body))

    def preview_schedule(self, schedule: Json, count: int | None = None) -> dict[str, Any]:
        """When a schedule fires, its description, and warnings about surprises."""
        body = {"schedule": schedule, **({"count": count} if count is not None else {})}
        return cast(dict[str, Any], self.call("POST", "/v1/schedules/preview", body))

    def next_fires(self, job_id: str, count: int | None = None) -> Fires:
        return cast(Fires, self.call("GET", f"{job_path(job_id)}/next", query={"count": count}))


def _past(past: bool) -> dict[str, str]:
    return {"past": "true"} if past else {}


def job_path(job_id: str) -> str:
    return path_of("jobs", job_id)
