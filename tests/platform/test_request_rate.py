"""The bound on a tenant's requests."""

from __future__ import annotations

import pytest

from common.errors import RateExceeded
from common.platform.request_rate import RequestRate
from tests.worlds import World


def accepted(rate: RequestRate, most: int, now: float, tries: int) -> int:
    count = 0
    for _ in range(tries):
        try:
            rate.take("alice", most, now)
        except RateExceeded:
            continue
        count += 1
    return count


def test_the_quota_holds_over_all_processes(world: World) -> None:
    processes = [RequestRate(world.table("tenants")) for _ in range(3)]
    assert sum(accepted(process, 250, 6_000.0, 200) for process in processes) == 250


@pytest.mark.parametrize("most", [0, 1, 99, 199, 350])
def test_the_quota_is_never_exceeded(world: World, most: int) -> None:
    assert most - 3 < accepted(RequestRate(world.table("tenants")), most, 6_000.0, most + 50) <= most


def test_each_minute_has_a_new_quota_and_a_refusal_says_when(world: World) -> None:
    rate = RequestRate(world.table("tenants"))
    assert accepted(rate, 5, 6_010.5, 9) == 5
    with pytest.raises(RateExceeded) as refused:
        rate.take("alice", 5, 6_010.5)
    assert refused.value.retry_after_s == 50
    rate.take("bob", 5, 6_010.5)
    assert accepted(rate, 5, 6_060.0, 9) == 5


def test_a_request_can_count_as_several_up_to_the_whole_quota(world: World) -> None:
    processes = [RequestRate(world.table("tenants")) for _ in range(2)]
    heavy = 0
    for n in range(80):
        try:
            processes[n % 2].take("alice", 250, 6_000.0, 10)
        except RateExceeded:
            continue
        heavy += 1
    light = sum(accepted(process, 250, 6_000.0, 20) for process in processes)
    assert heavy in (24, 25)
    assert heavy * 10 + light == 250
    processes[0].take("bob", 5, 6_000.0, 10)
    with pytest.raises(RateExceeded):
        processes[0].take("bob", 5, 6_000.0)


def test_the_cost_of_a_request_is_charged_and_can_use_up_the_minute(world: World) -> None:
    processes = [RequestRate(world.table("tenants")) for _ in range(2)]
    for process in processes:
        assert accepted(process, 250, 6_000.0, 1) == 1  # each holds one more
    processes[0].charge("alice", 6_000.0, 99)
    assert sum(accepted(process, 250, 6_000.0, 250) for process in processes) == 149
    processes[1].charge("alice", 6_060.0, 1_000)
    assert [accepted(process, 250, 6_060.0, 3) for process in processes] == [0, 0]
    assert accepted(processes[0], 250, 6_120.0, 3) == 3


def test_a_busy_tenant_costs_one_write_in_a_hundred(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    table, writes = world.table("tenants"), []
    update = table.update
    monkeypatch.setattr(table, "update", lambda *words: (writes.append(1), update(*words))[1])
    rate = RequestRate(table)
    assert accepted(rate, 6_000, 6_000.0, 600) == 600
    assert len(writes) == 10
    assert accepted(rate, 1, 6_060.0, 50) == 1
    assert len(writes) == 12
