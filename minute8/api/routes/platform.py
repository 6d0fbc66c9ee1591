"""The platform's view of its tenants: how they are, and what a change of their rules would break."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec import to_builtins

from common.history.expected import AsOf
from common.limits import MAX_PAGE
from common.planning.due_index import PlanningProgress
from common.planning.log import PlannedWindow
from common.planning.quarantine import QuarantinedRecord
from common.platform.dead_letters import MAX_LETTERS, DeadLetter, HandledDeadLetters, audit_dead_letters
from common.platform.findings import Finding, Level
from common.platform.planning_checks import findings, ticks_missed
from common.platform.tenants import MAX_JOBS_READ, TARGETS_NAMED, edited, effects_of, overused
from common.platform.views import block_view, ran_view, tenant_view, unrecorded_view
from common.storage import keys
from common.tenants.allowed_targets import Block
from common.tenants.audit import AuditedCommit
from common.timing.durations import parse_instant
from common.timing.instants import rfc3339
from minute8.api.http.paging import INSTANT, last_day_or, read_key, write_cursor
from minute8.api.http.requests import Request
from minute8.api.http.routing import CURSOR, LIMIT, PAGE, Query, Response, Routes
from minute8.api.routes.tenants import existing_tenant
from minute8.api.services import Services

if TYPE_CHECKING:
    from minute8.api.shapes.platform import NewBlock, Release, RunUnrecorded, WhichDeadLetters
    from minute8.api.shapes.tenants import TenantPatch

_MAX_DAYS: Final = 31
_SPAN: Final = (
    Query("from_at", "Only what happened at or after this; a day before `until_at` unless given.", INSTANT),
    Query("until_at", "Only what happened before this; now unless given.", INSTANT),
)
# A day of windows.
_MAX_WINDOWS: Final = 144
_WINDOWS: Final = 36
# The most groups and shares set aside that are shown, the oldest first.
_MAX_SET_ASIDE: Final = 50
_LEVELS: Final = {level: level.name.lower() for level in Level}
_FROM: Final = Query(
    "from_at",
    "Only those that were due at or after this.",
    INSTANT,
)
# How many executions of a pack are named.
_MAX_NAMED: Final = 10

ROUTES = Routes()


@ROUTES.add("GET", "/v1/tenants/{tenant_id}/health", "operator", response="TenantHealth", query=_SPAN)
def tenant_health(services: Services, request: Request) -> Response:
    """How a tenant is: counts and lateness of its runs in a range, failing and overdue jobs.

    Nothing of what jobs and runs contain. The last day by default, 31 days at most: what ticks wrote down of all runs,
    and up to 10,000 runs of 1,000 jobs of a range that begins before. Overdue are those of the first 500 jobs.
    """
    tenant = services.tenants.get(existing_tenant(request))
    tenant_id = tenant.tenant_id
    from_at, until_at = last_day_or(request.query, request.now, _MAX_DAYS)
    total, complete = services.tenant_health.runs(tenant_id, from_at, until_at, request.now)
    progress = services.store.index.progress()
    as_of = AsOf(request.now, progress.surely_until if progress else -math.inf, -math.inf)
    return Response(
        {
            "tenant_id": tenant_id,
            "from_at": rfc3339(from_at),
            "until_at": rfc3339(until_at),
            "run_totals": {**total.to_json(), "complete": complete},
            "job_counts": asdict(services.tenant_health.jobs(tenant_id, as_of, tenant.retention_days)),
        }
    )


@ROUTES.add(
    "POST",
    "/v1/tenants/{tenant_id}/check",
    "operator",
    response="RuleEffects",
    body_type="application/merge-patch+json",
    if_match=True,
)
def check_tenant(services: Services, request: Request, body: TenantPatch) -> Response:
    """What a change of a tenant's rules would break; changes nothing.

    The body is that of the change. It reads up to 2,000 of the tenant's jobs and tells how many the new rules would
    stop. With `If-Match` only if that is the current revision.
    """
    changes = to_builtins(body)
    before = services.tenants.get(existing_tenant(request))
    after = edited(before, changes, request.if_match())
    effects = effects_of(before, after, services.store.list_jobs(before.tenant_id, limit=MAX_JOBS_READ + 1))
    return Response(
        {
            "tenant": tenant_view(after),
            "jobs_read": effects.jobs_read,
            "complete": effects.complete,
            "not_allowed": effects.not_allowed.total(),
            "targets": [
                {"target": target, "jobs": count}
                for target, count in effects.not_allowed.most_common(TARGETS_NAMED)
            ],
            "interval_too_short": effects.interval_too_short,
            "payload_too_large": effects.payload_too_large,
            "overused": [{"quota": name, **counts} for name, counts in overused(after).items()],
        }
    )


@ROUTES.add(
    "GET",
    "/v1/operator-planning",
    "operator",
    response="PlatformPlanning",
    query=(
        Query(
            "windows",
            "How many of the last windows at most.",
            {"type": "integer", "minimum": 1, "maximum": _MAX_WINDOWS, "default": _WINDOWS},
        ),
    ),
)
def planning_of_platform(services: Services, request: Request) -> Response:
    """Up to when all is planned, how the last windows went, what is set aside, and findings.

    Also alarms that ring, and what the doctor's checks find that read only what ticks wrote down. It reads
    the progress, its shares, the windows and what is set aside.
    """
    windows = request.number("windows", _WINDOWS, _MAX_WINDOWS)
    state, runbook = services.planning, services.settings.runbook_url
    progress = state.index().progress()
    quarantine = state.quarantine()
    set_aside = [*islice(quarantine.waiting(), _MAX_SET_ASIDE)]
    set_aside += islice(quarantine.bad_entries(), _MAX_SET_ASIDE - len(set_aside))
    return Response(
        {
            "progress": _progress_view(progress, request.now) if progress else None,
            "shares_left": len(state.shares().unconfirmed(progress))
            if progress and progress.is_divided
            else 0,
            "calls_at_once": services.settings.calls_at_once,
            "windows": [_window_view(record, progress) for record in state.index().windows.newest(windows)],
            "set_aside": [_set_aside_view(record) for record in set_aside],
            "findings": [
                {
                    "check": record.check,
                    "level": _LEVELS[record.level],
                    "found": record.message,
                    "remedy": record.remedy,
                    "since_at": rfc3339(int(record.since_at)) if record.since_at is not None else None,
                    "runbook": f"{runbook}/{record.page}.md" if record.page else None,
                }
                for record in [*_alarms(services, request.now), *findings(state)]
            ],
        }
    )


def _alarms(services: Services, now: float) -> list[Finding]:
    ringing = services.alarms.findings(now) if services.alarms else []
    return [replace(finding, check="alarms") for finding in ringing]


def _progress_view(progress: PlanningProgress, now: float) -> dict[str, Any]:
    return {
        "planned_until_at": rfc3339(progress.planned_until),
        "planning_until_at": rfc3339(progress.planning_until),
        "lag_s": max(0, round(now - progress.planned_until, 3)),
        "ticks_missed": ticks_missed(progress, now),
        "decided_at": rfc3339(int(progress.decided_at)),
        "divided": progress.is_divided,
        "tzdata": progress.tzdata,
    }


def _window_view(window: PlannedWindow, progress: PlanningProgress | None) -> dict[str, Any]:
    return {
        "start_at": rfc3339(window.start),
        "end_at": rfc3339(window.end),
        "began_at": rfc3339(window.began_at),
        "took_s": round(max(0.0, window.ended_at - window.began_at), 3),
        # Negative: it was planned after it had begun.
        "ahead_s": round(window.start - window.ended_at, 3),
        "finished": bool(progress and progress.planned_until >= window.end),
        "executions": window.planned,
        "missed": window.missed,
        "bad_entries": window.bad_entries,
        "ticks": window.ticks,
        "planners": window.planners,
    }


def _set_aside_view(record: QuarantinedRecord) -> dict[str, Any]:
    return {
        "kind": record.kind,
        "name": record.name,
        "reason": record.reason,
        "seen_at": rfc3339(record.seen_at),
        "start_at": rfc3339(record.start_at) if record.start_at else None,
        "end_at": rfc3339(record.end_at) if record.end_at else None,
        "tries": record.tries,
    }


@ROUTES.add("GET", "/v1/blocks", "operator", response="Blocks")
def list_blocks(services: Services, request: Request) -> Response:
    """The targets that the platform blocks.

    The oldest block first. One query.
    """
    return _blocks_response(services.blocks.all())


@ROUTES.add("POST", "/v1/blocks", "operator", response="Blocks")
def block_target(services: Services, request: Request, body: NewBlock) -> Response:
    """Skip the runs of all tenants that would call a target.

    Takes effect within 15 s, also for runs that wait; they are recorded as skipped (`blocked`). Blocking a pattern
    again changes its note. One read and one transaction.
    """
    return _blocks_response(
        services.blocks.block(body.pattern, body.note, request.now, by=request.credential.by)
    )


@ROUTES.add("POST", "/v1/blocks/release", "operator", response="Blocks", repeatable=False)
def release_target(services: Services, request: Request, body: Release) -> Response:
    """Let a blocked target be called again.

    Takes effect within 15 s. What was skipped does not run. `not-found`: the pattern is not blocked. One read and one
    transaction.
    """
    return _blocks_response(services.blocks.release(body.pattern, request.now, by=request.credential.by))


def _blocks_response(blocks: list[Block]) -> Response:
    return Response({"blocks": [block_view(block) for block in blocks]})


@ROUTES.add(
    "GET", "/v1/platform/unrecorded", "operator", response="UnrecordedPage", query=(LIMIT, CURSOR, _FROM)
)
def list_unrecorded(services: Services, request: Request) -> Response:
    """The executions that were enqueued and have no record.

    Such an execution was lost with its message, or its record with the table. The ticks find such executions. They
    stay in the list for 30 days.
    """
    limit = request.number("limit", PAGE, MAX_PAGE)
    from_text = request.query.get("from_at", "")
    from_at = parse_instant(from_text, "from_at") if "from_at" in request.query else 0
    list_name = f"unrecorded:{from_text}"
    after_id = read_key(keys.OPERATORS, list_name, request.query.get("cursor"))
    executions, next_id = services.run_again.unrecorded.page(after_id, from_at, limit)
    return Response(
        {
            "executions": [unrecorded_view(execution) for execution in executions],
            "next_cursor": write_cursor(keys.OPERATORS, list_name, next_id or None),
        }
    )


@ROUTES.add("POST", "/v1/platform/unrecorded/run", "operator", response="RanUnrecorded")
def run_unrecorded(services: Services, request: Request, body: RunUnrecorded) -> Response:
    """Send executions again that have no record.

    Only with `send` up to 100 executions are enqueued again. They are the same executions: each has one
    record. What is known to have had one is only recorded anew, as dispatched. If nobody knows that only its record was
    lost, it is called again. One that has a record meanwhile is not sent.
    `not-found`: an id is not in the list.
    """
    plan = services.run_again.run(body.execution_ids, by=request.credential.by, dry_run=not body.send)
    return Response(ran_view(plan, dry_run=not body.send))


@ROUTES.add("GET", "/v1/dead-letters", "operator", response="DeadLetterCounts")
def count_dead_letters(services: Services, request: Request) -> Response:
    """How many messages were given up, by queue.

    A request to SQS for each queue; the counts are approximate.
    """
    counts = services.dead_letters.counts()
    return Response({"queues": [{"queue": queue, "dead_letters": count} for queue, count in counts.items()]})


@ROUTES.add(
    "GET",
    "/v1/dead-letters/{queue}",
    "operator",
    response="DeadLetterList",
    query=(
        Query(
            "limit",
            "How many at most.",
            {"type": "integer", "minimum": 1, "maximum": MAX_LETTERS, "default": MAX_LETTERS},
        ),
    ),
)
def list_dead_letters(services: Services, request: Request) -> Response:
    """What the given-up messages of a queue are about.

    Up to 100 messages without their texts, within 15 s. The messages stay in their queue.
    """
    queue, limit = request.path["queue"], request.number("limit", MAX_LETTERS, MAX_LETTERS)
    peeked = services.dead_letters.peek(queue, limit)
    return Response(
        {
            "queue": queue,
            "dead_letters": [_dead_letter_view(dead_letter) for dead_letter in peeked.remaining],
            "more": peeked.more,
        }
    )


@ROUTES.add("POST", "/v1/dead-letters/{queue}/redrive", "operator", response="DeadLettersDone")
def redrive_dead_letters(services: Services, request: Request, body: WhichDeadLetters) -> Response:
    """Send given-up messages to their queue again.

    By their ids, or `all`, of which a request takes 100. A message that cannot be read stays. It ends after 15 s
    at the latest, and `more` tells whether to repeat it, with the same `began_at`: then each is met once, and a
    registration that is refused again stays, with the reason.
    """
    return _done(services, request, body, services.dead_letters.redrive)


@ROUTES.add("POST", "/v1/dead-letters/{queue}/discard", "operator", response="DeadLettersDone")
def discard_dead_letters(services: Services, request: Request, body: WhichDeadLetters) -> Response:
    """Delete given-up messages.

    By their ids, or `all`, of which a request takes 100. What the messages ask for will not happen. It ends after
    15 s at the latest, and `more` tells whether to repeat it, with the same `began_at`.
    """
    return _done(services, request, body, services.dead_letters.discard)


def _done(
    services: Services, request: Request, body: WhichDeadLetters, act: Callable[..., HandledDeadLetters]
) -> Response:
    queue = request.path["queue"]
    began_at = int(request.now) if body.began_at is None else body.began_at
    done = act(queue, MAX_LETTERS, body.message_ids, began_at=began_at)
    count = len(done.moved) + len(done.discarded)
    commit = AuditedCommit(services.audit, request.credential.by, services.clock)
    audit_dead_letters(commit, queue, done, request.now)
    return Response(
        {
            "queue": queue,
            "done": count,
            "left": [_dead_letter_view(dead_letter) for dead_letter in done.remaining],
            "more": done.more,
            "began_at": rfc3339(began_at),
        }
    )


def _dead_letter_view(dead_letter: DeadLetter) -> dict[str, Any]:
    return {
        "message_id": dead_letter.message_id,
        "sent_at": rfc3339(dead_letter.sent_at),
        "bytes": dead_letter.size,
        "about": list(dead_letter.about[:_MAX_NAMED]),
        "problem": dead_letter.problem or None,
    }
