"""Groups of schedules, as EventBridge Scheduler has them: names with tags, in the jobs table.

Only jobs that came by that API are in a group. A group that is deleted takes its schedules along, in the background:
it is DELETING until they are gone. A schedule is created in a transaction that fails unless its group is ACTIVE.

A request about a group takes effect once: a copy that comes later must not undo newer changes. Schedules know their own
requests (`imported_from.py`). A group cannot know them, because a deleted group is gone when the copy comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

from common.errors import AlreadyExists, Conflict, InvalidInput, NotFound, QuotaExceeded, UndoneSince
from common.jobs.job import Job
from common.jobs.preconditions import JobChanges
from common.storage import keys
from common.storage.conflicts import ConditionFailed, retry_if_changed, retry_on_conflict
from common.storage.expressions import ABSENT, Attribute, Condition, unchanged
from common.storage.table import Query, Table
from common.storage.transactions import Addition, Transaction
from common.storage.wire import Item
from common.tenants.audit import AuditedCommit
from minute8.eventbridge.imported_from import KNOWN_FOR_S, schedule_of
from minute8.eventbridge.names import DEFAULT_GROUP

# https://docs.aws.amazon.com/scheduler/latest/UserGuide/scheduler-quotas.html
MAX_GROUPS: Final = 500
MAX_TAGS: Final = 200
ACTIVE: Final = "ACTIVE"
DELETING: Final = "DELETING"

_ACTIVE: Final = Attribute("state") == ACTIVE


@dataclass(frozen=True, slots=True)
class GroupRequest:
    """One tenant's request. Each copy of the request has the same `token`."""

    tenant: str
    token: str
    # The client chose the token. Otherwise the token is the signature, which only a copy of the request has.
    is_named: bool = False

    @property
    def item_key(self) -> keys.Key:
        return keys.idempotency_key(self.tenant, f"group-{self.token}")

    def remember(self, tx: Transaction, jobs: Table, now: float) -> None:
        """Let `tx` store that the request was done, and fail if it was done before."""
        tx.put(jobs, self._item(now), jobs.absent)

    def remember_alone(self, jobs: Table, now: float) -> None:
        """Store that a request was done that changes nothing else. Raises Busy."""
        jobs.put_if(self._item(now), jobs.absent)

    def _item(self, now: float) -> Item:
        return {**self.item_key, "expires_at": int(now) + KNOWN_FOR_S}

    def is_known(self, jobs: Table) -> bool:
        """Whether the request was done before."""
        return jobs.get(self.item_key) is not None

    def was_done(self, error: ConditionFailed) -> bool:
        """Whether a transaction failed because the request had been done."""
        return error.key == self.item_key


@dataclass(frozen=True, slots=True)
class ScheduleGroup:
    """One group of one tenant."""

    tenant: str
    name: str
    created_at: int
    updated_at: int
    state: str = ACTIVE
    tags: Mapping[str, str] = field(default_factory=dict)
    revision: int = 1
    # The token of the request that deletes the group.
    deleted_by: str | None = None

    def to_item(self) -> Item:
        return {
            **keys.schedule_group(self.tenant, self.name),
            **{name: getattr(self, name) for name in self.__dataclass_fields__ if name != "tenant"},
        }

    def check_active(self) -> None:
        """Raises Conflict if it is being deleted."""
        if self.state != ACTIVE:
            raise Conflict(f"schedule group {self.name!r} is being deleted")

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> ScheduleGroup:
        named = {name: item[name] for name in cls.__dataclass_fields__ if name in item}
        return cls(**{**named, "tenant": item["pk"]})


class ScheduleGroups:
    """The groups in the jobs table. Every method takes the tenant from the credential."""

    def __init__(self, jobs: Table) -> None:
        self._table = jobs

    def get(self, tenant: str, name: str) -> ScheduleGroup | None:
        """The stored group; None also for a default group without tags."""
        item = self._table.get(keys.schedule_group(tenant, name))
        return ScheduleGroup.from_item(item) if item else None

    def existing(self, tenant: str, name: str) -> ScheduleGroup:
        """Raises NotFound."""
        if group := self.get(tenant, name):
            return group
        if name == DEFAULT_GROUP:
            return ScheduleGroup(tenant, name, 0, 0)
        raise NotFound("schedule group", name)

    def after(self, tenant: str, prefix: str, after: str, limit: int) -> list[ScheduleGroup]:
        """At most `limit` groups with this prefix, by name, the default group included."""
        start = keys.schedule_group(tenant, after) if after else None
        items = self._table.query(
            Query(tenant, sk_prefix=keys.SCHEDULE_GROUP_PREFIX + prefix, after=start, limit=limit)
        )
        groups = {group.name: group for group in map(ScheduleGroup.from_item, items)}
        if DEFAULT_GROUP.startswith(prefix) and after < DEFAULT_GROUP:
            groups.setdefault(DEFAULT_GROUP, ScheduleGroup(tenant, DEFAULT_GROUP, 0, 0))
        return [groups[name] for name in sorted(groups)][:limit]

    def create(
        self,
        tenant: str,
        name: str,
        tags: Mapping[str, str],
        now: float,
        audited: AuditedCommit,
        request: GroupRequest | None = None,
    ) -> None:
        """A new group; the same request again changes nothing.

        Raises AlreadyExists, QuotaExceeded, Busy, UndoneSince.
        """
        if name == DEFAULT_GROUP:
            raise AlreadyExists("schedule group", name)

        def attempt() -> None:
            addition = Addition(self._table, keys.additions(tenant, "groups"))
            if self.get(tenant, name) is None:
                check_room(self.count(tenant))
            tx = Transaction(self._table.client)
            if request:
                request.remember(tx, self._table, now)
            new = ScheduleGroup(tenant, name, int(now), int(now), ACTIVE, tags)
            tx.put(self._table, new.to_item(), ABSENT)
            addition.note(tx)
            refused = audited.try_commit(tx, tenant, "group.created", name, now, after={"tags": dict(tags)})
            if refused is None:
                return
            addition.check_first(refused)
            if not (request and request.was_done(refused)):
                raise AlreadyExists("schedule group", name)
            group = self.get(tenant, name)
            if request.is_named and (group is None or group.state != ACTIVE):
                raise UndoneSince("schedule group", name, is_creation=True)

        retry_on_conflict(attempt, "the schedule groups", sleep=audited.clock.sleep)

    def ensure(self, tenant: str, name: str, now: float, audited: AuditedCommit) -> None:
        """Create the group, without tags, if it is not there. Raises QuotaExceeded, Busy."""
        if name == DEFAULT_GROUP or self.get(tenant, name):
            return
        with suppress(AlreadyExists):
            self.create(tenant, name, {}, now, audited)

    def count(self, tenant: str) -> int:
        """The number of stored groups, at most MAX_GROUPS."""
        stored = self._table.query(
            Query(tenant, sk_prefix=keys.SCHEDULE_GROUP_PREFIX, limit=MAX_GROUPS, attributes=("sk",))
        )
        return sum(1 for _ in stored)

    def tag(
        self,
        request: GroupRequest,
        name: str,
        set_tags: Mapping[str, str],
        removed_keys: Sequence[str],
        now: float,
        audited: AuditedCommit,
    ) -> None:
        """Set tags, and remove others. Raises NotFound, Conflict, InvalidInput, Busy."""
        tenant = request.tenant

        def attempt() -> None:
            stored = self.get(tenant, name)
            group = stored or self.existing(tenant, name)
            group.check_active()
            tags = {
                key: value for key, value in {**group.tags, **set_tags}.items() if key not in removed_keys
            }
            if len(tags) > MAX_TAGS:
                raise InvalidInput("Tags", f"would be {len(tags)}", accepted=f"at most {MAX_TAGS}")
            if tags == group.tags:
                request.remember_alone(self._table, now)
                return
            new = replace(group, tags=tags, updated_at=int(now), revision=group.revision + 1)
            if not stored:  # the default group, stored for the first time
                new = replace(new, created_at=int(now))
            tx = Transaction(self._table.client)
            request.remember(tx, self._table, now)
            tx.put(self._table, new.to_item(), _unchanged(stored))
            before, after = {"tags": dict(group.tags)}, {"tags": tags}
            refused = audited.try_commit(tx, tenant, "group.tagged", name, now, before=before, after=after)
            if refused and not request.was_done(refused):
                raise refused

        retry_if_changed(attempt, f"schedule group {name!r}", sleep=audited.clock.sleep)

    def require(self, tx: Transaction, changes: JobChanges) -> None:
        """Let `tx` fail if the group of a new schedule does not exist, or is being deleted."""
        groups = {(new.tenant, group) for old, new in changes if (group := joined_group(old, new))}
        for tenant, name in sorted(groups):
            if name != DEFAULT_GROUP:
                tx.check(self._table, keys.schedule_group(tenant, name), _ACTIVE)

    def check_required(self, failed: keys.Key) -> None:
        """Find out why a transaction's check `failed`; returns if it holds now. Raises NotFound, Conflict."""
        if not failed["sk"].startswith(keys.SCHEDULE_GROUP_PREFIX):
            return
        name = failed["sk"].removeprefix(keys.SCHEDULE_GROUP_PREFIX)
        self.existing(failed["pk"], name).check_active()


def check_room(used: int) -> None:
    """Raises QuotaExceeded if there is no room for another group."""
    if used >= MAX_GROUPS:
        raise QuotaExceeded("schedule groups", MAX_GROUPS, used, 1)


def joined_group(old: Job | None, new: Job) -> str | None:
    """The group that a change puts a schedule into; None if the schedule was in the group before, or is none."""
    imported_from = schedule_of(new)
    return str(imported_from["group"]) if imported_from and not schedule_of(old) else None


def _unchanged(stored: ScheduleGroup | None) -> Condition:
    """The condition that an active group is unchanged since it was read. A deletion moves no revision."""
    if stored is None:
        return ABSENT
    return (
        unchanged({"revision": stored.revision, "created_at": stored.created_at}, "revision", "created_at")
        & _ACTIVE
    )
