"""The route that explains one instant of a job."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from api.http.requests import Request
from api.http.routing import THOUSANDS, Query, Reply, Route
from api.routes.expected import expected_view, kept_s_of
from api.routes.jobs import existing_id
from api.services import Services
from common.history.expected_runs import ExplainedInstant
from common.history.explain import HELD, SUSPENDED, TARGET_NOT_ALLOWED, Reason
from common.jobs.job import DELETED, Job
from common.tenants import states as tenant_states
from common.tenants.allowed_targets import is_allowed, is_held
from common.timing.durations import parse_instant
from common.timing.fires import newest_fires, next_fires
from common.timing.instants import rfc3339
from common.timing.schedule import CronTiming


def explain(services: Services, request: Request) -> Reply:
    """GET /v1/jobs/{job_id}/explain"""
    job_id = existing_id(request)
    at = _instant(services, request, job_id)

    def blocks(job: Job | None) -> list[Reason]:
        return _blocks(services, request, job)

    def names_of(authors: Iterable[str]) -> dict[str, str]:
        return services.tenants.api_keys.author_names(request.tenant, authors)

    kept_s = kept_s_of(services, request)
    found = services.expected.explain(request.tenant, job_id, at, request.now, kept_s, blocks, names_of)
    if found.job is None and not services.runs.of_job(request.tenant, job_id, limit=1):
        services.store.get(request.tenant, job_id)  # raises NotFound
    return Reply(_view(job_id, at, found))


def _instant(services: Services, request: Request, job_id: str) -> int:
    """The instant to explain: RFC 3339, or a local time of the job's zone. Raises InvalidInput.

    Else the last fire time of its schedule, whatever kept it from running; else the first one; else now.
    """
    job = services.store.load_all(request.tenant, [job_id]).get(job_id)
    if (text := request.query.get("at")) is not None:
        return parse_instant(text, "at", _zone(job) if job else None)
    now = int(request.now)
    if job is None:
        return now
    near = newest_fires(job.schedule, job.created_at + 1, now + 1, 1) or next_fires(job.schedule, now + 1, 1)
    return near[0] if near else now


def _zone(job: Job) -> str:
    timing = job.schedule.timing
    return timing.timezone if isinstance(timing, CronTiming) else "UTC"


def _blocks(services: Services, request: Request, job: Job | None) -> list[Reason]:
    """What would stop a run of the job now, whatever its schedule says."""
    rules = services.known_tenants.rules(request.tenant, request.now)
    if rules is None or job is None or job.state == DELETED:
        return []
    found = []
    if rules.state == tenant_states.SUSPENDED:
        note = services.tenants.get(request.tenant).note
        words = f": {note}" if note else ""
        found.append(Reason(SUSPENDED, f"The platform has suspended the tenant{words}.", {"note": note}))
    if not is_allowed(job.target, rules.allowed_targets):
        target = job.target.get("arn") or job.target.get("url")
        text = f"The platform does not allow the tenant the target {target}."
        found.append(Reason(TARGET_NOT_ALLOWED, text, {"target": target}))
    for hold in services.known_tenants.holds(request.now):
        if is_held(job.target, (hold.pattern,)):
            note = f": {hold.note}" if hold.note else ""
            found.append(
                Reason(HELD, f"The platform holds the job's target{note}.", {"pattern": hold.pattern})
            )
    return found


def _view(job_id: str, at: int, found: ExplainedInstant) -> dict[str, Any]:
    zone = _zone(found.job) if found.job else "UTC"
    change = found.version.began_by if found.version else None
    times = found.version.times if found.version else None
    return {
        "job_id": job_id,
        "at": rfc3339(at),
        "timezone": zone,
        "local": datetime.fromtimestamp(at, ZoneInfo(zone)).isoformat(),
        "status": found.explanation.status,
        "text": found.explanation.text,
        "reasons": [
            {"code": one.code, "text": one.text, "data": dict(one.data)} for one in found.explanation.reasons
        ],
        "found": [expected_view(job_id, one) for one in found.explanation.found],
        "schedule_revision": times.schedule_revision if times else None,
        "since": change
        and {
            "at": rfc3339(change.at),
            "by": change.by,
            **({"by_name": change.by_name} if change.by_name else {}),
            "action": change.action,
        },
        "next_due_at": rfc3339(found.following.due_at) if found.following else None,
    }


ROUTES = (
    Route(
        "GET", "/v1/jobs/{job_id}/explain", "explain_job", explain, "read",
        "Why a job was, is or is not due at an instant, and what became of it", "Explanation",
        query=(
            Query(
                "at",
                "The instant: RFC 3339, or without an offset a local time of the job's zone. "
                "Unless given, the last fire time of its schedule, or the first one if none has passed.",
                {"type": "string", "minLength": 1, "maxLength": 64},
            ),
        ),
        weight=THOUSANDS,
    ),
)  # fmt: skip
