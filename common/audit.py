"""The audit: who changed what of a tenant's, from what, to what, and when. Written with the change itself.

An entry is part of the change's own transaction, so that there is none without the other. It holds only the fields that
changed; what is long (a payload) is told by its size and hash, which is enough to see that it changed and to compare.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from common import keys
from common.tables import Item, Table, Transaction

KEPT_S: Final = 400 * 86_400
# Who it was, where it was no key: somebody with AWS credentials, or Minute8 itself.
AWS: Final = "aws"
_LONGEST_VALUE: Final = 1_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One change. `by` is a key's id, `operator:` and a key's id, or `aws`; `before` and `after` hold what differs."""

    entry_id: str
    at: float
    by: str
    action: str
    subject: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Audit:
    """The entries of all tenants, in the tenants table."""

    table: Table

    def add(
        self,
        tx: Transaction,
        tenant: str,
        by: str,
        action: str,
        subject: str,
        now: float,
        *,
        before: Mapping[str, Any] | None = None,
        after: Mapping[str, Any] | None = None,
    ) -> None:
        """Have `tx` write an entry too."""
        tx.put(self.table, self._item(tenant, by, action, subject, now, before or {}, after or {}))

    def _item(
        self,
        tenant: str,
        by: str,
        action: str,
        subject: str,
        now: float,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
    ) -> Item:
        was, became = differing(before, after)
        # The time first, so that they sort; then chance, for two changes within a millisecond.
        entry_id = f"{int(now * 1000):013d}-{secrets.token_hex(4)}"
        return {
            **keys.audit(tenant, entry_id),
            "at": now,
            "by": by,
            "action": action,
            "subject": subject,
            "before": _text(was),
            "after": _text(became),
            "expires_at": int(now) + KEPT_S,
        }

    def newest(self, tenant: str, limit: int, before_id: str = "") -> Iterator[Entry]:
        """A tenant's entries, newest first, from behind `before_id`."""
        items = self.table.query(
            tenant,
            sk_prefix=keys.AUDIT_PREFIX,
            after=keys.audit(tenant, before_id) if before_id else None,
            newest_first=True,
            limit=limit,
        )
        return (_entry(item) for item in items)


def differing(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields that are not the same in both, as each had them. Pure."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return (
        {name: _shown(before[name]) for name in names if before.get(name) is not None},
        {name: _shown(after[name]) for name in names if after.get(name) is not None},
    )


def _shown(value: Any) -> Any:
    text = _text(value)
    if len(text) <= _LONGEST_VALUE:
        return value
    data = text.encode()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def _entry(item: Item) -> Entry:
    return Entry(
        entry_id=item["sk"].removeprefix(keys.AUDIT_PREFIX),
        at=item["at"],
        by=item["by"],
        action=item["action"],
        subject=item["subject"],
        before=json.loads(item["before"]),
        after=json.loads(item["after"]),
    )
