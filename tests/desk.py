"""The parts of a deployment that the doctor's checks of tables read, in a simulated world."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from common.planning.due_index import DueIndex
from common.planning.quarantine import Quarantine
from common.planning.shares import Shares
from common.truth.truth import Truth
from tests.worlds import World


class Desk:
    """A deployment, as far as those checks know it."""

    stage = "prod"

    def __init__(self, world: World) -> None:
        self.clock, self.world = world.clock, world

    def truth(self) -> Truth:
        return Truth(self.world.tables, self.world.queue, self.clock)

    def unrecorded(self) -> Any:
        return self.world.unrecorded

    def client(self, _: str) -> Any:
        return SimpleNamespace(exceptions=SimpleNamespace(ResourceNotFoundException=LookupError))

    def index(self) -> DueIndex:
        return self.world.index

    def shares(self) -> Shares:
        return Shares(self.world.table("due"))

    def quarantine(self) -> Quarantine:
        return Quarantine(self.world.table("due"))

    def named(self, part: str) -> str:
        return part
