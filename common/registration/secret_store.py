"""Stores, lists and deletes a tenant's secrets. Nothing reads a value back."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Final

from msgspec import to_builtins

from common.cache import convert
from common.errors import Conflict
from common.ids import SECRET_NAME_CHARS, check_id
from common.jobs.preconditions import NamedDeletion, named_secrets
from common.limits import MAX_TENANT_SECRETS
from common.storage import keys
from common.storage.aws import readable
from common.storage.conflicts import retry_if_changed
from common.storage.expressions import ABSENT, Attribute, Condition
from common.storage.stored import read
from common.storage.table import Query, Table
from common.storage.transactions import Addition, Transaction
from common.storage.wire import Item
from common.tenants.audit import AuditedCommit
from common.tenants.secrets import Secret, SecretKey, check_value

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
        # After the checks of an attempt, and once for all attempts.
        encrypted = cache(partial(self.key.encrypted, tenant, name, checked))

        def attempt() -> Secret:
            addition = Addition(self.tenants, keys.additions(tenant, "secrets"))
            item = self.tenants.get(keys.secret(tenant, name))
            before = read(item, Secret) if item else None
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
            new: Item = {**keys.secret(tenant, name), **to_builtins(secret), "value": encrypted()}
            tx.put(self.tenants, new, _unchanged(before))
            revisions = ({"revision": secret.revision - 1} if before else {}, {"revision": secret.revision})
            self.audited.commit(
                tx, tenant, "secret.stored", name, now, before=revisions[0], after=revisions[1]
            )
            return secret

        return retry_if_changed(attempt, f"secret {name!r}", sleep=self.audited.clock.sleep)

    def _check_room(self, tenant: str) -> None:
        if len(self.listed(tenant)) >= MAX_TENANT_SECRETS:
            raise Conflict(f"there are {MAX_TENANT_SECRETS} secrets, which are the most; delete one before")

    def listed(self, tenant: str) -> list[Secret]:
        """All secrets of the tenant, in the order of their names."""
        shown = ("name", "revision", "created_at", "updated_at")
        query = Query(tenant, sk_prefix=keys.SECRET_PREFIX, limit=MAX_TENANT_SECRETS, attributes=shown)
        return list(readable(self.tenants.query(query), lambda stored: convert(stored, Secret)))

    def delete(self, tenant: str, name: str, now: float) -> None:
        """Delete a secret that no job names. Reads the tenant's jobs. Runs do not find it after a minute.

        Raises what `NamedDeletion.delete` raises.
        """
        deletion = NamedDeletion(
            of=named_secrets(self.tenants),
            jobs=self.jobs,
            read=("secrets",),
            is_named=lambda job, secret: secret in job.get("secrets", ()),
            audit_view=lambda item: {"revision": item["revision"]},
            advice="change them before, or put another value",
        )
        deletion.delete(tenant, name, now, self.audited)


def _unchanged(before: Secret | None) -> Condition:
    return Attribute("revision") == before.revision if before else ABSENT
