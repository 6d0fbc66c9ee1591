"""A step of the platform's density reads a bounded number of shards, and holds a page of each that it reads ahead."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from common.clock import CpuBudget
from common.planning import platform_density
from common.planning.due_entry import DueEntry
from common.planning.due_index import DueIndex
from common.planning.platform_density import DensityPosition, PlatformDensity, count_step
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import item_to_wire
from common.timing.groups import group_key
from common.timing.schedule import CronTiming, Schedule
from tests.worlds import World, at

NOW = at("2026-11-21T03:00:00Z")
HOUR_S = 3_600
READ_IN_A_STEP = 2_000
HOURLY = Schedule.of(CronTiming("30 * * * *", "UTC"))
GROUP = group_key(HOURLY)
# A page of DynamoDB has up to 1 MB. Here it has a tenth of that, and a shard has twenty pages.
PAGE_ENTRIES = 20
PAGES = 20
PAGE_BYTES = 100_000


@pytest.fixture(autouse=True)
def enough_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform_density, "CpuBudget", partial(CpuBudget, HOUR_S))


def steps(index: DueIndex) -> Iterator[tuple[PlatformDensity, bool]]:
    """Each step's counts, and whether another follows."""
    position: DensityPosition | None = DensityPosition()
    while position:
        density = PlatformDensity(NOW, NOW + HOUR_S)
        position = count_step(index, density, position)
        yield density, position is not None


def test_a_step_reads_a_bounded_number_of_shards(world: World) -> None:
    """Readers' processor time is not the step's own: 10,000 shards of an entry each were nine seconds of it."""
    due, tenants = world.table("due"), Counter[str]()
    for shard in range(READ_IN_A_STEP + 1):
        tenant = f"tenant-{shard % 7}"
        tenants[tenant] += 1
        due.put({**keys.directory(GROUP, shard), "jobs": 1})
        entry = DueEntry(tenant, "job", HOURLY, 0, 1, "all")
        due.put({**keys.due_entry(GROUP, shard, tenant, "job"), "entry": entry.encode()})
    first, second = steps(world.index)
    assert (first[0].jobs, first[1]) == (READ_IN_A_STEP, True)
    assert (second[0].jobs, second[1]) == (1, False)
    assert first[0].counts + second[0].counts == {NOW + HOUR_S // 2: READ_IN_A_STEP + 1}
    assert first[0].tenants + second[0].tenants == tenants


def test_the_shard_in_which_a_step_goes_on_counts_as_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform_density, "MAX_READ", 2)
    for shard in range(4):
        world.table("due").put({**keys.directory(GROUP, shard), "jobs": 3})
        for n in range(3):
            entry = DueEntry("alice", f"job-{n}", HOURLY, 0, 1, "all")
            world.table("due").put(
                {**keys.due_entry(GROUP, shard, "alice", f"job-{n}"), "entry": entry.encode()}
            )
    partition = int(keys.directory_partition(GROUP).rpartition("#")[2])
    within = DensityPosition(partition, keys.directory(GROUP, 0)["sk"], "alice#job-0")
    density = PlatformDensity(NOW, NOW + HOUR_S)
    following = count_step(world.index, density, within)
    assert density.jobs == 5, "two of the first shard, and the second one"
    assert following == DensityPosition(partition, keys.directory(GROUP, 1)["sk"])


class HostileShards:
    """A client: shards of entries with the longest schedules, of which each page is made when it is asked for."""

    def __init__(self, shards: int) -> None:
        self.shards = shards

    def query(self, **request: Any) -> dict[str, Any]:
        partition = request["ExpressionAttributeValues"][":pk"]["S"]
        if partition == keys.directory_partition(GROUP):
            listed = (
                {**keys.directory(GROUP, shard), "jobs": PAGE_ENTRIES * PAGES} for shard in range(self.shards)
            )
            return {"Items": [item_to_wire(item) for item in listed]}
        if partition.startswith(("DIRECTORY", "ONE_OFF")):
            return {"Items": []}
        after = request.get("ExclusiveStartKey", {"sk": {"S": "alice#job-0000"}})["sk"]["S"]
        first = int(after[-4:]) + 1
        items = [self._entry(partition, number) for number in range(first, first + PAGE_ENTRIES)]
        is_last = first + PAGE_ENTRIES > PAGE_ENTRIES * PAGES
        return {"Items": items} | ({} if is_last else {"LastEvaluatedKey": {"sk": items[-1]["sk"]}})

    def _entry(self, partition: str, number: int) -> dict[str, Any]:
        entry = DueEntry("alice", f"job-{number:04}", HOURLY, 0, 1, "all").encode()
        entry += " " * (PAGE_BYTES // PAGE_ENTRIES)
        return item_to_wire({"sk": f"alice#job-{number:04}", "entry": entry})


def test_of_a_shard_that_is_read_ahead_a_page_is_held() -> None:
    """Seventeen whole shards of 20 MB each were 340 MB."""
    shards: Any = HostileShards(30)
    index = DueIndex(Table(shards, "due"))
    density = PlatformDensity(NOW, NOW + HOUR_S)
    tracemalloc.start()
    try:
        assert count_step(index, density, DensityPosition()) is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert density.counts.total() == density.jobs == 30 * PAGES * PAGE_ENTRIES
    assert peak < 8_000_000 < 17 * PAGES * PAGE_BYTES / 2
