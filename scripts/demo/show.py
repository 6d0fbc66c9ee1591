"""The course of the demo: it pauses and resumes a job, follows all due executions, and shows each change."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import chain

from botocore.exceptions import BotoCoreError, ClientError

from common.jobs.job import Job
from common.planning.execution import Execution
from common.runs.states import SKIPPED
from common.storage.wire import Item
from scripts.demo.stage import Stage
from scripts.demo.view import View, clock
from scripts.demo.witness import ENDED, EXPLAINED, expected
from scripts.demo.workload import LIVELY_TENANT, PAUSED_JOB

_POLL_S = 0.5
_PAUSE_AT_S = 25
_RESUME_AT_S = 50
# Executions that became due less than this ago may not be claimed yet.
_GRACE_S = 5
_SETTLE_S = 45


class Show:
    """Follows the executions of `jobs` that are due from `started_at` on."""

    def __init__(self, stage: Stage, jobs: Iterable[Job], view: View, started_at: float) -> None:
        self._stage = stage
        self._jobs = list(jobs)
        self._view = view
        self.started_at = started_at
        self._expected_until = int(started_at)
        self._due: dict[str, Execution] = {}
        self.runs: dict[str, Item] = {}
        self._progress = stage.progress()
        self._away = False
        self._steps = [(_PAUSE_AT_S, self._pause), (_RESUME_AT_S, self._resume)]

    def add(self, jobs: Iterable[Job]) -> None:
        """Follow these jobs as well, from now on. Another thread may call it."""
        self._jobs.extend(jobs)

    def lively(self) -> list[Job]:
        return [job for job in self._jobs if job.tenant == LIVELY_TENANT]

    def due(self) -> list[Execution]:
        """The executions that were due, jitter included, up to the last look."""
        return list(self._due.values())

    def watch(self, seconds: float | None) -> None:
        """Follow for this many seconds, or until Ctrl-C."""
        end_at = self.started_at + seconds if seconds else None
        while end_at is None or time.time() < end_at:
            try:
                self._look()
            except (BotoCoreError, ClientError) as error:
                self._lost_sight(error)
            time.sleep(_POLL_S)

    def settle(self) -> None:
        """Wait until all due executions are explained, but only for a limited time."""
        self._expect(int(time.time()))
        give_up_at = time.time() + _SETTLE_S
        while time.time() < give_up_at:
            self._read_runs()
            if all(self.runs.get(name, {}).get("status") in EXPLAINED for name in self._due):
                return
            time.sleep(_POLL_S)
        self._explain_missed()

    def forget_later_runs(self) -> None:
        """Drop the runs that became due after the last look: the verdict leaves them out."""
        self.runs = {name: run for name, run in self.runs.items() if name in self._due}

    def _look(self) -> None:
        now = time.time()
        while self._steps and now >= self.started_at + self._steps[0][0]:
            self._steps.pop(0)[1]()
        self._expect(int(now) - _GRACE_S)
        self._read_runs()
        self._look_at_progress()
        if self._away:
            self._away = False
            self._view.event("the embedded AWS is back")
        self.refresh()

    def refresh(self) -> None:
        """Draw the runs as they are known now."""
        now = time.time()
        planning = (
            f"planned until {clock(self._progress.planned_until)}"
            if self._progress
            else "nothing is planned yet"
        )
        header = f"Minute8  {clock(now)} UTC   {len(self._jobs)} jobs   {planning}"
        self._view.refresh(header, list(self.runs.values()))

    def _expect(self, until: int) -> None:
        if until <= self._expected_until:
            return
        for job in self._jobs:
            for execution in expected(job, self._expected_until, until):
                self._due[execution.execution_id] = execution
        self._expected_until = until

    def _read_runs(self) -> None:
        open_ = [e for name, e in self._due.items() if self.runs.get(name, {}).get("status") not in ENDED]
        soon = self._soon()
        for name, run in self._stage.runs(chain(open_, soon)).items():
            before = self.runs.get(name)
            if before is None or (before["status"], before.get("attempt")) != (
                run["status"],
                run.get("attempt"),
            ):
                self._view.run(name, run)
            self.runs[name] = run

    def _soon(self) -> list[Execution]:
        """Executions that have just become due, which are shown at once, but are not yet missing."""
        now = int(time.time()) + 1
        return [e for job in self._jobs for e in expected(job, self._expected_until, now)]

    def _look_at_progress(self) -> None:
        progress = self._stage.progress()
        if progress and self._progress and progress.planned_until > self._progress.planned_until:
            window = f"[{clock(self._progress.planned_until)}, {clock(progress.planned_until)})"
            self._view.event(f"tick: the scheduler's rule has planned {window}")
        self._progress = progress

    def _pause(self) -> None:
        self._stage.store.pause(LIVELY_TENANT, PAUSED_JOB, "the demo pauses it")
        self._view.event(f"paused {PAUSED_JOB}")

    def _resume(self) -> None:
        self._stage.store.resume(LIVELY_TENANT, PAUSED_JOB)
        self._view.event(f"resumed {PAUSED_JOB}")

    def _lost_sight(self, error: Exception) -> None:
        if not self._away:
            self._away = True
            self._view.event(
                f"the embedded AWS does not answer ({type(error).__name__}); `make up` restarts it"
            )

    def _explain_missed(self) -> None:
        """After an outage of over ten minutes, one record holds all missed fire times."""
        jobs = {(job.tenant, job.job_id): job for job in self._jobs}
        for name, execution in self._due.items():
            if name in self.runs:
                continue
            ranges = self._stage.missed_ranges(jobs[(execution.tenant, execution.job_id)])
            if any(first <= execution.fire_at <= last for first, last in ranges):
                self.runs[name] = {"status": SKIPPED, "reason": "missed", "fire_at": execution.fire_at}
