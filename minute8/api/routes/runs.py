"""The routes of runs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from common.errors import InvalidInput, NotFound
from common.history.failed_runs import group_of
from common.history.runs_by_time import RunFilter, TimeRange
from common.jobs.spec import CONCURRENCY_KEY
from common.limits import MAX_PAGE
from common.planning.execution import split_execution_id, split_run_name
from common.projection.entry import fire_time
from common.projection.totals import Summary
from common.registration.manual import ERASED, NOT_COVERED, erase_details
from common.runs.run import Run
from common.runs.states import DISPATCHED, FAILED, QUEUED, RETRYING, RUNNING, SKIPPED, SUCCEEDED
from common.storage.bounded import KeyText, Page
from common.timing.durations import parse_instant
from common.timing.instants import DAY_S, rfc3339
from minute8.api.http.paging import (
    INSTANT,
    bounds,
    check_length,
    not_of_this_list,
    read_cursor,
    write_cursor,
)
from minute8.api.http.requests import Request
from minute8.api.http.routing import CURSOR, LIMIT, PAGE, Query, Response, Routes
from minute8.api.routes.jobs import existing_id
from minute8.api.services import Services
from minute8.api.views import hours_view, run_view

STATUSES = (QUEUED, RUNNING, DISPATCHED, SUCCEEDED, FAILED, RETRYING, SKIPPED)
TRIGGERS = ("schedule", "manual", "retry", "backfill")
# Without `from_at` the list of all runs goes back this far.
RECENT_S = DAY_S
_FILTERS = (
    Query("status", "Only runs with this status.", {"type": "string", "enum": list(STATUSES)}),
    Query("trigger", "Only runs started by this.", {"type": "string", "enum": list(TRIGGERS)}),
    Query("from_at", "Only fire times at or after this.", INSTANT),
    Query("until_at", "Only fire times before this.", INSTANT),
)
_SUMMARY_DAYS: Final = 7
_MAX_SUMMARY_DAYS: Final = 92
_SUMMARY_QUERY = (
    CURSOR,
    Query("from_at", f"Only fire times at or after this; {_SUMMARY_DAYS} days unless given.", INSTANT),
    Query("until_at", "Only fire times before this; the end of today (UTC) unless given.", INSTANT),
    Query(
        "values",
        "Show every value, so that answers can be merged exactly.",
        {"type": "boolean", "default": False},
    ),
)
TAG_CHARS: Final = 200
_TARGET_CHARS: Final = 2_048
# A list over all jobs reads as much as some requests of one job.
_FEW_READS: Final = 5
JOB_TAG: Final = Query(
    "tag",
    "Only runs of jobs that have this tag now.",
    {"type": "string", "minLength": 1, "maxLength": TAG_CHARS},
)
_JOB_FILTERS: Final = (
    JOB_TAG,
    Query(
        "target",
        "Only runs of jobs that have this target now: its kind, ARN or address.",
        {"type": "string", "minLength": 1, "maxLength": _TARGET_CHARS},
    ),
)

ROUTES = Routes()


@ROUTES.add("GET", "/v1/jobs/{job_id}/runs", "read", response="RunPage", query=(LIMIT, CURSOR, *_FILTERS))
def list_runs_of_job(services: Services, request: Request) -> Response:
    """A job's runs, newest first.

    One query of up to `limit` runs; with a filter a request reads up to 2,000. Runs stay for the tenant's
    `retention_days`, also those of a deleted job.
    """
    job_id = existing_id(request)
    limit = request.number("limit", PAGE, MAX_PAGE)
    run_filter = _filter(request.query)
    list_name = f"runs:{job_id}:{run_filter}"
    before = read_cursor(request.tenant, list_name, request.query.get("cursor"), KeyText)
    page = services.run_lists.of_job(request.tenant, job_id, run_filter, limit=limit, before=before)
    if not page.items and not before and not services.runs.of_job(request.tenant, job_id, limit=1):
        services.store.get(request.tenant, job_id)  # raises NotFound: a job without runs has an empty list
    cursor = write_cursor(request.tenant, list_name, page.after)
    return Response({**page_view(page, request.now), "next_cursor": cursor})


@ROUTES.add(
    "GET",
    "/v1/runs",
    "read",
    response="TenantRunPage",
    query=(LIMIT, CURSOR, *_FILTERS, *_JOB_FILTERS),
    weight=_FEW_READS,
)
def list_runs(services: Services, request: Request) -> Response:
    """The runs of all jobs, newest first.

    A page of 50 takes some ten reads, however many jobs there are. A page with a rare `status`, `tag` or `target` can
    be empty and have a cursor: a request looks at up to 20,000 runs. Without `from_at` it goes back a day.
    `complete_from_at` says from when on all runs are listed so far.
    """
    limit = request.number("limit", PAGE, MAX_PAGE)
    run_filter = replace(
        _filter(request.query),
        tag=filter_text(request.query, "tag", TAG_CHARS),
        target=filter_text(request.query, "target", _TARGET_CHARS),
    )
    list_name = f"runs::{run_filter}"
    span = read_cursor(request.tenant, list_name, request.query.get("cursor"), TimeRange, check_range_of_runs)
    span = span or _newest(request.now, run_filter)
    page = services.by_time.page(request.tenant, span, run_filter, limit=limit, now=request.now)
    runs = page_view(page, request.now)
    return Response(
        {**runs, **rest_of_list(request, list_name, span, page.after)},
        version=json.dumps([runs, page.after is None]),  # the rest says when it was asked
    )


@ROUTES.add(
    "GET",
    "/v1/permits",
    "read",
    response="ConcurrencyKey",
    query=(Query("key", "The concurrency key.", {"type": "string", "pattern": CONCURRENCY_KEY}),),
    weight=_FEW_READS,
)
def list_permits(services: Services, request: Request) -> Response:
    """Who has the permits of a concurrency key, and who waits.

    A run is among the holders until its record shows that it has ended, even if nobody has freed its permit yet. A key
    that nobody uses has none. One read of the key, and one of the records of those that it names.
    """
    key = request.query.get("key", "")
    if not re.fullmatch(CONCURRENCY_KEY, key):
        raise InvalidInput("key", "is no concurrency key", value=key, accepted=CONCURRENCY_KEY)
    state, records = services.manual.holders.shown(request.tenant, key)
    holders = [
        {
            **_named(request.tenant, name),
            "until_at": rfc3339(int(lease.until)),
            **(
                {"since_at": rfc3339(int(run.started_at))}
                if (run := records.get(name)) and run.started_at
                else {}
            ),
        }
        for name, lease in sorted(state.holders.items())
    ]
    waiting = [
        {
            **_named(request.tenant, name),
            "since_at": rfc3339(int(state.waiting[name].since)),
            "until_at": rfc3339(int(state.waiting[name].until)),
        }
        for name in state.in_line()
    ]
    return Response({"key": key, "holders": holders, "waiting": waiting})


def _named(tenant: str, name: str) -> dict[str, str]:
    return {"execution_id": f"{tenant}:{name}", "job_id": name.partition(":")[0]}


def page_view(page: Page[Run, Any], now: float) -> dict[str, Any]:
    """The runs of a page, and those whose records are damaged."""
    damaged = [
        {"execution_id": ":".join((*run.job, run.key["sk"])), "problem": run.reason}
        for run in page.unreadable
        if run.job
    ]
    return {"runs": [run_view(run, now) for run in page.items]} | ({"unreadable": damaged} if damaged else {})


def check_range_of_runs(span: TimeRange) -> None:
    """Refuse a position that is none. Raises ValueError."""
    if span.before:
        fire_time(span.before[0])


def _newest(now: float, run_filter: RunFilter) -> TimeRange:
    until_at = run_filter.until_at
    from_at = run_filter.from_at
    if from_at is None:
        from_at = max(0, (int(now) if until_at is None else until_at) - RECENT_S)
    return TimeRange(from_at, until_at)


def rest_of_list(
    request: Request, list_name: str, span: TimeRange, following: TimeRange | None
) -> dict[str, str | None]:
    """The fields of a response that describe the rest of the list. `following` is None at the end of the list."""
    complete_from_at = following.complete_from_at if following else span.from_at
    return {
        "next_cursor": write_cursor(request.tenant, list_name, following),
        "complete_from_at": rfc3339(complete_from_at) if complete_from_at is not None else None,
    }


@ROUTES.add("GET", "/v1/runs/{execution_id}", "read", response="Run")
def get_run(services: Services, request: Request) -> Response:
    """Get a run with its attempts.

    One read; two if the run was started with a payload of its own, which is shown. A run that has not been planned,
    or has expired, is `not-found`.
    """
    run = _existing_run(services, request)
    named = split_run_name(run.run_name)
    payload = services.manual.own_payload(run.tenant, run.job_id, named[1]) if named else None
    own = {} if payload is None else {"payload": json.loads(payload)}
    return Response({**run_view(run, request.now), **own})


@ROUTES.add("DELETE", "/v1/runs/{execution_id}/details", "admin", response="ErasedRun")
def erase_run(services: Services, request: Request) -> Response:
    """Erase what a run's target and caller said: payload, answer, log, error texts.

    For data that leaked into a run. The record and its outcome stay. `not_covered` names where copies may be.
    `conflict`: the run goes on. One read and one transaction.
    """
    run = _existing_run(services, request)
    erase_details(services.tables, run, group_of(run), services.store.audited, request.now)
    return Response(
        {"execution_id": run.execution_id, "erased": list(ERASED), "not_covered": list(NOT_COVERED)}
    )


def _existing_run(services: Services, request: Request) -> Run:
    """The run that the path names. Raises NotFound."""
    execution_id = request.path["execution_id"]
    parts = split_execution_id(execution_id)
    run = services.runs.named(*parts) if parts and parts[0] == request.tenant else None
    if run is None:
        raise NotFound("run", execution_id)
    return run


def _filter(query: Mapping[str, str]) -> RunFilter:
    for name, accepted in (("status", STATUSES), ("trigger", TRIGGERS)):
        if name in query and query[name] not in accepted:
            raise InvalidInput(
                name, f"must be a valid {name}", value=query[name], accepted=", ".join(accepted)
            )
    span = bounds(query)
    return RunFilter(
        span.get("from_at"),
        span.get("until_at"),
        status=query.get("status", ""),
        trigger=query.get("trigger", ""),
    )


@ROUTES.add("GET", "/v1/jobs/{job_id}/summary", "read", response="RunSummary", query=_SUMMARY_QUERY)
def summarise_job(services: Services, request: Request) -> Response:
    """What became of a job's runs, by day.

    Counts, success rate, lateness and duration of each UTC day, 7 days by default and 92 at most. A request reads
    up to 10,000 runs; the cursor leads to the others. Counts of several pages add up, percentiles do not, unless
    `values` are asked for.
    """
    job_id = existing_id(request)
    span = _summary_span(request)
    list_name = f"summary:{job_id}:{request.query.get('from_at')}:{request.query.get('until_at')}"
    span = (
        read_cursor(request.tenant, list_name, request.query.get("cursor"), TimeRange, check_range_of_runs)
        or span
    )
    before = span.before[0] if span.before else None
    summary, after = services.run_lists.summary(
        request.tenant, job_id, RunFilter(span.from_at, span.until_at), before
    )
    if not summary.records and not services.runs.of_job(request.tenant, job_id, limit=1):
        services.store.get(request.tenant, job_id)  # raises NotFound: a job without runs has an empty summary
    following = span._replace(before=(after, job_id)) if after else None
    return Response(_summary_view(request, list_name, span, summary, following))


@ROUTES.add("GET", "/v1/summary", "read", response="RunSummary", query=_SUMMARY_QUERY, weight=_FEW_READS)
def summarise(services: Services, request: Request) -> Response:
    """What became of the runs of all jobs, by day.

    As the summary of one job, of any number of runs, in some ten reads and on one page, with counts by hour. Lateness
    and durations have two digits. `fresh_at` says up to when runs are counted; a large tenant's newest half hour is
    not.
    """
    if "cursor" in request.query:
        raise not_of_this_list(request.query["cursor"])
    span = _summary_span(request)
    assert span.until_at is not None, "a summary has a range"
    projected = services.summaries.between(request.tenant, span.from_at, span.until_at, request.now)
    shown = _summary_view(request, "", span, Summary.of_hours(projected.hourly), None)
    return Response({**shown, "fresh_at": rfc3339(projected.fresh_at), "hours": hours_view(projected.hourly)})


def _summary_view(
    request: Request, list_name: str, span: TimeRange, summary: Summary, following: TimeRange | None
) -> dict[str, Any]:
    """The answer: `following` leads to the other runs."""
    complete_from_at = following.complete_from_at if following else span.from_at
    shown = summary.to_json(values=request.flag("values"))
    for day in shown["days"]:
        begins_at = max(span.from_at, parse_instant(f"{day['date']}T00:00:00Z", "date"))
        day["complete"] = complete_from_at is not None and complete_from_at <= begins_at
    assert span.until_at is not None, "a summary has a range"
    return shown | {
        "from_at": rfc3339(span.from_at),
        "until_at": rfc3339(span.until_at),
        "complete": following is None,
        **rest_of_list(request, list_name, span, following),
    }


def _summary_span(request: Request) -> TimeRange:
    """The requested range; without one, whole days. Raises InvalidInput."""
    span = bounds(request.query)
    until_at = span.get("until_at", int(request.now) // DAY_S * DAY_S + DAY_S)
    from_at = span.get("from_at", max(0, (until_at - 1) // DAY_S * DAY_S - (_SUMMARY_DAYS - 1) * DAY_S))
    check_length(from_at, until_at, _MAX_SUMMARY_DAYS)
    return TimeRange(from_at, until_at)


def filter_text(query: Mapping[str, str], name: str, max_chars: int) -> str:
    """A filter's text; empty if it is not given. Raises InvalidInput."""
    text = query.get(name, "")
    if len(text) > max_chars or (name in query and not text):
        raise InvalidInput(name, "has a wrong length", value=text, accepted=f"1 to {max_chars} characters")
    return text
