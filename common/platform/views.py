"""Tenants, their keys and their audit as JSON, for the API and for commands with AWS credentials. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import structs

from common.platform.api_keys import ApiKey
from common.platform.deletion import Deletion
from common.platform.run_again import OfJob, Plan
from common.runs.unrecorded import UnrecordedExecution
from common.tenants.allowed_targets import Block
from common.tenants.audit import Entry
from common.tenants.tenant import Tenant
from common.timing.instants import rfc3339


def tenant_view(tenant: Tenant) -> dict[str, Any]:
    """A tenant: its rules, and how much of its quotas it uses."""
    return {
        **tenant_summary(tenant),
        "usage": {"jobs": tenant.jobs, "executions_per_day": tenant.executions_per_day},
        "quotas": structs.asdict(tenant.quotas),
        "allowed_targets": tenant.allowed_targets,
        "retention_days": tenant.retention_days,
        "spread_s": tenant.spread_s,
    }


def tenant_summary(tenant: Tenant) -> dict[str, Any]:
    """A tenant in a list: only what the list item holds, so that a page stays small enough."""
    return {
        "tenant_id": tenant.tenant_id,
        "name": tenant.name,
        "created_at": rfc3339(tenant.created_at),
        "state": tenant.state,
        "note": tenant.note,
        "revision": tenant.revision,
    }


def deletion_view(deletion: Deletion, now: float) -> dict[str, Any]:
    """The progress of the removal of a tenant."""
    return {
        "tenant_id": deletion.tenant_id,
        "state": deletion.state(now),
        "by": deletion.by,
        "started_at": rfc3339(deletion.started_at),
        "finished_at": rfc3339(deletion.finished_at) if deletion.finished_at is not None else None,
        "jobs_registered": deletion.jobs,
        "removed": deletion.removed,
    }


def key_view(key: ApiKey, now: float) -> dict[str, Any]:
    """A key, without the key itself, which is not stored."""
    instants = {
        name: rfc3339(at) if at is not None else None
        for name, at in (
            ("created_at", key.created_at),
            ("expires_at", key.expires_at),
            ("revoked_at", key.revoked_at),
        )
    }
    shown = {name: getattr(key, name) for name in ("key_id", "name", "role", "prefix", "access_key_id")}
    return shown | {"state": key.state(now)} | instants


def block_view(block: Block) -> dict[str, Any]:
    """A blocked pattern of targets."""
    return {
        "pattern": block.pattern,
        "note": block.note,
        "blocked_at": rfc3339(block.blocked_at),
        "by": block.by,
    }


def entry_view(entry: Entry, names: Mapping[str, str]) -> dict[str, Any]:
    """An entry of the audit; `names` of keys by `by`."""
    return {
        "entry_id": entry.entry_id,
        "at": rfc3339(entry.at),
        "by": entry.by,
        **({"by_name": names[entry.by]} if entry.by in names else {}),
        "action": entry.action,
        "subject": entry.subject,
        "before": _fields(entry.before),
        "after": _fields(entry.after),
        **({"request": dict(entry.request)} if entry.request else {}),
    }


def _fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: rfc3339(value) if name.endswith("_at") and isinstance(value, int | float) else value
        for name, value in fields.items()
    }


def unrecorded_view(unrecorded: UnrecordedExecution) -> dict[str, Any]:
    """An execution without a record."""
    execution = unrecorded.execution
    return {
        "execution_id": execution.execution_id,
        "tenant_id": execution.tenant,
        "job_id": execution.job_id,
        "fire_at": rfc3339(execution.fire_at),
        "due_at": rfc3339(execution.due_at),
        "found_at": rfc3339(unrecorded.found_at),
        "sent_at": rfc3339(unrecorded.sent_at) if unrecorded.sent_at is not None else None,
        "known_by": unrecorded.known_by or None,
    }


def of_jobs_view(jobs: Iterable[OfJob]) -> list[dict[str, Any]]:
    """Executions without a record, by job."""
    return [
        {
            "tenant_id": of_job.tenant,
            "job_id": of_job.job_id,
            "executions": of_job.executions,
            "first_due_at": rfc3339(of_job.first_due_at),
            "last_due_at": rfc3339(of_job.last_due_at),
            "sent_before": of_job.sent_before,
            "known_by": of_job.known_by,
        }
        for of_job in jobs
    ]


def ran_view(plan: Plan, *, dry_run: bool) -> dict[str, Any]:
    """Executions without a record that were sent again, or with `dry_run` would be."""
    return {
        "dry_run": dry_run,
        "sent": plan.ids,
        "jobs": of_jobs_view(plan.jobs),
        "known": plan.known,
        "recorded": plan.recorded,
    }
