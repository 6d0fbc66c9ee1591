"""A region is lost, and another one takes over from the replicas of its tables.

python -m tests.simulation.regions --failovers 200

The tables are replicated as DynamoDB's global tables do by default: each item by itself, some time after it was
written, and the last write wins. Queues are not replicated. The second region has the same code on its own queue.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from common.jobs.job import Job
from common.planning.execution import Execution
from common.platform.run_again import RunAgain
from common.runs.outcome import Outcome
from common.timing.fires import fires
from common.timing.instants import rfc3339
from tests.simulation.expressions import Wire
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import World, at, job, make_world

MAX_RUN = 100

_TENANT = "alice"
_BEGINS = at("2027-03-01T00:00:00Z")
_RUNS_FOR_S = 3600
_GOES_ON_FOR_S = 2 * 3600
# What is due so late in the simulation has not had the time to be found and run again.
_LAST_S = 1800
_SHARE_THAT_FAILS = 0.15
_JOBS = 30


class Logged(MemoryDynamoDB):
    """A DynamoDB that remembers each write, and when it was made."""

    def __init__(self) -> None:
        super().__init__()
        self.now: Callable[[], float] = lambda: 0.0
        self.writes: list[tuple[float, str, tuple[str, str], Wire | None]] = []

    def _set(self, table: str, key: Wire, item: Wire | None) -> None:
        super()._set(table, key, item)
        self.writes.append((self.now(), table, (key["pk"]["S"], key["sk"]["S"]), item))

    def replicated(self, at: float, lag_s: float, rng: random.Random) -> dict[tuple[str, str, str], Wire]:
        """What the other region has at this instant, if each write takes up to `lag_s` on its way."""
        arrived: dict[tuple[str, str, str], Wire | None] = {}
        for written_at, table, (pk, sk), item in self.writes:
            if written_at + rng.uniform(0, lag_s) <= at:
                arrived[table, pk, sk] = item
        return {name: item for name, item in arrived.items() if item is not None}


@dataclass(slots=True)
class FailoverOutcome:
    """What one failover, or several, did to executions and registrations."""

    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def failover(seed: int, lag_s: float, after_s: int) -> FailoverOutcome:
    """Play one: the second region takes over `after_s` after the loss of the first, whose writes took up to `lag_s`."""
    rng = random.Random(seed)
    lost_at = _BEGINS + _RUNS_FOR_S + rng.uniform(0, 1200)
    first_tables = Logged()
    first = make_world(first_tables, rfc3339(_BEGINS))
    first_tables.now = first.clock.now
    first.target.answer = _answer
    jobs = _register(first, rng, lost_at)
    first.run_until(_text(lost_at), ticks=True)
    replica = first_tables.replicated(lost_at, lag_s, rng)

    second = make_world(MemoryDynamoDB(), _text(lost_at + after_s))
    second.target.answer = _answer
    for (table, pk, sk), item in replica.items():
        second.dynamodb._set(table, {"pk": {"S": pk}, "sk": {"S": sk}}, item)
    _take_over(second, lost_at + after_s + _GOES_ON_FOR_S)
    return _judged(first, second, jobs, lost_at, lag_s)


def _answer(event: Any) -> Outcome:
    """The same for the same attempt, in both regions."""
    fails = (
        random.Random(f"{event['minute8']['execution_id']}#{event['minute8']['attempt']}").random()
        < _SHARE_THAT_FAILS
    )
    return Outcome(ok=False, error_type="Busy", error="try again") if fails else Outcome(ok=True)


def _register(first: World, rng: random.Random, lost_at: float) -> dict[str, tuple[float, Job]]:
    """Jobs of several kinds, registered in the whole time before the loss; the last ones just before it."""
    times = sorted(
        [lost_at - rng.uniform(0, 10) for _ in range(4)]
        + [rng.uniform(_BEGINS, lost_at) for _ in range(_JOBS)]
    )
    registered = {}
    for number, registered_at in enumerate(times):
        first.run_until(_text(registered_at), ticks=True)
        first.clock.move_to(max(first.clock.now(), registered_at))
        kind = rng.choice(({"invocation": "Event"}, {}, {"overlap": "skip"}))
        fields: dict[str, Any] = {
            **kind,
            "retry": {"max_attempts": 4, "base_s": rng.choice((5, 60, 600)), "cap_s": 1200},
            "catch_up": "all",
            "cron": rng.choice(("* * * * *", "*/5 * * * *", "H * * * *", "*/10 * * * *")),
        }
        name = f"job-{number}"
        registered[name] = (registered_at, first.registry.put(_TENANT, name, job(**fields)))
    return registered


def _take_over(second: World, until: float) -> None:
    """Tick at once, then every ten minutes; after each tick an operator runs what is listed without a record."""
    again = RunAgain(second.unrecorded, second.queue, second.tables.tenants, second.clock)
    while second.clock.now() < until:
        second.tick()
        second.project()
        listed = [record.execution.execution_id for record in second.unrecorded.all()]
        for begin in range(0, len(listed), MAX_RUN):
            again.run(listed[begin : begin + MAX_RUN], "operator", dry_run=False)
        second.run_until(_text(second.clock.now() + 600))


def _judged(
    first: World, second: World, jobs: dict[str, tuple[float, Job]], lost_at: float, lag_s: float
) -> FailoverOutcome:
    outcome = FailoverOutcome()
    calls = [
        Counter((call["execution_id"], call["attempt"]) for _, call in world.target.calls)
        for world in (first, second)
    ]
    called = {execution_id for region_calls in calls for execution_id, _ in region_calls}
    called_at = {(call["execution_id"], call["attempt"]): when for when, call in first.target.calls}
    end = int(second.clock.now()) - _LAST_S
    stored_there = second.store.load_all(_TENANT, list(jobs))
    for name, (registered_at, stored) in jobs.items():
        if name not in stored_there:
            outcome.counts["registrations lost"] += 1
            if registered_at + lag_s < lost_at:
                outcome.wrong.append(f"{name} was registered {lost_at - registered_at:.1f} s before the loss")
            continue
        for fire_at in fires(stored.schedule, stored.effective_at, end):
            outcome.counts["executions due"] += 1
            execution_id = Execution(_TENANT, name, fire_at, fire_at, stored.schedule_revision).execution_id
            if execution_id not in called and not _is_recorded(second, name, fire_at):
                if registered_at + lag_s >= lost_at:
                    outcome.counts["executions lost, of jobs replicated in part"] += 1
                else:
                    outcome.wrong.append(f"lost: {execution_id}, {fire_at - lost_at:+.0f} s")
    for attempt in calls[0].keys() & calls[1].keys():
        outcome.counts["attempts called in both"] += 1
        if called_at[attempt] + lag_s < lost_at:
            outcome.wrong.append(f"doubled: {attempt}, {called_at[attempt] - lost_at:+.1f} s")
    for name in jobs:
        for run in second.run_items(_TENANT, name):
            stuck_at = run.get("next_attempt_at") or run.get("lease_until") or run.get("started_at", 0)
            if run["status"] in ("running", "retrying", "queued") and stuck_at < end - 3600:
                outcome.counts[f"runs left {run['status']}"] += 1
    return outcome


def _is_recorded(world: World, job_id: str, fire_at: int) -> bool:
    return any(
        run["fire_at"] == fire_at or run.get("skipped_from_at", fire_at + 1) <= fire_at <= run["fire_at"]
        for run in world.run_items(_TENANT, job_id)
    )


def _text(moment: float) -> str:
    return datetime.fromtimestamp(int(moment), UTC).isoformat()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.simulation.regions", description="Random failovers"
    )
    parser.add_argument("--failovers", type=int, default=200)
    parser.add_argument(
        "--lag", type=float, default=2.0, help="the longest time of a write on its way, in seconds"
    )
    parser.add_argument(
        "--after", type=int, default=1800, help="from the loss to the other region's first tick, in seconds"
    )
    arguments = parser.parse_args()
    total = FailoverOutcome()
    for seed in range(arguments.failovers):
        outcome = failover(seed, arguments.lag, arguments.after)
        total.counts.update(outcome.counts)
        total.wrong += [f"{seed}: {problem}" for problem in outcome.wrong]
        print(f"\r{seed + 1} of {arguments.failovers}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    for event, count in sorted(total.counts.items()):
        print(f"{event:<45} {count:>12,}")
    for problem in total.wrong[:20]:
        print("WRONG", problem)
    return 1 if total.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
