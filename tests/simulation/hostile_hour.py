"""An hour of a hostile tenant at its default quotas, without the waiting, in a process of its own that is measured.

    python -m tests.simulation.hostile_hour api|executor|scheduler|planner|notifier SHARE

Does SHARE of what the quotas allow in an hour (1 is all), and prints the peak memory at each tenth. The tables are
another process's, and what only grows them (the audit, runs) is removed as it comes.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any

import pytest

from common.config import Config
from common.deployment import Deployment
from common.errors import InvalidInput
from common.notices.subscription import Subscription
from common.planning.execution import Execution
from common.runs.outcome import Outcome
from common.storage import aws_operations
from common.storage.table import Table, Tables
from common.tenants.tenant import Quotas
from executor.batch import execute_batch
from executor.pipeline import Message
from executor.targets.http_endpoint import Outgoing
from scheduler import handler
from tests.api.calls import Office
from tests.api.conftest import open_office, settle
from tests.api.test_refused_bodies import WITH_BODY, caller_of, operation, refused_bodies
from tests.executor.endpoints import endpoints as local_endpoints
from tests.executor.hostile_answers import script, sending
from tests.executor.hostile_neighbours import hostile_job
from tests.executor.hostile_neighbours import settle as settle_hostile
from tests.manual_clock import ManualClock
from tests.notices.conftest import make_stage
from tests.notices.test_hostile import failed_runs
from tests.planning import hostile_tick
from tests.processes import ENVIRONMENT, peak_mb
from tests.simulation.far_tables import FarTables, far_tables
from tests.stand_ins import AnyTenant
from tests.worlds import World, job, make_world

JOBS = 100
SUBSCRIPTIONS = 20
IN_A_BATCH = 100
SERVICES = sorted(aws_operations.session_of_all_services().get_available_services())
NOW = "2026-11-21T03:12:00Z"
CURSORS = ("%00", "e30", "bm9uZQ", "W10", "9" * 2_000, "\u202e", "eyJ2IjoxfQ")


def requests(office: Office, rng: random.Random) -> Iterator[Any]:
    """Requests without an end: refused bodies of each route, large jobs, operations of all services, lists, cursors."""
    refused = [(call, refused_bodies(call.body, 0, 10**9)) for call in WITH_BODY]
    for n in itertools.count():
        call, bodies = refused[n % len(refused)]
        yield caller_of(office, call), call.method, call.url, next(bodies)
        yield office.alice, "PUT", f"/v1/jobs/h{n % JOBS}", hostile_job(rng)
        service = SERVICES[n % len(SERVICES)]
        yield office.alice, "PUT", "/v1/jobs/o", operation(f"{service}:doNothing{n}", {"a": n})
        yield office.alice, "GET", f"/v1/jobs?limit=200&cursor={rng.choice(CURSORS)}", None
        yield office.alice, "GET", f"/v1/jobs/h{rng.randrange(JOBS)}", None
        yield office.alice, "GET", f"/v1/jobs?search={n}x{rng.getrandbits(60):x}", None


def forget(world: World) -> None:
    """Remove what only grows, of the tables and of what surrounds the function in its process."""
    world.dynamodb.forget()
    world.target.calls.clear()
    world.events.clear()
    world.sqs.purge()


def api(world: World, share: float) -> Iterator[float]:
    """An hour of `requests_per_minute`. Yields what part of the hour is done, as its like do."""
    rng, count = random.Random(1), round(60 * Quotas().requests_per_minute * share)
    with pytest.MonkeyPatch.context() as monkeypatch:
        office = open_office(world, monkeypatch)
        settle(office, office.alice)
        settle_hostile(world, rng)
        for n, (caller, *request) in enumerate(itertools.islice(requests(office, rng), count)):
            world.clock.sleep(60 / Quotas().requests_per_minute)
            answer = caller(*request)
            assert answer.status < 500, (request, answer.content[:300])
            if n % 500 == 0:
                forget(world)
            yield (n + 1) / count


def executor(world: World, share: float) -> Iterator[float]:
    """An hour of `executions_per_day`, in full batches of jobs at their bounds whose targets fail at length."""
    rng, batches = random.Random(1), round(Quotas().executions_per_day / 24 * share / IN_A_BATCH)
    settle_hostile(world, rng)
    world.target.answer = lambda event: Outcome(
        ok=False, permanent=True, error_type="E" * 100, error="\x01" * 2_000, log_tail="\u202e" * 4_000
    )
    start = int(world.clock.now()) // 60 * 60 + 60
    for nth in range(batches):
        due = start + 60 * nth
        world.clock.move_to(due)
        for n in range(IN_A_BATCH) if nth % 10 == 0 else ():
            with contextlib.suppress(InvalidInput):
                world.registry.put("hostile", f"h{n}", hostile_job(rng))
        messages = [
            Message(f"m{n}", Execution("hostile", f"h{n}", due, due, 1).encode()) for n in range(IN_A_BATCH)
        ]
        execute_batch(world.executor, messages)
        forget(world)
        yield (nth + 1) / batches


class StageOne:
    """The handlers of stage one, each over the same tables; the one that is not measured is in another process."""

    def __init__(self, tables: Any, now: float) -> None:
        os.environ |= ENVIRONMENT
        self.queues: Any = hostile_tick.Queues()
        self.clock = ManualClock(now)
        dynamodb: Any = FarTables(tables)
        deployment = Deployment(
            Config.from_env(os.environ),
            clock=self.clock,
            tables=Tables(lambda name: Table(dynamodb, f"test-{name}", now=self.clock.now)),
            sqs=self.queues,
            rules=AnyTenant(),
        )
        handler.deployment = lambda: deployment  # type: ignore[assignment]

    def tick(self, now: int) -> list[str]:
        """Returns the messages to planners."""
        self.clock.move_to(now)
        handler.handle({}, None)
        bodies: list[str] = list(self.queues.planning)
        self.queues.planning.clear()
        return bodies

    def plan(self, now: int, bodies: list[str]) -> None:
        self.clock.move_to(now)
        for body in bodies:
            handler.handle_shares({"Records": [{"body": body}]}, None)


class _Elsewhere(BaseManager):
    pass


_Elsewhere.register("stage_one", StageOne)


def stage_one(world: World, share: float, measured: str) -> Iterator[float]:
    """Six ticks of a tenant at its quotas, with planners: its jobs of each second fail, and SHARE of its changes."""
    changes, runs = (round(most * share) for most in (10 * Quotas().requests_per_minute, 7_000))
    hostile_tick.fill(world.dynamodb, int(world.clock.now()))
    stage = (world.dynamodb.served, world.clock.now())
    with _Elsewhere() as process:
        measured_one, elsewhere = StageOne(*stage), process.stage_one(*stage)  # type: ignore[attr-defined]
        scheduler, planner = (
            (measured_one, elsewhere) if measured == "scheduler" else (elsewhere, measured_one)
        )
        for nth in range(6):
            for n in range(changes):
                # Each change opens another group, and a job is over before the next tick.
                at = {"at": world.clock.now() + 30, "after_completion": "delete"}
                timing = ({"cron": f"{n % 60} {n // 60 % 24} * * *"}, {"every": 3_600 + n * 60}, at)[n % 3]
                with contextlib.suppress(InvalidInput):
                    world.registry.put("hostile", f"h{(n + nth) % 5_000}", job(**timing))
            now = int(world.clock.now()) // 600 * 600 + 1_080
            world.clock.move_to(now)
            failed_runs(world, hostile_tick.TENANT, hostile_tick.job_name(nth), runs, "\x01" * 400)
            planner.plan(now, scheduler.tick(now))
            forget(world)
            yield (nth + 1) / 6


def notifier(world: World, share: float) -> Iterator[float]:
    """An hour of rounds: each minute all runs fail that the quota allows, and hostile addresses are told of it."""
    rng, rounds = random.Random(1), round(60 * share)
    with (
        ThreadPoolExecutor(16) as pool,
        ThreadPoolExecutor(16) as reads,
        contextlib.ExitStack() as servers,
    ):
        stage = make_stage(world, pool, reads)
        hostile = [servers.enter_context(sending()) for _ in range(SUBSCRIPTIONS)]
        endpoints = local_endpoints(plain_http=True)

        def answer(subscription: Subscription) -> Outcome:
            url = f"http://localhost:{hostile[int(subscription.name)].port}/"
            request = Outgoing(url, "POST", {}, b"x" * 200_000, "ntc_0")
            return endpoints.send(subscription.tenant, request, 5)

        stage.addresses.answer = answer
        for n in range(SUBSCRIPTIONS):
            stage.subscribe("hostile", str(n))
        for nth in range(rounds):
            for server in hostile:
                server.script = script(rng)
            for n in range(JOBS):
                failed_runs(world, "hostile", f"{n:03d}" + "j" * 125, 7, "\x01" * 400)
            stage.round()
            stage.addresses.sent.clear()
            world.clock.sleep(60)
            forget(world)
            yield (nth + 1) / rounds


def scheduler(world: World, share: float) -> Iterator[float]:
    return stage_one(world, share, "scheduler")


def planner(world: World, share: float) -> Iterator[float]:
    return stage_one(world, share, "planner")


FUNCTIONS = {function.__name__: function for function in (api, executor, scheduler, planner, notifier)}


def main(function: str, share: float) -> list[float]:
    """Returns the peak memory in MB at each tenth of the hour, the first before its first request."""
    with far_tables() as tables, Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        world = make_world(tables, NOW)
        tenths = [peak_mb()]
        for done in FUNCTIONS[function](world, share):
            while done * 10 >= len(tenths):
                tenths.append(peak_mb())
                print(f"{len(tenths) - 1} of 10: {tenths[-1]:.0f} MB", file=sys.stderr, flush=True)
        return tenths


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], float(sys.argv[2]))))
