"""The truth checker: what the tables say is compared with each other. For ticks, `minute8 check` and the doctor."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from common.clock import Clock
from common.planning.queue import ExecutionsQueue
from common.storage import keys
from common.storage.table import Tables
from common.truth.contradiction import SHARD_CORRUPT, Contradiction, Subject
from common.truth.found import FoundContradictions, Listed
from common.truth.jobs import JobChecks
from common.truth.runs import RunChecks
from common.truth.shards import ShardChecks
from common.truth.tenants import TenantChecks
from common.truth.unplanned import Unplanned
from common.truth.walk import Walk

# What a tick examines: jobs, due entries and shards. A unit each, and less with several in an item's 4 KB.
EXAMINED_A_TICK: Final = 500
# What it looks at again, or because it is suspicious: each costs some reads.
_LOOKED_AT_A_TICK: Final = 100
_HOUR_S: Final = 3_600
_TICK_S: Final = 600


@dataclass(slots=True)
class Looked:
    """The result of a tick's slice: how much it examined, what is listed after it, and its problems."""

    examined: int = 0
    looked_at: int = 0
    listed: list[Listed] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Truth:
    """Compares a stage's tables. Only repairs write, beside the list of what ticks have found."""

    tables: Tables
    queue: ExecutionsQueue
    clock: Clock

    @property
    def known(self) -> FoundContradictions:
        return FoundContradictions(self.tables.due)

    def look(self, subject: Subject) -> list[Contradiction]:
        """What contradicts this subject now. Raises Busy, and what a read raises."""
        unplanned = Unplanned(self.tables, self.queue, self.clock)
        match subject.kind:
            case "job":
                tenant, _, job_id = subject.name.partition("/")
                return JobChecks(self.tables, unplanned).look(tenant, job_id)
            case "shard":
                return self._look_at_shard(subject, ShardChecks(self.tables, unplanned))
            case "tenant":
                return TenantChecks(self.tables).look(subject.name)
            case "run":
                return RunChecks(unplanned).look(subject.name)

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
        walk = Walk(self.tables, self.clock.now(), most=most, texts=most == math.inf)
        walk.go()
        listed = [listed.looked_at for listed in self.known.all()]
        for subject in dict.fromkeys([*walk.suspects, *listed]):
            if contradictions := self.look(subject):
                yield subject, contradictions

    def refresh(self, subjects: Iterable[Subject]) -> None:
        """Look at these again, and correct the list."""
        now, before = self.clock.now(), self.known.all()
        for subject in subjects:
            self.known.put(subject, self.look(subject), before, now)

    def slice(self, suspects: Iterable[Subject], stop_at: float) -> Looked:
        """A tick's part: walk on, look at suspects and at what is listed, correct the list. Raises nothing."""
        looked = Looked()
        try:
            self._slice(list(suspects), stop_at, looked)
        except Exception as error:  # noqa: BLE001  the tick stands, whatever this is
            looked.problems.append(repr(error)[:300])
        return looked

    def _is_gone(self, tenant: Subject) -> bool:
        """Whether the tenant was removed, or is being removed: then looking at it is cheap."""
        return TenantChecks(self.tables).is_gone(tenant.name)

    def _slice(self, suspects: list[Subject], stop_at: float, looked: Looked) -> None:
        now, before = self.clock.now(), self.known.all()
        looked.listed = before
        walk = Walk(self.tables, now, self.known.position(), EXAMINED_A_TICK)
        self.known.go_on_at(walk.go())
        looked.examined = walk.examined
        again = [
            listed.looked_at
            for listed in before
            if listed.looked_at.kind != "tenant" or now % _HOUR_S < _TICK_S or self._is_gone(listed.looked_at)
        ]
        for subject in list(dict.fromkeys([*suspects, *walk.suspects, *again]))[:_LOOKED_AT_A_TICK]:
            if self.clock.now() >= stop_at:
                looked.problems.append("no time to look at all suspects")
                break
            try:
                contradictions = self.look(subject)
            except Exception as error:  # noqa: BLE001  the others go on
                looked.problems.append(f"{subject.name}: {error!r}"[:300])
                continue
            looked.looked_at += 1
            self.known.put(subject, contradictions, before, now)
        looked.listed = self.known.all()
