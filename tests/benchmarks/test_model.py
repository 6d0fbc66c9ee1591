"""The model of docs/capacity.md follows AWS's published rules, in cases that can be computed by hand."""

from __future__ import annotations

import statistics
from dataclasses import replace

import pytest

from common.planning.packs import NEW_HOLD_S, WAKE_HOLD_S
from scripts.benchmarks.model import burst
from scripts.benchmarks.modelled_aws import (
    MAX_IN_FLIGHT,
    Measured,
    Message,
    Partitions,
    Queue,
    Service,
    Setting,
    Timing,
    allowed,
    pollers,
    woken,
)

WARM = Setting(warm_environments=1_000, warm_reads=10**6, warm_writes=10**6, early_s=0.0)


def test_default_polling_begins_with_five_batches_and_adds_three_hundred_a_minute() -> None:
    assert [allowed(Setting(), at) for at in (0, 60, 600)] == [5, 305, 1_250]
    assert allowed(Setting(maximum_concurrency=20), 60) == 20


def test_provisioned_pollers_begin_with_the_least_and_add_a_hundred_a_minute() -> None:
    setting = Setting(minimum_pollers=200, maximum_pollers=250)
    assert [pollers(setting, at) for at in (0, 15, 60)] == [200, 225, 250]
    assert allowed(setting, 0) == 2_000


def test_a_poller_asks_ten_times_a_second() -> None:
    # Twenty pollers take 200 batches a second, though each batch would be over in a tenth of the time.
    setting = replace(WARM, minimum_pollers=20, maximum_pollers=20, services=(Service((0.01,), 0.01),))
    outcome = burst(10_000, setting)
    assert max(outcome.lateness) == pytest.approx(1_000 / 200, rel=0.05)


def test_five_batches_at_once_take_as_long_as_their_number_says() -> None:
    setting = replace(WARM, maximum_concurrency=5, services=(Service((0.1,), 1.0),))
    outcome = burst(200, setting)
    assert outcome.batches == 20
    assert outcome.max_executors == 5
    assert max(outcome.lateness) == pytest.approx(3 + 0.1, abs=0.2)


def test_nothing_runs_early() -> None:
    assert min(burst(1_000, Setting(early_s=1.0)).lateness) >= 0


def test_a_partition_gives_its_units_a_second_and_no_more() -> None:
    table = Partitions(4_000, 1_000)
    assert table.count == 4
    granted = sum(table.take(0, 1, now=number / 2000) for number in range(6_000))
    assert granted == pytest.approx(1_000 + 3_000 - 1, abs=2)
    late = Partitions(4_000, 1_000)
    assert sum(late.take(0, 1, now=1.0) for _ in range(1_500)) == 1_000
    assert late.refused == 500


def test_a_new_table_turns_a_large_burst_away_and_a_warm_one_does_not() -> None:
    pollers_of_load = Setting(minimum_pollers=200, maximum_pollers=200, account_concurrency=5_000)
    new = burst(50_000, pollers_of_load)
    warm = burst(50_000, replace(pollers_of_load, warm_reads=60_000, warm_writes=60_000))
    assert new.throttled > 10_000 > warm.throttled == 0
    assert max(new.lateness) > 2 * max(warm.lateness)
    assert len(new.lateness) == len(warm.lateness) == 50_000


def test_a_request_throttled_four_times_comes_back_after_seconds() -> None:
    # One write a second: most of the first ten are throttled again and again.
    setting = replace(WARM, warm_writes=1, again_s=20, max_receives=2)
    outcome = burst(10, setting)
    assert outcome.came_back > 0
    assert outcome.dead > 0 or max(outcome.lateness) > 20
    assert len(outcome.lateness) + outcome.dead == 10


def test_packs_put_ten_times_as_many_executions_in_a_batch() -> None:
    setting = replace(WARM, maximum_concurrency=5, services=(Service((0.1,), 1.0),), pack=10)
    outcome = burst(1_000, setting)
    assert outcome.batches == 10
    assert max(outcome.lateness) == pytest.approx(1 + 0.1, abs=0.1)
    queue = Queue((Message(0, 0, n) for n in range(10 * MAX_IN_FLIGHT)), pack=10)
    while queue.can_give(0):
        queue.take(0, 100)
    assert queue.in_flight == 10 * MAX_IN_FLIGHT


def test_a_batchs_time_lies_between_those_of_the_measured_sizes() -> None:
    timing = Timing((1, 10, 100), (0.01, 0.02, 0.11), (0.01, 0.03, 0.21), (0.02, 0.04, 0.4))
    assert timing.service(10).leads_s[-1] == pytest.approx(0.03)
    middle = timing.service(55)
    assert (middle.leads_s[-1], middle.whole_s) == (pytest.approx(0.12), pytest.approx(0.22))
    assert statistics.median(middle.leads_s) == pytest.approx(0.065)
    assert timing.service(500).whole_s == timing.service(100).whole_s


def test_a_cold_environments_first_batch_takes_as_long_as_was_measured() -> None:
    slow, fair, quick = (Timing((1, 10), (s, s), (s, s), (s, s)) for s in (1.0, 0.5, 0.1))
    executor = Measured(quick, slow, fair, 0.2, first_wake_s=0.4, wake_s=0.1)
    cold = replace(WARM, warm_environments=0, cold_s=0.5, executor=executor, early_s=0.0)
    assert burst(10, cold).lateness == pytest.approx([1.5] * 10, abs=0.05)
    woken = burst(10, replace(cold, wakes=1))
    assert woken.lateness == pytest.approx([0.5] * 10, abs=0.05)
    assert (woken.batches, woken.wakes) == (2, 1)
    assert woken.busy_s == pytest.approx(0.5 + 0.4 + 0.5, abs=0.05)


def test_wakes_start_environments_as_long_as_the_first_ones_start() -> None:
    setting = Setting(cold_s=0.5)
    few = [woken(replace(setting, wakes=wakes))[0] for wakes in (0, 1, 20, 50)]
    assert few == [0, 1, 2, 5]
    # Full batches keep new environments busy.
    first_s = 0.5 + 0.5 + NEW_HOLD_S - WAKE_HOLD_S
    assert woken(replace(setting, wakes=20))[1] == pytest.approx(2 * first_s)
    # Until the first five are over, polling begins five more a second; in five seconds, twenty-five.
    assert woken(replace(setting, wakes=100))[0] == 10
    assert woken(replace(setting, wakes=200))[0] == pytest.approx(5 + 5 * first_s, abs=1)
    assert 25 <= woken(replace(setting, wakes=10_000))[0] <= 30
    polled = replace(setting, minimum_pollers=20, maximum_pollers=20, wakes=10_000)
    assert woken(polled)[0] == pytest.approx(20 * 10, rel=0.1)
    assert woken(replace(polled, wakes=500))[0] == 50


def test_a_batch_begins_when_another_ends_if_the_pollers_look_then() -> None:
    services = (Service((0.0,), 0.13),)
    steadily = replace(WARM, maximum_concurrency=2, first_batches=2, look_s=0.1, services=services)
    at_ends = replace(steadily, after_empty_s=0.05)
    assert max(burst(60, steadily).lateness) == pytest.approx(0.4)
    # The first end is at 0.13 s, but after a look in vain at 0.1 s none follows before 0.15 s. The second: 0.28 s.
    assert max(burst(60, at_ends).lateness) == pytest.approx(0.28)


def test_messages_that_come_twice_take_places_and_run_once() -> None:
    setting = replace(WARM, maximum_concurrency=1, first_batches=1, services=(Service((0.0,), 1.0),))
    once, twice = (burst(100, each) for each in (setting, replace(setting, doubled=10, again_after_s=0.5)))
    assert len(once.lateness) == len(twice.lateness) == 100
    assert once.batches == 10
    # Copies come after what waits already.
    assert max(twice.lateness) == max(once.lateness)


def test_no_more_is_in_flight_than_the_queue_allows() -> None:
    queue = Queue(Message(0, 0, n) for n in range(MAX_IN_FLIGHT + 20))
    while queue.can_give(0):
        queue.take(0)
    assert queue.in_flight == MAX_IN_FLIGHT
    queue.delete(20)
    assert len(queue.take(0)) == 10


def test_targets_share_the_accounts_concurrency() -> None:
    setting = replace(WARM, account_concurrency=10, target_s=1.0, services=(Service((0.0,), 0.1),))
    outcome = burst(100, setting)
    # A hundred calls of a second each, at most ten at once.
    assert outcome.targets_done_at >= 10
