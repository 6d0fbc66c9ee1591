"""Finds what is due in a window: the shards, from the directory of groups, and the executions of their entries.

A tick reads the shards that are listed for its window. It reads the whole directory where listings may be missing: for
a day after code of another version, or with other time zones, was at work; after an outage; and in one window of each
day. Unreadable groups are quarantined. An error in one entry does not stop the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from common.clock import Clock
from common.jobs.calendars import RememberedCalendars
from common.jobs.ended import fires_again
from common.planning.chores import for_each
from common.planning.directory import Directory, Listing, Shard
from common.planning.due_entry import DueEntry
from common.planning.due_index import DueIndex, PendingRegistration, PlanningProgress, Window, entry_position
from common.planning.execution import Execution
from common.planning.pace import ALL_SECONDS, PaceSlice, pace_of
from common.planning.plan import Plan, plan, plan_registered, scattered
from common.planning.quarantine import Quarantine
from common.planning.shares import Share
from common.storage import keys
from common.storage.conflicts import TransactionConflict
from common.storage.unreadable import Unreadable
from common.storage.wire import DAMAGE
from common.timing.excluded_days import Excluded
from common.timing.groups import group_can_fire
from common.timing.instants import DAY_S
from scheduler.pacing import PaceKeeper
from scheduler.skipped import SkipRecorder
from scheduler.summary import TickSummary

# A tick holds at most this many empty shards in memory to drop them, and as many wrongly_listed shards to file them.
MAX_REPAIRED_SHARDS: Final = 200_000
# A tick looks into so many shards that the directory counts as empty, before it leaves them out of its plan.
MAX_LOOKED_INTO: Final = 1_000
# After a deployment or a rollback, code of an earlier version may write for this long.
_DISTRUST_S: Final = DAY_S
# A longer window was left by an outage: it has so many listings that reading the whole directory costs less.
_MAX_LISTED_WINDOW_S: Final = 3_600
# The window that is checked every day begins at 03:50 UTC, when little is due.
_CHECKED_AT_S: Final = 3 * 3_600 + 3_000
# One batch read; common/storage/table.py.
_BATCH_SIZE: Final = 100
_SHARDS_BETWEEN_CLOCK_READS: Final = 1_600
_MAX_REPAIR_S: Final = 60


@dataclass(slots=True)
class DirectoryRepairs:
    """The shards that reading the directory found empty, listed at the wrong times, or counted wrongly."""

    empty: list[Listing] = field(default_factory=list)
    wrongly_listed: list[Listing] = field(default_factory=list)
    miscounted: list[Shard] = field(default_factory=list)
    # The directory counts nothing in them, and nobody has looked.
    uncertain: list[Listing] = field(default_factory=list)
    _looked_into: int = 0

    def note(
        self, listings: Iterator[Listing | Unreadable], directory: Directory
    ) -> Iterator[Listing | Unreadable]:
        """Pass on the listings of shards with entries, and note the listings that need a repair."""
        for listing in listings:
            if isinstance(listing, Unreadable):
                yield listing
            elif listing.shard.jobs <= 0:
                if self._has_entries(listing, directory):
                    self.miscounted.append(listing.shard)
                    yield listing._replace(shard=listing.shard._replace(jobs=1))
                elif len(self.empty) + len(self.uncertain) < MAX_REPAIRED_SHARDS:
                    (self.empty if self._looked_into <= MAX_LOOKED_INTO else self.uncertain).append(listing)
            else:
                if not listing.is_right and len(self.wrongly_listed) < MAX_REPAIRED_SHARDS:
                    self.wrongly_listed.append(listing)
                yield listing

    def _has_entries(self, listing: Listing, directory: Directory) -> bool:
        """Whether a shard has entries that the directory does not count: its item was damaged."""
        self._looked_into += 1
        return self._looked_into <= MAX_LOOKED_INTO and directory.has_entries(listing.shard)


def due_shards(
    index: DueIndex,
    quarantine: Quarantine,
    progress: PlanningProgress,
    summary: TickSummary,
    repairs: DirectoryRepairs,
) -> Iterator[Shard]:
    """The shards that may fire in the open window.

    Unreadable ones are quarantined after all are read, and therefore before planned_until moves.
    """
    unreadable: list[Unreadable] = []
    for listing in _recurring(index, progress, summary, repairs):
        if isinstance(listing, Unreadable):
            unreadable.append(listing)
        else:
            yield listing.shard
    for shard in index.directory.one_off_shards(progress.planned_until, progress.planning_until):
        if isinstance(shard, Unreadable):
            unreadable.append(shard)
        else:
            yield shard
    if repairs.wrongly_listed:
        index.distrust_listings(summary.now)
    for_each(
        unreadable, lambda bad: quarantine.add_group(bad.key["sk"], progress.window, bad.reason, summary.now)
    )


def repair_directory(index: DueIndex, repairs: DirectoryRepairs, clock: Clock) -> None:
    """List wrongly listed shards anew, and drop empty ones. After a minute the rest is left to later ticks.

    Ticks may read the whole directory. So the directory must be emptied as fast as tenants can fill it.
    """
    stop_at = clock.now() + _MAX_REPAIR_S

    def file(wrongly_listed: list[Listing]) -> None:
        with suppress(TransactionConflict):  # a registration is writing one of the shards
            index.directory.open(wrongly_listed)

    for listings, repair_batch in (
        (repairs.wrongly_listed, file),
        (repairs.empty, index.directory.drop_empty),
        (repairs.uncertain, index.directory.drop_if_without_entries),
    ):
        for first in range(0, len(listings), _SHARDS_BETWEEN_CLOCK_READS):
            if clock.now() >= stop_at:
                return
            chunk = listings[first : first + _SHARDS_BETWEEN_CLOCK_READS]
            for_each([chunk[at : at + _BATCH_SIZE] for at in range(0, len(chunk), _BATCH_SIZE)], repair_batch)


def _recurring(
    index: DueIndex, progress: PlanningProgress, summary: TickSummary, repairs: DirectoryRepairs
) -> Iterator[Listing | Unreadable]:
    if _reads_all(progress, summary.now):
        yield from _due(
            repairs.note(_whole_directory(index.directory, progress.window), index.directory),
            progress.window,
            summary,
        )
        return
    listed = _due(
        index.directory.listed(progress.planned_until, progress.planning_until), progress.window, summary
    )
    while batch := list(islice(listed, _BATCH_SIZE)):
        yield from (listing for listing in batch if isinstance(listing, Unreadable))
        readable = [listing for listing in batch if isinstance(listing, Listing)]
        yield from repairs.note(index.directory.counted(readable), index.directory)


def _whole_directory(directory: Directory, window: Window) -> Iterator[Listing | Unreadable]:
    """The whole directory, and the shards that are listed for the window although it does not have them."""
    known: set[tuple[str, int]] = set()
    for listing in directory.all():
        if isinstance(listing, Listing):
            known.add(listing.shard[:2])
        yield listing
    if window.end - window.start <= _MAX_LISTED_WINDOW_S:
        for listing in directory.listed(window.start, window.end):
            if isinstance(listing, Listing) and listing.shard[:2] not in known:
                yield listing


def _reads_all(progress: PlanningProgress, now: float) -> bool:
    checks = [
        (at - _CHECKED_AT_S) // DAY_S for at in (progress.planned_until - 1, progress.planning_until - 1)
    ]
    return (
        not progress.trusts_listings
        or now < progress.filed_since + _DISTRUST_S
        or progress.planning_until - progress.planned_until > _MAX_LISTED_WINDOW_S
        or checks[0] < checks[1]
    )


def _due(
    listings: Iterator[Listing | Unreadable], window: Window, summary: TickSummary
) -> Iterator[Listing | Unreadable]:
    """The listings of shards that may fire in the window, and the unreadable ones."""
    for listing in listings:
        summary.groups_known += 1
        if isinstance(listing, Unreadable):
            yield listing
            continue
        group, shard, _ = listing.shard
        try:
            is_due = group_can_fire(group, window.start, window.end)
        except DAMAGE as error:
            yield Unreadable("due", keys.directory(group, shard), f"unreadable group: {error!r}"[:500])
            continue
        if is_due:
            yield listing


@dataclass(slots=True)
class ShardWork:
    """Shards to plan in a window, and the progress: `done` shards, and the next shard up to the position `after`.

    `pace_slice` says which seconds are the planner's own, if the shards are one slice of a pace.
    """

    window: Window
    shards: Sequence[Shard]
    after: str = ""
    pace_slice: PaceSlice = ALL_SECONDS
    done: int = 0

    @classmethod
    def of(cls, share: Share) -> ShardWork:
        """The work of a share."""
        return cls(share.window, share.shards, share.after, share.pace_slice)

    @property
    def remaining(self) -> Sequence[Shard]:
        """The shards that are not done."""
        return self.shards[self.done :]


@dataclass(frozen=True, slots=True)
class EntryPlanner:
    """Reads due entries and registrations, and plans each of them."""

    index: DueIndex
    calendars: RememberedCalendars
    clock: Clock
    skipped: SkipRecorder
    summary: TickSummary

    def executions(self, work: ShardWork, keeper: PaceKeeper, until: float) -> Iterator[Execution]:
        """The executions of the shards in their window, the shards of a pace together.

        From `until` on no more entries are read. A pace is read to its end, or up to MAX_RESERVED_TOGETHER executions.
        """

        def is_time_up() -> bool:
            return bool(until) and self.clock.now() >= until

        for pace, group in groupby(work.shards, key=lambda shard: pace_of(shard.shard)):
            shards = list(group)
            if pace:
                planned = self._planned(work, shards, lambda: False)
                yield from keeper.keep(shards[0], planned, is_time_up)
            else:
                for entry, executions in self._planned(work, shards, is_time_up):
                    yield from (scattered(entry, execution) for execution in executions)
            if is_time_up():
                return

    def registered(
        self, registrations: Sequence[PendingRegistration | Unreadable], progress: PlanningProgress
    ) -> Iterator[Execution]:
        """The executions of interrupted registrations before the announced end."""
        for registration in registrations:
            if isinstance(registration, Unreadable):
                self.skipped.bad_entry(registration, progress.planned_until)
            elif registration.until:
                entry, partition = registration.entry, registration.key["pk"]
                unplanned = Window(entry.effective_at, registration.until, self.summary.now)
                executions = self._plan(entry, partition, unplanned, _as_due)
                yield from (scattered(entry, execution) for execution in executions)
            else:
                partition = registration.key["pk"]
                yield from self._plan(registration.entry, partition, progress.window, _as_registered)

    def _planned(
        self, work: ShardWork, shards: Sequence[Shard], is_time_up: Callable[[], bool]
    ) -> Iterator[tuple[DueEntry, list[Execution]]]:
        for shard in shards:
            self.summary.shards_due += 1
            # Of a shard that another planner began, only the rest is read.
            expected = 0 if work.after else shard.jobs
            entries, partition = 0, keys.shard_partition(shard.group, shard.shard)
            for entry in self.index.entries(shard, work.after):
                self.summary.entries_read += 1
                entries += 1
                work.after = entry_position(entry)
                if isinstance(entry, Unreadable):
                    self.skipped.bad_entry(entry, work.window.start)
                else:
                    yield entry, self._plan(entry, partition, work.window, _as_due)
                if is_time_up():
                    return
            if expected and entries != expected:
                self.summary.suspect(shard.group, shard.shard)
            work.done += 1
            work.after = ""

    def _plan(
        self, entry: DueEntry, partition: str, window: Window, plan_entry: _PlanEntry
    ) -> list[Execution]:
        try:
            excluded = self.calendars.excluded(entry.tenant, entry.schedule)
            planned = plan_entry(entry, window, excluded)
        except (BotoCoreError, ClientError):  # not the entry's fault
            raise
        except Exception as error:  # noqa: BLE001
            key: keys.Key = {"pk": partition, "sk": entry_position(entry)}
            self.skipped.bad_entry(
                Unreadable("due", key, f"cannot be planned: {error!r}"[:500]), window.start
            )
            return []
        if planned.missed:
            has_more = planned.executions or fires_again(entry.schedule, window.end - 1, excluded)
            self.skipped.missed(planned.missed, is_last=not has_more)
        return planned.executions


_PlanEntry = Callable[[DueEntry, Window, Excluded], Plan]


def _as_due(entry: DueEntry, window: Window, excluded: Excluded) -> Plan:
    return plan(entry, window.start, window.end, window.decided_at, excluded)


def _as_registered(entry: DueEntry, window: Window, excluded: Excluded) -> Plan:
    return Plan(plan_registered(entry, window.end, excluded))
