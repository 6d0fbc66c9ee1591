"""What was done to each job and when. The expected runs are computed from this, not from Minute8's own tables."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from common.jobs.job import Job
from common.planning.due_entry import CatchUp
from common.timing.schedule import Schedule

FOREVER = math.inf


@dataclass(slots=True)
class Life:
    """A span of time in which a job is active with one schedule. `progress_at_end` is planned_until when it ended."""

    job_id: str
    revision: int
    schedule: Schedule
    catch_up: CatchUp
    begins: int
    ends: float = FOREVER
    mark_at_end: float = FOREVER


@dataclass(slots=True)
class Window:
    """An announced window, the time of its announcement, and the time at which a tick finished it."""

    start: int
    end: int
    decided_at: float
    finished_at: float = FOREVER


@dataclass(slots=True)
class Ledger:
    """The simulation writes it while it runs."""

    lives: dict[str, list[Life]] = field(default_factory=dict)
    windows: list[Window] = field(default_factory=list)
    planned_until: int = 0
    # planned_until before the tick that is under way: what this tick enqueues late has not been delivered yet.
    before_tick: int | None = None

    def alive(self, job_id: str) -> Life | None:
        lives = self.lives.get(job_id)
        return lives[-1] if lives and lives[-1].ends == FOREVER else None

    def began(self, job: Job) -> None:
        life = Life(job.job_id, job.schedule_revision, job.schedule, job.spec.catch_up, job.effective_at)
        self.lives.setdefault(job.job_id, []).append(life)

    def ended(self, job_id: str, now: float) -> None:
        if life := self.alive(job_id):
            progress = self.planned_until if self.before_tick is None else self.before_tick
            life.ends, life.mark_at_end = now, progress

    def marked(self, item: dict[str, int | float], now: float) -> None:
        """planned_until has been written."""
        until, planning = int(item["planned_until"]), int(item["planning_until"])
        if until < planning and not (self.windows and self.windows[-1].end == planning):
            self.windows.append(Window(until, planning, item["decided_at"]))
        if self.windows and self.windows[-1].end <= until:
            self.windows[-1].finished_at = min(self.windows[-1].finished_at, now)
        self.planned_until = until
