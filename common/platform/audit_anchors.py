"""Seals over the audit that were exported to a bucket with object lock, compared with the stored ones."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from common.platform.audit_comparison import ChainState
from common.storage import keys
from common.tenants.audit import Audit, EntryFilter
from common.tenants.audit_chain import LIFETIME_S, SEAL_MISSING, SEAL_REPLACED, Tampering
from common.timing.instants import rfc3339

_READERS: Final = 16
_PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class Anchor:
    """An exported seal: its hash, which holds for all seals before it."""

    owner: str
    chain: str
    number: int
    hash: str
    sealed_at: int


@dataclass(frozen=True, slots=True)
class AnchorBucket:
    """The bucket. A version of an object that somebody covered with another one counts as well."""

    client: Any
    name: str
    prefix: str

    def is_locked(self) -> bool:
        """Whether the bucket keeps new objects for a time by itself."""
        try:
            answer = self.client.get_object_lock_configuration(Bucket=self.name)
        except self.client.exceptions.ClientError as error:
            if error.response["Error"]["Code"] != "ObjectLockConfigurationNotFoundError":
                raise
            return False
        return bool(answer["ObjectLockConfiguration"].get("Rule", {}).get("DefaultRetention"))

    def anchors(self) -> Iterator[Anchor]:
        """All exported seals, in any order. Raises ValueError for an object that holds something else."""
        pages = self.client.get_paginator("list_object_versions").paginate(
            Bucket=self.name, Prefix=f"{self.prefix}/", PaginationConfig={"PageSize": _PAGE}
        )
        with ThreadPoolExecutor(_READERS, thread_name_prefix="anchors") as pool:
            for page in pages:
                for anchors in pool.map(self._read, page.get("Versions", ())):
                    yield from anchors

    def _read(self, version: Any) -> list[Anchor]:
        answer = self.client.get_object(Bucket=self.name, Key=version["Key"], VersionId=version["VersionId"])
        try:
            return [
                Anchor(**json.loads(line)) for line in gzip.decompress(answer["Body"].read()).splitlines()
            ]
        except (OSError, TypeError, ValueError, EOFError, zlib.error) as error:
            raise ValueError(f"{version['Key']} in {self.name} holds no seals: {error}") from error


def deleted_tenants(audit: Audit) -> dict[str, float]:
    """When each tenant was deleted last, by the platform's audit."""
    deleted: dict[str, float] = {}
    before = ""
    while True:
        entries, before = audit.page(
            keys.OPERATORS, EntryFilter(action="tenant.deleted"), limit=_PAGE, before_id=before
        )
        for entry in entries:
            deleted.setdefault(entry.subject, entry.at)
        if not before:
            return deleted


def compare_anchors(
    state: ChainState, anchors: Iterable[Anchor], deleted_at: float | None, now: float
) -> Sequence[Tampering]:
    """What the exported seals of an owner say against the stored ones, the oldest first. Pure.

    `deleted_at`: when a tenant of this name was deleted last; its chain ended there.
    """
    return [
        difference
        for anchor in sorted(anchors, key=lambda anchor: (anchor.sealed_at, anchor.number))
        if anchor.sealed_at + LIFETIME_S > now
        and (difference := _difference(state, anchor, deleted_at)) is not None
    ]


def _difference(state: ChainState, anchor: Anchor, deleted_at: float | None) -> Tampering | None:
    name, exported = f"seal {anchor.number}", f"exported at {rfc3339(anchor.sealed_at)}"
    if anchor.chain != state.chain:
        if deleted_at is not None and anchor.sealed_at <= deleted_at:
            return None
        return Tampering(SEAL_REPLACED, name, f"{exported}, of a chain that is gone")
    stored = state.hashes.get(anchor.number)
    if stored is None:
        return Tampering(SEAL_MISSING, name, exported)
    return None if stored == anchor.hash else Tampering(SEAL_REPLACED, name, f"{exported} with another hash")
