"""The platform's view of its tenants."""

from __future__ import annotations

from pydantic import Field

from api.shapes.parts import Answer, Instant, Seconds, Shapes
from api.shapes.runs import Totals
from api.shapes.tenants import QuotaView, TenantSummary, TenantView, Usage


class FailureCount(Answer):
    """The failed runs of a tenant in the range."""

    count: int
    jobs: int = Field(description="Of how many jobs.")
    last_at: Instant | None
    complete: bool = Field(description="False: there are more than 1,000.")


class TenantLine(TenantSummary):
    """A tenant, its use of quotas, and its failures."""

    usage: Usage
    quotas: QuotaView
    failures: FailureCount


class Overview(Answer):
    """Tenants in the order of their ids."""

    from_at: Instant
    until_at: Instant
    tenants: list[TenantLine]
    next_cursor: str | None


class RunTotals(Totals):
    """The totals of a tenant's runs."""

    complete: bool = Field(description="False: of the newest 10,000 runs of 1,000 jobs only.")


class JobCounts(Answer):
    """How many of a tenant's jobs are how, now."""

    read: int
    active: int
    paused: int
    failing: int = Field(description="Their last scheduled run failed for good.")
    overdue: int = Field(description="A due instant has passed without a run.")
    most_late_s: Seconds = Field(description="Of the most overdue one.")
    complete: bool = Field(description="False: of the first 500 jobs only.")


class TenantHealth(Answer):
    """How a tenant is, without what its jobs and runs contain."""

    tenant_id: str
    from_at: Instant
    until_at: Instant
    run_totals: RunTotals
    job_counts: JobCounts


class LostTarget(Answer):
    """A target that the tenant could not call any more."""

    target: str
    jobs: int


class Overused(Answer):
    """A quota of which the tenant would use more than it has."""

    quota: str
    used: int
    allowed: int


class RuleEffects(Answer):
    """What a change of a tenant's rules would break."""

    tenant: TenantView = Field(description="As it would be.")
    jobs_read: int
    complete: bool = Field(description="False: it read 2,000 jobs, and there are more.")
    not_allowed: int = Field(description="Jobs that run now and would be skipped as `target_not_allowed`.")
    targets: list[LostTarget] = Field(description="Their targets, those of most jobs first; 20 at most.")
    interval_too_short: int = Field(description="Jobs that go on, and could not be registered any more.")
    payload_too_large: int = Field(description="Jobs that go on, and could not be registered any more.")
    overused: list[Overused] = Field(description="It keeps its jobs, and could add none.")


TAKEN: Shapes = ()
GIVEN: Shapes = (
    Overview,
    TenantHealth,
    RuleEffects,
)
