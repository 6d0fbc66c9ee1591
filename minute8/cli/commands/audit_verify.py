"""`minute8 audit verify`: whether the audit is as it was sealed."""

from __future__ import annotations

import gzip
import json
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from common.storage import keys
from common.storage.table import Query
from common.tenants.audit import Audit, EntryFilter
from common.tenants.audit_chain import LIFETIME_S, SEAL_MISSING, SEAL_REPLACED, SealRound, Tampering, entry_at
from common.tenants.tenant import ACTIVE, DELETED, SUSPENDED
from common.timing.instants import rfc3339
from minute8.cli import output
from minute8.cli.audit_comparison import ChainState, verified
from minute8.cli.doctor.deployment import Deployment, connect
from minute8.cli.options import AsJson, ExitCode
from minute8.cli.output import console, plural, print_json, say
from minute8.cli.session import api_url, session

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


_PLATFORM: Final = "the platform"
# Of an owner; --json has all.
_MAX_NAMED: Final = 5


def verify(
    ctx: typer.Context,
    stage: Annotated[str, typer.Option(help="The deployment's stage.", envvar="MINUTE8_STAGE")] = "dev",
    tenant: Annotated[str | None, typer.Option(help="Only this tenant's audit.")] = None,
    bucket: Annotated[
        str | None, typer.Option(help="The bucket of auditExport: compare the exported seals, too.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare the audit with its seals: what was altered, deleted, inserted or reordered. Needs AWS credentials.

    Without --bucket, somebody who can write the table could have written all seals again. Exits with 0 if all agrees.
    """
    current = session(ctx)
    deployment = connect(stage, current.clock, api_url(current.url, current.profile))
    audit = Audit(deployment.tenants_table())
    now, anchors, is_locked = current.clock.now(), defaultdict[str, list[Anchor]](list), True
    if bucket:
        exported = AnchorBucket(deployment.client("s3"), bucket, f"{deployment.named()}/audit")
        is_locked = exported.is_locked()
        for anchor in exported.anchors():
            anchors[anchor.owner].append(anchor)
    deleted = deleted_tenants(audit) if anchors else {}
    states: list[ChainState] = []
    last = SealRound.read(deployment.due_table())
    round_at = last.complete_at if last else 0
    for owner in [tenant] if tenant else _owners(deployment, anchors):
        state = verified(audit, owner, now, round_at)
        deleted_at = _believed(deployment, owner, deleted.get(owner))
        state.tamperings += compare_anchors(state, anchors.get(owner, ()), deleted_at, now)
        states.append(state)
    if as_json:
        print_json({"owners": [_view(state) for state in states], "bucket_locked": is_locked})
    else:
        _print(states)
    if not is_locked:
        say(f"minute8: {bucket} keeps no object for a time: set its object lock")
    if not is_locked or any(state.tamperings for state in states):
        raise typer.Exit(ExitCode.FAILED)


def _owners(deployment: Deployment, anchors: dict[str, list[Anchor]]) -> Iterator[str]:
    """The platform, its tenants, and those that only the bucket knows. A tenant that is being deleted is left out."""
    yield keys.OPERATORS
    listed = {item["sk"]: item for item in deployment.tenants_table().query(Query(keys.TENANTS))}
    for tenant in sorted(listed.keys() | anchors.keys() - {keys.OPERATORS}):
        if listed.get(tenant, {}).get("state", ACTIVE) in (ACTIVE, SUSPENDED):
            yield tenant


def _believed(deployment: Deployment, owner: str, deleted_at: float | None) -> float | None:
    """When it was deleted. The platform never is, nor a tenant that has lived since before: that is forged."""
    if deleted_at is None or owner == keys.OPERATORS:
        return None
    item = deployment.tenants_table().get(keys.tenant(owner)) or {"state": DELETED}
    is_living = item.get("state", ACTIVE) in (ACTIVE, SUSPENDED)
    return None if is_living and item.get("created_at", 0) <= deleted_at else deleted_at


def _print(states: list[ChainState]) -> None:
    rows = [
        (
            _name(state),
            state.entries,
            state.seals,
            state.older,
            state.unsealed,
            "as sealed" if not state.tamperings else f"{plural(len(state.tamperings), 'difference')}",
        )
        for state in states
    ]
    columns = ("AUDIT OF", "SEALED", "SEALS", "BEFORE THE CHAIN", "NOT YET SEALED", "RESULT")
    console().print(output.table(columns, rows))
    for state in states:
        for tampering in state.tamperings[:_MAX_NAMED]:
            line = f"{_name(state)}: {tampering.name}: {_of(tampering.of)}: {tampering.detail}"
            console().print(line, soft_wrap=True)
        if more := len(state.tamperings[_MAX_NAMED:]):
            console().print(f"{_name(state)}: and {more} more (--json)")


def _name(state: ChainState) -> str:
    return _PLATFORM if state.owner == keys.OPERATORS else state.owner


def _of(of: str) -> str:
    """An entry with its time, or a seal."""
    return f"{of} of {rfc3339(at)}" if (at := entry_at(of)) else of


def _view(state: ChainState) -> dict[str, Any]:
    return {
        "owner": state.owner,
        "entries": state.entries,
        "seals": state.seals,
        "before_chain": state.older,
        "not_sealed": state.unsealed,
        "differences": [
            {"name": item.name, "of": item.of, "detail": item.detail} for item in state.tamperings
        ],
    }
