"""What the platform's operator sees of planning: the mark, the last windows, what is set aside, findings."""

from __future__ import annotations

from dataclasses import dataclass

from common.clock import Clock
from common.planning.due_index import DueIndex
from common.planning.quarantine import Quarantine
from common.planning.shares import Shares
from common.storage.table import Table


@dataclass(frozen=True, slots=True)
class PlanningState:
    """Reads the due table of a stage; common/platform/planning_checks.py checks it."""

    due: Table
    clock: Clock
    stage: str

    def index(self) -> DueIndex:
        return DueIndex(self.due)

    def shares(self) -> Shares:
        return Shares(self.due)

    def quarantine(self) -> Quarantine:
        return Quarantine(self.due)

    def named(self, what: str) -> str:
        """As serverless.yml names it."""
        return f"minute8-{self.stage}-{what}"
