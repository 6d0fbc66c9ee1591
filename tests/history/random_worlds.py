"""Worlds in which one tenant's jobs change at random while ticks come, fail to come, and runs end as they like."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field
from typing import Any, Final

from common.errors import Minute8Error
from common.history.expected_runs import ExpectedRuns
from common.jobs.job import ACTIVE, Job
from common.runs.outcome import Outcome
from common.tenants.audit import Audit
from common.timing.fires import fires
from common.timing.instants import rfc3339
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import World, at, job, make_world

BEGIN: Final = at("2026-10-25T00:00:00Z")  # Paris sets its clocks back an hour later
HOURS: Final = 2
CRONS: Final = ("*/5 * * * *", "*/7 2 * * *", "30 2 * * *", "17 * * * *", "0,20,40 1-3 * * *", "*/2 * * * *")


@dataclass
class RandomWorld:
    """A world and its jobs at each instant, recorded by the test itself, without the audit."""

    world: World
    rng: random.Random
    seed: int
    log: dict[str, list[tuple[float, Job | None]]] = field(default_factory=dict)

    @property
    def expected(self) -> ExpectedRuns:
        tables = self.world.tables
        return ExpectedRuns(tables.jobs, tables.runs, Audit(tables.tenants), self.world.index)

    def definition(self) -> dict[str, Any]:
        rng = self.rng
        timing: dict[str, Any] = rng.choice(
            [
                {"cron": rng.choice(CRONS), "timezone": rng.choice(["UTC", "Europe/Paris"])},
                {"every": rng.choice([120, 450, 3_600])},
                {"at": rfc3339(int(self.world.clock.now()) + rng.randrange(1, 5_000))},
            ]
        )
        if rng.random() < 0.2:
            timing |= {"jitter_s": 90}
        if rng.random() < 0.2 and "at" not in timing:
            timing |= {"exclude": {"dates": ["2026-10-25"]}}
        elif rng.random() < 0.2 and "at" not in timing:
            timing |= {"end_at": rfc3339(BEGIN + 7_200)}
        return job(
            catch_up=rng.choice(["none", "latest", "all"]),
            overlap=rng.choice(["allow", "skip"]),
            retry={"max_attempts": 2, "base_s": 30},
            **timing,
        )

    def act(self) -> None:
        """Change one of three jobs; a refused change does nothing."""
        rng, job_id = self.rng, f"j{self.rng.randrange(3)}"
        store, manual = self.world.store, self.world.manual
        acts = [
            lambda: self.world.registry.put("alice", job_id, self.definition()),
            lambda: self.world.registry.put("alice", job_id, self.definition()),
            lambda: store.pause("alice", job_id, "why not"),
            lambda: store.resume("alice", job_id),
            lambda: store.delete("alice", job_id),
            lambda: manual.run_now("alice", job_id, f"n{rng.randrange(99)}"),
            lambda: self.cancel(job_id),
        ]
        try:
            rng.choice(acts)()
        except Minute8Error:
            return
        self.note(job_id)

    def cancel(self, job_id: str) -> None:
        stored = self.world.store.get("alice", job_id)
        now = math.floor(self.world.clock.now())
        coming = list(fires(stored.schedule, now + 1, now + 3_600))[:9]
        if coming:
            name = rfc3339(self.rng.choice(coming)).replace("-", "").replace(":", "")
            self.world.manual.cancel("alice", f"alice:{job_id}:{name}", "no")

    def note(self, job_id: str) -> None:
        stored = self.world.store.load_all("alice", [job_id]).get(job_id)
        self.log.setdefault(job_id, []).append((self.world.clock.now(), stored))

    def at(self, job_id: str, instant: int) -> Job | None:
        """The job as it was at an instant; None before it was created."""
        was = [job for since, job in self.log.get(job_id, []) if since <= instant]
        return was[-1] if was else None

    def last_change(self) -> int:
        """When a job changed last."""
        return max((math.floor(log[-1][0]) for log in self.log.values()), default=BEGIN)

    def due(self, job_id: str, start: int, end: int) -> list[int]:
        """The fire times of [start, end) by the account: of the job as it was at each of them."""
        planned = []
        log = self.log.get(job_id, [])
        for nth, (since, was) in enumerate(log):
            until = log[nth + 1][0] if nth + 1 < len(log) else math.inf
            if was is None or was.state != ACTIVE:
                continue
            first = max(start, was.effective_at, math.ceil(since))
            planned += [fire_at for fire_at in fires(was.schedule, first, end) if fire_at < until]
        return planned


def play(seed: int, settle: bool = True) -> RandomWorld:
    """Two hours; with `settle`, ticks and deliveries then catch up."""
    rng = random.Random(seed)
    played = RandomWorld(make_world(MemoryDynamoDB(), rfc3339(BEGIN)), rng, seed)
    world = played.world
    world.target.answer = lambda event: Outcome(ok=rng.random() < 0.8, error_type="Boom", error="no")
    outage = range(*sorted(rng.sample(range(BEGIN, BEGIN + HOURS * 3_600), 2))) if rng.random() < 0.4 else ()
    moment = BEGIN
    while moment < BEGIN + HOURS * 3_600:
        moment += rng.randrange(60, 1_200)
        if on_the_minute := rng.random() < 0.4:
            moment -= moment % 60
        world.run_until(rfc3339(moment), ticks=moment not in outage)
        world.clock.sleep(0 if on_the_minute else rng.random())
        for _ in range(rng.randrange(1, 3)):
            played.act()
    if settle:
        world.scheduler.tick()
        world.run_until(rfc3339(moment + 1_800), ticks=True)
    return played
