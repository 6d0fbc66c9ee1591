"""What a hostile tenant can put into the projection: the longest ids, of chance, and as many values as there can be.

DynamoDB takes items of up to 400 KB, and compression does not make random ids shorter.
"""

from __future__ import annotations

import json
import random
import string
from contextlib import suppress

from common.errors import Busy
from common.planning.execution import MANUAL, Execution
from common.projection.days import DayTotals
from common.projection.entry import RunEntry, rounded
from common.projection.outcomes import JobOutcomes
from common.projection.state import Again, ProjectionState, ProjectionStates
from common.projection.tenants import ProjectedTenants
from common.projection.totals import RunTotals
from common.projection.windows import LateRuns, ProjectedRuns, totals_of
from common.storage import keys
from common.storage.table import Query
from common.timing.instants import DAY_S, compact_time
from common.timing.windows import WINDOW_S
from tests.worlds import World, at

JOB_ID_CHARS = 128
MAX_OUTCOMES = 20
NONCE_CHARS = 32
TENANT_ID_CHARS = 64

MAX_ITEM_BYTES = 400 * 1024
START = at("2026-11-21T03:00:00Z")
CHARS = string.ascii_letters + string.digits


def by_chance(rng: random.Random, length: int) -> str:
    return "".join(rng.choices(CHARS, k=length))


def hostile_runs(rng: random.Random, count: int, job_id: str = "", start: int = START) -> list[RunEntry]:
    """Runs with the longest names and ids."""
    return [
        RunEntry(
            f"{compact_time(start + rng.randrange(WINDOW_S))}:m-{by_chance(rng, NONCE_CHARS)}",
            job_id or by_chance(rng, JOB_ID_CHARS),
            "skipped",
            "target_not_allowed",
            10_000,
            rounded(rng.random() * 10_000),
            rounded(rng.random() * 10_000),
        )
        for _ in range(count)
    ]


def sizes(world: World, table: str, partition: str) -> list[int]:
    return [len(json.dumps(item, default=str)) for item in world.table(table).query(Query(partition))]


def test_windows_of_long_ids_are_divided_by_their_bytes(world: World) -> None:
    """A chunk of 6,000 such runs had 1.1 MB: the tenant's window could not be written any more."""
    rng = random.Random(1)
    windows = ProjectedRuns(world.table("runs"))
    runs: list[RunEntry] = []
    for count in (300, 2_500, 5_000):
        new = hostile_runs(rng, count)
        runs += new
        window = windows.merge("alice", START, {run.key: run for run in new}, START + DAY_S)
    assert window.totals == totals_of(runs)
    assert list(windows.runs_of("alice", window)) == sorted(runs, key=lambda run: run.key, reverse=True)
    written = sizes(world, "runs", keys.projected_chunks("alice")) + sizes(
        world, "runs", keys.projected_windows("alice")
    )
    assert max(written) < MAX_ITEM_BYTES
    assert len(written) < 30


def test_runs_to_be_read_again_and_late_runs_fit_their_items(world: World) -> None:
    rng = random.Random(2)
    tenant = by_chance(rng, TENANT_ID_CHARS)
    executions = [
        Execution(
            tenant,
            run.job_id,
            START,
            START,
            999_999_999,
            trigger=MANUAL,
            trigger_id=run.run_name.split(":")[1],
        )
        for run in hostile_runs(rng, 1_500)
    ]
    world.index.log.look_again(Again(START + DAY_S, execution) for execution in executions)
    chunks = world.index.log.chunks(START + DAY_S - 600, START + DAY_S + 1, keys.log_bucket(tenant))
    stored = [Execution.decode(body) for chunk in chunks for body in chunk.bodies()]
    assert {run.execution_id for run in stored} == {run.execution_id for run in executions}
    late = hostile_runs(rng, 1_500)
    LateRuns(world.table("runs")).note(tenant, {run.key: run for run in late}, START)
    assert dict(LateRuns(world.table("runs")).since(tenant, START)) == {run.key: run for run in late}
    partition = keys.log_partition(keys.log_bucket(tenant))
    written = sizes(world, "due", partition) + sizes(world, "runs", keys.projected_days(tenant))
    assert len(written) == 3 and max(written) < MAX_ITEM_BYTES


def test_a_day_of_all_different_values_fits_its_item() -> None:
    """Seconds have two digits: from a thousandth to a day there are some 700 different ones."""
    values = {rounded(digits * 10.0**power) for digits in range(10, 100) for power in range(-5, 5)}
    hours = {}
    for hour in range(START, START + DAY_S, 3_600):
        totals = RunTotals()
        for value in values:
            totals.add_entry(RunEntry("20261121T000000Z", "job", "failed", "", 1, value, value))
            totals.lateness_s[value or 0.0] += 999_999_999
        hours[hour] = totals
    item = DayTotals("alice", START, hours, 0).to_item()
    assert len(json.dumps(item)) < MAX_ITEM_BYTES
    assert DayTotals.from_item(item).hours == hours


def test_last_outcomes_of_long_ids_are_divided(world: World) -> None:
    rng = random.Random(3)
    runs = world.table("runs")
    world.project()
    states = ProjectionStates(world.table("due"))
    state = states.read()
    assert state
    start = state.since
    entries: list[RunEntry] = []
    for _ in range(600):
        entries += hostile_runs(rng, MAX_OUTCOMES + 2, by_chance(rng, JOB_ID_CHARS), start)
    ProjectedRuns(runs).merge("alice", start, {entry.key: entry for entry in entries}, start + DAY_S)
    state = ProjectionState(start, dict.fromkeys(range(keys.LOG_BUCKETS), start + 3 * 3_600))
    reader = JobOutcomes(runs)
    for _ in range(20):  # a slow processor takes several steps
        with suppress(Busy):
            last = reader.of_tenant("alice", state, start + 3 * 3_600, lambda: None)
            break
    assert all(len(last.of(job_id)) == MAX_OUTCOMES for job_id in last.rows) and len(last.rows) == 600
    assert len(written := sizes(world, "runs", keys.projected_days("alice"))) > 2
    assert max(written) < MAX_ITEM_BYTES
    assert JobOutcomes(runs).of_tenant("alice", state, start + 3 * 3_600, lambda: None) == last


def test_a_thousand_tenants_of_a_bucket_fit_an_item(world: World) -> None:
    rng = random.Random(4)
    windows = ProjectedRuns(world.table("runs"))
    window = windows.merge("alice", START, {run.key: run for run in hostile_runs(rng, 10)}, START + DAY_S)
    tenants = ProjectedTenants(world.table("runs"))
    tenants.set(0, {(by_chance(rng, TENANT_ID_CHARS), START): window for _ in range(1_000)})
    assert max(sizes(world, "runs", keys.PROJECTION)) < MAX_ITEM_BYTES / 4
