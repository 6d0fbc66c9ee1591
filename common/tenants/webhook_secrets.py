"""Each tenant's webhook secret signs its calls, as Standard Webhooks has it.

A receiver verifies `webhook-signature` over `<webhook-id>.<webhook-timestamp>.<body>` with any of its libraries.
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md

The secret is stored in plain text, because signing needs it; DynamoDB encrypts the table at rest.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from typing import Final

from common.cache import Cache
from common.errors import Conflict
from common.storage import keys
from common.storage.conflicts import ConditionFailed, retry_on_conflict
from common.storage.table import Table, Transaction
from common.storage.wire import Expression, Item
from common.tenants.audit import AWS, Audit, AuditedCommit
from common.timing.instants import DAY_S, rfc3339

PREFIX: Final = "whsec_"
# Executors use a new secret after this time at the latest.
TRUSTED_FOR_S: Final = 60
_MAX_KNOWN: Final = 10_000
_SECRET_BYTES: Final = 32  # Standard Webhooks requires 24 to 64
# After a rotation, calls carry both signatures for this time, so a receiver can change over at any moment.
ROTATION_S: Final = DAY_S
# Each adds 48 bytes to the header of a call.
MAX_OLD_SECRETS: Final = 3


class SigningSecrets:
    """The secrets of all tenants, in the tenants table. Use one instance per process."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: Cache[str, Item] = Cache(TRUSTED_FOR_S, _MAX_KNOWN)

    def signing(self, tenant: str, now: float) -> tuple[str, ...]:
        """The secrets that sign a call now, newest first; empty if the tenant never had one."""
        known = self._known.get(tenant, now)
        item = known.value if known else self._read(tenant, now)
        return (item["secret"], *(old["secret"] for old in old_secrets(item, now))) if item else ()

    def _read(self, tenant: str, now: float) -> Item | None:
        item = self._table.get(keys.webhook_secret(tenant))
        if item:  # a missing one is read again, because it may be made at any time
            self._known.put(tenant, item, now)
        return item


class WebhookSecrets(SigningSecrets):
    """The secrets of all tenants, for those that also make and rotate them."""

    def ensure(self, tenant: str, now: float, *, by: str = AWS) -> str:
        """The tenant's secret; created if it has none. Raises Busy."""
        if item := self._table.get(keys.webhook_secret(tenant)):
            return str(item["secret"])
        fresh = new_secret()
        tx = Transaction(self._table.client)
        item = {**keys.webhook_secret(tenant), "secret": fresh, "created_at": int(now)}
        tx.put(self._table, item, Expression("attribute_not_exists(pk)", {}))
        try:
            self._commit(tx, tenant, by, "webhook_secret.made", now)
        except ConditionFailed as conflict:
            return str((conflict.existing or {})["secret"])
        return fresh

    def rotate(self, tenant: str, now: float, *, by: str = AWS) -> str:
        """Create a new secret; the old one signs for another day. Raises Busy; Conflict if too many old ones sign."""
        fresh = new_secret()

        def attempt() -> str:
            before = self._table.get(keys.webhook_secret(tenant))
            item: Item = {**keys.webhook_secret(tenant), "secret": fresh, "created_at": int(now)}
            unchanged = Expression("attribute_not_exists(pk)", {})
            if before:
                olds = old_secrets(before, now)
                if len(olds) >= MAX_OLD_SECRETS:
                    raise Conflict(
                        f"{MAX_OLD_SECRETS} replaced secrets still sign, which are the most;"
                        f" the first of them ends at {rfc3339(olds[-1]['until'])}, rotate then"
                    )
                item |= {"previous": before["secret"], "previous_until": int(now) + ROTATION_S}
                if olds:
                    item["earlier"] = olds
                unchanged = Expression("#secret = :before", {":before": before["secret"]})
            tx = Transaction(self._table.client)
            tx.put(self._table, item, unchanged)
            self._commit(tx, tenant, by, "webhook_secret.rotated", now)
            return fresh

        return retry_on_conflict(attempt, "the webhook secret", on=(ConditionFailed,))

    def _commit(self, tx: Transaction, tenant: str, by: str, action: str, now: float) -> None:
        """Commit with an audit entry, which does not contain the secret."""
        AuditedCommit(Audit(self._table), by).commit(tx, tenant, action, tenant, now)


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def old_secrets(item: Item, now: float) -> list[Item]:
    """The replaced secrets that still sign: each `secret` and its `until`, newest first."""
    previous = {"secret": item.get("previous"), "until": item.get("previous_until", 0)}
    return [secret for secret in (previous, *item.get("earlier", ())) if secret["until"] > now]


def signature(signing: Iterable[str], webhook_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` header: one signature per secret. `webhook_id` must not contain a full stop."""
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    return " ".join(
        "v1," + base64.b64encode(hmac.digest(_key(secret), signed, hashlib.sha256)).decode()
        for secret in signing
    )


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
