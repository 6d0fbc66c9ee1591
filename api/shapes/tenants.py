"""Tenants: as the platform sees them, and as each sees itself."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from api.shapes.parts import Answer, Instant, Shapes
from common.ids import TENANT_ID_CHARS, id_pattern
from common.texts import NAME_CHARS, NOTE_CHARS

_Name = Annotated[
    str | None, StringConstraints(max_length=NAME_CHARS), Field(description="A name for people.")
]
_Patterns = Annotated[
    list[Annotated[str, StringConstraints(max_length=512)]] | None,
    Field(
        description="What it may call: ARNs with `*` and `?`, a host, `*.host`, either with `:port`, or `*`.",
        max_length=100,
        examples=[["arn:aws:lambda:*:123456789012:function:acme-*", "*.acme.example"]],
    ),
]
_Days = Annotated[int | None, Field(description="How long its runs are kept; 30 at first.", ge=1, le=400)]

_Spread = Annotated[
    int | None,
    Field(description="The spread of jobs that name none; null: the platform's.", ge=0, le=3_600),
]


class QuotaPatch(BaseModel):
    """Quotas to set; null means the default, what is left out stays."""

    model_config = ConfigDict(extra="forbid")

    jobs: int | None = Field(default=None, ge=0)
    executions_per_day: int | None = Field(default=None, ge=0)
    shortest_interval_s: int | None = Field(default=None, ge=1)
    payload_bytes: int | None = Field(default=None, ge=1, le=128 * 1024)
    requests_per_minute: int | None = Field(default=None, ge=0)


class TenantSettings(BaseModel):
    """What a tenant may do; null means the default."""

    model_config = ConfigDict(extra="forbid")

    name: _Name = None
    allowed_targets: _Patterns = None
    quotas: QuotaPatch | None = None
    retention_days: _Days = None
    spread_s: _Spread = None


class TenantPatch(TenantSettings):
    """What to change; null means the default, what is left out stays."""

    add_targets: _Patterns = Field(default=None, description="Patterns to add to `allowed_targets`.")
    remove_targets: _Patterns = Field(
        default=None, description="Patterns to remove from `allowed_targets`; each must be one of them."
    )


class NewTenant(TenantSettings):
    """A tenant. What is left out is the default; nothing may be called by default."""

    tenant_id: Annotated[
        str,
        StringConstraints(pattern=id_pattern(TENANT_ID_CHARS)),
        Field(examples=["acme"]),
    ]


class Suspension(BaseModel):
    """Why a tenant is suspended; it can read this."""

    model_config = ConfigDict(extra="forbid")

    note: Annotated[str, StringConstraints(max_length=NOTE_CHARS)] = ""


class KeyInUse(Answer):
    """The key that asks, or the token."""

    key_id: str = Field(description="A key's id; of a signed token `jwt:` and its subject.")
    role: Literal["read", "write", "admin"]


class Usage(Answer):
    """What the tenant's jobs take of its quotas."""

    jobs: int
    executions_per_day: int = Field(description="At most so many by the schedules, not what has run.")


class QuotaView(Answer):
    """How much the platform allows."""

    jobs: int
    executions_per_day: int
    shortest_interval_s: int
    payload_bytes: int
    requests_per_minute: int


class TenantSummary(Answer):
    """A tenant in a list."""

    tenant_id: str
    name: str
    created_at: Instant
    state: Literal["active", "suspended", "deleting"]
    note: str = Field(description="Why it is suspended.")
    revision: int


class TenantPage(Answer):
    """Some tenants, in the order of their ids."""

    tenants: list[TenantSummary]
    next_cursor: str | None


class TenantView(TenantSummary):
    """A tenant: what the platform allows, and how much of it is used."""

    usage: Usage
    quotas: QuotaView
    allowed_targets: list[str] = Field(description="Patterns; none allows nothing.")
    retention_days: int = Field(description="How long runs are kept.")
    spread_s: int | None = Field(description="The spread of jobs that name none; null: the platform's.")


class Tenant(TenantView):
    """Whose key it is, what the platform allows, and how much of it is used."""

    key: KeyInUse


class WebhookSecret(Answer):
    """What signs calls of HTTP targets, as Standard Webhooks has it."""

    secret: str = Field(examples=["whsec_…"])


TAKEN: Shapes = (
    NewTenant,
    TenantPatch,
    Suspension,
)
GIVEN: Shapes = (
    Tenant,
    TenantView,
    TenantPage,
    WebhookSecret,
)
