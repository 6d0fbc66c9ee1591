"""Muted groups of failures: failed runs of one job with one error that a person knows of and need not see again.

A group is muted until an instant, or until it changes: its job, having succeeded or having been changed since, fails
again. Both end after 30 days. Another error is another group, which is not muted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from common.cache import convert
from common.errors import Conflict, InvalidInput, NotFound
from common.limits import MAX_MUTED_GROUPS, MAX_MUTED_S
from common.storage import keys
from common.storage.aws import readable
from common.storage.conflicts import retry_if_changed
from common.storage.expressions import Attribute, Condition
from common.storage.stored import Stored
from common.storage.table import Query, Table
from common.storage.transactions import Addition, Transaction
from common.storage.wire import Item
from common.tenants.audit import AuditedCommit
from common.timing.instants import rfc3339

# A job and the fingerprint of an error.
GroupKey = tuple[str, str]


class MutedGroup(Stored, frozen=True):
    """A muted group, with its error when it was muted. Without `until_at` it is muted until it changes."""

    derived: ClassVar = ("expires_at",)

    tenant: str
    job_id: str
    fingerprint: str
    muted_at: int
    until_at: int | None = None
    note: str = ""
    error_type: str = ""
    error: str = ""

    @property
    def key(self) -> keys.Key:
        return keys.muted_group(self.tenant, self.job_id, self.fingerprint)

    @property
    def group(self) -> GroupKey:
        return self.job_id, self.fingerprint

    @property
    def expires_at(self) -> int:
        """When it ends at the latest."""
        return self.muted_at + MAX_MUTED_S if self.until_at is None else self.until_at

    def in_force(self, streak: Mapping[str, int] | None, now: float) -> bool:
        """Whether the group is muted now. `streak`: the item of its job's failures in a row."""
        if now >= self.expires_at:
            return False
        changed = bool(streak and streak["failures"] and streak["began_at"] > self.muted_at)
        return self.until_at is not None or not changed


@dataclass(frozen=True, slots=True)
class Muted:
    """What is muted of a tenant now, and of each failing job with a muted group the name of its last failed run."""

    groups: Mapping[GroupKey, MutedGroup] = field(default_factory=dict)
    last_failed: Mapping[str, str] = field(default_factory=dict)


class MutedGroups:
    """The muted groups in the jobs table. The tenant always comes from the credential."""

    def __init__(self, jobs: Table) -> None:
        self.table = jobs

    def now_muted(self, tenant: str, now: float) -> Muted:
        """What is muted now: one query, and one read for each job of it."""
        stored = self.stored(tenant)
        streaks = self.streaks(tenant, (group.job_id for group in stored))
        muted = [group for group in stored if group.in_force(streaks.get(group.job_id), now)]
        job_ids = {group.job_id for group in muted}
        last_failed = {
            job_id: streak["failed_run"]
            for job_id, streak in streaks.items()
            if job_id in job_ids and streak["failures"]
        }
        return Muted({group.group: group for group in muted}, last_failed)

    def stored(self, tenant: str) -> list[MutedGroup]:
        """All that are stored, by job: some may be over."""
        items = self.table.query(Query(tenant, sk_prefix=keys.MUTED_PREFIX))
        return list(readable(items, MutedGroup.from_item))

    def streaks(self, tenant: str, job_ids: Iterable[str]) -> dict[str, Item]:
        """The failures in a row of these jobs, of those that had some."""
        streaks_of_jobs = [keys.failure_streak(tenant, job_id) for job_id in sorted(set(job_ids))]
        items = self.table.get_many(streaks_of_jobs, attributes=("sk", "failures", "failed_run", "began_at"))
        return {item["sk"].removeprefix(keys.STREAK_PREFIX): item for item in readable(items, _checked)}


def _checked(item: Item) -> Item:
    """The item of a job's failures in a row. Raises ValidationError, KeyError."""
    convert((item["failures"], item["failed_run"], item["began_at"]), tuple[int, str, float])
    return item


@dataclass(frozen=True, slots=True)
class Mutes:
    """Groups that a tenant mutes."""

    groups: MutedGroups
    audited: AuditedCommit

    def mute(self, group: MutedGroup, now: float) -> MutedGroup:
        """Mute a group, also one that is muted already. Raises InvalidInput, Conflict, Busy."""
        latest = group.muted_at + MAX_MUTED_S
        if group.until_at is not None and not group.muted_at < group.until_at <= latest:
            raise InvalidInput(
                "until_at",
                "must be later than now, by at most 30 days",
                value=rfc3339(group.until_at),
                accepted=f"up to {rfc3339(latest)}, or nothing: until it changes",
            )
        table, tenant = self.groups.table, group.tenant

        def attempt() -> MutedGroup:
            addition = Addition(table, keys.additions(tenant, "muted"))
            stored = {known.group: known for known in self.groups.stored(tenant)}
            old = stored.get(group.group)
            tx = Transaction(table.client)
            if old is None:
                if len(stored) >= MAX_MUTED_GROUPS:
                    over = self._over(tenant, list(stored.values()), now)
                    tx.delete(table, over.key, _as_read(over))
                addition.note(tx)
            tx.put(table, group.to_item(), _as_read(old) if old else table.absent)
            before = _audit_view(old) if old else None
            subject = _subject(group)
            self.audited.commit(
                tx, tenant, "failures.muted", subject, now, before=before, after=_audit_view(group)
            )
            return group

        return retry_if_changed(attempt, f"muting {_subject(group)!r}", sleep=self.audited.clock.sleep)

    def unmute(self, tenant: str, job_id: str, fingerprint: str, now: float) -> None:
        """Show a group again. Raises NotFound, Busy."""
        table, key = self.groups.table, keys.muted_group(tenant, job_id, fingerprint)

        def attempt() -> None:
            item = table.get(key)
            if item is None:
                raise NotFound("muted group of failures", fingerprint)
            old = MutedGroup.from_item(item)
            tx = Transaction(table.client)
            tx.delete(table, key, _as_read(old))
            self.audited.commit(tx, tenant, "failures.unmuted", _subject(old), now, before=_audit_view(old))

        retry_if_changed(attempt, f"muting {job_id!r}", sleep=self.audited.clock.sleep)

    def _over(self, tenant: str, stored: list[MutedGroup], now: float) -> MutedGroup:
        """A stored group that is no longer muted. Raises Conflict."""
        muted = self.groups.now_muted(tenant, now).groups
        for known in stored:
            if known.group not in muted:
                return known
        raise Conflict(
            f"{MAX_MUTED_GROUPS} groups of failures are muted, which are the most; unmute one first"
        )


def _as_read(old: MutedGroup) -> Condition:
    """The condition that the stored group is still the one that was read."""
    return Attribute("muted_at") == old.muted_at


def _subject(group: MutedGroup) -> str:
    return f"{group.job_id} {group.fingerprint}"


def _audit_view(group: MutedGroup) -> Item:
    until = "it changes" if group.until_at is None else rfc3339(group.until_at)
    return {"until": until, "note": group.note, "error_type": group.error_type}
