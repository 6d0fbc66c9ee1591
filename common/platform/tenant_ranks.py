"""All tenants by how they do, for the platform: who fails, who is late, who runs much, who has used up a quota.

The runs are those that ticks have written down, some ten to thirty minutes ago. Pure but for the reading.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Literal

from common.jobs.not_running import StoppedOfTenant, stopped_tenants
from common.platform.tenants import Tenants
from common.projection.state import ProjectionStates
from common.projection.tenants import PlatformTotals, ProjectedTenants, TenantTotals, hour_of
from common.storage import keys
from common.storage.aws import readable
from common.storage.metering import in_threads
from common.storage.table import Query, Table
from common.tenants.tenant import SUSPENDED, Tenant

Order = Literal["id", "failing", "late", "load", "quota"]
ORDERS: Final[tuple[Order, ...]] = ("id", "failing", "late", "load", "quota")
# Tenants that one request reads, a hundred in a request to DynamoDB.
MAX_TENANTS: Final = 5_000
# Failing jobs are read of so many tenants of a page, so many counts of each, and so many are shown.
_FAILING_TENANTS: Final = 10
_COUNTS_READ: Final = 1_000
_JOBS_SHOWN: Final = 3
_THREADS: Final = 10

# What a tenant is sorted by, and its id.
Place = tuple[float, str]


@dataclass(frozen=True, slots=True)
class FailingJobs:
    """How many jobs fail now, and those with the most failures in a row. `complete`: all were counted."""

    count: int
    jobs: tuple[tuple[str, int], ...]
    complete: bool


@dataclass(frozen=True, slots=True)
class RankedTenant:
    """A tenant, its runs in the range, and which part of its quota it uses most."""

    tenant: Tenant
    runs: TenantTotals
    stopped: StoppedOfTenant | None = None

    @property
    def quota_share(self) -> float:
        """The larger part of the quotas of jobs and of executions a day."""
        quotas = self.tenant.quotas
        used = (self.tenant.jobs, quotas.jobs), (self.tenant.executions_per_day, quotas.executions_per_day)
        return max((count / most for count, most in used if most), default=0.0)

    @property
    def is_problem(self) -> bool:
        """Whether it is suspended, has failed runs, or jobs that do not run."""
        return self.tenant.state == SUSPENDED or self.runs.failed > 0 or self.stopped is not None

    def place(self, order: Order) -> Place:
        """Where it stands in the list."""
        match order:
            case "failing":
                key: float = -self.runs.failed
            case "late":
                key = -self.runs.late
            case "load":
                key = -self.runs.runs
            case "quota":
                key = -self.quota_share
            case _:
                key = 0
        return key, self.tenant.tenant_id


@dataclass(slots=True)
class PlatformRanks:
    """All tenants in order, and the runs of all by hour. The runs before `fresh_at` are counted.

    `complete`: these are all tenants, and all whose jobs do not run are known.
    """

    from_at: int
    fresh_at: int
    tenants: list[RankedTenant]
    complete: bool
    totals: PlatformTotals = field(default_factory=PlatformTotals)


class TenantRanks:
    """Reads them."""

    def __init__(self, jobs: Table, runs: Table, states: ProjectionStates) -> None:
        self._jobs = jobs
        self._platform = ProjectedTenants(runs)
        self._states = states

    def ranked(
        self, tenants: Tenants, from_at: int, until_at: int, now: float, order: Order
    ) -> PlatformRanks:
        """All tenants with their runs of whole hours from `from_at` on."""
        state = self._states.read()
        listed = list(islice(tenants.ids(limit=MAX_TENANTS + 1), MAX_TENANTS + 1))
        existing = tenants.with_counts(listed[:MAX_TENANTS])
        totals = PlatformTotals()
        fresh_at = from_at
        if state:
            from_at = hour_of(max(from_at, state.since))
            fresh_at = max(from_at, min(until_at, int(now), *state.until.values()))
            totals = self._platform.between(from_at, until_at)
        runs, (stopped, is_all) = totals.tenants, stopped_tenants(self._jobs)
        in_order = [
            RankedTenant(tenant, runs.get(tenant.tenant_id, TenantTotals()), stopped.get(tenant.tenant_id))
            for tenant in existing
        ]
        in_order.sort(key=lambda ranked: ranked.place(order))
        return PlatformRanks(from_at, fresh_at, in_order, is_all and len(listed) <= MAX_TENANTS, totals)

    def failing_jobs(self, page: Iterable[RankedTenant]) -> dict[str, FailingJobs]:
        """The jobs that fail now, of the first tenants of a page that have failed runs."""
        failing = [ranked.tenant.tenant_id for ranked in page if ranked.runs.failed][:_FAILING_TENANTS]
        return dict(zip(failing, in_threads(self._failing_jobs, failing, _THREADS), strict=True))

    def _failing_jobs(self, tenant: str) -> FailingJobs:
        query = Query(
            tenant,
            sk_prefix=keys.STREAK_PREFIX,
            limit=_COUNTS_READ,
            attributes=("sk", "failures"),
            consistent=False,
        )
        items = list(self._jobs.query(query))
        counts = readable(
            items, lambda item: (item["sk"].removeprefix(keys.STREAK_PREFIX), int(item["failures"]))
        )
        jobs = sorted((count for count in counts if count[1]), key=lambda count: (-count[1], count[0]))
        return FailingJobs(len(jobs), tuple(jobs[:_JOBS_SHOWN]), len(items) < _COUNTS_READ)


def after_place(tenants: Sequence[RankedTenant], order: Order, after: Place | None) -> list[RankedTenant]:
    """Those that stand after a place. Pure."""
    return [ranked for ranked in tenants if after is None or ranked.place(order) > after]
