"""What the API answers, as it comes: an answer of a newer API may hold more."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class Job(TypedDict):
    """A job with its definition, its state, and when it fires next."""

    job_id: str
    name: str
    tags: list[str]
    schedule: dict[str, Any]
    schedule_resolved: dict[str, Any]
    target: dict[str, Any]
    payload: Any
    timeout_s: int
    retry: dict[str, Any]
    start_deadline_s: int | None
    catch_up: str
    state: Literal["active", "paused"]
    note: str
    revision: int
    schedule_revision: int
    created_at: str
    updated_at: str
    next_fire_at: str | None


class JobPage(TypedDict):
    """Some jobs, and where the list goes on."""

    jobs: list[Job]
    next_cursor: str | None


class BulkLine(TypedDict):
    """What became of a line, or would; `problem` is a problem document."""

    line: int
    job_id: str | None
    result: Literal["created", "replaced", "unchanged", "refused"]
    revision: NotRequired[int]
    changed: NotRequired[list[str]]
    problem: NotRequired[dict[str, Any]]


class BulkResult(TypedDict):
    """What became of many lines, in their order."""

    dry_run: bool
    created: int
    replaced: int
    unchanged: int
    refused: int
    results: list[BulkLine]


class Fire(TypedDict):
    """One coming fire time: nominal, when it is really called, and on the schedule's own clock."""

    fire_at: str
    due_at: str
    local: str


class Fires(TypedDict):
    """When a job fires next."""

    job_id: str
    state: str
    timezone: str
    fires: list[Fire]


class Attempt(TypedDict):
    """One call of the target."""

    attempt: int
    started_at: str
    outcome: Literal["running", "dispatched", "succeeded", "failed"]
    finished_at: NotRequired[str]
    duration_s: NotRequired[float]
    error_type: NotRequired[str]
    error: NotRequired[str]
    log_tail: NotRequired[str]
    request_id: NotRequired[str]


class Run(TypedDict):
    """What became of one execution."""

    execution_id: str
    job_id: str
    status: Literal["queued", "running", "dispatched", "succeeded", "failed", "retrying", "skipped"]
    trigger: str
    schedule_revision: int
    fire_at: str
    due_at: str
    attempts: list[Attempt]
    attempt: NotRequired[int]
    reason: NotRequired[str]
    detail: NotRequired[str]
    started_at: NotRequired[str]
    finished_at: NotRequired[str]
    next_attempt_at: NotRequired[str]
    lateness_s: NotRequired[float]
    duration_s: NotRequired[float]
    error_type: NotRequired[str]
    error: NotRequired[str]
    skipped_count: NotRequired[int]
    skipped_from_at: NotRequired[str]


class RunPage(TypedDict):
    """Some runs, newest first, and where the list goes on."""

    runs: list[Run]
    next_cursor: str | None
    # Of all jobs: from when on all runs are listed with the pages so far; None if that is not known yet.
    complete_from_at: NotRequired[str | None]


class Spread(TypedDict):
    """How some values are spread, in seconds. Without values only the count; `values` if they were asked for."""

    count: int
    p50: NotRequired[float]
    p95: NotRequired[float]
    p99: NotRequired[float]
    max: NotRequired[float]
    values: NotRequired[list[tuple[float, int]]]


class Totals(TypedDict):
    """What became of some runs. `success_rate` is of those that succeeded or failed; None if none did."""

    runs: int
    statuses: dict[str, int]
    reasons: dict[str, int]
    success_rate: float | None
    lateness_s: Spread
    duration_s: Spread


class DayTotals(Totals):
    """The runs of a UTC day; not `complete`: further answers hold more of them."""

    date: str
    complete: bool


class RunSummary(TypedDict):
    """Runs by day, the latest first."""

    from_at: str
    until_at: str
    days: list[DayTotals]
    total: Totals
    complete: bool
    complete_from_at: str | None
    next_cursor: str | None


class TenantSummary(TypedDict):
    """A tenant in a list."""

    tenant_id: str
    name: str
    created_at: str
    state: Literal["active", "suspended", "deleting"]
    note: str
    revision: int


class TenantView(TenantSummary):
    """A tenant: what the platform allows, and how much of it is used."""

    usage: dict[str, int]
    quotas: dict[str, int]
    allowed_targets: list[str]
    retention_days: int


class Tenant(TenantView):
    """Whose key it is."""

    key: dict[str, str]


class Key(TypedDict):
    """What is known of a key: all but the key."""

    key_id: str
    name: str
    role: Literal["read", "write", "admin", "operator"]
    prefix: str
    state: Literal["active", "expired", "revoked"]
    created_at: str
    expires_at: str | None
    revoked_at: str | None


class MadeKey(Key):
    """A new key, with what is shown this once."""

    key: str


class TenantDeletion(TypedDict):
    """How far the removal of a tenant is."""

    tenant_id: str
    state: Literal["waiting", "removing", "finished"]
    by: str
    started_at: str
    finished_at: str | None
    jobs_registered: int
    removed: dict[str, int]


class AuditEntry(TypedDict):
    """One change: who made it, of what, and what differs."""

    entry_id: str
    at: str
    by: str
    action: str
    subject: str
    before: dict[str, Any]
    after: dict[str, Any]


class AuditPage(TypedDict):
    """Some changes, newest first, and where the list goes on."""

    entries: list[AuditEntry]
    next_cursor: str | None


# What the API adds to a definition; everything else of a job can be sent back.
_ADDED = frozenset(
    (
        "job_id",
        "schedule_resolved",
        "state",
        "note",
        "revision",
        "schedule_revision",
        "created_at",
        "updated_at",
        "next_fire_at",
    )
)


def definition_in(job: Job) -> dict[str, Any]:
    """The definition that an answer holds, also with fields that this client does not know."""
    return {name: value for name, value in job.items() if name not in _ADDED}
