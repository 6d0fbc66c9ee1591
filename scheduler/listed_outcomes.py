"""Makes the last outcomes of jobs (common/projection/outcomes.py) for tenants whose lists of jobs somebody looked at.

A week of many runs takes seconds, which no look has. Later looks add the few windows since.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from common.clock import Clock
from common.errors import Busy
from common.planning.chores import Done, Position
from common.projection.outcomes import JobOutcomes
from common.projection.state import ProjectionStates
from common.storage.table import Tables
from scheduler.living import LivingTenants

# Of a whole core, after which a part is stored; a tick has 300 s (serverless.yml).
_PART_CPU_S: Final = 3.0


@dataclass(frozen=True, slots=True)
class OutcomesMaker:
    """Makes them."""

    states: ProjectionStates
    outcomes: JobOutcomes
    living: LivingTenants
    clock: Clock

    @classmethod
    def of(cls, tables: Tables, clock: Clock) -> OutcomesMaker:
        """The maker of a deployment."""
        states = ProjectionStates(tables.due)
        living = LivingTenants(tables.tenants, clock)
        return cls(states, JobOutcomes(tables.runs, states), living, clock)

    def steps(self, at: Position | None, done: Done) -> Iterator[Position]:
        """A chore: each step makes a part for one tenant. The wishes that are left are its position."""
        wishes = list(self.states.wanted_outcomes())
        while wishes:
            unfinished: list[str] = []
            done.each(wishes[:1], partial(self._make, unfinished))
            wishes = unfinished + wishes[1:]
            yield at or {}

    def _make(self, unfinished: list[str], tenant: str) -> None:
        state = self.states.read()
        if state and self.living.now({tenant}, []):
            try:
                now = self.clock.now()
                self.outcomes.of_tenant(tenant, state, now, lambda: None, step_cpu_s=_PART_CPU_S)
            except Busy:  # this part is stored
                unfinished.append(tenant)
                return
        self.states.forget_wish(tenant)
