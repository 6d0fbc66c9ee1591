"""A tenant's executions that the projection does not have yet: from the logs, and from the runs to be read again.

Ticks project a window ten to thirty minutes after its end. What is newer is in the log of executions, of which a look
at one tenant reads a sixteenth. Each read is bounded; the answer says if it has not read everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from common.planning.execution import Execution, UnreadableMessage
from common.planning.log import ExecutionLog
from common.projection.entry import RunKey
from common.projection.looks import Looks
from common.projection.state import ProjectionState
from common.storage import keys
from common.storage.table import Table
from common.texts import UNREADABLE

# Of a sixteenth of the tenants. A portion has up to 5,000, and costs as much as some when it has one.
_MAX_LOGGED: Final = 200_000
_MIN_RUNS_COUNTED: Final = 50
_MAX_LOOKS: Final = 20
_FAR_AT: Final = 9_999_999_999


@dataclass(slots=True)
class LiveRuns:
    """The executions by their keys. `planned`: those that are only planned; their runs begin at their fire time."""

    executions: dict[RunKey, Execution] = field(default_factory=dict)
    planned: set[RunKey] = field(default_factory=set)
    complete: bool = True

    def keys_until(self, now: float) -> list[RunKey]:
        """The keys of those that may have a record at `now`, the newest first."""
        return sorted(
            (
                key
                for key, execution in self.executions.items()
                if key not in self.planned or execution.fire_at <= now
            ),
            reverse=True,
        )


class LiveReader:
    """Reads them."""

    def __init__(self, due: Table) -> None:
        self._logs = (ExecutionLog(due, keys.CHANGED), ExecutionLog(due))
        self._looks = Looks(due)

    def of_tenant(self, tenant: str, state: ProjectionState) -> LiveRuns:
        """The executions of a tenant that are not projected yet, or are to be read again."""
        live, changed = LiveRuns(), self._logs[0]
        for log in self._logs:
            for execution in self._logged(log, tenant, state.until_of(tenant), live):
                key = execution.run_name, execution.job_id
                if log is not changed and key not in live.executions:
                    live.planned.add(key)
                live.executions[key] = execution
        looks = self._looks.of_tenant(tenant, _MAX_LOOKS)
        for execution in looks:
            key = execution.run_name, execution.job_id
            live.planned.discard(key)
            live.executions[key] = execution
        return live

    def _logged(self, log: ExecutionLog, tenant: str, begin: int, live: LiveRuns) -> Iterator[Execution]:
        portions = log.portions(begin, _FAR_AT, keys.log_bucket(tenant))
        of_tenant = f'"tenant":"{tenant}"'
        logged = 0
        for portion in portions:
            if logged >= _MAX_LOGGED:
                live.complete = False
                return
            logged += max(portion.count, _MIN_RUNS_COUNTED)
            try:
                bodies = portion.bodies()
            except UNREADABLE:  # a tick reports it
                live.complete = False
                continue
            for body in bodies:
                if of_tenant in body:
                    try:
                        execution = Execution.decode(body)
                    except UnreadableMessage:  # of a later version
                        continue
                    if execution.tenant == tenant:
                        yield execution
