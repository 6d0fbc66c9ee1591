"""Signs calls with each tenant's webhook secret, as Standard Webhooks has it. Nothing here changes a secret.

A receiver verifies `webhook-signature` over `<webhook-id>.<webhook-timestamp>.<body>` with any of its libraries.
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable
from typing import Final

from common.cache import Cache
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import Item

PREFIX: Final = "whsec_"
# Executors use a new secret after this time at the latest.
TRUSTED_FOR_S: Final = 60
_MAX_KNOWN: Final = 10_000


class SigningSecrets:
    """The secrets of all tenants, in the tenants table. Use one instance per process."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: Cache[str, Item] = Cache(TRUSTED_FOR_S, _MAX_KNOWN)

    def signing(self, tenant: str, now: float) -> tuple[str, ...]:
        """The secrets that sign a call now, newest first; empty if the tenant never had one."""
        known = self._known.get(tenant, now)
        item = known.value if known else self._read(tenant, now)
        return (item["secret"], *(one["secret"] for one in old_secrets(item, now))) if item else ()

    def _read(self, tenant: str, now: float) -> Item | None:
        item = self._table.get(keys.webhook_secret(tenant))
        if item:  # a missing one is read again, because it may be made at any time
            self._known.put(tenant, item, now)
        return item


def old_secrets(item: Item, now: float) -> list[Item]:
    """The replaced secrets that still sign: each `secret` and its `until`, newest first."""
    previous = {"secret": item.get("previous"), "until": item.get("previous_until", 0)}
    return [one for one in (previous, *item.get("earlier", ())) if one["until"] > now]


def signature(signing: Iterable[str], webhook_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` header: one signature per secret. `webhook_id` must not contain a full stop."""
    signed = f"{webhook_id}.{timestamp}.".encode() + body
    return " ".join(
        "v1," + base64.b64encode(hmac.digest(_key(secret), signed, hashlib.sha256)).decode()
        for secret in signing
    )


def _key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
