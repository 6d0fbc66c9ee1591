"""The truth checker: what the tables say is compared with each other. For ticks, `minute8 check` and the doctor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Final, Protocol

from common import telemetry
from common.clock import Clock
from common.errors import Busy
from common.planning.chores import Done, Position
from common.planning.execution import split_execution_id
from common.planning.quarantine import Quarantine
from common.planning.queue import ExecutionsQueue
from common.runs.records import Runs
from common.storage import keys
from common.storage.table import Tables
from common.storage.wire import DAMAGE
from common.timing.instants import rfc3339
from common.truth.contradiction import (
    ITEM_UNREADABLE,
    RUN_CORRUPT,
    RUN_STUCK,
    SHARD_CORRUPT,
    Contradiction,
    FoundContradictions,
    Subject,
)
from common.truth.jobs import JobChecks, Resolve, as_stored
from common.truth.shards import ShardChecks
from common.truth.tenants import TenantChecks
from common.truth.unplanned import Unplanned
from common.truth.walk import Position as WalkPosition
from common.truth.walk import Walk


@dataclass(frozen=True, slots=True)
class RunChecks:
    """Compares the record of a run with the clock."""

    unplanned: Unplanned

    def look(self, execution_id: str) -> list[Contradiction]:
        """What contradicts the run. Nothing if it has no record: that is what the comparison with the log finds."""
        if (names := split_execution_id(execution_id)) is None:
            return []
        subject, now = Subject("run", execution_id), self.unplanned.clock.now()
        runs = Runs(self.unplanned.tables.runs)
        try:
            run = runs.named(*names)
            if run is None or not run.is_stuck(now):
                return []
            execution = run.going_on(now)
        except DAMAGE as error:
            return [Contradiction(RUN_CORRUPT, subject, f"unreadable: {error!r}"[:300])]
        since = run.stuck_since
        is_possible = since <= now
        should = "should have gone on" if is_possible else "waits for an instant that can be none,"
        detail = f"it is {run.status}, and {should} at {rfc3339(int(since))}"

        def send() -> None:
            if not is_possible:
                runs.end_lease(run, self.unplanned.clock.now())
            runs.note([execution], self.unplanned.clock.now())
            self.unplanned.queue.send([execution])

        return [Contradiction(RUN_STUCK, subject, detail, send)]


# What a tick examines: jobs, due entries and shards. A unit each, and less with several in an item's 4 KB.
EXAMINED_A_TICK: Final = 500
# What it looks at again, or because it is suspicious: each costs some reads.
_LOOKED_AT_A_TICK: Final = 100
_HOUR_S: Final = 3_600
_TICK_S: Final = 600


class StoredChecks(Protocol):
    """Looks at the items that nothing else reads (minute8/cli/doctor/item_checks.py)."""

    def suspects(self, tenants: Iterable[str]) -> Iterable[Subject]:
        """What has to be looked at, of these tenants and of the platform."""

    def look(self, name: str) -> list[Contradiction]:
        """What contradicts a `stored` subject."""


@dataclass(frozen=True, slots=True)
class Truth:
    """Compares a stage's tables. Only repairs write, beside the list of what ticks have found."""

    tables: Tables
    queue: ExecutionsQueue
    clock: Clock
    # Reads what clients wrote; ticks cannot.
    resolve: Resolve = as_stored
    # Of a person's look; ticks read no items but those that they need.
    stored: StoredChecks | None = None

    @property
    def known(self) -> FoundContradictions:
        return FoundContradictions(self.tables.due)

    def look(self, subject: Subject) -> list[Contradiction]:
        """What contradicts this subject now. Raises Busy, and what a read raises."""
        unplanned = Unplanned(self.tables, self.queue, self.clock)
        match subject.kind:
            case "job":
                tenant, _, job_id = subject.name.partition("/")
                return JobChecks(self.tables, unplanned, self.resolve).look(tenant, job_id)
            case "shard":
                return self._look_at_shard(subject, ShardChecks(self.tables, unplanned, self.resolve))
            case "tenant":
                return TenantChecks(self.tables, self.clock).look(subject.name)
            case "run":
                return RunChecks(unplanned).look(subject.name)
            case "item":
                record = Quarantine(self.tables.due).unreadable(subject.name)
                return [Contradiction(ITEM_UNREADABLE, subject, record.reason)] if record else []
            case "stored":
                return self.stored.look(subject.name) if self.stored else []

    def _look_at_shard(self, subject: Subject, checks: ShardChecks) -> list[Contradiction]:
        try:
            group, shard = keys.group_and_shard(subject.name)
        except ValueError as error:
            return [Contradiction(SHARD_CORRUPT, subject, f"it has no number: {error}")]
        return checks.look(group, shard)

    def all(self, most: float = math.inf) -> Iterator[tuple[Subject, list[Contradiction]]]:
        """Read through everything, or the first `most` jobs, entries and shards, and the list of ticks.

        Yields each subject that something contradicts, with all that does.
        """
        walk = Walk(self.tables, self.clock.now(), most=most, texts=most == math.inf, resolve=self.resolve)
        walk.go()
        listed = [listed.looked_at for listed in self.known.all()]
        listed += [Subject("item", record.name) for record in Quarantine(self.tables.due).unreadable_items()]
        known: set[tuple[str, Subject]] = set()  # a shard's look may tell of its jobs
        stored = self.stored.suspects(sorted(walk.tenants)) if self.stored else ()
        for subject in dict.fromkeys([*walk.suspects, *listed, *stored]):
            contradictions = [item for item in self.look(subject) if (item.name, item.subject) not in known]
            known |= {(item.name, item.subject) for item in contradictions}
            if contradictions:
                yield subject, contradictions

    def refresh(self, subjects: Iterable[Subject]) -> None:
        """Look at these again, and correct the list."""
        now, before = self.clock.now(), self.known.all()
        for subject in subjects:
            self.known.put(subject, self.look(subject), before, now)

    def steps(self, at: Position | None, done: Done) -> Iterator[Position]:
        """A chore of one step a tick: walk on, look at what is suspicious or listed, correct the list.

        It shares no position, and nothing that is projected, with the comparison of planned and recorded executions.
        """
        now, before, position = self.clock.now(), self.known.all(), WalkPosition.stored(at)
        walk = Walk(self.tables, now, position, EXAMINED_A_TICK)
        after = done.step(f"walk after {position.of}", walk.go) or position.beyond()
        newest_first = sorted(before, key=lambda listed: -listed.found_at)
        again = [listed.looked_at for listed in newest_first if self._is_looked_at(listed.looked_at, now)]

        def look(subject: Subject) -> None:
            if done.is_time_up:
                raise Busy("no time to look at it")
            self.known.put(subject, self.look(subject), before, now)

        subjects = list(dict.fromkeys([*walk.suspects, *again]))[:_LOOKED_AT_A_TICK]
        done.each(subjects, look, lambda subject: subject.name)
        listed = self.known.all() if subjects else before
        if listed:  # a metric costs money in each hour in which it has a value
            done.metrics[telemetry.CONTRADICTIONS] = len(listed)
            done.counts.update(each.name for each in listed)
            done.errors += [f"{each.name} {each.about.name}: {each.detail}" for each in listed]
        yield asdict(after)

    def _is_looked_at(self, subject: Subject, now: float) -> bool:
        """Whether to look at what is listed. A tenant costs much: its turn is once an hour, and when it is gone."""
        is_cheap = subject.kind != "tenant" or TenantChecks(self.tables, self.clock).is_gone(subject.name)
        return is_cheap or now % _HOUR_S < _TICK_S
