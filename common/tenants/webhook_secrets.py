"""Each tenant's webhook secret: made and rotated. `webhook_signing.py` signs with it.

The secret is stored in plain text, because signing needs it; DynamoDB encrypts the table at rest.
"""

from __future__ import annotations

import base64
import secrets
from typing import Final

from common.errors import Conflict
from common.storage import keys
from common.storage.conflicts import ConditionFailed, retry_on_conflict
from common.storage.table import Transaction
from common.storage.wire import Expression, Item
from common.tenants.audit import AWS, Audit, AuditedCommit
from common.tenants.webhook_signing import PREFIX, SigningSecrets, old_secrets
from common.timing.instants import DAY_S, rfc3339

_SECRET_BYTES: Final = 32  # Standard Webhooks requires 24 to 64
# How long calls carry both signatures after a rotation, so that a receiver can change over at any time.
ROTATION_S: Final = DAY_S
# How many replaced secrets sign at most. Each makes the header of a call longer by 48 bytes.
MAX_OLD: Final = 3


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
        except ConditionFailed as there:
            return str((there.existing or {})["secret"])
        return fresh

    def rotate(self, tenant: str, now: float, *, by: str = AWS) -> str:
        """Create a new secret; the old one still signs for a day. Raises Conflict (MAX_OLD still sign), Busy."""
        fresh = new_secret()

        def attempt() -> str:
            before = self._table.get(keys.webhook_secret(tenant))
            item: Item = {**keys.webhook_secret(tenant), "secret": fresh, "created_at": int(now)}
            unchanged = Expression("attribute_not_exists(pk)", {})
            if before:
                olds = old_secrets(before, now)
                if len(olds) >= MAX_OLD:
                    raise Conflict(
                        f"{MAX_OLD} replaced secrets still sign, which are the most;"
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
