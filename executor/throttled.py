"""When a target throttles, the retries of a job share what is due: one retry for each fire time, and no more.

Each run by itself would try again and again: an hour of runs together called a target eleven times as often as due.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Final

from common.clock import Clock
from common.jobs.job import Job
from common.limits import MAX_THROTTLED_RUNS
from common.planning.execution import Execution
from common.runs.outcome import Outcome
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import Item
from common.timing.fires import fires
from common.timing.instants import DAY_S

# How often a job is due is counted in so many seconds.
_SPAN_S: Final = 600
# A job that is due more rarely tries again once a minute. A run that waits alone keeps to its own policy.
_RARE_S: Final = 60.0
# These are our own failures, not the target's.
_OURS: Final = (
    "ExecutorDied",
    "NoThread",
    "NoTurn",
    "PayloadNotRead",
    "SecretNotRead",
    "NotSigned",
    "NoLookup",
)


@dataclass(frozen=True, slots=True)
class ThrottledRetries:
    """The times of the retries of throttled runs: an item per job, in the runs table, only while it is throttled."""

    runs: Table
    clock: Clock

    def retry_at(self, job: Job, execution: Execution, outcome: Outcome, at: int) -> int | None:
        """The first second from `at` on that no other throttled run of the job has. None: too many runs wait."""
        if not outcome.throttled or outcome.error_type in _OURS:
            return at
        now = self.clock.now()
        every_s = interval_s(job, now)

        def reserve(stored: Item | None) -> tuple[Item | None, int | None]:
            return reserved(stored, execution.run_name, at, every_s, now)

        _, reserved_at = self.runs.swap(keys.throttled(job.tenant, job.job_id), reserve)
        return reserved_at


def interval_s(job: Job, now: float) -> float:
    """The seconds between two retries of a job: as often as it is due, or once a minute. Pure."""
    times = fires(job.schedule, int(now) - _SPAN_S, int(now))
    due = sum(1 for _ in islice(times, _SPAN_S))
    return min(_RARE_S, _SPAN_S / due) if due else _RARE_S


def reserved(
    stored: Item | None, run_name: str, at: int, every_s: float, now: float
) -> tuple[Item | None, int | None]:
    """The item with the next free time taken from `at` on, and that time; None if too many runs wait. Pure.

    An item that is damaged counts as none.
    """
    next_at = stored.get("next_at") if stored else None
    is_alone = every_s >= _RARE_S and stored is not None and stored.get("run") == run_name
    if not isinstance(next_at, int | float) or is_alone or next_at > now + DAY_S:
        next_at = at
    reserved_at = max(at, int(next_at))
    if reserved_at > at and reserved_at - now > MAX_THROTTLED_RUNS * every_s:
        return stored, None
    free_at = reserved_at + every_s
    return {"next_at": free_at, "run": run_name, "expires_at": int(free_at) + DAY_S}, reserved_at
