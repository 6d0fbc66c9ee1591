"""The routes of manual commands: run now, retry, cancel, backfill."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from api.http.requests import Request, boolean, whole_number
from api.http.routing import THOUSANDS, Response, Route, Routes
from api.routes.jobs import existing_id
from api.services import Services
from api.views import run_view
from common.errors import InvalidInput, NotFound
from common.ids import NONCE_CHARS, check_id
from common.jobs.backfill import Backfill
from common.jobs.skips import MAX_SKIPPED
from common.planning.execution import Execution
from common.registration.definition import payload_text
from common.texts import check_note
from common.timing.durations import parse_instant
from common.timing.instants import rfc3339

_MAX_AT_A_TIME = 100
# How many bytes of a run's own payload count as one more request.
_BYTES_A_REQUEST = 4 * 1024

ROUTES = Routes()


@ROUTES.add(
    Route(
        "POST",
        "/v1/jobs/{job_id}/run",
        "write",
        gives="Run",
        status=HTTPStatus.ACCEPTED,
        takes="RunNow",
        body_optional=True,
    )
)
def run_job_now(services: Services, request: Request) -> Response:
    """Run a job now, paused or not."""
    fields = request.fields("nonce", "payload", optional=True)
    nonce, payload = _named(fields, "nonce"), None
    if "payload" in fields:
        payload = payload_text(fields["payload"], services.registry.checks(request.tenant).limits)
        # It is stored for weeks, so it costs what it takes.
        services.count_as(request.tenant, request.now, 1 + len(payload.encode()) // _BYTES_A_REQUEST)
    execution = services.manual.run_now(request.tenant, existing_id(request), nonce, payload)
    return _run(services, execution, HTTPStatus.ACCEPTED)


@ROUTES.add(Route("POST", "/v1/runs/{execution_id}/retry", "write", gives="Run", status=HTTPStatus.ACCEPTED))
def retry_run(services: Services, request: Request) -> Response:
    """Try a failed run once more."""
    request.fields(optional=True)
    execution = services.manual.retry(request.tenant, request.path["execution_id"])
    return _run(services, execution, HTTPStatus.ACCEPTED)


@ROUTES.add(
    Route("POST", "/v1/runs/{execution_id}/cancel", "write", gives="Run", takes="Pause", body_optional=True)
)
def cancel_run(services: Services, request: Request) -> Response:
    """Cancel an execution that has not started, or that waits for its next attempt."""
    note = request.note()
    execution = services.manual.cancel(request.tenant, request.path["execution_id"], note)
    return _run(services, execution, HTTPStatus.OK)


@ROUTES.add(
    Route(
        "POST", "/v1/jobs/{job_id}/skip", "write", gives="SkippedFires", takes="SkipFires", body_optional=True
    )
)
def skip_fires(services: Services, request: Request) -> Response:
    """Cancel a job's next fire times beforehand, those within 366 days."""
    fields = request.fields("count", "note", optional=True)
    count, note = whole_number(fields, "count", MAX_SKIPPED), check_note(fields.get("note", ""))
    services.count_as(request.tenant, request.now, count)
    executions = services.manual.skip_next(request.tenant, existing_id(request), count, note)
    items = services.runs.found(executions)
    return Response(
        {"job_id": request.path["job_id"], "runs": [run_view(items[name]) for name in sorted(items)]}
    )


@ROUTES.add(Route("DELETE", "/v1/jobs/{job_id}/skip", "write", gives="RestoredFires", weight=THOUSANDS))
def unskip_fires(services: Services, request: Request) -> Response:
    """Undo the cancellation of the next fire times, 50 at most."""
    skipped = services.manual.skipped(request.tenant, existing_id(request))
    services.count_as(request.tenant, request.now, len(skipped), THOUSANDS)
    restored = services.manual.take_back(skipped)
    return Response({"job_id": request.path["job_id"], "fires": [rfc3339(one.fire_at) for one in restored]})


@ROUTES.add(
    Route(
        "POST",
        "/v1/jobs/{job_id}/backfills",
        "write",
        gives="Backfill",
        status=HTTPStatus.ACCEPTED,
        also=HTTPStatus.OK,
        takes="NewBackfill",
    )
)
def start_backfill(services: Services, request: Request) -> Response:
    """Run the fire times of a past range, or count them."""
    fields = request.fields("start_at", "end_at", "concurrency", "dry_run", "backfill_id", optional=True)
    job_id = existing_id(request)
    start, end = (_instant(fields, name) for name in ("start_at", "end_at"))
    concurrency = whole_number(fields, "concurrency", _MAX_AT_A_TIME)
    dry_run = boolean(fields, "dry_run")
    total = services.manual.backfills.count(request.tenant, job_id, start, end)
    if dry_run:
        return Response({"job_id": job_id, "total": total, "sent": 0, "dry_run": True})
    named = _named(fields, "backfill_id")
    services.count_as(request.tenant, request.now, total)
    started = services.manual.backfills.start(request.tenant, job_id, start, end, concurrency, named)
    return Response(_backfill_view(started), HTTPStatus.ACCEPTED)


@ROUTES.add(Route("GET", "/v1/jobs/{job_id}/backfills/{backfill_id}", "read", gives="Backfill"))
def get_backfill(services: Services, request: Request) -> Response:
    """How far a backfill is."""
    named = _backfill_id(request)
    return Response(
        _backfill_view(services.manual.backfills.progress(request.tenant, existing_id(request), named))
    )


@ROUTES.add(Route("GET", "/v1/jobs/{job_id}/backfills", "read", gives="Backfills", weight=THOUSANDS))
def list_backfills(services: Services, request: Request) -> Response:
    """A job's backfills of the last 90 days, the newest first; 200 at most."""
    found = services.manual.backfills.listed(request.tenant, existing_id(request))
    return Response({"backfills": [_backfill_view(one) for one in found]})


@ROUTES.add(
    Route(
        "POST",
        "/v1/jobs/{job_id}/backfills/{backfill_id}/cancel",
        "write",
        gives="Backfill",
        takes="Pause",
        body_optional=True,
    )
)
def cancel_backfill(services: Services, request: Request) -> Response:
    """Cancel what a backfill has not started."""
    named, note = _backfill_id(request), request.note()
    return Response(
        _backfill_view(services.manual.backfills.cancel(request.tenant, existing_id(request), named, note))
    )


def _backfill_id(request: Request) -> str:
    return request.path_id("backfill_id", "backfill", NONCE_CHARS)


def _named(fields: Mapping[str, Any], name: str) -> str:
    """The name that the client chose; else a new name."""
    given = fields.get(name)
    return check_id(name, secrets.token_hex(6) if given is None else given, NONCE_CHARS)


def _run(services: Services, execution: Execution, status: HTTPStatus) -> Response:
    item = services.runs.get(execution)
    if item is None:
        raise NotFound("run", execution.execution_id)
    return Response(run_view(item), status, {"Location": f"/v1/runs/{execution.execution_id}"})


def _backfill_view(backfill: Backfill) -> dict[str, Any]:
    return {
        "job_id": backfill.job_id,
        "backfill_id": backfill.backfill_id,
        "start_at": rfc3339(backfill.start_at),
        "end_at": rfc3339(backfill.end_at),
        "concurrency": backfill.concurrency,
        "total": backfill.total,
        "sent": backfill.sent,
        "created_at": rfc3339(backfill.created_at),
        "cancelled_at": rfc3339(backfill.cancelled_at) if backfill.cancelled_at else None,
        "dry_run": False,
    }


def _instant(fields: Mapping[str, Any], name: str) -> int:
    if name not in fields:
        raise InvalidInput(name, "is missing", accepted="an RFC 3339 instant")
    return parse_instant(fields[name], name)
