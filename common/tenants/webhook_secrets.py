"""Each tenant's webhook secret, and the signature made with it, as Standard Webhooks has it.

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
from common.storage import keys
from common.storage.tables import ConditionFailed, Expression, Item, Table, Transaction
from common.tenants.audit import AWS, Audit, AuditedCommit
from common.timing.instants import DAY_S

PREFIX: Final = "whsec_"
_SECRET_BYTES: Final = 32  # Standard Webhooks requires 24 to 64
# How long calls carry both signatures after a rotation, so that a receiver can change over at any time.
ROTATION_S: Final = DAY_S
# Executors use a new secret after this time at the latest.
TRUSTED_FOR_S: Final = 60
_MOST_KNOWN: Final = 10_000


class WebhookSecrets:
    """The secrets of all tenants, in the tenants table. Use one instance per process."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: Cache[str, Item] = Cache(TRUSTED_FOR_S, _MOST_KNOWN)

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
        except ConditionFailed as there:
            return str((there.existing or {})["secret"])
        return fresh

    def rotate(self, tenant: str, now: float, *, by: str = AWS) -> str:
        """Create a new secret; the old one still signs for a day. Raises Busy."""
        before = self._table.get(keys.webhook_secret(tenant)) or {}
        fresh = new_secret()
        item: Item = {**keys.webhook_secret(tenant), "secret": fresh, "created_at": int(now)}
        if "secret" in before:
            item |= {"previous": before["secret"], "previous_until": int(now) + ROTATION_S}
        tx = Transaction(self._table.client)
        tx.put(self._table, item)
        self._commit(tx, tenant, by, "webhook_secret.rotated", now)
        return fresh

    def _commit(self, tx: Transaction, tenant: str, by: str, action: str, now: float) -> None:
        """Commit with an audit entry, which does not contain the secret."""
        AuditedCommit(Audit(self._table), by).commit(tx, tenant, action, tenant, now)

    def signing(self, tenant: str, now: float) -> tuple[str, ...]:
        """The secrets that sign a call now, newest first; empty if the tenant never had one."""
        known = self._known.get(tenant, now)
        item = known.value if known else self._read(tenant, now)
        if item is None:
            return ()
        previous = (item["previous"],) if item.get("previous_until", 0) > now else ()
        return (item["secret"], *previous)

    def _read(self, tenant: str, now: float) -> Item | None:
        item = self._table.get(keys.webhook_secret(tenant))
        if item:  # a missing one is read again, because it may be made at any time
            self._known.put(tenant, item, now)
        return item


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def signature(signing: Iterable[str], webhook_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` header: one signature per secret. `webhook_id` must not contain a full stop."""
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    return " ".join(
        "v1," + base64.b64encode(hmac.digest(_key(secret), signed, hashlib.sha256)).decode()
        for secret in signing
    )


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
