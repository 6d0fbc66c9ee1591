"""Mutes groups of failures, with an audit entry. `common/jobs/muted_groups.py` says what muted means."""

from __future__ import annotations

from dataclasses import dataclass

from common.errors import Conflict, InvalidInput, NotFound
from common.jobs.muted_groups import MutedGroup, MutedGroups
from common.limits import MAX_MUTED_GROUPS, MAX_MUTED_S
from common.storage import keys
from common.storage.conflicts import retry_if_changed
from common.storage.expressions import Attribute, Condition
from common.storage.transactions import Addition, Transaction
from common.storage.unreadable import read
from common.storage.wire import Item
from common.tenants.audit import AuditedCommit
from common.timing.instants import rfc3339


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
            stored = {known.key: known for known in self.groups.stored(tenant)}
            old = stored.get(group.key)
            tx = Transaction(table.client)
            if old is None:
                if len(stored) >= MAX_MUTED_GROUPS:
                    over = self._over(tenant, list(stored.values()), now)
                    tx.delete(table, keys.muted_group(tenant, *over.key), _as_read(over))
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
            old = read(item, MutedGroup)
            tx = Transaction(table.client)
            tx.delete(table, key, _as_read(old))
            self.audited.commit(tx, tenant, "failures.unmuted", _subject(old), now, before=_audit_view(old))

        retry_if_changed(attempt, f"muting {job_id!r}", sleep=self.audited.clock.sleep)

    def _over(self, tenant: str, stored: list[MutedGroup], now: float) -> MutedGroup:
        """A stored group that is no longer muted. Raises Conflict."""
        muted = self.groups.now_muted(tenant, now).groups
        for known in stored:
            if known.key not in muted:
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
