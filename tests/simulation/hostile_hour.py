"""An hour of a hostile tenant at its default quotas, without the waiting, in a process of its own that is measured.

    python -m tests.simulation.hostile_hour api|executor SHARE

Does SHARE of what the quotas allow in an hour (1 is all), and prints the peak memory after a half and at the end. The
tables in memory are the process's, too; what only grows them (the audit, runs) is removed as it comes.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.errors import InvalidInput
from common.planning.execution import Execution
from common.runs.outcome import Outcome
from common.storage import aws_operations
from common.tenants.tenant import Quotas
from executor.batch import execute_batch
from executor.stages import Message
from tests.api.calls import Office
from tests.api.conftest import open_office, settle
from tests.api.test_refused_bodies import WITH_BODY, caller_of, operation, refused_bodies
from tests.executor.hostile_neighbours import hostile_job
from tests.executor.hostile_neighbours import settle as settle_hostile
from tests.processes import peak_mb
from tests.worlds import World, open_world

JOBS = 100
IN_A_BATCH = 100
SERVICES = sorted(aws_operations.session_of_all_services().get_available_services())
CURSORS = ("%00", "e30", "bm9uZQ", "W10", "9" * 2_000, "\u202e", "eyJ2IjoxfQ")


def without_audit(world: World) -> None:
    """What a real table keeps is no memory of the function's."""
    for partition in world.dynamodb.tables["test-tenants"].values():
        for key in [key for key in partition.items if key.startswith("AUDIT#")]:
            partition.delete(key)


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


def api(world: World, share: float) -> Iterator[None]:
    """An hour of `requests_per_minute`."""
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
                without_audit(world)
            if n == count // 2:
                yield


def executor(world: World, share: float) -> Iterator[None]:
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
        world.target.calls.clear()
        world.dynamodb.tables["test-runs"].clear()
        without_audit(world)
        if nth == batches // 2:
            yield


def main(function: str, share: float) -> dict[str, float]:
    with open_world() as world, Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
        hour = {"api": api, "executor": executor}[function](world, share)
        ready_mb = peak_mb()
        next(hour)
        half_mb = peak_mb()
        assert next(hour, None) is None
        return {"ready_mb": ready_mb, "half_mb": half_mb, "peak_mb": peak_mb()}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], float(sys.argv[2]))))
