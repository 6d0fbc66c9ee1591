"""What a job's `alert` says about its runs: too long, too short, no success. Pure.

A run is too long from one instant on, and too short when it ends. So each look reports only the instants since the look
before. The time without a success is compared anew in each look.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from common.jobs.job import Job
from common.jobs.spec import Alert
from common.notices.subscription import NO_SUCCESS, TOO_LONG, TOO_SHORT, Problem
from common.runs.run import Run
from common.runs.states import FAILED, RETRYING, RUNNING, SUCCEEDED
from common.timing.instants import compact_time

# A run that begins, or succeeds after retries, so long after its fire time is still found.
LATE_RUN_S: Final = 3_600


def read_from(alert: Alert, since: float) -> float:
    """The fire time from which a look needs the runs, apart from the last success."""
    if alert.longer_than_s is None and alert.shorter_than_s is None:
        return math.inf
    return since - (alert.longer_than_s or 0) - LATE_RUN_S


def alert_problems(
    job: Job, alert: Alert, newest: Iterable[Run], since: float, now: float, kept_s: int
) -> list[Problem]:
    """What is wrong with an active job, in the order of time.

    `newest` are its runs from `read_from` on, and back to a success if it has one. Runs are kept for `kept_s`.
    """
    runs = list(newest)
    problems = [
        problem
        for run in runs
        for problem in _of_run(job, alert, run, now)
        if since <= problem.last_at <= now
    ]
    problems += _no_success(job, alert, runs, now, kept_s)
    return sorted(problems, key=lambda problem: problem.last_at)


def _of_run(job: Job, alert: Alert, run: Run, now: float) -> Iterator[Problem]:
    started_at = run.first_started_at or run.started_at
    if not started_at:
        return
    status, ended_at = run.status, run.finished_at or now
    took_s = (now if status in (RUNNING, RETRYING) else ended_at) - started_at
    is_begun = status in (RUNNING, RETRYING, SUCCEEDED, FAILED)
    if alert.longer_than_s is not None and is_begun and took_s > alert.longer_than_s:
        at = started_at + alert.longer_than_s
        yield Problem(TOO_LONG, job.job_id, at, at, run.run_name, took_s=took_s, limit_s=alert.longer_than_s)
    call_s = math.inf if run.duration_s is None else run.duration_s
    if alert.shorter_than_s is not None and status == SUCCEEDED and call_s < alert.shorter_than_s:
        limit_s = alert.shorter_than_s
        yield Problem(TOO_SHORT, job.job_id, ended_at, ended_at, run.run_name, took_s=call_s, limit_s=limit_s)


def _no_success(job: Job, alert: Alert, runs: Iterable[Run], now: float, kept_s: int) -> Iterator[Problem]:
    limit_s = alert.no_success_for_s
    if limit_s is None:
        return
    last = max(
        (run for run in runs if run.status == SUCCEEDED), key=lambda run: run.finished_at, default=None
    )
    if last is None and limit_s > kept_s:
        return  # the record of a success may have expired
    since_at = max(float(job.effective_at), last.finished_at if last else 0.0)
    if now - since_at > limit_s:
        first_name = compact_time(last.fire_at + 1 if last else job.effective_at)
        at = since_at + limit_s
        yield Problem(NO_SUCCESS, job.job_id, at, at, first_name, runs=0, limit_s=limit_s)
