"""Tenants: as the platform sees them, and as each sees itself."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from common.ids import TENANT_ID_CHARS, id_pattern, words_of_ids
from common.limits import NAME_CHARS
from common.tenants.tenant import Patterns
from minute8.api.shapes.base import (
    Instant,
    NextCursor,
    Note,
    RequestBody,
    RequestedInstant,
    ResponseBody,
    Revision,
    TenantId,
)

_Name = Annotated[
    Annotated[str, Meta(max_length=NAME_CHARS)] | UnsetType | None, Meta(description="A name for people.")
]
_Patterns = Patterns | UnsetType | None
_Days = Annotated[
    Annotated[int, Meta(ge=1, le=400)] | UnsetType | None,
    Meta(description="How long its runs are kept; 30 at first."),
]

_Spread = Annotated[
    Annotated[int, Meta(ge=0, le=3_600)] | UnsetType | None,
    Meta(description="The spread of jobs that name none; null: the platform's."),
]


class QuotaPatch(RequestBody):
    """Quotas to set; null means the default, what is left out stays."""

    jobs: Annotated[
        Annotated[int, Meta(ge=0)] | UnsetType | None, Meta(description="The largest number of jobs.")
    ] = UNSET
    executions_per_day: Annotated[
        Annotated[int, Meta(ge=0)] | UnsetType | None,
        Meta(description="The largest number of executions a day, counted from the jobs' schedules."),
    ] = UNSET
    shortest_interval_s: Annotated[
        Annotated[int, Meta(ge=1)] | UnsetType | None,
        Meta(description="The shortest time between two fires of a job."),
    ] = UNSET
    payload_bytes: Annotated[
        Annotated[int, Meta(ge=1, le=256 * 1024)] | UnsetType | None,
        Meta(description="The largest payload as JSON."),
    ] = UNSET
    requests_per_minute: Annotated[
        Annotated[int, Meta(ge=0)] | UnsetType | None,
        Meta(
            description="The largest number of API requests a minute, of all keys together, by what they cost."
        ),
    ] = UNSET


class TenantSettings(RequestBody):
    """What a tenant may do; null means the default."""

    name: _Name = UNSET
    allowed_targets: _Patterns = UNSET
    quotas: QuotaPatch | UnsetType | None = UNSET
    retention_days: _Days = UNSET
    spread_s: _Spread = UNSET


class TenantPatch(TenantSettings):
    """What to change; null means the default, what is left out stays."""

    add_targets: Annotated[_Patterns, Meta(description="Patterns to add to `allowed_targets`.")] = UNSET
    remove_targets: Annotated[
        _Patterns, Meta(description="Patterns to remove from `allowed_targets`; each must be one of them.")
    ] = UNSET


class NewTenant(TenantSettings, kw_only=True):
    """A tenant. What is left out is the default; nothing may be called by default."""

    tenant_id: Annotated[
        str,
        Meta(
            pattern=id_pattern(TENANT_ID_CHARS),
            examples=["acme"],
            extra={"accepted": words_of_ids(TENANT_ID_CHARS)},
            description="The id that you choose. It is part of every execution id, and never changes.",
        ),
    ]


class Suspension(RequestBody):
    """Why a tenant is suspended; it can read this."""

    note: Note = ""


class KeyInUse(ResponseBody):
    """The key that asks, or the token."""

    key_id: Annotated[str, Meta(description="A key's id; of a signed token `jwt:` and its subject.")]
    role: Annotated[Literal["read", "write", "admin"], Meta(description="The role of the key or token.")]


class Usage(ResponseBody):
    """What the tenant's jobs take of its quotas."""

    jobs: Annotated[int, Meta(description="The number of jobs.")]
    executions_per_day: Annotated[
        int, Meta(description="At most so many by the schedules, not what has run.")
    ]


class QuotaView(ResponseBody):
    """How much the platform allows."""

    jobs: Annotated[int, Meta(description="The largest number of jobs.")]
    executions_per_day: Annotated[
        int, Meta(description="The largest number of executions a day, counted from the jobs' schedules.")
    ]
    shortest_interval_s: Annotated[int, Meta(description="The shortest time between two fires of a job.")]
    payload_bytes: Annotated[int, Meta(description="The largest payload as JSON.")]
    requests_per_minute: Annotated[
        int,
        Meta(
            description="The largest number of API requests a minute, of all keys together, by what they cost."
        ),
    ]


class TenantSummary(ResponseBody):
    """A tenant in a list."""

    tenant_id: TenantId
    name: Annotated[str, Meta(description="A name for people.")]
    created_at: Instant
    state: Annotated[
        Literal["active", "suspended", "deleting"],
        Meta(
            description="`suspended`: it may read, and nothing runs. `deleting`: all of it is being removed."
        ),
    ]
    note: Annotated[str, Meta(description="Why it is suspended.")]
    revision: Revision


class DamagedTenant(ResponseBody):
    """A tenant whose item in the list somebody has damaged."""

    tenant_id: TenantId
    problem: Annotated[str, Meta(description="What is wrong with the item.")]


class TenantPage(ResponseBody, kw_only=True):
    """Some tenants, in the order of their ids."""

    tenants: Annotated[list[TenantSummary], Meta(description="The tenants of this page.")]
    unreadable: Annotated[
        list[DamagedTenant] | None,
        Meta(description="Tenants whose items are damaged; absent: there are none."),
    ] = None
    next_cursor: NextCursor


class TenantView(TenantSummary):
    """A tenant: what the platform allows, and how much of it is used."""

    usage: Usage
    quotas: QuotaView
    allowed_targets: Annotated[list[str], Meta(description="Patterns; none allows nothing.")]
    retention_days: Annotated[int, Meta(description="How long runs are kept.")]
    spread_s: Annotated[
        int | None, Meta(description="The spread of jobs that name none; null: the platform's.")
    ]


class Tenant(TenantView):
    """Whose key it is, what the platform allows, and how much of it is used."""

    key: KeyInUse


class WebhookSecret(ResponseBody):
    """What signs calls of HTTP targets, as Standard Webhooks has it."""

    secret: Annotated[str, Meta(description="The secret: `whsec_` and base64.", examples=["whsec_…"])]


class Removed(ResponseBody):
    """How many items went, at least."""

    keys: Annotated[int, Meta(description="API keys.")]
    jobs: Annotated[int, Meta(description="Jobs.")]
    runs: Annotated[int, Meta(description="Runs.")]
    others: Annotated[int, Meta(description="Calendars, backfills, the audit, the webhook secret, counters.")]


class RebuiltRuns(ResponseBody):
    """A step of writing down a tenant's runs by time again."""

    runs_read: Annotated[int, Meta(description="The runs that this step has read.")]
    next_cursor: NextCursor


class TenantDeletion(ResponseBody):
    """How far the removal of a tenant is."""

    tenant_id: TenantId
    state: Annotated[
        Literal["waiting", "removing", "finished"],
        Meta(
            description="`waiting`: stopped; a minute passes until every process knows, and only keys go before."
        ),
    ]
    by: Annotated[str, Meta(description="Who began it, as the audit names them.")]
    started_at: Instant
    finished_at: Instant | None
    jobs_registered: Annotated[int, Meta(description="How many were registered when it began.")]
    removed: Removed


_KeyName = Annotated[
    Annotated[str, Meta(max_length=NAME_CHARS)] | None,
    Meta(description="What it is for.", examples=["dashboard"]),
]
_Expiry = Annotated[RequestedInstant | None, Meta(description="When it expires; never if left out.")]


class NewOperatorKey(RequestBody):
    """A key of the platform's own."""

    name: _KeyName = None
    expires_at: _Expiry = None


class NewKey(NewOperatorKey, kw_only=True):
    """A key of a tenant."""

    role: Annotated[
        Literal["read", "write", "admin"],
        Meta(description="Each may do what those before it may."),
    ]
    aws: Annotated[
        bool, Meta(description="A pair with which AWS's SDKs sign requests to the EventBridge endpoint.")
    ] = False


class KeyView(ResponseBody):
    """What is known of a key: all but the key."""

    key_id: Annotated[str, Meta(description="The key's id. It is not secret.")]
    name: Annotated[str, Meta(description="What the key is for.")]
    role: Annotated[
        Literal["read", "write", "admin", "operator"],
        Meta(description="What the key may do; `operator` keys belong to the platform."),
    ]
    prefix: Annotated[str, Meta(description="How the key begins.", examples=["m8_0aB1c"])]
    access_key_id: Annotated[str | None, Meta(description="Of a pair for AWS's SDKs.")]
    state: Annotated[
        Literal["active", "expired", "revoked"], Meta(description="Whether the key is accepted.")
    ]
    created_at: Instant
    expires_at: Annotated[
        Instant | None, Meta(description="When it ends; of a revoked one, when it leaves the list.")
    ]
    revoked_at: Instant | None


class MadeKey(KeyView):
    """A new key. It is not stored, and shown in this answer alone."""

    key: Annotated[str, Meta(description="The key; of a pair, its secret access key.", examples=["m8_…"])]


class KeyPage(ResponseBody):
    """Some keys, oldest first; revoked ones stay listed for 30 days."""

    keys: Annotated[list[KeyView], Meta(description="The keys of this page.")]
    next_cursor: NextCursor


class AuditedRequest(ResponseBody):
    """A request of AWS's API that made a change."""

    operation: Annotated[str, Meta(description="AWS's name of it.", examples=["scheduler:CreateSchedule"])]
    source_address: Annotated[
        str, Meta(description="The IP address that it came from.", examples=["192.0.2.1"])
    ]


class AuditEntry(ResponseBody, kw_only=True):
    """One change."""

    entry_id: Annotated[str, Meta(description="The entry's id.")]
    at: Instant
    by: Annotated[
        str,
        Meta(
            description="The key's id; `operator:` and a key's id; `aws`: with AWS credentials; "
            "`minute8`: Minute8 itself."
        ),
    ]
    by_name: Annotated[str | None, Meta(description="The name of that key, if it has one and is listed.")] = (
        None
    )
    action: Annotated[
        str,
        Meta(
            description="What was done: the kind of the subject, a dot and a verb.", examples=["job.paused"]
        ),
    ]
    subject: Annotated[str, Meta(description="The id of what was changed; of a run, its job's.")]
    before: Annotated[
        dict[str, Any],
        Meta(
            description="What it was, of what differs; payloads and headers as `hmac`, long values as size and hash."
        ),
    ]
    after: Annotated[dict[str, Any], Meta(description="What it became, of what differs.")]
    request: Annotated[
        AuditedRequest | None, Meta(description="The request to EventBridge's API that made the change.")
    ] = None


class AuditPage(ResponseBody):
    """Some changes, newest first."""

    entries: Annotated[list[AuditEntry], Meta(description="The changes of this page, newest first.")]
    next_cursor: NextCursor
