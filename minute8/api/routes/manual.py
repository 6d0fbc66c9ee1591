"""The routes of manual commands: run now, retry, cancel, backfill."""

from __future__ import annotations

import secrets
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from common.errors import NotFound
from common.jobs.backfill import Backfill
from common.limits import NONCE_CHARS
from common.planning.execution import Execution
from common.registration.payload_checks import payload_text
from common.timing.instants import rfc3339
from minute8.api.http.requests import Request
from minute8.api.http.routing import THOUSANDS, Response, Routes
from minute8.api.routes.jobs import existing_id
from minute8.api.routes.tenants import existing_tenant
from minute8.api.services import Services
from minute8.api.views import callback_view, run_view

if TYPE_CHECKING:
    from minute8.api.shapes.jobs import Pause
    from minute8.api.shapes.runs import Callback, NewBackfill, RunNow, SkipFires

# How many bytes of a run's own payload count as one more request.
_BYTES_A_REQUEST = 4 * 1024

ROUTES = Routes()


@ROUTES.add(
    "POST",
    "/v1/jobs/{job_id}/run",
    "write",
    response="Run",
    status=HTTPStatus.ACCEPTED,
    body_optional=True,
    repeatable=False,
)
def run_job(services: Services, request: Request, body: RunNow) -> Response:
    """Run a job now, paused or not.

    The run starts at once, beside those of the schedule. The same `nonce` starts the job once in 24 hours, and is
    `conflict` with another payload. A payload of the request replaces the job's for this run, is kept for 30 days,
    and counts as a request for each 4 KiB.
    """
    nonce, payload = body.nonce or _new_name(), None
    if body.payload is not UNSET:
        payload = payload_text(body.payload, services.registry.validator(request.tenant).limits.payload_bytes)
        # It is stored for weeks, so it costs what it takes.
        services.count_as(request.tenant, request.now, 1 + len(payload.encode()) // _BYTES_A_REQUEST)
    execution = services.manual.run_now(request.tenant, existing_id(request), nonce, payload)
    return _run(services, request, execution, HTTPStatus.ACCEPTED)


@ROUTES.add(
    "POST",
    "/v1/runs/{execution_id}/retry",
    "write",
    response="Run",
    status=HTTPStatus.ACCEPTED,
    repeatable=False,
)
def retry_run(services: Services, request: Request) -> Response:
    """Try a failed run once more.

    A failed run gets one more attempt at once, also beyond its retry policy. `conflict`: the run has not failed.
    One read and one transaction.
    """
    request.no_fields()
    execution = services.manual.retry(request.tenant, request.path["execution_id"])
    return _run(services, request, execution, HTTPStatus.ACCEPTED)


@ROUTES.add(
    "POST", "/v1/runs/{execution_id}/cancel", "write", response="Run", body_optional=True, repeatable=False
)
def cancel_run(services: Services, request: Request, body: Pause) -> Response:
    """Cancel an execution: its record ends at once.

    One that has not started is recorded as skipped, with the note; it can be cancelled before it is planned. Any other
    one has failed. What it started in Step Functions, ECS or as a durable function is stopped within seconds; a target
    that calls back hears it with its next sign. Nobody can tell other targets: `work_until` says how long such a call
    can go on, and keep its permits. `conflict`: it has ended, or was handed over to what nobody can stop. `not-found`:
    the job is not due then. Two reads and one transaction.
    """
    execution = services.manual.cancel(request.tenant, request.path["execution_id"], body.note)
    return _run(services, request, execution, HTTPStatus.OK)


@ROUTES.add("POST", "/v1/runs/{execution_id}/end", "admin", response="EndedRun", body_optional=True)
def end_run(services: Services, request: Request, body: Pause) -> Response:
    """End a run by force.

    The record ends at once, and gives back its permit of `overlap` and of a concurrency key, or its place in line,
    even if its work goes on: the next run may then run beside it. Repeating it does no harm. Three reads, up to four
    writes, and an entry of the audit.
    """
    return _ended(services, request, request.tenant, body.note)


@ROUTES.add(
    "POST",
    "/v1/tenants/{tenant_id}/runs/{execution_id}/end",
    "operator",
    response="EndedRun",
    body_optional=True,
)
def end_run_of_tenant(services: Services, request: Request, body: Pause) -> Response:
    """End a tenant's run by force.

    As the tenant's own administrators can.
    """
    return _ended(services, request, existing_tenant(request), body.note)


def _ended(services: Services, request: Request, tenant: str, note: str) -> Response:
    done = services.manual.end(tenant, request.path["execution_id"], note)
    run = services.runs.get(done.execution)
    if run is None:
        raise NotFound("run", done.execution.execution_id)
    return Response({"run": run_view(run, request.now), "was_open": done.was_open, "freed": done.freed})


@ROUTES.add("POST", "/v1/runs/{execution_id}/callback", None, response="CallbackAnswer")
def call_back(services: Services, request: Request, body: Callback) -> Response:
    """Tell how a run with `completion: callback` goes on, or how it has ended.

    For the run's target: the token of the attempt, from the event, takes the place of a key. The same end again changes
    nothing. `unauthenticated`: not the newest attempt's token. `conflict`: it has ended otherwise, or its time is over.
    It counts as a request of the tenant. One read and one write.
    """
    record = services.callbacks.proven(request.path["execution_id"], body.token)
    services.admit_target(record.tenant, request.now)
    if body.status == "running":
        answer = services.callbacks.goes_on(record, body.progress(), request.now)
    else:
        answer = services.callbacks.ends(record, body.outcome(), request.now)
    return Response(callback_view(answer.run, stop=answer.stop))


@ROUTES.add("POST", "/v1/jobs/{job_id}/skip", "write", response="SkippedFires", body_optional=True)
def skip_fires(services: Services, request: Request, body: SkipFires) -> Response:
    """Cancel a job's next fire times beforehand, those within 366 days.

    The job stays active. Each cancelled fire time is a run that is recorded as skipped, with the note. The same
    request again cancels the same ones, until the first of them has passed. `conflict`: the job is paused or fires
    no more. Each fire time counts as a request.
    """
    services.count_as(request.tenant, request.now, body.count)
    executions = services.manual.skip_next(request.tenant, existing_id(request), body.count, body.note)
    runs = services.runs.of_executions(executions)
    return Response(
        {
            "job_id": request.path["job_id"],
            "runs": [run_view(runs[name], request.now) for name in sorted(runs)],
        }
    )


@ROUTES.add("DELETE", "/v1/jobs/{job_id}/skip", "write", response="RestoredFires", weight=THOUSANDS)
def unskip_fires(services: Services, request: Request) -> Response:
    """Undo the cancellation of the next fire times, 50 at most.

    They will run after all, but for those within a minute, whose message may have come. It reads up to 1,000 runs,
    and each fire time counts as a request.
    """
    skipped = services.manual.skipped(request.tenant, existing_id(request))
    services.count_as(request.tenant, request.now, len(skipped), THOUSANDS)
    restored = services.manual.take_back(skipped)
    return Response(
        {"job_id": request.path["job_id"], "fires": [rfc3339(execution.fire_at) for execution in restored]}
    )


@ROUTES.add(
    "POST",
    "/v1/jobs/{job_id}/backfills",
    "write",
    response="Backfill",
    status=HTTPStatus.ACCEPTED,
    other_status=HTTPStatus.OK,
    repeatable=False,
)
def start_backfill(services: Services, request: Request, body: NewBackfill) -> Response:
    """Run the fire times of a past range, or count them.

    Every fire time of [`start_at`, `end_at`) runs once more by the present schedule, `concurrency` at a time;
    10,000 at most. With `dry_run` they are counted, and the status is 200. The same `backfill_id` is the same
    backfill. `conflict`: the id belongs to another backfill, or a calendar is missing.

    Each execution counts as a request, the backfill as half of the tenant's `requests_per_minute` at most.
    """
    job_id = existing_id(request)
    total = services.manual.backfills.count(request.tenant, job_id, body.start_at, body.end_at)
    if body.dry_run:
        return Response({"job_id": job_id, "total": total, "sent": 0, "dry_run": True})
    services.count_as(request.tenant, request.now, total)
    started = services.manual.backfills.start(
        request.tenant,
        job_id,
        body.start_at,
        body.end_at,
        body.concurrency,
        body.backfill_id or _new_name(),
    )
    return Response(_backfill_view(started), HTTPStatus.ACCEPTED)


@ROUTES.add("GET", "/v1/jobs/{job_id}/backfills/{backfill_id}", "read", response="Backfill")
def get_backfill(services: Services, request: Request) -> Response:
    """How far a backfill is.

    The number of executions that are enqueued so far. One read. A backfill is known for 90 days.
    """
    named = _backfill_id(request)
    return Response(
        _backfill_view(services.manual.backfills.progress(request.tenant, existing_id(request), named))
    )


@ROUTES.add("GET", "/v1/jobs/{job_id}/backfills", "read", response="Backfills", weight=THOUSANDS)
def list_backfills(services: Services, request: Request) -> Response:
    """A job's backfills of the last 90 days, the newest first; 200 at most.

    `more`: there are others, whose runs `GET /v1/jobs/{job_id}/runs?trigger=backfill` lists. One query of up to 2,000
    backfills, and one read of the job. A deleted job is `not-found`.
    """
    backfills, more = services.manual.backfills.listed(request.tenant, existing_id(request))
    return Response({"backfills": [_backfill_view(backfill) for backfill in backfills], "more": more})


@ROUTES.add(
    "POST",
    "/v1/jobs/{job_id}/backfills/{backfill_id}/cancel",
    "write",
    response="Backfill",
    body_optional=True,
)
def cancel_backfill(services: Services, request: Request, body: Pause) -> Response:
    """Cancel what a backfill has not started.

    Executions that have begun still end. Cancelling it again changes nothing. One read and one transaction.
    """
    cancelled = services.manual.backfills.cancel(
        request.tenant, existing_id(request), _backfill_id(request), body.note
    )
    return Response(_backfill_view(cancelled))


def _backfill_id(request: Request) -> str:
    return request.path_id("backfill_id", "backfill", NONCE_CHARS)


def _new_name() -> str:
    """A nonce or a backfill's id, where the client chose none."""
    return secrets.token_hex(6)


def _run(services: Services, request: Request, execution: Execution, status: HTTPStatus) -> Response:
    run = services.runs.get(execution)
    if run is None:
        raise NotFound("run", execution.execution_id)
    return Response(run_view(run, request.now), status, {"Location": f"/v1/runs/{execution.execution_id}"})


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
