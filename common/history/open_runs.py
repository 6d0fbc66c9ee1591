"""The runs of a tenant that are not over, and those of them that do not go on: somebody has to look.

A running one is stuck after its lease: its executor has died, and nobody has taken over. One that is to be retried is
stuck after the time of its next attempt.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from common.history.live_runs import LiveRuns
from common.projection.entry import OPEN
from common.runs.run import REQUIRED, Run, readable_runs
from common.storage import keys
from common.storage.table import Table

# Records that are read, the oldest first, a hundred in a request.
MAX_READ: Final = 300
_ATTRIBUTES: Final = (*REQUIRED, "lease_until", "next_attempt_at")


@dataclass(slots=True)
class OpenRuns:
    """How many runs are in each open state, and the stuck ones, the oldest first. `complete`: all were read."""

    statuses: Counter[str] = field(default_factory=Counter)
    stuck: list[Run] = field(default_factory=list)
    complete: bool = True


def open_runs(runs: Table, tenant: str, live: LiveRuns, now: float) -> OpenRuns:
    """What is open of a tenant's live runs."""
    run_names = sorted(live.keys_until(now))
    going = OpenRuns(complete=live.complete and len(run_names) <= MAX_READ)
    run_keys = [keys.run(tenant, job_id, run_name) for run_name, job_id in run_names[:MAX_READ]]
    records = runs.get_many(run_keys, consistent=False, attributes=_ATTRIBUTES)
    for run in sorted(readable_runs(records), key=lambda run: run.run_name):
        if run.status in OPEN:
            going.statuses[run.status] += 1
            if run.is_stuck(now):
                going.stuck.append(run)
    return going
