"""Seals the audit, once an hour: for each tenant the entries that have settled (common/tenants/audit_chain.py).

A step seals a page of the tenants. With a bucket, the newest hash of each tenant that got a
seal goes there before the step counts as done: an object with a lock is what nobody can rewrite with the table.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from common.clock import Clock
from common.planning.chores import Done, Position
from common.storage import keys
from common.storage.table import Query, Tables
from common.tenants.audit import Audit
from common.tenants.audit_chain import AuditSeals, Seal, SealRound, Tampering
from common.tenants.tenant import ACTIVE, SUSPENDED
from common.timing.instants import has_ended, rfc3339

if TYPE_CHECKING:
    from scheduler.export_handler import S3Bucket

ROUND_S: Final = 3_600
# The rule may be early by some seconds.
_EARLY_S: Final = 60
# Some 3 requests a tenant, by 16 threads.
_TENANTS_AT_ONCE: Final = 200
# Of one tenant in a round: more are left to the next one.
_MAX_SEALS: Final = 10
_TAMPERED_KEPT: Final = 10


@dataclass(frozen=True, slots=True)
class Sealer:
    """Seals the audit. `prefix` is the beginning of the names in the bucket."""

    tables: Tables
    clock: Clock
    bucket: S3Bucket | None = None
    prefix: str = ""

    def steps(self, at: Position | None, done: Done) -> Iterator[Position]:
        """A chore: go on with the round, or begin one if the last one began an hour ago."""
        now = self.clock.now()
        current = SealRound.of(at) or SealRound(0, 1)
        if current.ended_at:
            if not has_ended(current.began_at + ROUND_S - _EARLY_S, now, ROUND_S + _EARLY_S):
                return
            current = SealRound(int(now))
            yield asdict(current)  # what is sealed from here on is of this round, also if it is cut off
        owners = self._owners_after(current.after)
        while page := list(islice(owners, _TENANTS_AT_ONCE)):
            tampered = self._seal(page, current.began_at, now, done)
            done.errors += [f"altered: {seal}" for seal in tampered]
            kept = (*current.tampered, *tampered)[:_TAMPERED_KEPT]
            current = replace(current, after=page[-1], tampered=kept)
            yield asdict(current)
        yield asdict(replace(current, ended_at=int(self.clock.now())))

    def _owners_after(self, after: str) -> Iterator[str]:
        """The platform, then the tenants by id."""
        start = keys.tenant_listing(after) if after not in ("", keys.OPERATORS) else None
        listed = self.tables.tenants.query(Query(keys.TENANTS, after=start))
        living = (item["sk"] for item in listed if item.get("state", ACTIVE) in (ACTIVE, SUSPENDED))
        return living if after else chain([keys.OPERATORS], living)

    def _seal(self, owners: list[str], began_at: int, now: float, done: Done) -> list[str]:
        """Returns whose last seal was altered."""
        tampered: list[str] = []
        new_seals: list[Seal] = []
        heads: list[Seal] = []

        def seal(owner: str) -> None:
            seals = self._seals.seal(owner, now, _MAX_SEALS)
            if isinstance(seals, Tampering):
                tampered.append(f"{owner}: {seals.of}: {seals.detail}")
                return
            new_seals.extend(seals)
            if self.bucket and (head := self._head(owner, seals, began_at)):
                heads.append(head)

        done.each(owners, seal)
        if new_seals:
            done.counts.update(seals=len(new_seals), entries=sum(len(seal.entries) for seal in new_seals))
        if heads and self.bucket:
            self._export(self.bucket, heads, now)
        return sorted(tampered)

    @property
    def _seals(self) -> AuditSeals:
        return AuditSeals(Audit(self.tables.tenants))

    def _head(self, owner: str, new_seals: list[Seal], began_at: int) -> Seal | None:
        """The newest seal, if it is of this round: a part that was cut off may have made it."""
        head = new_seals[-1] if new_seals else self._seals.newest(owner)
        return head if isinstance(head, Seal) and head.sealed_at >= began_at else None

    def _export(self, bucket: S3Bucket, heads: list[Seal], now: float) -> None:
        heads.sort(key=lambda head: head.owner)
        date, _, time = rfc3339(now).partition("T")
        data = "".join(f"{json.dumps(anchor(head))}\n" for head in heads)
        # The same heads make the same object.
        name = f"{self.prefix}/{date}/{time[:8].replace(':', '')}-{heads[0].hash[:8]}.jsonl.gz"
        bucket.put(name, gzip.compress(data.encode(), mtime=0))


def anchor(head: Seal) -> dict[str, Any]:
    """A line in the bucket: the newest seal of an owner. Pure."""
    return {
        "owner": head.owner,
        "chain": head.chain,
        "number": head.number,
        "hash": head.hash,
        "sealed_at": head.sealed_at,
    }
