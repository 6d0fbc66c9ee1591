"""The results of a tick or a planner."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from common.storage.unreadable import Unreadable

MAX_SUSPECTS: Final = 20


@dataclass(slots=True)
class TickSummary:
    """What a tick did. Instants are epoch seconds."""

    now: float
    start: int
    end: int
    # The end of the last window that the tick worked at, also if planners have not finished it.
    planning_until: int = 0
    groups_known: int = 0
    shards_due: int = 0
    entries_read: int = 0
    planned: int = 0
    missed: int = 0
    refused: int = 0
    pending: int = 0
    shares: int = 0
    # Groups and shares in quarantine.
    set_aside: int = 0
    # Executions that are due at a full second, since their paces could not be kept.
    over_pace: int = 0
    bad_entries: int = 0
    # Executions that were enqueued and could not be logged for later comparison.
    unlogged: int = 0
    # The places of the chunks of the log that were written.
    places: list[str] = field(default_factory=list)
    # The first bad entries.
    bad: list[Unreadable] = field(default_factory=list)
    # The first shards whose entries are not as many as the directory counts; a registration may be the reason.
    suspects: list[tuple[str, int]] = field(default_factory=list)

    def suspect(self, group: str, shard: int) -> None:
        """Let the truth checker look at a shard."""
        if len(self.suspects) < MAX_SUSPECTS:
            self.suspects.append((group, shard))
