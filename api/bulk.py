"""The routes of many jobs at once: put all that a body holds, and read all that there are."""

from __future__ import annotations

from collections import Counter
from typing import Final

from api.problems import line_view
from api.requests import Request
from api.routing import LONGEST_BODY, Query, Reply, Route
from api.services import Services
from common import bulk

# What the time of a request allows on the slowest Lambda that is deployed: docs/cli.md has the figures.
MOST_LINES: Final = 1_000
# Lambda takes 6 MB, in which API Gateway has encoded the body as base64.
LONGEST_BULK: Final = 4 * 1024 * 1024
# Of the 29 s that the function has. A transaction that meets others can take some seconds.
_WRITING_S: Final = 18

_BULK_FLAGS = (
    Query("atomic", "Store nothing unless every line can be.", {"type": "boolean", "default": False}),
    Query("dry_run", "Tell what would change, and store nothing.", {"type": "boolean", "default": False}),
)


def put_all(services: Services, request: Request) -> Reply:
    """POST /v1/jobs/_bulk"""
    dry_run = request.flag("dry_run")
    outcomes = bulk.put_all(
        services.registry,
        request.tenant,
        request.lines(MOST_LINES, LONGEST_BODY),
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


ROUTES = (
    Route(
        "POST", "/v1/jobs/_bulk", "put_jobs", put_all, "write", "Create and replace many jobs", "BulkResult",
        takes="BulkJob", takes_type="application/x-ndjson", query=_BULK_FLAGS, longest_body=LONGEST_BULK,
    ),
)  # fmt: skip
