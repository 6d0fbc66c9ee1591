"""A tenant, as it is stored: its names, what the platform allows it, and how much of that its jobs use. Pure.

Executors read the rules alone, from the same item.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct, to_builtins

from common.storage.expressions import PRESENT, Attribute
from common.timing.instants import DAY_S

State = Literal["active", "suspended", "deleting", "deleted"]
ACTIVE: Final = "active"
SUSPENDED: Final = "suspended"
DELETING: Final = "deleting"
# A deleted tenant leaves a tombstone: its name cannot be used again while some of its items or messages may be left.
DELETED: Final = "deleted"

# An item is a tenant's, and the tenant is not being deleted.
IS_THERE: Final = PRESENT & (Attribute("state").is_absent | Attribute("state").is_one_of(ACTIVE, SUSPENDED))


# An ARN in its six parts; or a host, `*.` and a host, or an IPv6 address, each with an optional port.
_PATTERN: Final = (
    r"^(?ai:\*|arn(:[^:\s]*){4}:\S+|(\*\.)?[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]{1,5})?"
    r"|\[[0-9a-f:.]+\](:[0-9]{1,5})?)$"
)
Pattern = Annotated[
    str,
    Meta(
        max_length=512,
        pattern=_PATTERN,
        extra={"accepted": "an ARN with * and ?, a host, *.host, either with :port, or *"},
    ),
]
Patterns = Annotated[
    list[Pattern],
    Meta(
        max_length=100,
        description="What it may call: ARNs with `*` and `?`, a host, `*.host`, either with `:port`, or `*`.",
        examples=[["arn:aws:lambda:*:123456789012:function:acme-*", "*.acme.example"]],
    ),
]


class Quotas(Struct, frozen=True):
    """How much the platform allows. `executions_per_day` is estimated from the schedules when jobs are registered."""

    jobs: Annotated[int, Meta(ge=0, le=10_000_000, description="The largest number of jobs.")] = 10_000
    executions_per_day: Annotated[
        int,
        Meta(
            ge=0,
            le=10_000_000_000,
            description="The largest number of executions a day, counted from the jobs' schedules.",
        ),
    ] = 1_000_000
    shortest_interval_s: Annotated[
        int, Meta(ge=1, le=366 * DAY_S, description="The shortest time between two fires of a job.")
    ] = 1
    payload_bytes: Annotated[int, Meta(ge=1, le=256 * 1024, description="The largest payload as JSON.")] = (
        128 * 1024
    )
    requests_per_minute: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            description="The largest number of API requests a minute, of all keys together, by what they cost.",
        ),
    ] = 6_000


class TenantRules(Struct, frozen=True):
    """What a tenant may do. `allowed_targets` are patterns (allowed_targets.py); an empty list allows nothing."""

    state: State = ACTIVE
    allowed_targets: Patterns = []
    quotas: Quotas = Quotas()
    retention_days: Annotated[int, Meta(ge=1, le=400, description="How long its runs are kept.")] = 30
    spread_s: (
        Annotated[
            int, Meta(ge=0, le=3_600, description="The spread of jobs that name none; null: the platform's.")
        ]
        | None
    ) = None

    @property
    def run_retention_s(self) -> int:
        """How long the tenant's runs are kept."""
        return self.retention_days * DAY_S


class Tenant(TenantRules, frozen=True, kw_only=True):
    """A tenant and its rules. `jobs` and `executions_per_day` are the registered totals."""

    tenant_id: str
    name: str = ""
    created_at: int
    revision: int = 1
    note: str = ""
    jobs: int = 0
    executions_per_day: int = 0

    def to_item(self) -> dict[str, Any]:
        """The attributes that the platform writes. Registrations write the totals in the same item."""
        item: dict[str, Any] = to_builtins(self)
        del item["jobs"], item["executions_per_day"]
        return item
