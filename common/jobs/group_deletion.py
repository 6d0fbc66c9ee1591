"""Deletes groups of schedules together with their schedules, in bounded steps.

`begin` marks the group; from then on no schedule is created in it. `move_on` deletes some schedules, each with an
entry in the audit, and at last the group. DeleteScheduleGroup takes the first step; the ticks take the others. Each
step reads what is left, so an interrupted one is simply repeated.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Final

from common.errors import InvalidInput, NotFound
from common.eventbridge.names import DEFAULT_GROUP, job_id_prefixes
from common.jobs.group_requests import GroupRequest
from common.jobs.job import DELETED, Job, exists
from common.jobs.schedule_groups import DELETING, ScheduleGroups
from common.jobs.store import MOST_AT_ONCE, Change, JobStore, deleted
from common.storage import group_keys, keys
from common.storage.conflicts import retry_on_conflict
from common.storage.tables import ConditionFailed, Expression, Transaction

# The schedules that one step deletes: two transactions.
STEP: Final = 2 * MOST_AT_ONCE


@dataclass(frozen=True, slots=True)
class GroupDeletions:
    """The deletions of groups. `store` audits with its author."""

    store: JobStore

    def begin(self, tenant: str, name: str, now: float, request: GroupRequest) -> bool:
        """Mark the group; returns whether there is more to do. The same request again changes nothing.

        Raises NotFound, InvalidInput (the default group), Busy.
        """
        if name == DEFAULT_GROUP:
            raise InvalidInput("Name", "is the default group, which cannot be deleted", value=name)
        if self._is_marked(tenant, name):
            return True
        tx = Transaction(self.store.jobs.client)
        request.remember(tx, self.store.jobs, now)
        tx.update(
            self.store.jobs,
            group_keys.group(tenant, name),
            Expression(
                "SET #state = :deleting, #updated_at = :now", {":deleting": DELETING, ":now": int(now)}
            ),
            Expression("attribute_exists(pk)", {}),
        )
        tx.put(self.store.ledger.table, {**group_keys.deletion(tenant, name), "tenant": tenant, "name": name})
        try:
            self.store.audited.commit(tx, tenant, "group.deleted", name, now)
        except ConditionFailed as lost:
            if not request.was_done(lost):
                raise NotFound("schedule group", name) from None
            return False
        return True

    def under_way(self) -> Iterator[tuple[str, str]]:
        """The tenants and names of the groups that are being deleted."""
        return (
            (item["tenant"], item["name"]) for item in self.store.ledger.table.query(group_keys.DELETIONS)
        )

    def move_on(self, tenant: str, name: str, now: float) -> int:
        """Delete some more schedules, and the group when none is left. Returns how many it found. Raises Busy."""
        with suppress(NotFound):
            if not self._is_marked(tenant, name):
                return 0  # another step was faster, and there is a new group of this name
        found = list(islice(self._schedules(tenant, name), STEP))
        for first in range(0, len(found), MOST_AT_ONCE):
            some = found[first : first + MOST_AT_ONCE]
            self.store.change_all(tenant, {job_id: _deletion(name) for job_id in some})
        if len(found) < STEP:
            tx = Transaction(self.store.jobs.client)
            marked = Expression("attribute_not_exists(pk) OR #state = :deleting", {":deleting": DELETING})
            tx.delete(self.store.jobs, group_keys.group(tenant, name), marked)
            tx.delete(self.store.ledger.table, group_keys.deletion(tenant, name))
            with suppress(ConditionFailed):
                retry_on_conflict(tx.commit, f"schedule group {name!r}", sleep=self.store.clock.sleep)
        return len(found)

    def _is_marked(self, tenant: str, name: str) -> bool:
        """Raises NotFound."""
        return ScheduleGroups(self.store.jobs).existing(tenant, name).state == DELETING

    def _schedules(self, tenant: str, name: str) -> Iterator[str]:
        there = Expression("#state <> :deleted", {":deleted": DELETED})
        for prefix in job_id_prefixes(name):
            items = self.store.jobs.query(
                tenant, sk_prefix=keys.JOB_PREFIX + prefix, where=there, attributes=("job_id", "origin")
            )
            yield from (item["job_id"] for item in items if (item.get("origin") or {}).get("group") == name)


def _deletion(name: str) -> Change:
    def change(old: Job | None, now: float) -> Job:
        if old is None:
            raise NotFound("schedule in the group", name)
        is_in_it = exists(old) and old.origin is not None and old.origin["group"] == name
        return deleted(old, now) if is_in_it else old

    return change
