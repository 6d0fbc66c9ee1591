"""Deletes groups of schedules together with their schedules, in bounded steps.

`begin` marks the group; from then on no schedule is created in the group. `move_on` deletes some schedules, each with
an entry in the audit, and at last the group. DeleteScheduleGroup takes the first step; the ticks take the others. Each
step reads the remaining schedules, so an interrupted step is simply repeated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from common.errors import InvalidInput, NotFound, UndoneSince
from common.jobs.job import Job
from common.jobs.revisions import deleted
from common.jobs.store import MAX_AT_ONCE, Change, JobStore
from common.storage import keys
from common.storage.conflicts import retry_on_conflict
from common.storage.expressions import ABSENT, PRESENT, Attribute, Condition, change
from common.storage.table import Query
from common.storage.transactions import TooManyWrites, Transaction
from minute8.eventbridge.groups import ACTIVE, DELETING, GroupRequest, ScheduleGroups
from minute8.eventbridge.imported_from import schedule_of
from minute8.eventbridge.names import DEFAULT_GROUP, job_id_prefixes

# Schedules: two transactions, or more if their texts are large.
STEP: Final = 2 * MAX_AT_ONCE


@dataclass(frozen=True, slots=True)
class GroupDeletions:
    """The deletions of groups. `store` audits with its author."""

    store: JobStore

    def begin(self, tenant: str, name: str, now: float, request: GroupRequest) -> bool:
        """Mark the group. Returns whether there is more to do. A copy of the request changes nothing.

        Raises NotFound, InvalidInput (the default group), Busy, UndoneSince.
        """
        if name == DEFAULT_GROUP:
            raise InvalidInput(
                "Name", "is the default group, which cannot be deleted", value=name, accepted="another group"
            )
        group = self._groups.get(tenant, name)
        if group is None:
            if request.is_known(self.store.jobs):
                return False
            raise NotFound("schedule group", name)
        if group.state == DELETING:
            request.remember_alone(self.store.jobs, now)
            return True
        tx = Transaction(self.store.jobs.client)
        request.remember(tx, self.store.jobs, now)
        tx.update(
            self.store.jobs,
            keys.schedule_group(tenant, name),
            change({"state": DELETING, "updated_at": int(now), "deleted_by": request.token}),
            PRESENT,
        )
        tx.put(self.store.ledger.table, {**keys.group_deletion(tenant, name), "tenant": tenant, "name": name})
        refused = self.store.audited.try_commit(tx, tenant, "group.deleted", name, now)
        if refused is None:
            return True
        if not request.was_done(refused):
            raise NotFound("schedule group", name)
        if request.is_named and (group := self._groups.get(tenant, name)) and group.state == ACTIVE:
            raise UndoneSince("schedule group", name, is_creation=False)
        return False

    def under_way(self) -> Iterator[tuple[str, str]]:
        """The tenants and names of the groups that are being deleted."""
        return (
            (item["tenant"], item["name"])
            for item in self.store.ledger.table.query(Query(keys.GROUP_DELETIONS))
        )

    def move_on(self, tenant: str, name: str, now: float) -> int:
        """Delete some more schedules, and after the last one the group. Returns their number. Raises Busy."""
        group = self._groups.get(tenant, name)
        if group is None:  # another step was faster, or the tenant is gone
            self._finish(tenant, name, ABSENT)
            return 0
        if group.state != DELETING:
            return 0  # another step was faster, and there is a new group of this name
        job_ids = list(islice(self._schedules(tenant, name), STEP))
        for first in range(0, len(job_ids), MAX_AT_ONCE):
            self._delete_schedules(tenant, name, job_ids[first : first + MAX_AT_ONCE])
        if len(job_ids) < STEP:
            # Another request may delete a newer group of this name.
            known_by = "updated_at" if group.deleted_by is None else "deleted_by"
            same = (Attribute("state") == DELETING) & (Attribute(known_by) == getattr(group, known_by))
            self._finish(tenant, name, same)
        return len(job_ids)

    @property
    def _groups(self) -> ScheduleGroups:
        return ScheduleGroups(self.store.jobs)

    def _finish(self, tenant: str, name: str, condition: Condition) -> None:
        """Remove the group and its mark, if the condition holds for the group. Raises Busy."""
        tx = Transaction(self.store.jobs.client)
        tx.delete(self.store.jobs, keys.schedule_group(tenant, name), condition)
        tx.delete(self.store.ledger.table, keys.group_deletion(tenant, name))
        retry_on_conflict(tx.try_commit, f"schedule group {name!r}", sleep=self.store.clock.sleep)

    def _schedules(self, tenant: str, name: str) -> Iterator[str]:
        for prefix in job_id_prefixes(name):
            items = self.store.jobs.query(
                Query(
                    tenant,
                    sk_prefix=keys.JOB_PREFIX + prefix,
                    attributes=("job_id", "imported_from"),
                )
            )
            yield from (
                item["job_id"] for item in items if (item.get("imported_from") or {}).get("group") == name
            )

    def _delete_schedules(self, tenant: str, name: str, job_ids: Sequence[str]) -> None:
        """Delete in one transaction; in two halves, if their large texts are too much for one. Raises Busy."""
        try:
            self.store.change_all(tenant, dict.fromkeys(job_ids, self._deletion(tenant, name)))
        except TooManyWrites:
            if len(job_ids) == 1:
                raise
            half = len(job_ids) // 2
            self._delete_schedules(tenant, name, job_ids[:half])
            self._delete_schedules(tenant, name, job_ids[half:])

    def _deletion(self, tenant: str, name: str) -> Change:
        """Deletes a schedule, unless the schedule is of a newer group with this name."""

        def change(old: Job | None, now: float) -> Job:
            if old is None:
                raise NotFound("schedule in the group", name)
            imported_from = schedule_of(old)
            if imported_from is None or imported_from["group"] != name:
                return old
            # Read after the schedule: a group that is marked now was marked when the schedule was read.
            group = self._groups.get(tenant, name)
            return deleted(old, now) if group and group.state == DELETING else old

        return change
