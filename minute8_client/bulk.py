"""Calls about many jobs at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

import httpx

from minute8_client.operations import Json, Listing, ListSteps, Request
from minute8_client.shapes import BulkLine, BulkResult

# The most lines of one request.
MAX_BULK: Final = 4 * 1024 * 1024
MAX_LINES: Final = 1_000


class BulkCalls:
    """Register any number of jobs."""

    @Listing
    def bulk_put(
        self, jobs: Iterable[Json], *, atomic: bool = False, dry_run: bool = False, past: bool = False
    ) -> ListSteps[BulkLine]:
        """Create and replace jobs (definitions with their `job_id`), and yield the result of each as answers arrive.

        They are sent in as many requests as needed; `line` counts all jobs from 1. With `atomic` a request stores all
        of its jobs or none, and raises InvalidInput with `results`. If a request is repeated after a lost answer, its
        stored jobs are reported as unchanged. `past` accepts an `at` that is past.
        """
        first = 1
        for lines in _requests(jobs):
            flags = {"atomic": atomic, "dry_run": dry_run, "past": past}
            query = {name: "true" if flag else None for name, flag in flags.items()}
            body = b"\n".join(lines)
            result: BulkResult = yield Request("POST", "/v1/jobs/_bulk", query=query, lines=body)
            for one in result["results"]:
                one["line"] += first - 1
            yield result["results"]
            first += len(lines)

    @Listing
    def export_jobs(self) -> ListSteps[dict[str, Any]]:
        """All jobs as `bulk_put` takes them, read page by page while they are consumed."""
        cursor: str | None = None
        while True:
            page: httpx.Response = yield Request("GET", "/v1/jobs/_export", query={"cursor": cursor})
            yield [json.loads(line) for line in page.content.splitlines()]
            if "next" not in page.links:
                return
            cursor = httpx.URL(page.links["next"]["url"]).params["cursor"]


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
