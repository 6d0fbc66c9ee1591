"""The simulation: the real Registry, Scheduler and Executor over a long time, in simulated time, with faults."""

from __future__ import annotations

import heapq
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from common.jobs.job import ACTIVE, Job
from common.planning.execution import Execution
from common.planning.packs import lines
from common.registration.calendar_store import CalendarStore
from common.storage import keys
from common.storage.wire import from_wire
from executor.pipeline import Message
from tests.simulation.faults import Fate, Slot, Wire, kill, slots
from tests.simulation.ledger import Ledger
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.simulation.truth import BACKLOG_S, Missed, Revision
from tests.simulation.workload import CALENDARS, DAY_S, Workload
from tests.worlds import Killed, World, make_world

TENANT = "alice"
# Runs of this age are checked and removed; a crash repeats only younger ones.
_HISTORY_S = 4 * DAY_S
_DUPLICATES = 0.02
# The longest jitter of the workload.
_MAX_JITTER_S = 3_600


@dataclass(slots=True)
class Observed:
    """The result."""

    called: dict[Revision, list[int]] = field(default_factory=lambda: defaultdict(list))
    missed: dict[Revision, list[Missed]] = field(default_factory=lambda: defaultdict(list))
    statuses: Counter[str] = field(default_factory=Counter)
    ticks: int = 0
    fates: Counter[str] = field(default_factory=Counter)
    changes: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    wrong: list[str] = field(default_factory=list)


class Simulation:
    """One span of time. `rng` decides everything."""

    def __init__(self, now: str, days: int, jobs: int, seed: int) -> None:
        self.rng = random.Random(seed)
        self.dynamodb, self.wire = MemoryDynamoDB(), Wire()
        self.world: World = make_world(self.dynamodb, now)
        self.begins = int(self.world.clock.now())
        self.ends = self.begins + days * DAY_S
        self.ledger, self.seen = Ledger(), Observed()
        self.calendars: dict[str, list[str]] = {name: [] for name in CALENDARS}
        self._workload = Workload(self.rng, self.ends, distinct=max(40, min(250, jobs // 4)))
        self._ids: list[str] = []
        self._progress: object = None
        self._judged_until: float = float("inf")
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._arrange(jobs)
        self.dynamodb.before, self.wire.look = self.wire.before, self._look_at_progress
        send = self.world.sqs.send_message_batch

        def wired(**request: object) -> dict[str, object]:
            self.wire.before("send_message_batch")
            return send(**request)  # type: ignore[arg-type]

        self.world.sqs.send_message_batch = wired  # type: ignore[method-assign]

    def run(self, publish: Callable[[float], None] = lambda share: None) -> None:
        """Play from the beginning to the end; `tell` gets the finished share after each simulated day."""
        day = self.begins
        while self._events:
            at, _, happen = heapq.heappop(self._events)
            self._deliver_until(at)
            self.world.clock.move_to(max(self.world.clock.now(), at))
            happen()
            self._look_at_progress()
            if self.world.clock.now() >= day + DAY_S:
                day += DAY_S
                self._sweep(self.world.clock.now() - _HISTORY_S)
                publish((day - self.begins) / (self.ends - self.begins))
        self._finish()

    def _finish(self) -> None:
        """Two good ticks at the end, whose executions are delivered, so that the last day is complete.

        Further ticks hand over what a long jitter or a backlog postponed. What they plan is not judged.
        """
        for at in (self.ends + 480, self.ends + 1_080):
            self._deliver_until(at)
            self.world.clock.move_to(max(self.world.clock.now(), at))
            self._tick()
        self._judged_until, self.wire.look = self.ledger.planned_until, lambda: None
        for at in range(self.ends + 1_680, self.ends + 1_680 + _MAX_JITTER_S + BACKLOG_S + 1, 600):
            self._deliver_until(at)
            self.world.clock.move_to(max(self.world.clock.now(), at))
            self.world.scheduler.tick()
        self._deliver_until(self.ends + 2 * DAY_S)
        self._sweep(float("inf"))

    # What happens

    def _arrange(self, jobs: int) -> None:
        """Six in ten jobs exist from the first hour on; each job has two and a half changes a year."""
        span = self.ends - self.begins
        for name in CALENDARS:
            self._at(self.begins, lambda name=name: self._store_calendar(name))  # type: ignore[misc]
            for _ in range(span // (30 * DAY_S)):
                at = self.rng.uniform(self.begins, self.ends)
                self._at(at, lambda name=name: self._store_calendar(name))  # type: ignore[misc]
        for _ in range(jobs):
            early = self.rng.random() < 0.6
            self._at(self.begins + 1 + self.rng.uniform(0, 3_600 if early else span), self._create)
        for _ in range(max(jobs // 4, int(jobs * 2.5 * span / (365 * DAY_S)))):
            self._at(self.rng.uniform(self.begins + 3_600, self.ends), self._change)
        for slot in slots(self.rng, self.begins, self.ends):
            self._at(slot.at, lambda slot=slot: self._slot(slot))  # type: ignore[misc]

    def _at(self, at: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (at, next(self._numbers), happen))

    def _store_calendar(self, name: str) -> None:
        now = self.world.clock.now()
        self.calendars[name] = self._workload.calendar(int(now), self.calendars[name])
        CalendarStore(self.world.table("jobs"), self.world.store.audited).put(
            TENANT, name, {"dates": self.calendars[name]}, now
        )

    def _create(self) -> None:
        job_id = f"job-{len(self._ids)}"
        self._ids.append(job_id)
        self._register(job_id)

    def _register(self, job_id: str) -> None:
        definition = self._workload.definition(int(self.world.clock.now()))
        before, alive = self._stored(job_id), self.ledger.alive(job_id)
        job = self.world.registry.put(TENANT, job_id, definition)
        moved = before is None or before.schedule_revision != job.schedule_revision
        if moved and alive:
            self.ledger.ended(job_id, self.world.clock.now())
        if moved and job.state == ACTIVE:
            self.ledger.began(job)
        elif alive and not moved:
            alive.catch_up = job.spec.catch_up
        self.seen.changes["created" if before is None else "changed"] += 1

    def _stored(self, job_id: str) -> Job | None:
        """The job, or its tombstone."""
        return self.world.store.load_all(TENANT, [job_id]).get(job_id)

    def _change(self) -> None:
        if not self._ids:
            return
        job_id = self._somebodys_job()
        job = self._stored(job_id)
        assert job is not None
        kind = self.rng.choice(("change", "change", "pause", "pause", "delete"))
        if job.state == "paused" and kind == "pause":
            self.ledger.began(self.world.store.resume(TENANT, job_id))
            self.seen.changes["resumed"] += 1
        elif kind == "change" or job.state == "deleted":
            self._register(job_id)
        else:
            {"pause": self.world.store.pause, "delete": self.world.store.delete}[kind](TENANT, job_id)
            self.ledger.ended(job_id, self.world.clock.now())
            self.seen.changes[f"{kind}d"] += 1
            if kind == "pause":
                at = self.world.clock.now() + self.rng.choice((40, 900, 7_200, 3 * DAY_S))
                self._at(min(at, self.ends), lambda: self._resume(job_id))

    def _somebodys_job(self) -> str:
        """Any job, or one with an execution in the queue, where a change is most likely to fail."""
        waiting = self.world.sqs._waiting
        if waiting and self.rng.random() < 0.5:
            return Execution.decode(self.rng.choice(lines(self.rng.choice(waiting)[-1]))).job_id
        return self.rng.choice(self._ids)

    def _resume(self, job_id: str) -> None:
        job = self._stored(job_id)
        if job is not None and job.state == "paused":
            self.ledger.began(self.world.store.resume(TENANT, job_id))
            self.seen.changes["resumed"] += 1

    def _slot(self, slot: Slot) -> None:
        self.seen.fates[slot.fate] += 1
        nth, clock = self.rng.choice((1, 5, 15, 27, 30, 33, 40, 60)), self.world.clock
        match slot.fate:
            case Fate.LOST | Fate.OUTAGE:
                return
            case Fate.TWICE:
                self._tick()
                self._at(clock.now() + self.rng.uniform(0, 90), self._tick)
            case Fate.TWICE_AT_ONCE:
                self._tick(nth, self._tick)
            case Fate.CHANGED:
                self._tick(nth, self._change)
            case Fate.CRASHED | Fate.RESTARTED:
                self._tick(nth, kill)
                if slot.fate is Fate.RESTARTED:
                    self._at(clock.now() + 60, self._tick)
            case Fate.CLOCK_BACK:
                now = clock.now()
                clock.move_to(now - self.rng.uniform(1, 400))
                self._tick()
                clock.move_to(now)
            case _:
                self._tick()

    def _tick(self, nth: int = 0, meanwhile: Callable[[], None] | None = None) -> None:
        self.seen.ticks += 1
        if meanwhile:
            self.ledger.before_tick = self.ledger.planned_until
            self.wire.arm(nth, meanwhile)
        try:
            summary = self.world.scheduler.tick()
            self.seen.wrong += [f"bad entry: {bad}" for bad in summary.bad]
        except Killed:
            pass
        finally:
            self.wire.disarm()
            self.ledger.before_tick = None
        self._look_at_progress()

    # What is seen

    def _look_at_progress(self) -> None:
        item = self.dynamodb._find(
            "test-due", {"pk": {"S": keys.PROGRESS["pk"]}, "sk": {"S": keys.PROGRESS["sk"]}}
        )
        if item is not None and item is not self._progress:
            self._progress = item
            self.ledger.marked(from_wire(item), self.world.clock.now())

    def _deliver_until(self, end: float) -> None:
        """Each message when it is visible; some are delivered a second time."""
        sqs, clock = self.world.sqs, self.world.clock
        while (at := sqs.next_at()) is not None and at <= end:
            clock.move_to(max(clock.now(), at))
            message = sqs.receive()
            assert message is not None
            self._execute(message)
            if self.rng.random() < _DUPLICATES:
                self.seen.duplicates += 1
                self._execute(Message(f"{message.message_id}-again", message.body))

    def _execute(self, message: Message) -> None:
        """Execute a message; of a pack, each execution as a message of its own."""
        for body in lines(message.body):
            self._execute_one(Message(message.message_id, body))

    def _execute_one(self, message: Message) -> None:
        before = len(self.world.target.calls)
        report = self.world.execute(message)
        execution: Execution = report.execution
        if execution.fire_at >= self._judged_until:
            return
        if len(self.world.target.calls) != before:
            self.seen.called[execution.job_id, execution.schedule_revision].append(execution.fire_at)
            if self.world.clock.now() < execution.due_at:
                self.seen.wrong.append(f"early: {execution}")
        self.seen.statuses[report.result] += 1

    def _sweep(self, before: float) -> None:
        """Check the runs that ended before then, and remove them from the table."""
        runs = self.dynamodb.tables["test-runs"]
        for partition in list(runs):
            for wire in list(runs[partition].items.values()):
                ended = wire.get("finished_at") or wire.get("started_at")
                if ended is None or float(ended["N"]) >= before:
                    continue  # without either it waits for its turn
                self._read(from_wire(wire))
                self.dynamodb._set("test-runs", wire, None)
        for kept in (
            self.world.sqs.bodies,
            self.world.sqs.delays,
            self.world.target.calls,
            self.world.events,
        ):
            kept.clear()

    def _read(self, run: dict[str, object]) -> None:
        label = f"{run['status']}({run['reason']})" if "reason" in run else str(run["status"])
        self.seen.statuses[f"record {label}"] += 1
        if run.get("reason") == "missed":
            key = (str(run["job_id"]), int(str(run["schedule_revision"])))
            missed = (run["skipped_from_at"], run["fire_at"], run["skipped_count"])
            self.seen.missed[key].append(missed)  # type: ignore[arg-type]
