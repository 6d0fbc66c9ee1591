"""Tenants: as the platform sees them, and as each sees itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints

from api.shapes.base import (
    Instant,
    NextCursor,
    Note,
    RequestBody,
    RequestedInstant,
    ResponseBody,
    Revision,
    TenantId,
    checked,
)
from common.errors import InvalidInput
from common.ids import NAME_CHARS, TENANT_ID_CHARS, id_pattern
from common.platform.credential import ROLES

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


class QuotaPatch(RequestBody):
    """Quotas to set; null means the default, what is left out stays."""

    jobs: int | None = Field(description="The largest number of jobs.", default=None, ge=0)
    executions_per_day: int | None = Field(
        description="The largest number of executions a day, counted from the jobs' schedules.",
        default=None,
        ge=0,
    )
    shortest_interval_s: int | None = Field(
        description="The shortest time between two fires of a job.", default=None, ge=1
    )
    payload_bytes: int | None = Field(
        description="The largest payload as JSON.", default=None, ge=1, le=256 * 1024
    )
    requests_per_minute: int | None = Field(
        description="The largest number of API requests a minute, of all keys together, by what they cost.",
        default=None,
        ge=0,
    )


class TenantSettings(RequestBody):
    """What a tenant may do; null means the default."""

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
    ] = Field(description="The id that you choose. It is part of every execution id, and never changes.")


class Suspension(RequestBody):
    """Why a tenant is suspended; it can read this."""

    note: Note = ""


class KeyInUse(ResponseBody):
    """The key that asks, or the token."""

    key_id: str = Field(description="A key's id; of a signed token `jwt:` and its subject.")
    role: Literal["read", "write", "admin"] = Field(description="The role of the key or token.")


class Usage(ResponseBody):
    """What the tenant's jobs take of its quotas."""

    jobs: int = Field(description="The number of jobs.")
    executions_per_day: int = Field(description="At most so many by the schedules, not what has run.")


class QuotaView(ResponseBody):
    """How much the platform allows."""

    jobs: int = Field(description="The largest number of jobs.")
    executions_per_day: int = Field(
        description="The largest number of executions a day, counted from the jobs' schedules."
    )
    shortest_interval_s: int = Field(description="The shortest time between two fires of a job.")
    payload_bytes: int = Field(description="The largest payload as JSON.")
    requests_per_minute: int = Field(
        description="The largest number of API requests a minute, of all keys together, by what they cost."
    )


class TenantSummary(ResponseBody):
    """A tenant in a list."""

    tenant_id: TenantId
    name: str = Field(description="A name for people.")
    created_at: Instant
    state: Literal["active", "suspended", "deleting"] = Field(
        description="`suspended`: it may read, and nothing runs. `deleting`: all of it is being removed."
    )
    note: str = Field(description="Why it is suspended.")
    revision: Revision


class TenantPage(ResponseBody):
    """Some tenants, in the order of their ids."""

    tenants: list[TenantSummary] = Field(description="The tenants of this page.")
    next_cursor: NextCursor


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


class WebhookSecret(ResponseBody):
    """What signs calls of HTTP targets, as Standard Webhooks has it."""

    secret: str = Field(description="The secret: `whsec_` and base64.", examples=["whsec_…"])


class Removed(ResponseBody):
    """How many items went, at least."""

    keys: int = Field(description="API keys.")
    jobs: int = Field(description="Jobs.")
    runs: int = Field(description="Runs.")
    others: int = Field(description="Calendars, backfills, the audit, the webhook secret, counters.")


class RebuiltRuns(ResponseBody):
    """A step of writing down a tenant's runs by time again."""

    runs_read: int = Field(description="The runs that this step has read.")
    next_cursor: NextCursor


class TenantDeletion(ResponseBody):
    """How far the removal of a tenant is."""

    tenant_id: TenantId
    state: Literal["waiting", "removing", "finished"] = Field(
        description="`waiting`: stopped; a minute passes until every process knows, and only keys go before."
    )
    by: str = Field(description="Who began it, as the audit names them.")
    started_at: Instant
    finished_at: Instant | None
    jobs_registered: int = Field(description="How many were registered when it began.")
    removed: Removed


_KeyName = Annotated[
    str | None,
    StringConstraints(max_length=NAME_CHARS),
    Field(description="What it is for.", examples=["dashboard"]),
]
_Expiry = Annotated[RequestedInstant | None, Field(description="When it expires; never if left out.")]


def _role(field: str, role: object) -> object:
    if role not in ROLES:
        raise InvalidInput(field, "must be a role", value=role, accepted=", ".join(ROLES))
    return role


class NewOperatorKey(RequestBody):
    """A key of the platform's own."""

    name: _KeyName = None
    expires_at: _Expiry = None


class NewKey(NewOperatorKey):
    """A key of a tenant."""

    role: Annotated[Literal["read", "write", "admin"], checked(_role)] = Field(
        description="Each may do what those before it may."
    )
    aws: bool = Field(
        default=False, description="A pair with which AWS's SDKs sign requests to the EventBridge endpoint."
    )


class KeyView(ResponseBody):
    """What is known of a key: all but the key."""

    key_id: str = Field(description="The key's id. It is not secret.")
    name: str = Field(description="What the key is for.")
    role: Literal["read", "write", "admin", "operator"] = Field(
        description="What the key may do; `operator` keys belong to the platform."
    )
    prefix: str = Field(description="How the key begins.", examples=["m8_0aB1c"])
    access_key_id: str | None = Field(description="Of a pair for AWS's SDKs.")
    state: Literal["active", "expired", "revoked"] = Field(description="Whether the key is accepted.")
    created_at: Instant
    expires_at: Instant | None = Field(description="When it ends; of a revoked one, when it leaves the list.")
    revoked_at: Instant | None


class MadeKey(KeyView):
    """A new key. It is not stored, and shown in this answer alone."""

    key: str = Field(description="The key; of a pair, its secret access key.", examples=["m8_…"])


class KeyPage(ResponseBody):
    """Some keys, oldest first; revoked ones stay listed for 30 days."""

    keys: list[KeyView] = Field(description="The keys of this page.")
    next_cursor: NextCursor


class AuditedRequest(ResponseBody):
    """A request of AWS's API that made a change."""

    operation: str = Field(description="AWS's name of it.", examples=["scheduler:CreateSchedule"])
    source_address: str = Field(description="The IP address that it came from.", examples=["192.0.2.1"])


class AuditEntry(ResponseBody):
    """One change."""

    entry_id: str = Field(description="The entry's id.")
    at: Instant
    by: str = Field(
        description="The key's id; `operator:` and a key's id; `aws`: with AWS credentials; `minute8`: Minute8 itself."
    )
    by_name: str | None = Field(
        default=None, description="The name of that key, if it has one and is listed."
    )
    action: str = Field(
        description="What was done: the kind of the subject, a dot and a verb.", examples=["job.paused"]
    )
    subject: str = Field(description="The id of what was changed; of a run, its job's.")
    before: dict[str, Any] = Field(description="What it was, of what differs; long values as size and hash.")
    after: dict[str, Any] = Field(description="What it became, of what differs.")
    request: AuditedRequest | None = Field(
        default=None, description="The request to EventBridge's API that made the change."
    )


class AuditPage(ResponseBody):
    """Some changes, newest first."""

    entries: list[AuditEntry] = Field(description="The changes of this page, newest first.")
    next_cursor: NextCursor
