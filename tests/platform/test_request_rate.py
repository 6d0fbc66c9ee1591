"""The budget of a tenant's requests: its bound, how it refills, and what is charged to it afterwards."""

from __future__ import annotations

import math
import random
from bisect import bisect_left, bisect_right

import pytest

from common.errors import RateExceeded
from common.platform.request_rate import RequestRate
from common.storage.metering import Meter, metered
from tests.worlds import World

BUDGET_S = 60
MAX_DEBT_S = 300
PROCESSOR_S = 0.05
READ_UNITS = 10
WRITE_UNITS = 50

NOW = 6_000.0


def accepted(rate: RequestRate, most: int, now: float, tries: int, weight: int = 1) -> int:
    """How many of so many requests are accepted."""
    return sum(wait_s(rate, most, now, weight) == 0 for _ in range(tries))


def wait_s(rate: RequestRate, most: int, now: float, weight: int = 1) -> int:
    """What a refused request has to wait; 0 if it is accepted."""
    try:
        rate.take("alice", most, now, weight)
    except RateExceeded as refused:
        return refused.retry_after_s
    return 0


def test_the_quota_holds_over_all_processes(world: World) -> None:
    processes = [RequestRate(world.table("tenants")) for _ in range(3)]
    assert sum(accepted(process, 250, NOW, 200) for process in processes) == 250


@pytest.mark.parametrize("most", [0, 1, 99, 199, 350])
def test_the_quota_is_never_exceeded(world: World, most: int) -> None:
    assert most - 3 < accepted(RequestRate(world.table("tenants")), most, NOW, most + 50) <= most


@pytest.mark.parametrize(("most", "each_s"), [(1, 60), (5, 12), (60, 1), (600, 0.1), (6_000, 0.01)])
def test_the_budget_refills_evenly(world: World, most: int, each_s: float) -> None:
    rate = RequestRate(world.table("tenants"))
    assert accepted(rate, most, NOW, most + 5) == most
    now = NOW
    for _ in range(4):
        now += max(1.0, each_s)
        assert accepted(rate, most, now, most + 5) == max(1, round(1 / each_s))


@pytest.mark.parametrize("most", [1, 5, 60, 250, 600])
@pytest.mark.parametrize("weight", [1, 20, 7_000])
def test_a_refusal_says_when(world: World, most: int, weight: int) -> None:
    """A request is accepted when the seconds are over, if nobody else sends any, and not a second before."""
    rate, other = RequestRate(world.table("tenants")), RequestRate(world.table("tenants"))
    accepted(rate, most, NOW, most)
    wait = wait_s(rate, most, NOW + 0.001, weight)
    assert wait == math.ceil(min(weight, most) * 60 / most - 0.001)
    if wait > 1:
        assert wait_s(rate, most, NOW + wait - 1, weight)
    assert wait_s(other, most, NOW + 0.001 + wait, weight) == 0
    rate.take("bob", most, NOW)


def test_a_tenant_without_a_quota_waits_for_another_one(world: World) -> None:
    assert wait_s(RequestRate(world.table("tenants")), 0, NOW) == BUDGET_S


def test_a_request_can_count_as_several_up_to_the_whole_quota(world: World) -> None:
    processes = [RequestRate(world.table("tenants")) for _ in range(2)]
    heavy = sum(accepted(processes[n % 2], 250, NOW, 1, weight=10) for n in range(80))
    light = sum(accepted(process, 250, NOW, 20) for process in processes)
    assert heavy in (24, 25)
    assert heavy * 10 + light == 250
    processes[0].take("bob", 5, NOW, 10)
    with pytest.raises(RateExceeded):
        processes[0].take("bob", 5, NOW)


def test_what_a_process_reserved_is_lost_after_a_minute(world: World) -> None:
    rate = RequestRate(world.table("tenants"))
    assert accepted(rate, 6_000, NOW, 1) == 1  # and 59 are reserved
    assert accepted(RequestRate(world.table("tenants")), 6_000, NOW + BUDGET_S, 7_000) == 6_000
    assert accepted(rate, 6_000, NOW + BUDGET_S, 60) == 0


@pytest.mark.parametrize("seed", range(6))
def test_no_span_of_time_has_more_than_the_bound(world: World, seed: int) -> None:
    """Several processes at random times, with random floods."""
    rng = random.Random(seed)
    most = rng.choice([30, 250, 400])
    processes = [RequestRate(world.table("tenants")) for _ in range(3)]
    now, times = NOW, []
    for _ in range(40):
        now += rng.choice([0, 0.01, 0.5, 3, 40])
        times += [now] * accepted(rng.choice(processes), most, now, rng.randint(1, most // 3))
    for nth, first in enumerate(times[::20]):
        for last in times[::20][nth:]:
            inside = bisect_right(times, last) - bisect_left(times, first)
            assert inside <= most * (1 + (last - first) / 60) + len(processes) * max(1, most // 100) + 1


def test_the_cost_of_a_request_is_charged_and_can_use_up_the_budget(world: World) -> None:
    processes = [RequestRate(world.table("tenants")) for _ in range(2)]
    for process in processes:
        assert accepted(process, 250, NOW, 1) == 1  # each holds one more
    processes[0].charge("alice", 250, NOW, 99)
    assert sum(accepted(process, 250, NOW, 250) for process in processes) == 149
    later = NOW + BUDGET_S
    processes[1].charge("alice", 250, later, 400)
    assert [accepted(process, 250, later, 3) for process in processes] == [0, 0]
    assert {wait_s(process, 250, later) for process in processes} == {math.ceil(60 * 151 / 250)}


@pytest.mark.parametrize("requests", [1, 600, 6_000, 60_000])
def test_the_debt_is_bounded(world: World, requests: int) -> None:
    """Charged at once or in parts, by one process or another, the longest wait is the same."""
    rate, other = RequestRate(world.table("tenants")), RequestRate(world.table("tenants"))
    assert accepted(rate, 60, NOW, 60) == 60
    for process in (rate, other, rate):
        process.charge("alice", 60, NOW, requests)
    wait = wait_s(RequestRate(world.table("tenants")), 60, NOW)
    assert wait == min(3 * requests, MAX_DEBT_S) + 1
    assert wait_s(other, 60, NOW + wait - 1.5)
    assert not wait_s(other, 60, NOW + wait)


def test_a_busy_tenant_costs_one_write_in_a_hundred(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    table, writes = world.table("tenants"), []
    update = table.update
    monkeypatch.setattr(table, "update", lambda *words: (writes.append(1), update(*words))[1])
    rate = RequestRate(table)
    assert accepted(rate, 6_000, NOW, 600) == 600
    assert len(writes) == 10
    assert accepted(rate, 6_000, NOW, 6_000) == 5_400
    assert len(writes) == 100
    assert accepted(rate, 6_000, NOW, 1_000) == 0
    assert len(writes) == 100, "a refusal needs no write while it is known that nothing is left"


def test_a_seldom_tenant_costs_one_write_a_minute(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    table, writes = world.table("tenants"), []
    update = table.update
    monkeypatch.setattr(table, "update", lambda *words: (writes.append(1), update(*words))[1])
    processes = [RequestRate(table), RequestRate(table)]
    for minute in range(10):
        for nth, process in enumerate(processes):
            assert accepted(process, 6_000, NOW + 70 * minute + nth, 5) == 5
    assert len(writes) == 2 * 10


def test_a_request_is_charged_what_it_costs_beyond_what_it_was_counted_as(world: World) -> None:
    rate = RequestRate(world.table("tenants"))
    for cost, more in (
        ({}, 0),
        ({"read_units": 2 * READ_UNITS - 0.5}, 0),
        ({"read_units": 2 * READ_UNITS}, 1),
        ({"read_units": 20 * READ_UNITS}, 19),
        ({"write_units": 3 * WRITE_UNITS}, 2),
        ({"processor_s": 30 * PROCESSOR_S}, 29),
        ({"read_units": READ_UNITS, "processor_s": PROCESSOR_S}, 1),
    ):
        before = remaining(world)
        meter = Meter(lambda: 0.0)
        with metered(meter):
            rate.take("alice", 100, NOW)
        meter.add(**cost)
        rate.settle(meter, NOW)
        assert before - remaining(world) == 1 + more, cost


def remaining(world: World) -> int:
    """How many requests of a hundred a minute the stored budget has left."""
    item = world.table("tenants").get({"pk": "alice", "sk": "RATE"})
    return 100 - round((item["used_until_us"] / 1e6 - (NOW - BUDGET_S)) / 0.6) if item else 100


def test_nobody_is_charged_for_a_request_that_was_not_counted(world: World) -> None:
    meter = Meter(lambda: 0.0)
    meter.add(read_units=1_000)
    RequestRate(world.table("tenants")).settle(meter, NOW)
    assert world.table("tenants").get({"pk": "alice", "sk": "RATE"}) is None


@pytest.mark.parametrize("damaged", ["?", [1], None, True, 3_981_312_000_000_000, 10**29])
def test_what_nobody_can_have_used_counts_as_nothing(world: World, damaged: object) -> None:
    world.table("tenants").put({"pk": "alice", "sk": "RATE", "used_until_us": damaged, "expires_at": 7})
    assert accepted(RequestRate(world.table("tenants")), 100, NOW, 200) == 100
    assert remaining(world) == 0
