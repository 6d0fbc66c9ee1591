"""Stores, lists and deletes a tenant's secrets. Nothing reads a value back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from common.errors import Conflict, NotFound
from common.ids import SECRET_NAME_CHARS, check_id
from common.storage import keys
from common.storage.conflicts import ConditionFailed, TransactionConflict, retry_on_conflict
from common.storage.table import Addition, Query, Table, Transaction
from common.storage.wire import Expression, Item
from common.tenants.audit import AuditedCommit
from common.tenants.secrets import Secret, SecretKey, check_value

MAX_TENANT_SECRETS: Final = 100
# How many of the jobs that name the secret an error shows.
_NAMED_JOBS: Final = 3
OFF: Final = "this deployment keeps no secrets: its parameter secretsKey is off (docs/deploying.md)"


@dataclass(frozen=True, slots=True)
class SecretStore:
    """The secrets that a tenant can change; `audited` audits changes, without values. Without a key none can be put."""

    tenants: Table
    jobs: Table
    key: SecretKey | None
    audited: AuditedCommit

    def put(self, tenant: str, name: str, value: object, now: float) -> Secret:
        """Store a secret, or replace its value. Raises InvalidInput, Conflict, Busy."""
        check_id("name", name, SECRET_NAME_CHARS)
        checked = check_value(value)
        if self.key is None:
            raise Conflict(OFF)
        encrypted = self.key.encrypted(tenant, name, checked)

        def attempt() -> Secret:
            addition = Addition(self.tenants, keys.additions(tenant, "secrets"))
            item = self.tenants.get(keys.secret(tenant, name))
            before = Secret.from_item(item) if item else None
            tx = Transaction(self.tenants.client)
            if before is None:
                self._check_room(tenant)
                addition.note(tx)
            secret = Secret(
                name,
                before.revision + 1 if before else 1,
                before.created_at if before else int(now),
                int(now),
            )
            new: Item = {**keys.secret(tenant, name), **secret.to_item(), "value": encrypted}
            tx.put(self.tenants, new, _unchanged(before))
            revisions = ({"revision": secret.revision - 1} if before else {}, {"revision": secret.revision})
            self.audited.commit(
                tx, tenant, "secret.stored", name, now, before=revisions[0], after=revisions[1]
            )
            return secret

        conflicts = (ConditionFailed, TransactionConflict)
        return retry_on_conflict(attempt, f"secret {name!r}", on=conflicts, sleep=self.audited.clock.sleep)

    def _check_room(self, tenant: str) -> None:
        if len(self.listed(tenant)) >= MAX_TENANT_SECRETS:
            raise Conflict(f"there are {MAX_TENANT_SECRETS} secrets, which are the most; delete one before")

    def listed(self, tenant: str) -> list[Secret]:
        """All secrets of the tenant, in the order of their names."""
        shown = ("name", "revision", "created_at", "updated_at")
        query = Query(tenant, sk_prefix=keys.SECRET_PREFIX, limit=MAX_TENANT_SECRETS, attributes=shown)
        return [Secret.from_item(item) for item in self.tenants.query(query)]

    def delete(self, tenant: str, name: str, now: float) -> None:
        """Delete a secret that no job names. Reads the tenant's jobs. Runs do not find it after a minute.

        Raises NotFound, Busy; Conflict if jobs name it, or it was put meanwhile.
        """
        item = self.tenants.get(keys.secret(tenant, name))
        if item is None:
            raise NotFound("secret", name)
        if job_ids := list(islice(self._naming(tenant, name), _NAMED_JOBS)):
            raise Conflict(
                f"secret {name!r} is named by jobs: {', '.join(job_ids)}; change them before, or put another value"
            )
        tx = Transaction(self.tenants.client)
        before = Secret.from_item(item)
        tx.delete(self.tenants, keys.secret(tenant, name), _unchanged(before))
        try:
            self.audited.commit(tx, tenant, "secret.deleted", name, now, before={"revision": before.revision})
        except ConditionFailed:
            raise Conflict(f"secret {name!r} was put or deleted by another request") from None

    def _naming(self, tenant: str, name: str) -> Iterator[str]:
        with_secrets = Expression("attribute_exists(#secrets)", {})
        query = Query(tenant, sk_prefix=keys.JOB_PREFIX, where=with_secrets, attributes=("job_id", "secrets"))
        return (item["job_id"] for item in self.jobs.query(query) if name in item["secrets"])


def _unchanged(before: Secret | None) -> Expression:
    if before is None:
        return Expression("attribute_not_exists(pk)", {})
    return Expression("#revision = :before", {":before": before.revision})
