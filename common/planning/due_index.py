"""The due index: finds the jobs that fire in a window, at a cost that grows with what is due.

A *directory* (common/planning/directory.py) has each group of schedules once. A group's entries lie in *shards*, and
are read only when the group is due. Nothing is written per fire: the index changes only when a job does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

from common.errors import Damaged
from common.planning.directory import FILING, Directory, Shard, expiry
from common.planning.due_entry import DueEntry
from common.planning.log import ExecutionLog, PlannedWindows
from common.storage import keys
from common.storage.aws import sdk_version
from common.storage.expressions import Attribute, Condition, change, unchanged
from common.storage.stored import read
from common.storage.table import Query, Table
from common.storage.transactions import Transaction
from common.storage.unreadable import Unreadable
from common.storage.wire import DAMAGE, Expression, Item
from common.timing.instants import DAY_S
from common.timing.windows import planning_end, window_start
from common.timing.zones import TZDATA_VERSION

# A planned_until within this of what a tick can plan now is not moved back: the clock that reads it may be behind.
MAX_CLOCK_ERROR_S: Final = 7_200
# Windows of a day: of one that ended longer ago nothing is caught up.
_MAX_WINDOWS_READ: Final = 144


@dataclass(frozen=True, slots=True)
class Window:
    """The time from `start` to before `end`, as a tick announced it.

    `decided_at` separates late from missed fire times. So every process that plans the window plans the same.
    """

    start: int
    end: int
    decided_at: float


class PlanningProgress(Struct, frozen=True, kw_only=True):
    """Everything before `planned_until` is enqueued; planning may have begun for anything before `planning_until`.

    If the two differ, the window between them is open: a tick announced it at `decided_at`, and has not finished it.
    """

    planned_until: int
    planning_until: int
    decided_at: float = 0.0
    # Ticks that took the window up, without the tick that announced it.
    tries: int = 0
    # The time zones and the AWS SDK that the window was announced with: every function of a deployment uses them.
    tzdata: str = ""
    sdk: str = ""
    # Up to where windows were divided into shares.
    divided_until: int = 0
    # Several ticks may have recorded divisions of the window; this division counts.
    division: int = 0
    # By which version of the listing rule ticks have listed the directory's shards. No tick found a wrong listing since
    # `filed_since`. Code with listings announced the windows before `filed_until`; an earlier version does not move it.
    filing: str = ""
    filed_since: float = 0
    filed_until: int = 0
    # When it was found too far ahead and moved back last, and from where.
    moved_back_at: float = 0
    moved_back_from: int = 0
    # Up to where ticks have moved it themselves; 0: it was not written by one.
    joined_until: int = 0
    # Of a planned_until that was written in a new deployment: when. Nothing was planned before.
    new_since: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.planned_until <= self.planning_until:
            raise ValueError(f"it ends before it begins: {self.planned_until}, {self.planning_until}"[:200])
        if not self.decided_at:
            force_setattr(self, "decided_at", float(self.planned_until))
        if self.is_open and self.planning_until <= self.decided_at:
            raise ValueError(f"its window was decided at {self.decided_at}, after its end")

    @property
    def has_gap(self) -> bool:
        """Whether something else has moved it ahead: what lies between was never planned."""
        return self.joined_until < self.planned_until

    @property
    def surely_until(self) -> int:
        """Everything before this is enqueued, whatever has moved planned_until."""
        return min(self.planned_until, self.joined_until or self.planned_until)

    def is_ahead(self, now: float, clock_error_s: float = MAX_CLOCK_ERROR_S) -> bool:
        """Whether no tick can have planned so far: somebody wrote the item, or a clock was wrong."""
        return self.planning_until > planning_end(now + clock_error_s)

    @property
    def window(self) -> Window:
        """The window that is to be planned."""
        return Window(self.planned_until, self.planning_until, self.decided_at)

    @property
    def is_open(self) -> bool:
        """Whether a tick has announced a window and not finished it."""
        return self.planned_until < self.planning_until

    @property
    def is_divided(self) -> bool:
        """Planners have the open window's shares; common/planning/shares.py."""
        return self.is_open and self.divided_until == self.planning_until

    @property
    def trusts_listings(self) -> bool:
        """Only code that files the directory as this version does has announced windows."""
        return self.filing == FILING and self.filed_until == self.planning_until


@dataclass(frozen=True, slots=True)
class PendingRegistration:
    """A registration whose executions in a window that is planned already may not be enqueued yet.

    Or times that a change has ended at `until`, before a tick had planned them.
    """

    key: keys.Key
    entry: DueEntry
    until: int = 0


class DueIndex:
    """Reads and writes of the due table."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self.directory = Directory(table)
        self.log = ExecutionLog(table)
        self.windows = PlannedWindows(table)

    # planned_until

    def progress(self) -> PlanningProgress | None:
        """planned_until; None in a new deployment, and if it cannot be read: the next tick writes it anew."""
        with suppress(Damaged):
            return self.read_progress()
        return None

    def read_progress(self) -> PlanningProgress | None:
        """planned_until; None in a new deployment. Raises Damaged."""
        item = self._table.get(keys.PROGRESS)
        return read(item, PlanningProgress) if item else None

    def ensure_progress(self, now: float) -> PlanningProgress:
        """planned_until. In a new deployment it begins at the end of the window that a tick could plan now.

        If windows were planned before, somebody has deleted planned_until: it begins at the end of the last. So does
        a planned_until that nobody can read.

        A planned_until that is further ahead than a tick can plan stops all planning, and each registration hands over
        its executions up to there. So it is moved back to the end of the last recorded window.
        """
        begin = planning_end(now)
        try:
            if progress := self.read_progress():
                return self.move_back(progress, now) if progress.is_ahead(now) else progress
        except Damaged:
            self._delete_unreadable()
            begin = window_start(int(now))
        last = self._last_planned(now)
        end = last or begin
        self._table.create(
            {
                **keys.PROGRESS,
                "planned_until": end,
                "planning_until": end,
                "joined_until": end,
                "tzdata": TZDATA_VERSION,
                "sdk": sdk_version(),
                "filing": FILING,
                "filed_until": end,
                **({} if last else {"new_since": window_start(int(now))}),
            }
        )
        progress = self.progress()
        assert progress is not None
        return progress

    def _delete_unreadable(self) -> None:
        item = self._table.get(keys.PROGRESS)
        self._table.delete_if(keys.PROGRESS, unchanged(item, "planned_until", "planning_until"))

    def close_gap(self, progress: PlanningProgress, now: float) -> PlanningProgress:
        """Move planned_until back to where its gap begins: a tick plans it, late or missed. Returns what is stored."""
        is_recent = now - DAY_S < progress.joined_until < progress.planned_until
        last = progress.joined_until if is_recent else self._last_planned(now)
        if last is None or last >= progress.planned_until:  # nothing says that something was left out
            return self._updated(change({"joined_until": progress.planned_until}), _unmoved(progress))
        return self._move_back(progress, last, now)

    def move_back(self, progress: PlanningProgress, now: float) -> PlanningProgress:
        """Move planned_until to the end of the last recorded window. Returns the stored progress, others' too."""
        return self._move_back(progress, self._last_planned(now) or window_start(int(now)), now)

    def reopen(self, progress: PlanningProgress, since: int, now: float) -> PlanningProgress:
        """Let the next tick plan again from an instant on. Returns the stored progress."""
        self.windows.forget(since)
        return self._move_back(progress, since, now)

    def _move_back(self, progress: PlanningProgress, last: int, now: float) -> PlanningProgress:
        moved = {"planned_until": last, "planning_until": last, "joined_until": last, "tries": 0}
        moved_back = change({**moved, "moved_back_at": now, "moved_back_from": progress.planning_until})
        return self._updated(moved_back, _unmoved(progress))

    def _updated(self, update: Expression, condition: Condition) -> PlanningProgress:
        """planned_until after an update, or as another process has moved it."""
        item = self._table.update_or_read(keys.PROGRESS, update, condition)
        assert item
        return read(item, PlanningProgress)

    def _last_planned(self, now: float) -> int | None:
        """The end of the last recorded window that a tick can have planned."""
        windows = self.windows.newest(_MAX_WINDOWS_READ, planning_end(now))
        return windows[0].end if windows else None

    def begin_planning(self, progress: PlanningProgress, end: int, now: float) -> PlanningProgress:
        """Announce that a tick plans from `progress` to `end`, before it reads the first entry. Returns what is stored.

        If a registration commits too late for the tick to see it, the registration sees the announcement and enqueues
        its own executions. Both reads are strongly consistent, so the later one sees the other's write.

        A window is announced once, with the instant that separates late from missed fire times. Every process that
        finishes it plans the same, however late. So an open window, or one announced by another tick meanwhile, comes
        first.
        """
        if progress.is_open:
            return progress
        window = {"planning_until": end, "filed_until": end, "decided_at": now, "tries": 0}
        announcement = change({**window, "tzdata": TZDATA_VERSION, "sdk": sdk_version()})
        return self._updated(announcement, _unmoved(progress))

    def count_try(self, progress: PlanningProgress) -> PlanningProgress:
        """Count a further try of the open window, in case the window kills this tick too. Returns what is stored."""
        return self._updated(change(add={"tries": 1}), _unmoved(progress))

    def finish_planning(self, end: int) -> PlanningProgress:
        """Move planned_until to `end`: everything before it is durably enqueued. It never moves back.

        Returns the stored progress: another tick may have been faster.
        """
        moved = change({"planned_until": end, "joined_until": end})
        return self._updated(moved, Attribute("planned_until") < end)

    def distrust_listings(self, now: float) -> PlanningProgress:
        """From `now` on, ticks read the whole directory for a while. Returns the stored progress."""
        distrust = change({"filing": FILING, "filed_since": now, "filed_until": Attribute("planning_until")})
        return read(self._table.update(keys.PROGRESS, distrust), PlanningProgress)

    # The entries of a shard

    def entries(
        self, shard: Shard, after: str = "", *, consistent: bool = True
    ) -> Iterator[DueEntry | Unreadable]:
        """The entries of a shard, starting after the `entry_position` of one of them."""
        partition = keys.shard_partition(shard.group, shard.shard)
        for item in self.entry_items(shard, after, consistent=consistent):
            yield read_entry(item, partition)

    def entry_items(self, shard: Shard, after: str = "", *, consistent: bool = True) -> Iterator[Item]:
        """The same as items, for `read_entry`."""
        partition = keys.shard_partition(shard.group, shard.shard)
        start: keys.Key | None = {"pk": partition, "sk": after} if after else None
        query = Query(partition, attributes=("sk", "entry"), after=start, consistent=consistent)
        return self._table.query(query)

    def put_entry(self, tx: Transaction, entry: DueEntry, group: str, shard: int) -> None:
        """Add the entry to `tx`, in this shard of its group."""
        key = keys.due_entry(group, shard, entry.tenant, entry.job_id)
        tx.put(self._table, {**key, "entry": entry.encode(), "expires_at": expiry(group)})

    def delete_entry(self, tx: Transaction, group: str, shard: int, tenant: str, job_id: str) -> None:
        """Delete a job's entry in `tx`."""
        tx.delete(self._table, keys.due_entry(group, shard, tenant, job_id))

    # Registrations whose executions may not be enqueued yet

    def put_pending(self, tx: Transaction, entry: DueEntry, revision: int) -> PendingRegistration:
        """Add to `tx` that the registration's executions may have to be enqueued."""
        key = keys.pending(entry.tenant, entry.job_id, revision)
        tx.put(self._table, {**key, "entry": entry.encode()})
        return PendingRegistration(key, entry)

    def put_unplanned(self, tx: Transaction, entry: DueEntry, until: int, revision: int) -> None:
        """Add to `tx` that the next tick plans the entry up to `until`, where its times ended with this revision."""
        key = keys.pending(entry.tenant, entry.job_id, -revision)
        tx.put(self._table, {**key, "entry": entry.encode(), "until": until})

    def pending(self) -> Iterator[PendingRegistration | Unreadable]:
        """All pending registrations, also unreadable ones."""
        for partition in keys.partitions("PENDING"):
            for item in self._table.query(Query(partition)):
                entry = read_entry(item, partition, item["sk"].rpartition("#")[0])
                if isinstance(entry, Unreadable):
                    yield replace(entry, item=item)
                else:
                    yield PendingRegistration(keys.key_of(item), entry, item.get("until", 0))

    def drop_pending(self, tenant: str, job_id: str) -> None:
        """Delete the pending entries of a job that is removed with its tenant."""
        any_revision = keys.pending(tenant, job_id, 0)
        prefix = any_revision["sk"].removesuffix("0")
        for item in self._table.query(Query(any_revision["pk"], sk_prefix=prefix)):
            self._table.delete(keys.key_of(item))

    def confirm(self, *pending: PendingRegistration) -> None:
        """Delete these entries: their executions are enqueued. Each registration has its own entry."""
        if len(pending) == 1:
            self._table.delete(pending[0].key)
        else:  # entries that are left because of throttling do no harm: the next tick confirms them
            self._table.delete_many([registration.key for registration in pending])


def _unmoved(progress: PlanningProgress) -> Condition:
    as_read = {"planned_until": progress.planned_until, "planning_until": progress.planning_until}
    return unchanged(as_read, *as_read)


def read_entry(item: Item, partition: str, name: str = "") -> DueEntry | Unreadable:
    """The entry of an item of a partition. `name`: the tenant and the job, if the item's sort key says more."""
    try:
        entry = DueEntry.decode(item["entry"])
        if f"{entry.tenant}#{entry.job_id}" != (name or item["sk"]):
            raise ValueError(f"of another job: {entry.tenant!r}, {entry.job_id!r}")
        if not entry.job_id:
            raise ValueError("its key names no job")
        return entry
    except DAMAGE as error:
        key: keys.Key = {"pk": partition, "sk": item["sk"]}
        return Unreadable("due", key, f"unreadable due entry: {error!r}"[:500])


def entry_position(entry: DueEntry | Unreadable) -> str:
    """An entry's position in its shard, from which `DueIndex.entries` can continue."""
    if isinstance(entry, Unreadable):
        return entry.key["sk"]
    return keys.due_entry("", 0, entry.tenant, entry.job_id)["sk"]
