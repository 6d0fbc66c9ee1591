"""Makes the last outcomes of jobs (common/projection/outcomes.py) for tenants whose lists of jobs somebody looked at.

A week of many runs takes seconds, which no look has. Later looks add the few windows since.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from common.clock import Clock
from common.errors import Busy
from common.projection.outcomes import JobOutcomes
from common.projection.state import ProjectionStates
from common.storage.table import Tables
from scheduler.living import LivingTenants

# Of a whole core, after which a step is stored; a tick has 300 s (serverless.yml).
_STEP_CPU_S: Final = 3.0
_MAX_MAKING_S: Final = 30
_STOP_AFTER_S: Final = 220


@dataclass(slots=True)
class MadeOutcomes:
    """The result: for how many tenants they were made, whether more are left, and what went wrong."""

    tenants: int = 0
    is_cut: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class OutcomesMaker:
    """Makes them. `make` is one step."""

    states: ProjectionStates
    outcomes: JobOutcomes
    living: LivingTenants
    clock: Clock

    @classmethod
    def of(cls, tables: Tables, clock: Clock) -> OutcomesMaker:
        """The maker of a deployment."""
        states = ProjectionStates(tables.due, tables.runs)
        living = LivingTenants(tables.tenants, clock)
        return cls(states, JobOutcomes(tables.runs, states), living, clock)

    def make(self, began_at: float) -> MadeOutcomes:
        """Make what is wanted in a tick that began at `began_at`. Raises nothing."""
        result = MadeOutcomes()
        stop_at = min(self.clock.now() + _MAX_MAKING_S, began_at + _STOP_AFTER_S)
        try:
            for tenant in self.states.wanted_outcomes():
                if self.clock.now() >= stop_at or not self._make(tenant, stop_at):
                    result.is_cut = True
                    break
                self.states.forget_wish(tenant)
                result.tenants += 1
        except Exception as error:  # noqa: BLE001  the tick stands, whatever this is
            result.problem = repr(error)[:500]
        return result

    def _make(self, tenant: str, stop_at: float) -> bool:
        """False: there was not enough time; what is made is kept."""
        state = self.states.read()
        while state and self.living.now({tenant}, []):
            try:
                now = self.clock.now()
                self.outcomes.of_tenant(tenant, state, now, lambda: None, step_cpu_s=_STEP_CPU_S)
            except Busy:
                if self.clock.now() >= stop_at:
                    return False
                continue
            break
        return True
