"""What ticks have written down, and checks of it, for `minute8 doctor` and for the API."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final

from common.clock import Clock
from common.errors import Damaged
from common.planning.due_index import DueIndex, PlanningProgress
from common.planning.quarantine import Quarantine, described
from common.planning.shares import Shares
from common.platform.findings import Finding, Level, Repair, failed, ok, repairable, warning
from common.storage.table import Table
from common.timing.instants import when
from common.timing.windows import WINDOW_S, planning_end

_TICK_MINUTE_S: Final = 480
# EventBridge invokes within a minute of the rule's time, and a tick takes seconds.
_TICK_GRACE_S: Final = 90
# A tick and a planner each end within 300 s.
_UNFINISHED_S: Final = 300
# A registration enqueues its executions within a second of its commit.
_PENDING_S: Final = 2
# Of the operator's clock, which the doctor checks too.
_MAX_CLOCK_ERROR_S: Final = 300
# A planned_until that was moved back is reported for a day.
_MOVED_BACK_S: Final = 86_400
# Of each list of problems: enough to act.
MAX_READ: Final = 1_000


@dataclass(frozen=True, slots=True)
class PlanningState:
    """Reads the due table of a stage for the platform's operator."""

    due: Table
    clock: Clock
    stage: str

    def index(self) -> DueIndex:
        return DueIndex(self.due)

    def shares(self) -> Shares:
        return Shares(self.due)

    def quarantine(self) -> Quarantine:
        return Quarantine(self.due)

    def named(self, part: str) -> str:
        """As serverless.yml names the part."""
        return f"minute8-{self.stage}-{part}"


def check_progress(tables: PlanningState) -> Iterator[Finding]:
    """Up to when everything is planned: this shows that ticks run and succeed."""
    now = tables.clock.now()
    try:
        progress = tables.index().read_progress()
    except Damaged as error:
        yield failed(
            f"planned_until cannot be read: {error}", "the next tick writes it anew", page="planning-lag"
        )
        return
    if progress is None:
        yield warning(
            "nothing has been planned yet: no tick came, and no job was registered",
            "look again after the next minute 8; then the scheduler's log says why",
        )
        return
    reached = f"planned until {when(progress.planned_until, now)}"
    if progress.is_ahead(now, _MAX_CLOCK_ERROR_S):
        back = "move planned_until back to the end of the last recorded window; the next tick plans what was missed"
        yield repairable(
            f"{reached}, further ahead than a tick can plan: nothing is planned until then",
            Repair(back, lambda: tables.index().move_back(progress, now)),
            page="planning-lag",
        )
        return
    if progress.has_gap and progress.joined_until:
        begin = when(progress.joined_until, now)
        back = (
            f"move planned_until back to {begin}; the next tick, which does it too, plans what was left out"
        )
        yield repairable(
            f"{reached}, and no tick has planned from {begin} on: something else has moved planned_until",
            Repair(back, lambda: tables.index().close_gap(progress, now)),
            page="planning-lag",
        )
        return
    if progress.moved_back_at > now - _MOVED_BACK_S:
        yield warning(
            f"it was moved back from {when(progress.moved_back_from, now)} at {when(int(progress.moved_back_at), now)}:"
            " it was ahead, or what was planned was not in the log",
            "what was missed is planned by the jobs' catch-up; find out who wrote or deleted items of the due table",
            page="planning-lag",
            since_at=progress.moved_back_at,
        )
    missed = ticks_missed(progress, now)
    log = f"look at the log of {tables.named('scheduler')}; the next tick plans what was missed"
    since_at = float(min(progress.planned_until, now))
    if missed and progress.planned_until <= now:
        yield failed(
            f"executions are late: {reached}, {missed} ticks are missed",
            log,
            page="planning-lag",
            since_at=since_at,
        )
    elif missed:
        yield warning(
            f"the last tick is missed, and executions are about to be late: {reached}",
            log,
            page="planning-lag",
            since_at=since_at,
        )
    yield ok(reached)


def ticks_missed(progress: PlanningProgress, now: float) -> int:
    """How many ticks should have moved planned_until by now, but did not."""
    last = (int(now) - _TICK_GRACE_S - _TICK_MINUTE_S) // WINDOW_S * WINDOW_S + _TICK_MINUTE_S
    return max(0, math.ceil((planning_end(last) - progress.planned_until) / WINDOW_S))


def check_unfinished(tables: PlanningState) -> Iterator[Finding]:
    """A window that a tick began and did not finish, and interrupted registrations."""
    now, progress = tables.clock.now(), tables.index().progress()
    if progress and progress.is_open and now - progress.decided_at > _UNFINISHED_S:
        began = when(int(progress.decided_at), now)
        if progress.is_divided:
            remaining = len(tables.shares().unconfirmed(progress))
            yield warning(
                f"{remaining} shares of the window that a tick divided at {began} are not handed over",
                f"look at the log of {tables.named('planner')}; the next tick sends them again",
                page="tick-errors",
                since_at=progress.decided_at,
            )
        else:
            yield warning(
                f"the tick of {began} has not finished its window",
                f"look at the log of {tables.named('scheduler')}; the next tick finishes it",
                page="tick-errors",
                since_at=progress.decided_at,
            )
    if pending := _stuck_pending(tables):
        yield warning(
            f"{pending} registrations were cut off before they handed their executions over",
            "the next tick does it; if they stay, its log says why",
        )
    yield ok("no window is half planned, and no registration half done")


def check_quarantine(tables: PlanningState) -> Iterator[Finding]:
    """Groups and shares that wait for planning, unreadable items, and bad entries in the last two windows."""
    now = tables.clock.now()
    waiting = list(islice(tables.quarantine().waiting(), MAX_READ))
    if waiting:
        since_at = min(entry.start_at or entry.seen_at for entry in waiting)
        first = f"the first since {when(since_at, now)}"
        yield failed(
            f"{len(waiting)} groups, shares or items are not planned, {first}: {described(waiting)}",
            "each tick tries groups and shares again; where the reason is a later version or other time zones, deploy"
            " it again; an item is tried again by another version, or put back or deleted by hand",
            page="quarantine",
            since_at=since_at,
        )
    entries = islice(tables.quarantine().bad_entries(), MAX_READ)
    recent = [entry for entry in entries if entry.seen_at > now - 2 * WINDOW_S]
    if notes := [entry for entry in recent if entry.is_note]:
        yield warning(described(notes), "the page says what each means", page="quarantine")
    if bad := [entry for entry in recent if not entry.is_note]:
        yield warning(
            f"{len(bad)} job{'s' * (len(bad) != 1)} cannot be planned: {described(bad)}",
            "each has a skipped run with the reason; the tenant can put the job again",
            page="quarantine",
        )
    yield ok("nothing is set aside")


def _stuck_pending(tables: PlanningState) -> int:
    """How many registrations are pending in two reads, so that registrations in progress do not count."""
    before = _pending_keys(tables)
    if not before:
        return 0
    tables.clock.sleep(_PENDING_S)
    return len(before & _pending_keys(tables))


def _pending_keys(tables: PlanningState) -> set[str]:
    return {pending.key["sk"] for pending in islice(tables.index().pending(), MAX_READ)}


CHECKS: Final[Mapping[str, Callable[[PlanningState], Iterator[Finding]]]] = {
    "planned until": check_progress,
    "unfinished planning": check_unfinished,
    "quarantine": check_quarantine,
}


def findings(tables: PlanningState) -> list[Finding]:
    """The findings of all checks. A check that finds a problem does not say what is well."""
    findings: list[Finding] = []
    for name, check in CHECKS.items():
        of_check = [replace(finding, check=name) for finding in check(tables)]
        findings += [finding for finding in of_check if finding.level != Level.OK] or of_check
    return findings
