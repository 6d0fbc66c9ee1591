"""`minute8 audit`: who changed what."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from common.timing.instants import relative
from minute8.cli import output
from minute8.cli.options import AsJson, Limit, Since, Until, with_options
from minute8.cli.output import console, print_json
from minute8.cli.platform import Stage, platform
from minute8.cli.rest_of_list import listed
from minute8.cli.session import session
from minute8.cli.time_range import range_of
from minute8.client import AuditEntry

# --json shows everything.
_MAX_VALUE_CHARS, _MAX_CHANGE_CHARS = 40, 90


@dataclass(frozen=True, slots=True)
class AuditFilters:
    """Which entries."""

    platforms: Annotated[
        bool, typer.Option("--platform", help="The platform's own audit: operator keys and deleted tenants.")
    ] = False
    subject: Annotated[
        str | None, typer.Option(help="Only changes of the job, calendar or key with this id.")
    ] = None
    action: Annotated[str | None, typer.Option(help="Only this action, job.paused, or this kind, job.")] = (
        None
    )
    since: Since = None
    until: Until = None
    limit: Limit = 20


@with_options
def audit(
    ctx: typer.Context,
    tenant_id: Annotated[
        str | None,
        typer.Argument(
            metavar="[TENANT]", help="For operators: the tenant's id; your own tenant if left out."
        ),
    ] = None,
    *,
    filters: AuditFilters,
    stage: Stage = None,
    as_json: AsJson = False,
) -> None:
    """List who changed what, newest first: of your own tenant, with an admin key; for the platform of any."""
    now = session(ctx).clock.now()
    from_at, until_at = range_of(filters.since, filters.until, now)
    query = {
        "subject": filters.subject,
        "action": filters.action,
        "from_at": from_at,
        "until_at": until_at,
    }
    if tenant_id is None and not filters.platforms:
        with session(ctx).client() as client:
            entries = listed(ctx, client.list_audit(**query), filters.limit, "changes")
    else:
        with platform(ctx, stage) as api:
            read = (
                api.list_audit_of_tenant(tenant_id, **query)
                if tenant_id
                else api.list_operator_audit(**query)
            )
            entries = listed(ctx, read, filters.limit, "changes")
    if as_json:
        print_json(entries)
        return
    rows = [
        (
            entry["at"],
            relative(entry["at"], now),
            entry.get("by_name", entry["by"]),
            entry["action"],
            entry["subject"],
            _change(entry),
        )
        for entry in entries
    ]
    columns = ("AT", "", "BY", "ACTION", "OF", "CHANGE")
    console().print(output.table(columns, rows) if rows else "no changes")


def _change(entry: AuditEntry) -> str:
    """timeout_s: 3 → 5, note: maintenance."""
    before, after = entry["before"], entry["after"]
    change = ", ".join(
        f"{name}: {' → '.join(_short(side[name]) for side in (before, after) if side.get(name, '') != '')}"
        for name in {**before, **after}
        if name != "revision"
    )
    if request := entry.get("request"):
        change = f"{request['operation']} from {request['source_address']}; {change}"
    return _cut(change, _MAX_CHANGE_CHARS)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return _cut(text, _MAX_VALUE_CHARS)


def _cut(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"
