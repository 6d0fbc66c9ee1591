"""The client of Minute8's HTTP API.

from minute8.client import Client

with Client("https://….execute-api.eu-west-1.amazonaws.com", "m8_…") as minute8:
    minute8.put_job("report", {"schedule": {"cron": "30 2 * * *", "timezone": "Europe/Paris"}, "target": {…}})

`AsyncClient` and `AsyncOperator` have the same methods, for asyncio.
"""

from typing import TYPE_CHECKING, Any

from minute8.client.client import Client, Operator
from minute8.client.errors import (
    AlreadyExists,
    Conflict,
    Forbidden,
    InvalidInput,
    LinesBusy,
    Minute8Problem,
    NotFound,
    QuotaExceeded,
    RevisionMismatch,
    TenantSuspended,
    Unauthenticated,
    Unavailable,
    Unreachable,
)
from minute8.client.jobs import definition_in
from minute8.client.shapes import (
    Attempt,
    AuditEntry,
    AuditPage,
    BulkLine,
    DayTotals,
    Fire,
    Fires,
    Job,
    JobPage,
    Key,
    MadeKey,
    Run,
    RunPage,
    RunSummary,
    Spread,
    Tenant,
    TenantDeletion,
    TenantRunPage,
    TenantSummary,
    TenantView,
    Totals,
)

if TYPE_CHECKING:
    from minute8.client.asynchronous import AsyncClient, AsyncOperator

__all__ = [
    "AlreadyExists",
    "AsyncClient",
    "AsyncOperator",
    "Attempt",
    "AuditEntry",
    "AuditPage",
    "BulkLine",
    "Client",
    "Conflict",
    "DayTotals",
    "Fire",
    "Fires",
    "Forbidden",
    "InvalidInput",
    "Job",
    "JobPage",
    "Key",
    "LinesBusy",
    "MadeKey",
    "Minute8Problem",
    "NotFound",
    "Operator",
    "QuotaExceeded",
    "RevisionMismatch",
    "Run",
    "RunPage",
    "RunSummary",
    "Spread",
    "Tenant",
    "TenantDeletion",
    "TenantRunPage",
    "TenantSummary",
    "TenantSuspended",
    "TenantView",
    "Totals",
    "Unauthenticated",
    "Unavailable",
    "Unreachable",
    "definition_in",
]


def __getattr__(name: str) -> Any:
    """The asynchronous clients are loaded when they are first used: blocking programs do not need asyncio."""
    if name not in ("AsyncClient", "AsyncOperator"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from minute8.client import asynchronous

    return getattr(asynchronous, name)
