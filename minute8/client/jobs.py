"""Calls about jobs: one by one, many in one request, and all that a filter takes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import httpx

from minute8.client.errors import LinesBusy
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
)
from minute8.client.shapes import (
    BulkLine,
    BulkResult,
    Fires,
    Job,
    JobHealth,
    JobPage,
    ManyDone,
    ManyRefused,
    RestoredFires,
    SkippedFires,
)

# What the API accepts in one bulk request.
MAX_BULK: Final = 4 * 1024 * 1024
MAX_LINES: Final = 1_000
# Before lines that are refused as busy are sent again: two minutes in all, besides the requests' own time.
_BUSY_WAITS_S: Final = (1, 2, 4, 8, 15, 30, 30, 30)
_BUSY: Final = "urn:minute8:problem:busy"
# The fields that the API adds to a definition; all others can be sent back.
_ADDED = frozenset(
    (
        "job_id",
        "schedule_resolved",
        "schedule_words",
        "function_timeout_s",
        "warnings",
        "ends",
        "state",
        "note",
        "revision",
        "schedule_revision",
        "created_at",
        "updated_at",
        "next_fire_at",
        "next_due_at",
    )
)


class JobCalls:
    """Register and read jobs."""

    @Operation
    def create_job(self, definition: Json, job_id: str | None = None, *, past: bool = False) -> Request[Job]:
        """Create a job with your id or a generated one; `past` accepts an `at` that is past.

        Raises AlreadyExists, InvalidInput.

        The request has an idempotency key, so it can be repeated after a lost answer and still creates one job.
        """
        body = {**definition, **({"job_id": job_id} if job_id else {})}
        return Request("POST", "/v1/jobs", body, query=_flags(past=past), key=str(uuid.uuid4()))

    @Operation
    def put_job(
        self,
        job_id: str,
        definition: Json,
        revision: int | None = None,
        *,
        past: bool = False,
        only_new: bool = False,
        dry_run: bool = False,
    ) -> Request[Job]:
        """Create or replace a job; the same definition changes nothing.

        With `dry_run` nothing is stored: the answer says what its `ends` and `warnings` would be.

        With `revision` only if that is the current one, with `only_new` only if there is none. Raises RevisionMismatch.
        """
        query = _flags(past=past, dry_run=dry_run)
        return Request("PUT", job_path(job_id), definition, revision, query=query, only_new=only_new)

    @Operation
    def get_job(self, job_id: str) -> Request[Job]:
        return Request("GET", job_path(job_id))

    @Operation
    def patch_job(
        self,
        job_id: str,
        changes: Json,
        revision: int | None = None,
        *,
        past: bool = False,
        dry_run: bool = False,
    ) -> Request[Job]:
        """Change a part of a job (RFC 7396): None resets a field to its default. `dry_run` is as for `put_job`."""
        query = _flags(past=past, dry_run=dry_run)
        return Request("PATCH", job_path(job_id), changes, revision, query=query)

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
        q: str | None = None,
        kind: str | None = None,
        failing: bool = False,
        not_running: bool = False,
        sort: str | None = None,
        health: bool = False,
    ) -> Request[JobPage]:
        """A page of jobs. With `health`, also the health of each.

        `q` are words of id, name and tags, or their beginnings; `sort` is `id`, `name`, `next`, `last` or `failures`.
        """
        query = {
            "limit": limit,
            "cursor": cursor,
            "state": state,
            "tag": tag,
            "name_prefix": name_prefix,
            "target": target,
            "q": q,
            "kind": kind,
            "failing": "true" if failing else None,
            "not_running": "true" if not_running else None,
            "sort": sort,
            "health": "true" if health else None,
        }
        return Request("GET", "/v1/jobs", query=query)

    @Listing
    def jobs(self, /, **filters: Any) -> ListSteps[Job]:
        """All jobs, page by page while they are consumed; `wanted` as for `jobs_page`."""
        return pages(
            lambda cursor: JobCalls.jobs_page.request(cursor=cursor, **{"limit": 200, **filters}),
            lambda page: page["jobs"],
        )

    @Listing
    def jobs_with_health(self, /, **filters: Any) -> ListSteps[tuple[Job, JobHealth]]:
        """All jobs with their health; `wanted` as for `jobs_page`."""
        return pages(
            lambda cursor: JobCalls.jobs_page.request(
                cursor=cursor, health=True, **{"limit": 200, **filters}
            ),
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
    def preview_schedule(
        self, schedule: Json, count: int | None = None, *, week: bool = False
    ) -> Request[dict[str, Any]]:
        """When a schedule fires, its description, and warnings about surprises.

        With `week` also the first fire time in each hour of its clock, of seven days.
        """
        body: dict[str, Any] = {"schedule": schedule}
        if count is not None:
            body["count"] = count
        if week:
            body["week"] = True
        return Request("POST", "/v1/schedules/preview", body)

    @Operation
    def next_fires(self, job_id: str, count: int | None = None) -> Request[Fires]:
        return Request("GET", f"{job_path(job_id)}/next", query={"count": count})

    @Operation
    def bulk_put(
        self,
        jobs: Iterable[Json],
        *,
        atomic: bool = False,
        dry_run: bool = False,
        past: bool = False,
        only_new: bool = False,
    ) -> Steps[list[BulkLine]]:
        """Create and replace jobs (definitions with their `job_id`), and return the result of each.

        They are sent in as many requests as needed; `line` counts all jobs from 1. With `atomic` a request stores all
        of its jobs or none, and raises InvalidInput with `results`. If a request is repeated after a lost answer, its
        stored jobs are reported as unchanged. `past` accepts an `at` that is past. With `only_new` a job that would
        be replaced is refused. Lines that are refused as busy are sent again, for two minutes; LinesBusy has the rest.
        """
        flags = {"atomic": atomic, "dry_run": dry_run, "past": past}
        query = {name: "true" if flag else None for name, flag in flags.items()}
        results: list[BulkLine] = []
        for lines in _requests(jobs):
            stored: dict[int, BulkLine] = {}
            busy = dict(enumerate(lines))
            for wait_s in (0, *_BUSY_WAITS_S):
                if wait_s:
                    yield Wait(wait_s)
                numbers, body = list(busy), b"\n".join(busy.values())
                result: BulkResult = yield Request(
                    "POST", "/v1/jobs/_bulk", query=query, lines=body, only_new=only_new, repeatable=True
                )
                for number, line in zip(numbers, result["results"], strict=True):
                    stored[number] = {**line, "line": len(results) + number + 1}
                busy = {number: lines[number] for number in numbers if _is_busy(stored[number])}
                if not busy:
                    break
            results += [stored[number] for number in range(len(lines))]
        if lines_busy := sum(map(_is_busy, results)):
            detail = f"{lines_busy} of {len(results)} lines were refused as busy each time; send them again"
            raise LinesBusy(503, {"type": _BUSY, "title": "Busy", "detail": detail, "results": results})
        return results

    @Listing
    def export_jobs(self, *, eventbridge: bool = False) -> ListSteps[dict[str, Any]]:
        """All jobs as `bulk_put` takes them, read page by page while they are consumed.

        With `eventbridge` a job that is an EventBridge schedule has it as `eventbridge`.
        """
        cursor: str | None = None
        flags = {"eventbridge": "true"} if eventbridge else {}
        while True:
            page: httpx.Response = yield Request("GET", "/v1/jobs/_export", query={"cursor": cursor, **flags})
            yield [json.loads(line) for line in page.content.splitlines()]
            if "next" not in page.links:
                return
            cursor = httpx.URL(page.links["next"]["url"]).params["cursor"]

    @Operation
    def pause_jobs(self, /, *, note: str = "", **filters: Any) -> Steps[ManyDone]:
        """Pause all jobs that the filters take, in as many requests as needed. With `dry_run=True` it names them."""
        return _all("/v1/jobs/_all/pause", {"note": note, **filters})

    @Operation
    def resume_jobs(self, /, **filters: Any) -> Steps[ManyDone]:
        """Resume all jobs that the filters take; what they missed does not run."""
        return _all("/v1/jobs/_all/resume", filters)

    @Operation
    def delete_jobs(self, /, **filters: Any) -> Steps[ManyDone]:
        """Delete jobs: `tag`, `name_prefix`, `state`, `target`, `error_type`, `fingerprint`, or `all=True`."""
        return _all("/v1/jobs/_all/delete", filters)

    @Operation
    def run_jobs(self, /, *, nonce: str | None = None, **filters: Any) -> Steps[ManyDone]:
        """Run jobs now. The nonce makes it safe to repeat; one is made if none is given."""
        return _all("/v1/jobs/_all/run", {"nonce": nonce or uuid.uuid4().hex, **filters})

    @Operation
    def retry_runs(self, /, *, from_at: str, **filters: Any) -> Steps[ManyDone]:
        """Try again what failed since `from_at`; also `until_at`, `job_id`, `tag`, `error_type`, `fingerprint`."""
        return _all("/v1/runs/_all/retry", {"from_at": from_at, **filters})

    @Operation
    def cancel_runs(self, /, **filters: Any) -> Steps[ManyDone]:
        """Cancel runs that wait: `status`, `job_prefix`, `from_at`, `until_at`, `note`."""
        return _all("/v1/runs/_all/cancel", filters)


def _flags(**flags: bool) -> dict[str, str]:
    return {name: "true" for name, is_set in flags.items() if is_set}


def job_path(job_id: str) -> str:
    return path_of("jobs", job_id)


def _is_busy(line: BulkLine) -> bool:
    return line["result"] == "refused" and line["problem"]["type"] == _BUSY


def _requests(jobs: Iterable[Json]) -> Iterator[list[bytes]]:
    """The jobs as lines, as many at a time as fit into a request."""
    lines: list[bytes] = []
    size = 0
    for job in jobs:
        line = json.dumps(job, ensure_ascii=False, separators=(",", ":")).encode()
        if lines and (len(lines) == MAX_LINES or size + len(line) + 1 > MAX_BULK):
            yield lines
            lines, size = [], 0
        lines.append(line)
        size += len(line) + 1
    if lines:
        yield lines


def _all(path: str, filters: dict[str, Any]) -> Steps[ManyDone]:
    """Request by request until all are done; the result counts a job or run that several requests met once."""
    body = {name: value for name, value in filters.items() if value is not None}
    ids: dict[str, None] = {}
    refused: list[ManyRefused] = []
    while True:
        part: ManyDone = yield Request("POST", path, body)
        ids |= dict.fromkeys(part["ids"])
        refused += part["refused"]
        if not (cursor := part["next_cursor"]):
            done = 0 if part["dry_run"] else len(ids.keys() - {refusal["id"] for refusal in refused})
            return {**part, "matched": len(ids), "done": done, "ids": list(ids), "refused": refused}
        body["cursor"] = cursor


def definition_to_create(job: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the state and note of a paused job, which are for a job that does not exist yet."""
    definition = {name: value for name, value in job.items() if name not in _ADDED}
    if job.get("state") == "paused":
        definition |= {"state": "paused", "note": job.get("note", "")}
    return definition


def definition_in(job: Job) -> dict[str, Any]:
    """The definition in an answer, including fields that this client does not know."""
    return {name: value for name, value in job.items() if name not in _ADDED}
