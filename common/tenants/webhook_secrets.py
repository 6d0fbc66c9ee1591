"""Each tenant's webhook secret signs its calls, as Standard Webhooks has it.

A receiver verifies `webhook-signature` over `<webhook-id>.<webhook-timestamp>.<body>` with any of its libraries.
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md

Where the deployment has a key for secrets, KMS encrypts each that is written: its text begins with ENCRYPTED. Without a
key secrets are stored in plain text. DynamoDB encrypts the table at rest.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable, Iterable
from math import inf
from typing import TYPE_CHECKING, Final

from common.cache import Cache, JointReads
from common.errors import Busy, Conflict
from common.storage import keys
from common.storage.conflicts import retry_if_changed
from common.storage.expressions import ABSENT, unchanged
from common.storage.table import Table
from common.storage.transactions import Transaction
from common.storage.wire import Item
from common.tenants.audit import AWS, Audit, AuditedCommit
from common.timing.instants import DAY_S, rfc3339

if TYPE_CHECKING:
    from common.tenants.secrets import SecretKey

PREFIX: Final = "whsec_"
ENCRYPTED: Final = "kms:"
# Of the encryption context (common/tenants/secrets.py).
KIND: Final = "use"
NAME: Final = "webhook-signature"
# A key that is disabled has an effect after this time at the latest.
DECRYPTED_FOR_S: Final = 3_600
# Executors use a new secret after this time at the latest.
TRUSTED_FOR_S: Final = 60
_MAX_KNOWN: Final = 10_000
_SECRET_BYTES: Final = 32  # Standard Webhooks requires 24 to 64
# After a rotation, calls carry both signatures for this time, so a receiver can change over at any moment.
ROTATION_S: Final = DAY_S
# Each adds 48 bytes to the header of a call.
MAX_OLD_SECRETS: Final = 3


class SigningSecrets:
    """The secrets of all tenants, in the tenants table. Use one instance per process.

    `key` is asked for the deployment's key when a secret is encrypted, or is to be.
    """

    def __init__(self, table: Table, key: Callable[[], SecretKey | None]) -> None:
        self._table = table
        self._key = key
        # Each secret with the end of its time.
        self._known: Cache[str, tuple[tuple[str, float], ...]] = Cache(TRUSTED_FOR_S, _MAX_KNOWN)
        self._decrypted: Cache[tuple[str, str], str] = Cache(DECRYPTED_FOR_S, _MAX_KNOWN)
        self._reads: JointReads[str, tuple[tuple[str, float], ...]] = JointReads()

    def signing(self, tenant: str, now: float) -> tuple[str, ...]:
        """The secrets that sign a call now, newest first; empty if the tenant never had one.

        Raises Busy if one cannot be decrypted, and what a read raises.
        """
        known = self._known.get(tenant, now)
        signing = known.value if known else self._reads.get(tenant, lambda: self._read(tenant, now))
        return tuple(secret for secret, until in signing if until > now)

    def _read(self, tenant: str, now: float) -> tuple[tuple[str, float], ...]:
        item = self._table.get(keys.webhook_secret(tenant))
        if not item:  # read again, because one may be made at any time
            return ()
        stored = ((_newest(item), inf), *((old["secret"], old["until"]) for old in old_secrets(item, now)))
        signing = tuple((self._value(tenant, text, now), until) for text, until in stored)
        self._known.put(tenant, signing, now)
        return signing

    def _value(self, tenant: str, stored: str, now: float) -> str:
        """The secret of a stored text. Raises Busy."""
        if not stored.startswith(ENCRYPTED):
            return stored
        if known := self._decrypted.get((tenant, stored), now):
            return known.value
        key = self._key()
        if key is None:
            raise Busy("the webhook secret is encrypted, and the deployment's parameter secretsKey is off")
        value = key.decrypted(tenant, NAME, stored.removeprefix(ENCRYPTED), KIND)
        self._decrypted.put((tenant, stored), value, now)
        return value


class WebhookSecrets(SigningSecrets):
    """The secrets of all tenants, for those that also make and rotate them."""

    def ensure(self, tenant: str, now: float, *, by: str = AWS) -> str:
        """The stored text of the tenant's newest secret; created if it has none. Raises Busy."""
        if item := self._table.get(keys.webhook_secret(tenant)):
            return _newest(item)
        tx, item = Transaction(self._table.client), self._item(tenant, new_secret(), now)
        tx.put(self._table, item, ABSENT)
        refused = self._audited(by).try_commit(tx, tenant, "webhook_secret.made", tenant, now)
        return _newest((refused.existing or {}) if refused else item)

    def shown(self, tenant: str, now: float, *, by: str = AWS) -> str:
        """The tenant's newest secret; created if it has none. Raises Busy."""
        return self._value(tenant, self.ensure(tenant, now, by=by), now)

    def rotate(self, tenant: str, now: float, *, by: str = AWS) -> str:
        """Create a new secret; the old one signs for another day. Raises Busy; Conflict if too many old ones sign."""
        fresh = new_secret()

        def attempt() -> str:
            before = self._table.get(keys.webhook_secret(tenant))
            olds = old_secrets(before, now) if before else []
            if len(olds) >= MAX_OLD_SECRETS:
                raise Conflict(
                    f"{MAX_OLD_SECRETS} replaced secrets still sign, which are the most;"
                    f" the first of them ends at {rfc3339(olds[-1]['until'])}, rotate then"
                )
            item = self._item(tenant, fresh, now)
            if before:
                previous = self._stored(tenant, _newest(before))
                item |= {"previous": previous, "previous_until": int(now) + ROTATION_S}
                if olds:
                    item["earlier"] = [{**old, "secret": self._stored(tenant, old["secret"])} for old in olds]
            tx = Transaction(self._table.client)
            tx.put(self._table, item, unchanged(before, "secret"))
            self._audited(by).commit(tx, tenant, "webhook_secret.rotated", tenant, now)
            return fresh

        return retry_if_changed(attempt, "the webhook secret")

    def _item(self, tenant: str, secret: str, now: float) -> Item:
        stored = self._stored(tenant, secret)
        return {**keys.webhook_secret(tenant), "secret": stored, "created_at": int(now)}

    def _stored(self, tenant: str, text: str) -> str:
        """The text to store of a secret, or of a stored text: encrypted, if there is a key. Raises Busy."""
        key = None if text.startswith(ENCRYPTED) else self._key()
        return ENCRYPTED + key.encrypted(tenant, NAME, text, KIND) if key else text

    def _audited(self, by: str) -> AuditedCommit:
        """Commits with an audit entry, which does not contain the secret."""
        return AuditedCommit(Audit(self._table), by)


def _newest(item: Item) -> str:
    """The stored text of the newest secret."""
    return str(item["secret"])


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
