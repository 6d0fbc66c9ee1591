"""What tenants' schedules can fill the processes' caches with: their texts are the keys, so a cache has bytes, too."""

from __future__ import annotations

import gc
import random
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest

from common.timing import cron, eventbridge_cron, groups, slots

# Beside what a scheduler of 512 MB needs for a tick.
ALL_BYTES = 160_000_000
RNG = random.Random(1)
ZONE = "America/Argentina/ComodRivadavia"


def pick(low: int, high: int, count: int) -> str:
    return ",".join(map(str, sorted(RNG.sample(range(low, high + 1), count))))


def long_cron() -> str:
    return f"{pick(0, 59, 20)} {pick(0, 59, 20)} {pick(0, 23, 12)} {pick(1, 31, 15)} {pick(1, 12, 6)} {pick(0, 6, 3)}"


def long_cron_of_aws() -> str:
    return f"{pick(0, 59, 20)} {pick(0, 23, 12)} {pick(1, 31, 15)} {pick(1, 12, 6)} ? {pick(1970, 2199, 15)}"


HOURS = [pick(0, 23, 12) for _ in range(200)]
DAYS = [pick(1, 31, 15) for _ in range(50)]


def long_key(days: str = "") -> str:
    """Its fields are few texts: the caches of fields are small, and the first keys fill them."""
    return f"cron|{ZONE}|* {RNG.choice(HOURS)} {days or RNG.choice(DAYS)} 1,3,5,8,10-12 {pick(0, 6, 3)}"


def kept_bytes(cache: Any, entry: Callable[[], object], first: int = 20) -> float:
    """What the cache has when it is full of such entries; the first ones fill smaller caches."""
    cache.cache_clear()
    for _ in range(first):
        entry()
    gc.collect()
    tracemalloc.start()
    try:
        before, entries = tracemalloc.get_traced_memory()[0], cache.cache_info().currsize
        for _ in range(100):
            entry()
        gc.collect()
        each = (tracemalloc.get_traced_memory()[0] - before) / (cache.cache_info().currsize - entries)
    finally:
        tracemalloc.stop()
    return float(each * cache.cache_info().maxsize)


def test_caches_of_schedules_are_bounded_by_bytes() -> None:
    """A tenant that changed 10,000 jobs of five schedules before each tick filled one of 189 MB in an hour."""
    cron.compile_cron(long_cron())
    sizes = {
        "groups": kept_bytes(
            groups._parsed_alone,
            lambda: groups.group_can_fire(long_key(), 1_763_694_600, 1_763_695_200),
            first=400,
        ),
        "expressions": kept_bytes(cron.compile_cron, lambda: cron.compile_cron(long_cron())),
        "EventBridge's": kept_bytes(
            eventbridge_cron.compile_eventbridge,
            lambda: eventbridge_cron.compile_eventbridge(long_cron_of_aws()),
        ),
        "places": kept_bytes(slots._cron_slots, lambda: slots.places(long_key("*"))),
    }
    assert sum(sizes.values()) < ALL_BYTES, sizes


@pytest.mark.parametrize("count", [2, 4])
def test_several_schedules_are_kept_once(count: int) -> None:
    """Each key of a group of several is kept, and not the text of all."""
    key = "many|" + ";".join(long_key() for _ in range(count))
    before = groups._parsed_alone.cache_info().currsize
    groups.group_can_fire(key, 1_763_694_600, 1_763_695_200)
    assert groups._parsed_alone.cache_info().currsize - before <= count
    assert groups.parsed_group(key) == tuple(key.removeprefix("many|").split(";"))
