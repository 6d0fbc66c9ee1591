"""What the API answers, as it comes: an answer of a newer API may hold more.

Generated from the OpenAPI document by `python -m scripts.client_types`; a test holds that it is up to date.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class Retry(TypedDict):
    """When a failed attempt is retried: base · factor^(n-1), at most cap, with jitter, within the maximum age."""

    max_attempts: NotRequired[int]
    base_s: NotRequired[int]
    factor: NotRequired[float]
    cap_s: NotRequired[int]
    max_age_s: NotRequired[int]


class Alert(TypedDict):
    """When subscribers hear of a job whose runs do not fail. Times are in seconds."""

    longer_than_s: NotRequired[int]
    shorter_than_s: NotRequired[int]
    no_success_for_s: NotRequired[int]


class Concurrency(TypedDict):
    """How many attempts of all jobs with the same key go at a time, and what a run does that finds no place."""

    key: str
    limit: int
    when_full: NotRequired[Literal["wait", "skip"]]
    max_wait_s: NotRequired[int]


class EndedFire(TypedDict):
    """A fire time that an edit ends, though something of it waited."""

    fire_at: str
    waited_for: Literal["due time", "turn", "retry", "skip"]
    reason: str
    detail: str


class Job(TypedDict):
    """A job with its definition, its state, and when it fires next."""

    name: str
    tags: list[str]
    timeout_s: int
    completion: Literal["answer", "callback"]
    callback_timeout_s: int | None
    retry: Retry
    start_deadline_s: int | None
    catch_up: Literal["none", "latest", "all"]
    overlap: Literal["allow", "skip", "queue_one"]
    pause_after_failures: int | None
    on_crash: Literal["retry", "fail"]
    after_completion: Literal["keep", "delete"]
    dead_letter: str | None
    alert: Alert | None
    concurrency: Concurrency | None
    owner: str
    runbook: str
    schedule: dict[str, Any]
    target: dict[str, Any]
    payload: Any
    job_id: str
    schedule_resolved: dict[str, Any]
    schedule_words: str
    function_timeout_s: int | None
    state: Literal["active", "paused"]
    note: str
    revision: int
    schedule_revision: int
    created_at: str
    updated_at: str
    next_fire_at: str | None
    next_due_at: str | None
    warnings: NotRequired[list[str]]
    ends: NotRequired[list[EndedFire]]


class LastRun(TypedDict):
    """The newest run."""

    fire_at: str
    status: Literal[
        "queued", "running", "dispatching", "dispatched", "succeeded", "failed", "retrying", "skipped"
    ]
    trigger: str
    reason: NotRequired[str]
    lateness_s: NotRequired[float]
    duration_s: NotRequired[float]
    execution_id: str
    error_type: NotRequired[str]
    error: NotRequired[str]


class RunOutcome(TypedDict):
    """One of a job's newest runs, in short."""

    fire_at: str
    status: Literal[
        "queued", "running", "dispatching", "dispatched", "succeeded", "failed", "retrying", "skipped"
    ]
    trigger: str
    reason: NotRequired[str]
    lateness_s: NotRequired[float]
    duration_s: NotRequired[float]


class Overdue(TypedDict):
    """The earliest due instant since the last scheduled run that has passed without a run."""

    fire_at: str
    due_at: str
    late_s: float
    detail: str


class JobHealth(TypedDict):
    """How a job is, at a glance."""

    last_run: LastRun | None
    outcomes: list[RunOutcome]
    failures_in_row: int
    not_running: str | None
    overdue: Overdue | None


class CorruptJob(TypedDict):
    """A job whose stored item was damaged. It does not run. Put it again, or delete it."""

    job_id: str
    problem: str


class JobPage(TypedDict):
    """Some jobs, in the order of the list, and where it goes on."""

    jobs: list[Job]
    health: NotRequired[dict[str, JobHealth]]
    suspended: bool
    corrupt: list[CorruptJob]
    matched: NotRequired[int]
    next_cursor: str | None


class TargetDelivery(TypedDict):
    """How often a kind of target is called for an execution."""

    kind: str
    applies_to: str
    called: Literal["at least once", "exactly once", "each attempt exactly once"]
    key: str
    kept: str


class TargetList(TypedDict):
    """All kinds of target."""

    targets: list[TargetDelivery]


class Fire(TypedDict):
    """One coming fire time."""

    fire_at: str
    due_at: str
    local: str
    skipped: bool


class Fires(TypedDict):
    """When a job fires next; empty while it is paused."""

    job_id: str
    state: Literal["active", "paused"]
    timezone: str
    fires: list[Fire]


class FieldProblem(TypedDict):
    """One thing that is wrong."""

    field: str
    message: str
    position: NotRequired[int]
    value: NotRequired[str]
    accepted: NotRequired[str]


class QuotaProblem(TypedDict):
    """Which quota is in the way: `used` of `most` are taken, and `wanted` more would be needed."""

    name: str
    most: int
    used: int
    wanted: int


class LineProblem(TypedDict):
    """Why a line is refused: RFC 9457, cut to three errors."""

    type: str
    title: str
    status: int
    detail: str
    errors: NotRequired[list[FieldProblem]]
    current_revision: NotRequired[int]
    quota: NotRequired[QuotaProblem]
    line: int


class BulkLine(TypedDict):
    """The result of a line, or its result without `dry_run`."""

    line: int
    job_id: str | None
    result: Literal["created", "replaced", "unchanged", "refused"]
    revision: NotRequired[int]
    changed: NotRequired[list[str]]
    warnings: NotRequired[list[str]]
    problem: NotRequired[LineProblem]


class BulkResult(TypedDict):
    """The results of the lines, in their order."""

    dry_run: bool
    created: int
    replaced: int
    unchanged: int
    refused: int
    results: list[BulkLine]


class ManyRefused(TypedDict):
    """A job or run that refused, by its id."""

    id: str
    type: str
    detail: str


class ManyDone(TypedDict):
    """What one request did: `matched` jobs or runs, of which so many are `done`, and where the next one continues."""

    dry_run: bool
    matched: int
    done: int
    ids: list[str]
    refused: list[ManyRefused]
    next_cursor: str | None


class Attempt(TypedDict):
    """One call of the target."""

    attempt: int
    started_at: str
    outcome: Literal["running", "dispatching", "dispatched", "succeeded", "failed", "unknown"]
    lateness_s: NotRequired[float]
    finished_at: NotRequired[str]
    duration_s: NotRequired[float]
    error_type: NotRequired[str]
    error: NotRequired[str]
    log_tail: NotRequired[str]
    request_id: NotRequired[str]


class Progress(TypedDict):
    """What a target that calls back last told about its work."""

    attempt: int
    at: str
    percent: NotRequired[int]
    text: NotRequired[str]


class Stop(TypedDict):
    """That a person has ended the run."""

    requested_at: str
    note: str
    problem: NotRequired[str]


class Run(TypedDict):
    """The record of one execution. Fields without a value are left out."""

    execution_id: str
    job_id: str
    trace_id: str
    status: Literal[
        "queued", "running", "dispatching", "dispatched", "succeeded", "failed", "retrying", "skipped"
    ]
    trigger: str
    schedule_revision: int
    fire_at: str
    due_at: str
    attempt: NotRequired[int]
    attempts: list[Attempt]
    reason: NotRequired[str]
    detail: NotRequired[str]
    started_at: NotRequired[str]
    finished_at: NotRequired[str]
    erased_at: NotRequired[str]
    next_attempt_at: NotRequired[str]
    lateness_s: NotRequired[float]
    waited_s: NotRequired[float]
    duration_s: NotRequired[float]
    error_type: NotRequired[str]
    error: NotRequired[str]
    callback_until: NotRequired[str]
    started: NotRequired[list[str]]
    look_at: NotRequired[str]
    look_problem: NotRequired[str]
    progress: NotRequired[Progress]
    stop: NotRequired[Stop]
    work_until: NotRequired[str]
    dead_letter_error: NotRequired[str]
    skipped_count: NotRequired[int]
    skipped_from_at: NotRequired[str]
    payload: NotRequired[Any]


class DamagedRun(TypedDict):
    """A run whose record somebody has damaged."""

    execution_id: str
    problem: str


class RunPage(TypedDict):
    """Some runs, newest first, and where the list goes on."""

    runs: list[Run]
    unreadable: NotRequired[list[DamagedRun]]
    next_cursor: str | None


class TenantRunPage(TypedDict):
    """Some runs of all jobs, and where the list goes on. A page can be empty before the end."""

    runs: list[Run]
    unreadable: NotRequired[list[DamagedRun]]
    next_cursor: str | None
    complete_from_at: str | None


class PermitHolder(TypedDict):
    """A run that has a permit."""

    execution_id: str
    job_id: str
    until_at: str
    since_at: NotRequired[str]


class Waiter(TypedDict):
    """A run that waits for a permit."""

    execution_id: str
    job_id: str
    since_at: str
    until_at: str


class ConcurrencyKey(TypedDict):
    """Who has the permits of a concurrency key, and who waits."""

    key: str
    holders: list[PermitHolder]
    waiting: list[Waiter]


class ErasedRun(TypedDict):
    """What was erased of a run, and what was not."""

    execution_id: str
    erased: list[str]
    not_covered: list[str]


class Spread(TypedDict):
    """How some values are spread; percentiles by nearest rank. Without values only the count."""

    count: int
    p50: NotRequired[float]
    p95: NotRequired[float]
    p99: NotRequired[float]
    max: NotRequired[float]
    values: NotRequired[list[tuple[float, int]]]


class DayTotals(TypedDict):
    """The runs of a UTC day, by their fire times."""

    runs: int
    statuses: dict[str, int]
    reasons: dict[str, int]
    due: int
    success_rate: float | None
    lateness_s: Spread
    duration_s: Spread
    date: str
    complete: bool


class Totals(TypedDict):
    """A summary of some runs."""

    runs: int
    statuses: dict[str, int]
    reasons: dict[str, int]
    due: int
    success_rate: float | None
    lateness_s: Spread
    duration_s: Spread


class HourTotals(TypedDict):
    """The runs of an hour by their fire times."""

    at: str
    runs: int
    statuses: dict[str, int]
    due: int
    success_rate: float | None
    started: int
    late: int


class RunSummary(TypedDict):
    """Runs by day. A job's are of up to 10,000 records; if there are more, the cursor leads to the others."""

    from_at: str
    until_at: str
    days: list[DayTotals]
    total: Totals
    complete: bool
    complete_from_at: str | None
    next_cursor: str | None
    fresh_at: NotRequired[str]
    hours: NotRequired[list[HourTotals]]


class FailedInHour(TypedDict):
    """How many runs failed in an hour."""

    at: str
    failed: int


class Mute(TypedDict):
    """Since when a group of failures is muted, and until when."""

    note: str
    muted_at: str
    until_at: str | None
    ends_at: str


class FailureGroup(TypedDict):
    """Failed runs of one job with one error."""

    job_id: str
    fingerprint: str
    error_type: str
    error: str
    count: int
    first_at: str
    last_at: str
    last_execution_id: str
    hours: list[FailedInHour]
    muted: Mute | None


class FailureGroups(TypedDict):
    """Up to 2,000 failed runs by job and error; if there are more, the cursor leads to the others."""

    from_at: str
    groups: list[FailureGroup]
    next_cursor: str | None


class MutedGroup(TypedDict):
    """A muted group of failures."""

    note: str
    muted_at: str
    until_at: str | None
    ends_at: str
    job_id: str
    fingerprint: str
    error_type: str
    error: str


class MutedGroupList(TypedDict):
    """All muted groups of failures."""

    groups: list[MutedGroup]


class ExpectedRun(TypedDict):
    """The run of a due instant; `GET /v1/runs/{execution_id}` has all of it."""

    execution_id: str
    status: Literal[
        "queued", "running", "dispatching", "dispatched", "succeeded", "failed", "retrying", "skipped"
    ]
    error_type: NotRequired[str]


class ExpectedFire(TypedDict):
    """The result of one due instant. Fields without a value are left out."""

    job_id: str
    fire_at: str
    due_at: str
    schedule_revision: int
    status: Literal[
        "on_time",
        "late",
        "running",
        "queued",
        "skipped",
        "missed",
        "cancelled",
        "to_come",
        "overdue",
        "no_record",
        "not_kept",
    ]
    is_due: bool
    late_s: NotRequired[float]
    reason: NotRequired[str]
    detail: NotRequired[str]
    run: NotRequired[ExpectedRun]


class ExpectedOfJob(TypedDict):
    """Some of a job's due instants, the earliest first, and where the list goes on."""

    job_id: str
    from_at: str
    until_at: str
    known_from_at: str | None
    counts: dict[str, int]
    expected: list[ExpectedFire]
    next_cursor: str | None


class ExpectedJob(TypedDict):
    """How many due instants of a job have each status."""

    job_id: str
    known_from_at: str | None
    counts: dict[str, int]
    complete: bool


class ExpectedPage(TypedDict):
    """The due instants of some jobs, job by job in the order of their ids, and where the list goes on."""

    from_at: str
    until_at: str
    by_job: list[ExpectedJob]
    expected: list[ExpectedFire]
    next_cursor: str | None


class Reason(TypedDict):
    """One thing that keeps a job from being due, or from running."""

    code: str
    text: str
    data: dict[str, Any]


class Change(TypedDict):
    """The change that put the job's times in force."""

    at: str
    by: str
    by_name: NotRequired[str]
    action: str


class Explanation(TypedDict):
    """Why a job was, is or is not due at an instant."""

    job_id: str
    at: str
    timezone: str
    local: str
    status: Literal[
        "on_time",
        "late",
        "running",
        "queued",
        "skipped",
        "missed",
        "cancelled",
        "to_come",
        "overdue",
        "no_record",
        "not_kept",
        "not_due",
        "unknown",
    ]
    text: str
    reasons: list[Reason]
    found: list[ExpectedFire]
    schedule_revision: int | None
    since: Change | None
    next_due_at: str | None


class ComingExecution(TypedDict):
    """One coming execution."""

    job_id: str
    fire_at: str
    due_at: str


class UpcomingPage(TypedDict):
    """The next executions, the earliest first, and where the list goes on."""

    from_at: str
    until_at: str
    jobs_counted: int
    complete: bool
    executions: list[ComingExecution]
    next_cursor: str | None


class MinuteCount(TypedDict):
    """How many executions are due in a minute."""

    minute_at: str
    executions: int


class PaceLoad(TypedDict):
    """What a pace does with the executions, if no other jobs share it."""

    key: str
    per_second: int
    executions: int
    delayed: int
    longest_s: int
    over: int


class KeyLoad(TypedDict):
    """How the executions share the places of a concurrency key."""

    key: str
    limit: int
    executions: int
    crowded: int


class SpreadJob(TypedDict):
    """A job that is due in a crowded minute, and what would move it."""

    job_id: str
    proposal: dict[str, Any] | None


class CrowdedMinute(TypedDict):
    """A minute with ten executions, and three times the average, or more."""

    minute_at: str
    executions: int
    jobs: list[SpreadJob]


class TenantDensity(TypedDict):
    """Executions of a tenant's jobs by minute."""

    from_at: str
    until_at: str
    jobs_counted: int
    executions: int
    minutes: list[MinuteCount]
    complete: bool
    paces: list[PaceLoad]
    concurrency: list[KeyLoad]
    crowded: list[CrowdedMinute]


class SecondCount(TypedDict):
    """How many executions are due in a second."""

    at: str
    executions: int


class DueJob(TypedDict):
    """A job that is due in a minute."""

    job_id: str
    name: str
    due_at: str


class MinuteDensity(TypedDict):
    """The executions of one minute, by second."""

    minute_at: str
    executions: int
    jobs_counted: int
    complete: bool
    seconds: list[SecondCount]
    jobs: list[DueJob]


class TenantShare(TypedDict):
    """How many executions of a page are a tenant's."""

    tenant_id: str
    executions: int


class PlatformDensity(TypedDict):
    """Executions of all tenants by minute. Those that calendars exclude are counted."""

    from_at: str
    until_at: str
    jobs_counted: int
    executions: int
    minutes: list[MinuteCount]
    next_cursor: str | None
    unreadable: int
    seconds: list[SecondCount] | None
    crowded: list[MinuteCount]
    tenants: list[TenantShare]


class MovedJob(TypedDict):
    """A job and the next clock change of its time zone."""

    job_id: str
    timezone: str
    change_at: str
    text: str


class ClockChangePage(TypedDict):
    """The jobs that the next clock change of their time zones moves, in the order of their ids."""

    moved: list[MovedJob]
    next_cursor: str | None


class ChangedJob(TypedDict):
    """A job and the first of its fire times in the coming year that an update of the time zone data changed."""

    job_id: str
    timezone: str
    before_at: str | None
    after_at: str | None


class TzdataChangePage(TypedDict):
    """The jobs that an update of the time zone data changed, in the order of their ids."""

    tzdata: str
    since: str
    moved: list[ChangedJob]
    next_cursor: str | None


class PreviewedFire(TypedDict):
    """One fire time."""

    fire_at: str
    local: str
    due_at: str


class SchedulePreview(TypedDict):
    """What a schedule means and when it fires."""

    sentence: str
    warnings: list[str]
    schedule_resolved: dict[str, Any]
    timezone: str
    fires: list[PreviewedFire]
    week: NotRequired[list[str]]
    tzdata: str


class JobStates(TypedDict):
    """How many jobs there are."""

    total: int
    active: int
    paused: int


class PastDay(TypedDict):
    """The runs with fire times in the last 24 hours."""

    runs: int
    statuses: dict[str, int]
    reasons: dict[str, int]
    due: int
    success_rate: float | None
    lateness_s: Spread
    duration_s: Spread
    from_at: str
    fresh_at: str
    hours: list[HourTotals]


class StuckRun(TypedDict):
    """A run that should have gone on."""

    execution_id: str
    job_id: str
    status: Literal[
        "queued", "running", "dispatching", "dispatched", "succeeded", "failed", "retrying", "skipped"
    ]
    since_at: str


class OpenRuns(TypedDict):
    """The runs that are not over."""

    queued: int
    running: int
    retrying: int
    stuck: int
    stuck_runs: list[StuckRun]
    complete: bool


class HourAhead(TypedDict):
    """The executions that are due in an hour."""

    at: str
    executions: int


class JobAhead(TypedDict):
    """A job that fires soon."""

    job_id: str
    name: str
    fire_at: str


class NextDay(TypedDict):
    """The executions of the next 24 hours. Dates that calendars exclude are counted."""

    from_at: str
    until_at: str
    total: int
    hours: list[HourAhead]
    jobs_counted: int
    complete: bool
    jobs: list[JobAhead]


class FailingJob(TypedDict):
    """A job whose last runs failed."""

    job_id: str
    name: str
    failures_in_row: int


class FailingJobs(TypedDict):
    """The active jobs whose last run failed, without those whose failure is muted."""

    count: int
    muted: int
    jobs: list[FailingJob]


class Stopped(TypedDict):
    """A job that does not run, or a subscription whose address is switched off."""

    job_id: str | None
    subscription: str | None
    reason: str
    detail: str
    since_at: str


class StoppedJobs(TypedDict):
    """What does not run."""

    count: int
    first: list[Stopped]


class TenantOverview(TypedDict):
    """What a first look needs."""

    at: str
    suspended: bool
    job_counts: JobStates | None
    past: PastDay
    open: OpenRuns
    ahead: NextDay | None
    failing: FailingJobs | None
    not_running: StoppedJobs | None
    errors: list[FailureGroup]


class EndedRun(TypedDict):
    """What an end by force has done."""

    run: Run
    was_open: bool
    freed: list[str]


class CallbackAnswer(TypedDict):
    """How the run stands after a callback."""

    execution_id: str
    status: Literal[
        "queued", "running", "dispatching", "dispatched", "succeeded", "failed", "retrying", "skipped"
    ]
    attempt: int
    callback_until: str | None
    stop: bool


class SkippedFires(TypedDict):
    """The runs of the next fire times, all within 366 days. Each is cancelled, or has begun meanwhile."""

    job_id: str
    runs: list[Run]


class RestoredFires(TypedDict):
    """The fire times whose cancellation was undone. Those within a minute stay cancelled."""

    job_id: str
    fires: list[str]


class Backfill(TypedDict):
    """A backfill, and how many of its executions are enqueued so far."""

    job_id: str
    total: int
    sent: int
    dry_run: bool
    backfill_id: NotRequired[str]
    start_at: NotRequired[str]
    end_at: NotRequired[str]
    concurrency: NotRequired[int]
    created_at: NotRequired[str]
    cancelled_at: NotRequired[str]


class Backfills(TypedDict):
    """The backfills of a job, the newest first."""

    backfills: list[Backfill]
    more: bool


class CalendarView(TypedDict):
    """Dates on which the jobs that name the calendar do not fire."""

    name: str
    dates: list[str]
    source: dict[str, Any]
    revision: int
    created_at: str
    updated_at: str
    warnings: NotRequired[list[str]]


class CalendarPage(TypedDict):
    """Some calendars, in the order of their names."""

    calendars: list[CalendarView]
    next_cursor: str | None


class SecretView(TypedDict):
    """What may be known of a secret."""

    name: str
    revision: int
    created_at: str
    updated_at: str


class SecretList(TypedDict):
    """All secrets of the tenant, in the order of their names."""

    secrets: list[SecretView]


class SentTry(TypedDict):
    """One try of a message."""

    at: str
    ok: bool
    error: str


class WaitingNotices(TypedDict):
    """What waits to be reported: for the end of `delay_s`, or of the quiet after a message."""

    failed: int
    overdue: int
    not_running: int
    too_long: int
    too_short: int
    no_success: int
    recovered: int


class NoticeOnItsWay(TypedDict):
    """The message that is being sent, or tried again."""

    id: str
    made_at: str
    tries: int
    next_try_at: str


class SubscriptionDelivery(TypedDict):
    """How the deliveries of a subscription went."""

    state: Literal["new", "working", "failing", "disabled"]
    last_try: SentTry | None
    last_test: SentTry | None
    test_waits: bool
    delivered_at: str | None
    failing_since: str | None
    disabled_at: str | None
    quiet_until: str | None
    waiting: WaitingNotices
    message: NoticeOnItsWay | None


class SubscriptionView(TypedDict):
    """An address that gets messages about failures, recoveries and overdue jobs."""

    name: str
    target: dict[str, Any]
    kinds: list[str]
    job_id: NotRequired[str]
    name_prefix: NotRequired[str]
    tag: NotRequired[str]
    delay_s: int
    group_s: int
    created_at: str
    updated_at: str
    delivery: SubscriptionDelivery


class SubscriptionList(TypedDict):
    """All subscriptions of the tenant, by name; there are few."""

    subscriptions: list[SubscriptionView]


class WebhookSecret(TypedDict):
    """What signs calls of HTTP targets, as Standard Webhooks has it."""

    secret: str


class Usage(TypedDict):
    """What the tenant's jobs take of its quotas."""

    jobs: int
    executions_per_day: int


class QuotaView(TypedDict):
    """How much the platform allows."""

    jobs: int
    executions_per_day: int
    shortest_interval_s: int
    payload_bytes: int
    requests_per_minute: int


class TenantView(TypedDict):
    """A tenant: what the platform allows, and how much of it is used."""

    tenant_id: str
    name: str
    created_at: str
    state: Literal["active", "suspended", "deleting"]
    note: str
    revision: int
    usage: Usage
    quotas: QuotaView
    allowed_targets: list[str]
    retention_days: int
    spread_s: int | None


class TenantSummary(TypedDict):
    """A tenant in a list."""

    tenant_id: str
    name: str
    created_at: str
    state: Literal["active", "suspended", "deleting"]
    note: str
    revision: int


class DamagedTenant(TypedDict):
    """A tenant whose item in the list somebody has damaged."""

    tenant_id: str
    problem: str


class TenantPage(TypedDict):
    """Some tenants, in the order of their ids."""

    tenants: list[TenantSummary]
    unreadable: NotRequired[list[DamagedTenant]]
    next_cursor: str | None


class KeyInUse(TypedDict):
    """The key that asks, or the token."""

    key_id: str
    role: Literal["read", "write", "admin"]


class Tenant(TypedDict):
    """Whose key it is, what the platform allows, and how much of it is used."""

    tenant_id: str
    name: str
    created_at: str
    state: Literal["active", "suspended", "deleting"]
    note: str
    revision: int
    usage: Usage
    quotas: QuotaView
    allowed_targets: list[str]
    retention_days: int
    spread_s: int | None
    key: KeyInUse


class Removed(TypedDict):
    """How many items went, at least."""

    keys: int
    jobs: int
    runs: int
    others: int


class TenantDeletion(TypedDict):
    """How far the removal of a tenant is."""

    tenant_id: str
    state: Literal["waiting", "removing", "finished"]
    by: str
    started_at: str
    finished_at: str | None
    jobs_registered: int
    removed: Removed


class RebuiltRuns(TypedDict):
    """A step of writing down a tenant's runs by time again."""

    runs_read: int
    next_cursor: str | None


class Key(TypedDict):
    """What is known of a key: all but the key."""

    key_id: str
    name: str
    role: Literal["read", "write", "admin", "operator"]
    prefix: str
    access_key_id: str | None
    state: Literal["active", "expired", "revoked"]
    created_at: str
    expires_at: str | None
    revoked_at: str | None


class KeyPage(TypedDict):
    """Some keys, oldest first; revoked ones stay listed for 30 days."""

    keys: list[Key]
    next_cursor: str | None


class MadeKey(TypedDict):
    """A new key. It is not stored, and shown in this answer alone."""

    key_id: str
    name: str
    role: Literal["read", "write", "admin", "operator"]
    prefix: str
    access_key_id: str | None
    state: Literal["active", "expired", "revoked"]
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    key: str


class AuditedRequest(TypedDict):
    """A request of AWS's API that made a change."""

    operation: str
    source_address: str


class AuditEntry(TypedDict):
    """One change."""

    entry_id: str
    at: str
    by: str
    by_name: NotRequired[str]
    action: str
    subject: str
    before: dict[str, Any]
    after: dict[str, Any]
    request: NotRequired[AuditedRequest]


class AuditPage(TypedDict):
    """Some changes, newest first."""

    entries: list[AuditEntry]
    next_cursor: str | None


class RunTotals(TypedDict):
    """The totals of a tenant's runs."""

    runs: int
    statuses: dict[str, int]
    reasons: dict[str, int]
    due: int
    success_rate: float | None
    lateness_s: Spread
    duration_s: Spread
    complete: bool


class JobCounts(TypedDict):
    """How many of a tenant's jobs are how, now."""

    read: int
    active: int
    paused: int
    failing: int
    not_running: int
    stopped_by: dict[str, int]
    overdue: int
    most_late_s: float
    complete: bool


class TenantHealth(TypedDict):
    """How a tenant is, without what its jobs and runs contain."""

    tenant_id: str
    from_at: str
    until_at: str
    run_totals: RunTotals
    job_counts: JobCounts


class LostTarget(TypedDict):
    """A target that the tenant could not call any more."""

    target: str
    jobs: int


class Overused(TypedDict):
    """A quota of which the tenant would use more than it has."""

    quota: str
    used: int
    allowed: int


class RuleEffects(TypedDict):
    """What a change of a tenant's rules would break."""

    tenant: TenantView
    jobs_read: int
    complete: bool
    not_allowed: int
    targets: list[LostTarget]
    interval_too_short: int
    payload_too_large: int
    overused: list[Overused]


class PlanningProgress(TypedDict):
    """Up to when everything is planned."""

    planned_until_at: str
    planning_until_at: str
    lag_s: float
    ticks_missed: int
    decided_at: str
    divided: bool
    tzdata: str


class WindowPlanned(TypedDict):
    """How the planning of a window went."""

    start_at: str
    end_at: str
    began_at: str
    took_s: float
    ahead_s: float
    finished: bool
    executions: int
    missed: int
    bad_entries: int
    ticks: int
    planners: int


class NotPlanned(TypedDict):
    """A group, a share or a job's entry that could not be planned."""

    kind: Literal["group", "item", "share", "entry"]
    name: str
    reason: str
    seen_at: str
    start_at: str | None
    end_at: str | None
    tries: int


class DoctorFinding(TypedDict):
    """What a check of the doctor found."""

    check: str
    level: Literal["failed", "warning", "not_checked", "ok"]
    found: str
    remedy: str
    since_at: str | None
    runbook: str | None


class PlatformPlanning(TypedDict):
    """How the planning of all tenants' jobs is."""

    progress: PlanningProgress | None
    shares_left: int
    calls_at_once: int
    windows: list[WindowPlanned]
    set_aside: list[NotPlanned]
    findings: list[DoctorFinding]


class Block(TypedDict):
    """A pattern of targets that no run calls."""

    pattern: str
    note: str
    blocked_at: str
    by: str


class Blocks(TypedDict):
    """What is blocked, the oldest block first."""

    blocks: list[Block]


class WithoutRecord(TypedDict):
    """An execution that was enqueued, and of which nothing is recorded."""

    execution_id: str
    tenant_id: str
    job_id: str
    fire_at: str
    due_at: str
    found_at: str
    sent_at: str | None
    known_by: str | None


class UnrecordedPage(TypedDict):
    """A page of them, by their ids. It may hold fewer than were asked for, and have a cursor all the same."""

    executions: list[WithoutRecord]
    next_cursor: str | None


class WithoutRecordOfJob(TypedDict):
    """The executions of a job that have no record."""

    tenant_id: str
    job_id: str
    executions: int
    first_due_at: str
    last_due_at: str
    sent_before: int
    known_by: dict[str, int]


class RanUnrecorded(TypedDict):
    """What became of the executions, or with `dry_run` what would."""

    dry_run: bool
    sent: list[str]
    jobs: list[WithoutRecordOfJob]
    known: list[str]
    recorded: list[str]


class DeadLetterCount(TypedDict):
    """How many messages of a queue were given up."""

    queue: Literal["executions", "planning", "outcomes", "registrations"]
    dead_letters: int


class DeadLetterCounts(TypedDict):
    """The queues with their given-up messages."""

    queues: list[DeadLetterCount]


class DeadLetter(TypedDict):
    """A given-up message, without its text."""

    message_id: str
    sent_at: str
    bytes: int
    about: list[str]
    problem: str | None


class DeadLetterList(TypedDict):
    """Some given-up messages of a queue, in no order."""

    queue: Literal["executions", "planning", "outcomes", "registrations"]
    dead_letters: list[DeadLetter]
    more: bool


class DeadLettersDone(TypedDict):
    """What became of given-up messages."""

    queue: Literal["executions", "planning", "outcomes", "registrations"]
    done: int
    left: list[DeadLetter]
    more: bool
    began_at: str


class PlatformSums(TypedDict):
    """All tenants together."""

    runs: int
    failed: int
    late: int
    max_lateness_s: float
    tenants: int
    suspended: int
    failing: int
    not_running: int
    jobs: int
    executions_per_day: int
    complete: bool


class PlatformHour(TypedDict):
    """The runs of all tenants with fire times in an hour."""

    runs: int
    failed: int
    late: int
    max_lateness_s: float
    at: str


class PlatformRuns(TypedDict):
    """Runs of tenants in the range, or in an hour of it."""

    runs: int
    failed: int
    late: int
    max_lateness_s: float


class FailingJobOfTenant(TypedDict):
    """A job whose last runs failed."""

    job_id: str
    failures_in_row: int


class FailingJobsOfTenant(TypedDict):
    """The jobs of a tenant that fail now."""

    count: int
    jobs: list[FailingJobOfTenant]
    complete: bool


class StoppedJobOfTenant(TypedDict):
    """A job that does not run, or an address of a subscription that is switched off."""

    job_id: str | None
    subscription: str | None
    reason: str
    since_at: str


class StoppedJobsOfTenant(TypedDict):
    """What does not run of a tenant now."""

    count: int
    reasons: dict[str, int]
    first: list[StoppedJobOfTenant]
    complete: bool


class TenantLine(TypedDict):
    """A tenant, its use of quotas, and its runs."""

    tenant_id: str
    name: str
    created_at: str
    state: Literal["active", "suspended", "deleting"]
    note: str
    revision: int
    usage: Usage
    quotas: QuotaView
    quota_share: float
    past: PlatformRuns
    failing: FailingJobsOfTenant | None
    not_running: StoppedJobsOfTenant | None


class Overview(TypedDict):
    """The platform's tenants, in the order of the list."""

    from_at: str
    until_at: str
    fresh_at: str
    totals: PlatformSums
    hours: list[PlatformHour]
    blocks: list[Block]
    matched: int
    tenants: list[TenantLine]
    next_cursor: str | None


class Version(TypedDict):
    """What is deployed."""

    version: str
