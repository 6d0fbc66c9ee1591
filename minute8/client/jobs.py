"""Operations on jobs that need several requests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import httpx

from minute8.client.errors import LinesBusy
from minute8.client.generated import TenantOperations
from minute8.client.operations import (
    Json,
    Listing,
    ListSteps,
    Operation,
    Request,
    Steps,
    Wait,
    fields_of,
    pages,
)
from minute8.client.shapes import BulkLine, BulkResult, Job, JobHealth
from minute8.client.transport import encoded

# What the API accepts in one bulk request.
MAX_BULK: Final = 4 * 1024 * 1024
MAX_LINES: Final = 1_000
# Before lines that are refused as busy are sent again: two minutes in which none was stored, besides requests' time.
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
    """Many jobs at a time."""

    @Listing
    def jobs_with_health(self, /, **filters: Any) -> ListSteps[tuple[Job, JobHealth]]:
        """All jobs with their health; filters as for `list_jobs`."""
        return pages(
            lambda cursor: TenantOperations.list_jobs_page.request(
                cursor=cursor, health=True, **{"limit": 200, **filters}
            ),
            lambda page: [(job, page["health"][job["job_id"]]) for job in page["jobs"]],
        )

    @Operation
    def put_jobs(
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
        be replaced is refused. Lines that are refused as busy are sent again, until none was stored for two minutes:
        LinesBusy has all results.
        """
        query = fields_of(atomic=atomic, dry_run=dry_run, past=past)
        results: list[BulkLine] = []
        waits = iter(_BUSY_WAITS_S)
        for lines in _requests(jobs):
            stored: dict[int, BulkLine] = {}
            busy = dict(enumerate(lines))
            while True:
                numbers, body = list(busy), b"\n".join(busy.values())
                result: BulkResult = yield Request(
                    "POST", "/v1/jobs/_bulk", query=query, lines=body, only_new=only_new, repeatable=True
                )
                for number, line in zip(numbers, result["results"], strict=True):
                    stored[number] = {**line, "line": len(results) + number + 1}
                busy = {number: lines[number] for number in numbers if _is_busy(stored[number])}
                if len(busy) < len(numbers):
                    waits = iter(_BUSY_WAITS_S)
                wait_s = next(waits, None)
                if not busy or wait_s is None:
                    break
                yield Wait(wait_s)
            results += [stored[number] for number in range(len(lines))]
        if lines_busy := sum(map(_is_busy, results)):
            detail = f"{lines_busy} of {len(results)} lines were refused as busy each time; send them again"
            raise LinesBusy(503, {"type": _BUSY, "title": "Busy", "detail": detail, "results": results})
        return results

    @Listing
    def export_jobs(self, *, eventbridge: bool = False) -> ListSteps[dict[str, Any]]:
        """All jobs as `put_jobs` takes them, read page by page while they are consumed.

        With `eventbridge` a job that is an EventBridge schedule has it as `eventbridge`.
        """
        cursor: str | None = None
        while True:
            page: httpx.Response = yield Request(
                "GET", "/v1/jobs/_export", query=fields_of(cursor=cursor, eventbridge=eventbridge)
            )
            yield [json.loads(line) for line in page.content.splitlines()]
            if "next" not in page.links:
                return
            cursor = httpx.URL(page.links["next"]["url"]).params["cursor"]


def _is_busy(line: BulkLine) -> bool:
    return line["result"] == "refused" and line["problem"]["type"] == _BUSY


def _requests(jobs: Iterable[Json]) -> Iterator[list[bytes]]:
    """The jobs as lines, as many at a time as fit into a request."""
    lines: list[bytes] = []
    size = 0
    for job in jobs:
        line = encoded(job)
        if lines and (len(lines) == MAX_LINES or size + len(line) + 1 > MAX_BULK):
            yield lines
            lines, size = [], 0
        lines.append(line)
        size += len(line) + 1
    if lines:
        yield lines


def definition_to_create(job: Mapping[str, Any]) -> dict[str, Any]:
    """The same with the state and note of a paused job, which are for a job that does not exist yet."""
    definition = {name: value for name, value in job.items() if name not in _ADDED}
    if job.get("state") == "paused":
        definition |= {"state": "paused", "note": job.get("note", "")}
    return definition


def definition_in(job: Job) -> dict[str, Any]:
    """The definition in an answer, including fields that this client does not know."""
    return {name: value for name, value in job.items() if name not in _ADDED}
