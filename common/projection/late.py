"""Runs that were put into a window after it had been followed: retries, outcomes reported later, changes by hand.

Who keeps something that is made of windows reads here what has changed since. The note is written before the window,
so that no change is without one; it may be there for a change that never came, and says what the record said.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from typing import Final

from common.projection.entry import RunEntry, RunKey, decode, encode
from common.projection.windows import Changes
from common.storage import keys
from common.storage.aws import readable
from common.storage.table import Query, Table
from common.timing.instants import DAY_S

RETENTION_S: Final = 8 * DAY_S
# Of one item: at most 250 KB before compression, whatever the ids are.
_RUNS_IN_ITEM: Final = 1_000
# A run that its window no longer has.
GONE: Final = ""


class LateRuns:
    """The notes, in the runs table."""

    def __init__(self, runs: Table) -> None:
        self._table = runs

    def note(self, tenant: str, changes: Changes, now: float) -> None:
        """Note what a window is about to get; None: a run that it loses. Raises Busy."""
        entries = [entry or RunEntry(*key, GONE) for key, entry in sorted(changes.items())]
        self._table.put_many(
            [
                {
                    **keys.projected_late(tenant, int(now), secrets.token_hex(4)),
                    "runs": encode(entries[first : first + _RUNS_IN_ITEM]),
                    "expires_at": int(now) + RETENTION_S,
                }
                for first in range(0, len(entries), _RUNS_IN_ITEM)
            ]
        )

    def since(self, tenant: str, at: float) -> Iterator[tuple[RunKey, RunEntry | None]]:
        """What was noted from `at` on, the earliest first, as changes of a window."""
        span = f"{keys.LATE_PREFIX}{int(at):010d}", f"{keys.LATE_PREFIX}{keys.LAST}"
        query = Query(keys.projected_days(tenant), sk_between=span, consistent=False)
        for entries in readable(self._table.query(query), lambda item: decode(item["runs"])):
            for entry in entries:
                yield entry.key, entry if entry.status != GONE else None


def late_changes(changes: Mapping[int, Changes], followed_until: int) -> Changes:
    """Those changes of windows that start before `followed_until`. Pure."""
    late = (of_window for start, of_window in changes.items() if start < followed_until)
    return {key: entry for of_window in late for key, entry in of_window.items()}
