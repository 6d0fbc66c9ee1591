"""The routes for many jobs at once: create or replace them, and export all."""

from __future__ import annotations

import json
from collections import Counter
from typing import Final

from api.http.cursors import read_cursor, write_cursor
from api.http.problems import line_view
from api.http.requests import Request
from api.http.routing import (
    A_THOUSAND_JOBS,
    CURSOR,
    MAX_BODY,
    MAX_PAGE_BYTES,
    NDJSON,
    Query,
    Reply,
    Route,
)
from api.routes.jobs import PAST, registry_for
from api.services import Services
from api.views import job_line
from common.jobs.job import exists
from common.registration import bulk

# What fits into a request's time on the slowest deployed Lambda; docs/cli.md has the figures.
MAX_LINES: Final = 1_000
# Lambda accepts 6 MB, and API Gateway encodes the body as base64.
MAX_BULK: Final = 4 * 1024 * 1024
# The lines that count as one request, where that is more than the route's own weight.
_LINES_A_REQUEST: Final = 10
_EXPORT: Final = "export"
# The function has 29 s, and a transaction with conflicts can take some seconds.
_WRITING_S: Final = 18

_BULK_FLAGS = (
    Query("atomic", "Store nothing unless every line can be.", {"type": "boolean", "default": False}),
    Query("dry_run", "Tell what would change, and store nothing.", {"type": "boolean", "default": False}),
    PAST,
)


def put_all(services: Services, request: Request) -> Reply:
    """POST /v1/jobs/_bulk"""
    dry_run = request.flag("dry_run")
    lines = request.lines(MAX_LINES, MAX_BODY)
    services.count_as(request.tenant, request.now, len(lines) // _LINES_A_REQUEST, A_THOUSAND_JOBS)
    outcomes = bulk.put_all(
        registry_for(services, request),
        request.tenant,
        lines,
        until=request.now + _WRITING_S,
        atomic=request.flag("atomic"),
        dry_run=dry_run,
    )
    counts = Counter(outcome.result for outcome in outcomes)
    return Reply(
        {
            "dry_run": dry_run,
            **{result: counts[result] for result in bulk.RESULTS},
            "results": [line_view(outcome) for outcome in outcomes],
        }
    )


def export(services: Services, request: Request) -> Reply:
    """GET /v1/jobs/_export"""
    after = read_cursor(request.tenant, _EXPORT, request.query.get("cursor"))
    lines: list[str] = []
    size, last, headers = 0, after, {}
    # Deleted ones count, so that a page reads no more; it can be empty and still have a next one.
    found = services.store.list_jobs(request.tenant, after, MAX_LINES + 1, deleted=True)
    for seen, job in enumerate(found):
        if seen == MAX_LINES or size >= MAX_PAGE_BYTES:
            # A relative link: the function does not know its own address if it runs after a gateway.
            headers["Link"] = f'<?cursor={write_cursor(request.tenant, _EXPORT, last)}>; rel="next"'
            break
        if exists(job):
            lines.append(json.dumps(job_line(job), ensure_ascii=False, separators=(",", ":")) + "\n")
            size += len(lines[-1].encode())
        last = job.job_id
    return Reply("".join(lines), headers=headers, content_type=NDJSON)


ROUTES = (
    Route(
        "GET", "/v1/jobs/_export", "export_jobs", export, "read", "All jobs as they can be put again", "ExportedJob",
        gives_type=NDJSON, query=(CURSOR,),
    ),
    Route(
        "POST", "/v1/jobs/_bulk", "put_jobs", put_all, "write", "Create and replace many jobs", "BulkResult",
        takes="BulkJob", takes_type=NDJSON, query=_BULK_FLAGS, longest_body=MAX_BULK, weight=A_THOUSAND_JOBS,
    ),
)  # fmt: skip
