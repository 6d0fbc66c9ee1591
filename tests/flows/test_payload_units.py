"""What a payload of each size costs in DynamoDB's units, as docs/limits.md has it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from common.storage import keys
from common.storage.metering import Meter, MeteredClient, metered
from common.storage.table import Query
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import World, job, make_world

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "limits.md").read_text()
SIZES = {"100 B": 100, "1 KiB": 1024, "10 KiB": 10 * 1024, "128 KiB": 128 * 1024}
SEARCHED = 100
KEY = ("alice", "job-00")


def measured(call: Callable[[], object]) -> tuple[float, float]:
    """The read and write units of a call in this thread."""
    meter = Meter(lambda: 0.0)
    with metered(meter):
        call()
    return meter.read_units, meter.write_units


def units_with(size: int) -> dict[str, float]:
    """By what is done, as the page names it."""
    world = make_world(MeteredClient(MemoryDynamoDB()), "2026-11-21T03:12:00Z")
    fields = job(cron="0 3 * * *", payload="x" * (size - 2), name="A report", tags=["reports", "billing"])
    _, registered = measured(lambda: world.registry.create(*KEY, fields))
    for number in range(1, SEARCHED):
        world.registry.create("alice", f"job-{number:02}", fields)
    stored = world.store.get(*KEY)
    world.store.failures.add(stored, "20261121T030000Z#1")
    read_job, _ = measured(lambda: world.executor.due_jobs.jobs.get(keys.job(*KEY)))
    read_payload, _ = measured(lambda: world.executor.calls.payload_of(stored))
    read_again, _ = measured(lambda: world.executor.calls.payload_of(stored))
    assert read_again == 0
    failing = world.store.get(*KEY)
    _, failed = measured(lambda: world.store.failures.add(failing, "20261121T030100Z#1"))
    search, _ = measured(lambda: list(world.store.list_jobs("alice", limit=SEARCHED + 1)))
    look, _ = measured(lambda: look_of_the_notifier(world))
    _, paused = measured(lambda: world.store.pause(*KEY))
    _, replaced = measured(lambda: world.registry.patch(*KEY, {"payload": "y" * (size - 2)}))
    return {
        "registering it": registered,
        "a run reads its job": read_job,
        "a run reads its payload, once per process": read_payload,
        "a further failure in a row": failed,
        "a search, for each 100 jobs": search,
        "the notifier's look, for each 100 jobs": look,
        "pausing it": paused,
        "replacing the payload": replaced,
    }


def look_of_the_notifier(world: World) -> list[Any]:
    query = Query("alice", sk_prefix=keys.JOB_PREFIX, consistent=False)
    return list(world.table("jobs").query(query))


@pytest.fixture(scope="module")
def units() -> dict[str, dict[str, float]]:
    return {name: units_with(size) for name, size in SIZES.items()}


def test_the_page_has_these_units(units: dict[str, dict[str, float]]) -> None:
    rows = [
        f"| {done} | " + " | ".join(f"{units[name][done]:g}" for name in SIZES) + " |"
        for done in units["1 KiB"]
    ]
    missing = [row for row in rows if row not in re.sub(r" +", " ", PAGE)]
    assert missing == []


def test_a_run_reads_one_unit_for_its_job_and_a_failure_writes_one(
    units: dict[str, dict[str, float]],
) -> None:
    for each in units.values():
        assert (each["a run reads its job"], each["a further failure in a row"]) == (1, 1)


def test_searches_and_looks_cost_the_same_with_any_large_payload(units: dict[str, dict[str, float]]) -> None:
    for done in ("a search, for each 100 jobs", "the notifier's look, for each 100 jobs", "pausing it"):
        assert units["10 KiB"][done] == units["128 KiB"][done] <= units["1 KiB"][done] < 60
