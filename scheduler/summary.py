"""The results of a tick or a planner."""

from __future__ import annotations

from dataclasses import dataclass, field

from common.planning.due_entry import BadEntry


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
    # The first bad entries.
    bad: list[BadEntry] = field(default_factory=list)
