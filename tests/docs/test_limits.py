"""docs/limits.md has the numbers that the code enforces."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from common import ids
from common.jobs import placeholders
from common.platform import api_keys
from common.registration import (
    calendar_sources,
    calendar_store,
    icalendar_dates,
    manual,
    schedule_definition,
)
from common.registration.definition import EXECUTOR_MARGIN_S, JobDefinition, Limits
from common.runs import records
from common.storage import wire
from common.tenants import web_address
from common.timing import cron
from minute8.api.http import requests, routing
from minute8.api.routes import bulk

LIMITS = (Path(__file__).parents[2] / "docs/limits.md").read_text()
KIB = 1024
BOUNDS = {
    "body of a request": routing.MAX_BODY // KIB,
    "body of a bulk request": bulk.MAX_BULK // KIB // KIB,
    "lines of a bulk request": bulk.MAX_LINES,
    "nesting of a body": requests.DEEPEST,
    "nesting of a payload": placeholders.DEEPEST,
    "payload": Limits().payload_bytes // KIB,
    "payload after its placeholders are replaced": placeholders.RENDERED_BYTES // KIB,
    "cron expression": cron.MAX_CHARS,
    "spread (`jitter_s`)": schedule_definition.MAX_JITTER_S,
    "a job's own excluded dates": schedule_definition.MAX_EXCLUDED_DATES,
    "calendars that a job names": schedule_definition.MAX_CALENDARS,
    "calendars of a tenant": calendar_store.MAX_TENANT_CALENDARS,
    "dates of a calendar": calendar_sources.MAX_DATES,
    "`source` of a calendar": calendar_sources.MAX_SOURCE_CHARS,
    "iCalendar text, where it is resolved": icalendar_dates.MAX_BYTES // KIB,
    "name, note": ids.NAME_CHARS,
    "ids of jobs, calendars; nonces": ids.JOB_ID_CHARS,
    "URL; headers of an `http` target": web_address.URL_CHARS,
    "time of a call (`timeout_s`)": EXECUTOR_MARGIN_S,
    "fire times of a backfill": manual.BACKFILL_LIMIT,
    "fire times that one call skips, or takes back": manual.MAX_SKIPPED,
    "records that a call reads to take fire times back": records.MAX_RECORDS_READ,
    "API keys": api_keys.MAX_KEYS,
    "page of a list": routing.MAX_PAGE,
    "an item in DynamoDB": wire.MAX_LEVELS,
    "size of an item in DynamoDB": wire.MAX_ITEM_BYTES // KIB,
}


@pytest.mark.parametrize(("quantity", "bound"), BOUNDS.items())
def test_a_bound_is_the_one_in_the_code(quantity: str, bound: int) -> None:
    (row,) = re.findall(rf"^\| {re.escape(quantity)} \| (.*?) \|", LIMITS, re.MULTILINE)
    assert f"{bound:,}" in re.findall(r"[\d,]*\d", row), row


def test_every_bound_of_the_input_has_a_row() -> None:
    """A new constant of this kind in these files needs a row in the document and a line above."""
    named = [
        value
        for module in (
            schedule_definition,
            calendar_sources,
            calendar_store,
            icalendar_dates,
            cron,
            placeholders,
        )
        for name, value in vars(module).items()
        if re.fullmatch(r"(MAX|MOST|LONGEST|DEEPEST)(_[A-Z_]+)?", name) and isinstance(value, int)
    ]
    rows = re.findall(r"[\d,]*\d", LIMITS)
    for value in named:
        assert {f"{value:,}", f"{value // KIB:,}"} & set(rows), value
    assert {"schedule", "payload", "retry", "tags"} <= set(JobDefinition.__struct_fields__)
