"""Plans windows: turns due entries into messages, in the tick or in planners.

A planner is a Lambda function that takes messages from the planning queue. A message names a share of a window that is
too large for one tick, or quarantined records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from common import telemetry
from common.clock import Clock
from common.deployment import Deployment
from common.errors import ItemTooLarge, Minute8Error
from common.events import Events
from common.jobs.calendars import Calendars, RememberedCalendars
from common.planning.chores import for_each
from common.planning.directory import Shard
from common.planning.due_index import DueIndex, PendingRegistration, PlanningProgress
from common.planning.execution import Execution
from common.planning.log import PlannedWindow, UnwrittenChunk
from common.planning.packs import PACK_FROM, packed
from common.planning.postponed import Postponed
from common.planning.quarantine import GROUP, ITEM, MAX_RETRIED_RECORDS, Quarantine, QuarantinedRecord
from common.planning.queue import ExecutionsQueue
from common.planning.shares import (
    PlanningQueue,
    PlanningWork,
    Share,
    ShareDraft,
    Shares,
    divide,
    grouped_by_pace,
)
from common.storage import keys
from common.storage.aws import on_first_use
from common.storage.unreadable import Unreadable
from common.storage.wire import DAMAGE
from common.timing.groups import group_can_fire
from common.timing.windows import planning_end
from common.version import VERSION
from scheduler.due import DirectoryRepairs, EntryPlanner, ShardWork, due_shards, repair_directory
from scheduler.pacing import PaceCarryover, PaceKeeper
from scheduler.skipped import SkipRecorder
from scheduler.summary import TickSummary

if TYPE_CHECKING:
    from common.jobs.ended import EndedJobs
    from common.runs.records import Runs

# If a window begins sooner than this, its executions are enqueued as fast as possible.
HURRY_S: Final = 30
# If a window is behind, the tick waits this long for planners, so that it can plan the next window too.
MAX_PLANNERS_WAIT_S: Final = 60
# A window that this many ticks have not finished goes to planners, in shares that get smaller each time.
MIN_DIVIDED_TRIES: Final = 2
_MIN_SHARE_ENTRIES: Final = 50
# After this time a planner leaves the rest to another planner; its function has 300 s (serverless.yml).
MAX_PLANNER_S: Final = 180
# A record that failed before is sent alone.
MAX_MESSAGE_RECORDS: Final = 20


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans the entries of shards, registrations and postponed executions.

    A `patient` planner sends when executors hold messages least. Executions of one second are packed, if the second has
    more than `pack_from` of them.
    """

    index: DueIndex
    runs: Runs
    queue: ExecutionsQueue
    clock: Clock
    postponed: Postponed
    calendars: Calendars
    events: Events
    quarantine: Quarantine
    ended: EndedJobs
    carryover: PaceCarryover
    patient: bool = False
    pack_from: int = PACK_FROM

    @classmethod
    def of(cls, deployment: Deployment, patient: bool = False) -> Planner:
        """The planner of a deployment. What records skipped executions is made for the first that is skipped."""
        due = deployment.tables.due
        return cls(
            index=deployment.index,
            runs=on_first_use(lambda: deployment.runs),
            queue=deployment.queue,
            clock=deployment.clock,
            postponed=deployment.postponed,
            calendars=Calendars(deployment.tables.jobs),
            events=deployment.events,
            quarantine=Quarantine(due),
            ended=on_first_use(lambda: deployment.ended_jobs),
            carryover=PaceCarryover(due),
            patient=patient,
            pack_from=deployment.settings.pack_from,
        )

    def plan_shards(self, work: ShardWork, summary: TickSummary, until: float = 0) -> None:
        """Enqueue all executions of these shards in their window; from `until` on no more entries are read.

        What remains then is in `work.remaining`. Without `until` nothing remains.
        """
        send_late_until = work.window.start - HURRY_S if self.patient else 0
        skipped = self._skip_recorder(summary)
        keeper = PaceKeeper(self.carryover, self.events, work.window, work.pace_slice, summary)
        executions = self._entry_planner(skipped, summary).executions(work, keeper, until)
        self._enqueue(executions, skipped, summary, send_late_until)

    def plan_registrations(
        self,
        registrations: Sequence[PendingRegistration | Unreadable],
        progress: PlanningProgress,
        summary: TickSummary,
    ) -> None:
        """Enqueue the executions of interrupted registrations up to the announced end."""
        skipped = self._skip_recorder(summary)
        executions = self._entry_planner(skipped, summary).registered(registrations, progress)
        self._enqueue(executions, skipped, summary)

    def enqueue_postponed(self, progress: PlanningProgress, summary: TickSummary, stop_at: float) -> bool:
        """Enqueue postponed executions of the window. Returns whether some may remain, for lack of time."""
        skipped = self._skip_recorder(summary)
        for enqueued in self.postponed.enqueue_due(progress.planning_until, stop_at):
            if isinstance(enqueued, Unreadable):
                skipped.bad_entry(enqueued, progress.planned_until)
            else:
                summary.planned += enqueued
        _record(skipped, summary)
        return self.clock.now() >= stop_at

    def plan_quarantined(self, name: str, summary: TickSummary) -> None:
        """Plan the quarantined record with this sort key, without a time limit."""
        if share := self.quarantine.take(name, summary.now):
            self.plan_shards(ShardWork.of(share), summary)
            self.quarantine.release(share)

    def _entry_planner(self, skipped: SkipRecorder, summary: TickSummary) -> EntryPlanner:
        return EntryPlanner(self.index, RememberedCalendars(self.calendars), self.clock, skipped, summary)

    def _skip_recorder(self, summary: TickSummary) -> SkipRecorder:
        return SkipRecorder(self.runs, self.index.log, self.events, self.quarantine, self.ended, summary.now)

    def _enqueue(
        self,
        executions: Iterator[Execution],
        skipped: SkipRecorder,
        summary: TickSummary,
        send_late_until: float = 0,
    ) -> None:
        log = self.index.log.writer(self.clock.now())
        near = self.postponed.postpone_distant(log.recording(executions))
        planned, refused = self.queue.send_packs(
            packed(near, self.pack_from), send_late_until=send_late_until
        )
        for refusal in refused:
            skipped.refused(refusal.execution, refusal.reason)
        _record(skipped, summary)
        for unwritten in log.write():
            self._report_unlogged(unwritten, summary)
        summary.places += log.places
        summary.planned += planned
        summary.refused += len(refused)

    def write_down(self, summary: TickSummary, *, ticks: int = 0, planners: int = 0) -> None:
        """Write down how the planning of a window went. An error is only logged: the window is planned again."""
        if summary.planning_until <= summary.start:
            return
        window = PlannedWindow(
            start=summary.start,
            end=summary.planning_until,
            began_at=summary.now,
            ended_at=self.clock.now(),
            planned=summary.planned,
            missed=summary.missed,
            bad_entries=summary.bad_entries,
            ticks=ticks,
            planners=planners,
            places=tuple(summary.places),
        )
        try:
            self.index.windows.add(window)
        except (BotoCoreError, ClientError, Minute8Error) as error:
            telemetry.logger().error(
                "the window is planned, and its figures are lost", problem=repr(error)[:500]
            )
            if isinstance(error, ItemTooLarge):
                unnamed = f"its record is full, and does not name {len(window.places)} parts of its log"
                self._note_for_operator(window.start, f"{unnamed}: nobody notices if these are deleted")

    def _report_unlogged(self, unwritten: UnwrittenChunk, summary: TickSummary) -> None:
        """Note it for the operator: the alarm `quarantine` rings. The window is planned all the same."""
        summary.unlogged += unwritten.count
        self._note_for_operator(unwritten.window, str(unwritten))

    def _note_for_operator(self, window: int, problem: str) -> None:
        with telemetry.tolerated("not noted for the operator; the log tells it", problem=problem):
            self.quarantine.add_entry(f"#log-{window}", problem, self.clock.now())


@dataclass(frozen=True, slots=True)
class FanOut:
    """The records of shares, and the queue to the planners. A share has up to `share_entries` due entries."""

    shares: Shares
    queue: PlanningQueue
    share_entries: int

    def max_entries(self, progress: PlanningProgress) -> int:
        """How many entries a share may have: fewer for each tick that did not finish the window."""
        return max(min(_MIN_SHARE_ENTRIES, self.share_entries), self.share_entries >> 2 * progress.tries)


@dataclass(frozen=True, slots=True)
class WindowPlanner:
    """Plans an announced window in one of three modes. Without `fan_out` the mode is always *alone*.

    - Alone: the tick plans the whole window itself, and moves planned_until.
    - Divided: the window is too large, or two ticks did not finish it. Planners get its shares, and the last planner
      moves planned_until.
    - Overdue: a divided window holds up the next one after planners had their time. Its remaining shares are
      quarantined.
    """

    planner: Planner
    fan_out: FanOut | None = None

    def plan(self, progress: PlanningProgress, summary: TickSummary) -> PlanningProgress:
        """Plan the open window. Returns the stored progress."""
        if self.fan_out and progress.is_divided:
            return self._resume_divided(self.fan_out, progress, summary)
        index, repairs = self.planner.index, DirectoryRepairs()
        due = due_shards(index, self.planner.quarantine, progress, summary, repairs)
        if self.fan_out is None:
            progress = self._plan_alone(chain.from_iterable(grouped_by_pace(due)), progress, summary)
        else:
            progress = self._plan_or_divide(self.fan_out, due, progress, summary)
        for shard in repairs.miscounted:
            summary.suspect(shard.group, shard.shard)
        repair_directory(index, repairs, self.planner.clock)
        return progress

    def _plan_or_divide(
        self, fan_out: FanOut, due: Iterator[Shard], progress: PlanningProgress, summary: TickSummary
    ) -> PlanningProgress:
        drafts = divide(due, progress.window, fan_out.max_entries(progress))
        first_drafts = list(islice(drafts, 2))
        if len(first_drafts) < 2 and progress.tries < MIN_DIVIDED_TRIES:
            return self._plan_alone(
                chain.from_iterable(draft.shards for draft in first_drafts), progress, summary
            )
        return self._divide(fan_out, chain(first_drafts, drafts), progress, summary)

    def _plan_alone(
        self, shards: Iterable[Shard], progress: PlanningProgress, summary: TickSummary
    ) -> PlanningProgress:
        self.planner.plan_shards(ShardWork(progress.window, list(shards)), summary)
        return self.planner.index.finish_planning(progress.planning_until)

    def _divide(
        self, fan_out: FanOut, drafts: Iterable[ShareDraft], progress: PlanningProgress, summary: TickSummary
    ) -> PlanningProgress:
        divided = fan_out.shares.record(progress.window, drafts)
        return self._send_shares(fan_out, divided, summary) if divided.is_divided else divided

    def _resume_divided(
        self, fan_out: FanOut, progress: PlanningProgress, summary: TickSummary
    ) -> PlanningProgress:
        """Send the remaining shares again; quarantine them if no planner finished and the window is overdue."""
        latest = self._send_shares(fan_out, progress, summary)
        if _is_behind(progress, summary) and latest == progress:
            return self._quarantine_shares(fan_out, progress, summary)
        return latest

    def _send_shares(
        self, fan_out: FanOut, progress: PlanningProgress, summary: TickSummary
    ) -> PlanningProgress:
        """Send the unconfirmed shares to the planners. Wait for them if the window holds up the next one."""
        numbers = fan_out.shares.unconfirmed(progress)
        summary.shares += len(numbers)
        fan_out.queue.send(progress.planning_until, numbers)
        if not numbers:
            fan_out.shares.finish_if_last(progress.planning_until)
        clock = self.planner.clock
        until = clock.now() + (MAX_PLANNERS_WAIT_S if numbers and _is_behind(progress, summary) else 0)
        while (latest := self.planner.index.ensure_progress(summary.now)).is_divided and clock.now() < until:
            clock.sleep(1)
        return latest

    def _quarantine_shares(
        self, fan_out: FanOut, progress: PlanningProgress, summary: TickSummary
    ) -> PlanningProgress:
        def add(number: int) -> None:
            share = fan_out.shares.load(progress.planning_until, number)
            if isinstance(share, Unreadable):
                self.planner.quarantine.add_unreadable_share(share, summary.now)
            elif share:
                self.planner.quarantine.add_share(
                    share, "no planner got through it before the next tick", summary.now
                )

        for_each(fan_out.shares.unconfirmed(progress), add)
        fan_out.shares.finish_if_last(progress.planning_until)
        return self.planner.index.ensure_progress(summary.now)


def _record(skipped: SkipRecorder, summary: TickSummary) -> None:
    """Write what is not planned, and count it."""
    skipped.write()
    summary.missed += skipped.missed_count
    summary.bad_entries += skipped.bad_entries
    summary.bad += skipped.bad


def _is_behind(progress: PlanningProgress, summary: TickSummary) -> bool:
    """Whether the open window holds up the window that the tick could plan next."""
    return progress.planning_until < planning_end(summary.now)


def retry_quarantined(planner: Planner, fan_out: FanOut | None, summary: TickSummary) -> int:
    """Plan the readable quarantined records, or send them to planners. Returns how many records are quarantined.

    At most MAX_RETRIED_RECORDS are retried. A share that failed before is split first.
    """
    untried: list[str] = []
    failed: list[str] = []
    count = 0
    for record in planner.quarantine.waiting():
        count += 1
        if record.kind == ITEM:
            if record.version != VERSION:
                planner.quarantine.put_back(record.name)
            continue
        is_full = len(untried) + len(failed) >= MAX_RETRIED_RECORDS
        if is_full or (record.kind == GROUP and not _is_readable(record)):
            continue
        if record.tries > 1 and record.shards > 1:
            failed += planner.quarantine.split(record, summary.now)
        else:
            (failed if record.tries else untried).append(record.key["sk"])
    if fan_out:
        batches = [
            untried[first : first + MAX_MESSAGE_RECORDS]
            for first in range(0, len(untried), MAX_MESSAGE_RECORDS)
        ]
        messages = batches + [[name] for name in failed]
        fan_out.queue.send_works([PlanningWork(set_aside=tuple(names)) for names in messages])
    else:
        for name in untried + failed:
            planner.plan_quarantined(name, summary)
    return count


def _is_readable(record: QuarantinedRecord) -> bool:
    try:
        group_can_fire(keys.group_and_shard(record.name)[0], record.start_at, record.end_at)
    except DAMAGE:  # the record waits for a version that can read the group
        return False
    return True


@dataclass(frozen=True, slots=True)
class SharePlanner:
    """Takes shares and quarantined records from the planning queue, and plans them as the tick would."""

    planner: Planner
    shares: Shares
    queue: PlanningQueue

    def plan(self, body: str) -> TickSummary:
        """Plan what a message names. If the share is done already, the message costs one read.

        Raises:
            HandOverFailed, UnreadableShare or an AWS error: the share's record stays, and the queue delivers it again.
        """
        work = PlanningWork.of(body)
        now = self.planner.clock.now()
        if work.set_aside:
            summary = TickSummary(now=now, start=int(now), end=int(now))
            for name in work.set_aside:
                self._plan_quarantined(name, summary)
            return summary
        summary = TickSummary(now=now, start=work.end, end=work.end, planning_until=work.end)
        share = self.shares.load(work.end, work.share)
        if isinstance(share, Unreadable):
            self.planner.quarantine.add_unreadable_share(share, summary.now)
        elif share:
            summary.start = share.window.start
            if not self._plan(share, work, summary):
                return summary
            self.shares.confirm(share)
        # Also for a share that was done before: its planner may have died before it moved planned_until.
        self.shares.finish_if_last(work.end)
        return summary

    def _plan_quarantined(self, name: str, summary: TickSummary) -> None:
        share = self.planner.quarantine.take(name, summary.now)
        if share and self._plan(share, PlanningWork(set_aside=(name,)), summary):
            self.planner.quarantine.release(share)

    def _plan(self, share: Share, message: PlanningWork, summary: TickSummary) -> bool:
        """Whether the whole share is done. If not, its progress is stored, and `message` goes to another planner."""
        work = ShardWork.of(share)
        self.planner.plan_shards(work, summary, summary.now + MAX_PLANNER_S)
        if not work.remaining:
            return True
        if self.shares.advance(share, work.remaining, work.after):
            self.queue.send_works([message])
        return False
