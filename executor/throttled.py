"""The turns of a job's runs that a target or an outage of AWS's keeps waiting: one for each fire time, and no more.

Throttled attempts share them, and runs that come late. So a target gets at most twice as many calls as are due. Each
run by itself would try again and again: an hour of runs together called a target eleven times as often as due.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from math import inf
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
from common.timing.windows import MISSED_AFTER_S
from executor.targets.answers import SERVICE_FAILED

# How often a job is due is counted in so many seconds.
_SPAN_S: Final = 600
# A job that is due more rarely tries again once a minute. A run that waits alone keeps to its own policy.
_RARE_S: Final = 60.0
_PAUSE_S: Final = 2 * MISSED_AFTER_S
# The queue keeps no message longer.
_FURTHEST_S: Final = 4 * DAY_S
# An executor's failures, which are over at once.
_OURS: Final = ("ExecutorDied", "NoThread", "NoTurn")
# However many runs wait for the end of an outage, each has its turn; their policy bounds their age.
_OUTAGES: Final = SERVICE_FAILED | {"PayloadNotRead", "SecretNotRead", "NotSigned", "NoLookup"}


@dataclass(frozen=True, slots=True)
class ThrottledRetries:
    """The times of what waits for its turn: an item per job, in the runs table, only while there is any."""

    runs: Table
    clock: Clock

    def retry_at(self, job: Job, execution: Execution, outcome: Outcome, at: int) -> int | None:
        """The first second from `at` on that no other of these runs of the job has. None: too many runs wait."""
        if not outcome.throttled or outcome.error_type in _OURS:
            return at
        now = self.clock.now()
        every_s = interval_s(job, now)
        most_s = inf if outcome.error_type in _OUTAGES else MAX_THROTTLED_RUNS * every_s

        def reserve(stored: Item | None) -> tuple[Item | None, int | None]:
            return reserved(stored, execution.run_name, at, every_s, now, most_s)

        _, reserved_at = self.runs.swap(keys.throttled(job.tenant, job.job_id), reserve)
        return reserved_at

    def turn_at(self, job: Job, execution: Execution) -> int | None:
        """As `retry_at`, for a run that comes late by over ten minutes. Behind the first one is a pause.

        Meanwhile the next tick plans what is late by less, and all of that goes at once.
        """
        now = self.clock.now()
        every_s = interval_s(job, now)

        def reserve(stored: Item | None) -> tuple[Item | None, int | None]:
            return reserved(stored, execution.run_name, int(now), every_s, now, inf, _PAUSE_S)

        _, reserved_at = self.runs.swap(keys.throttled(job.tenant, job.job_id), reserve)
        return reserved_at


def interval_s(job: Job, now: float) -> float:
    """The seconds between two of these runs of a job: as often as it is due, or once a minute. Pure."""
    times = fires(job.schedule, int(now) - _SPAN_S, int(now))
    due = sum(1 for _ in islice(times, _SPAN_S))
    return min(_RARE_S, _SPAN_S / due) if due else _RARE_S


def reserved(
    stored: Item | None,
    run_name: str,
    at: int,
    every_s: float,
    now: float,
    most_s: float,
    after_first_s: float = 0,
) -> tuple[Item | None, int | None]:
    """The item with the next free time taken from `at` on, and that time; None if it is later than in `most_s`. Pure.

    `after_first_s`: the least wait behind one that did not have to wait. An item that is damaged counts as none.
    """
    next_at = stored.get("next_at") if stored else None
    is_alone = every_s >= _RARE_S and stored is not None and stored.get("run") == run_name
    if not isinstance(next_at, int | float) or is_alone or next_at > now + _FURTHEST_S:
        next_at = at
    reserved_at = max(at, int(next_at))
    if reserved_at > at and reserved_at - now > most_s:
        return stored, None
    free_at = reserved_at + (every_s if reserved_at > at else max(every_s, after_first_s))
    return {"next_at": free_at, "run": run_name, "expires_at": int(free_at) + DAY_S}, reserved_at
