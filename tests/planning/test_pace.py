"""The seconds of a pace: how many executions each gets, within which tolerance, and how many are too many."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.planning.directory import Listing, Shard
from common.planning.due_index import Window
from common.planning.execution import Execution
from common.planning.pace import (
    PacedExecution,
    PaceReservations,
    PaceSlice,
    nth_shard,
    pace_number,
    pace_of,
    shard_number,
)
from common.planning.shares import divide
from common.storage import keys
from common.timing.schedule import Pace
from tests.worlds import open_world

START = 1_763_694_600
# The second at which an execution is due, and by how much it may be delayed.
DueTime = tuple[int, int]
due_times = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 9)), max_size=60)
WINDOW = Window(START, START + 600, START - 120)


def paced(due: Sequence[DueTime], per_second: int) -> list[PacedExecution]:
    return [
        PacedExecution(
            Execution("alice", f"job{n}", START + second, START + second, 1),
            Pace("crm", per_second, tolerance_s),
        )
        for n, (second, tolerance_s) in enumerate(due)
    ]


def reserve(
    reservations: PaceReservations, executions: Sequence[PacedExecution], now: float = START - 120
) -> dict[str, int]:
    """The seconds by job."""
    return {execution.job_id: execution.visible_at for execution in reservations.reserve(executions, now)}


@given(due_times, st.integers(1, 4))
def test_a_second_has_at_most_so_many_unless_the_tolerance_is_exhausted(
    due: list[DueTime], per_second: int
) -> None:
    reservations = PaceReservations()
    executions = paced(due, per_second)
    second_of = reserve(reservations, executions)
    assert set(second_of) == {item.execution.job_id for item in executions}
    counts = Counter(second_of.values())
    for item in executions:
        assert 0 <= second_of[item.execution.job_id] - item.execution.due_at <= item.pace.tolerance_s
    assert reservations.over == sum(max(0, count - per_second) for count in counts.values())
    for second, count in counts.items():
        if count > per_second:  # the last execution had no free second
            last = max(
                (item for item in executions if second_of[item.execution.job_id] == second),
                key=lambda item: (item.execution.due_at, item.pace.tolerance_s, item.execution.job_id),
            )
            begin, end = last.execution.due_at, last.execution.due_at + last.pace.tolerance_s
            assert all(counts[within] >= per_second for within in range(begin, end + 1))


@given(due_times, st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_order_in_which_entries_are_read_changes_nothing(
    due: list[DueTime], per_second: int, rng: random.Random
) -> None:
    executions = paced(due, per_second)
    shuffled = rng.sample(executions, len(executions))
    assert reserve(PaceReservations(), executions) == reserve(PaceReservations(), shuffled)


@given(due_times, st.integers(1, 4), st.integers(1, 12))
def test_two_windows_in_turn_give_the_same_seconds_as_one_long_window(
    due: list[DueTime], per_second: int, split: int
) -> None:
    executions = paced(due, per_second)
    early = [item for item in executions if item.execution.due_at < START + split]
    late = [item for item in executions if item.execution.due_at >= START + split]
    first = PaceReservations()
    seconds = reserve(first, early)
    second = PaceReservations(reserved=Counter(first.own))
    seconds |= reserve(second, late)
    long_window = PaceReservations()
    assert seconds == reserve(long_window, executions)
    assert first.over + second.over == long_window.over


@given(due_times, st.integers(1, 4), st.integers(1, 4))
def test_the_slices_of_a_pace_keep_it_together(due: list[DueTime], per_second: int, of: int) -> None:
    executions = paced(due, per_second)
    counts: Counter[int] = Counter()
    over = 0
    for nth in range(of):
        reservations = PaceReservations(PaceSlice(nth, of))
        counts.update(reserve(reservations, executions[nth::of]).values())
        over += reservations.over
    assert counts.total() == len(executions)
    assert over or max(counts.values(), default=0) <= per_second


def test_an_outage_does_not_end_in_a_burst_and_late_executions_count_as_late() -> None:
    now = START + 300.5
    executions = list(PaceReservations().reserve(paced([(0, 60)] * 5, per_second=2), now))
    assert [execution.visible_at - START for execution in executions] == [0, 0, 302, 302, 303]
    assert {execution.due_at for execution in executions} == {START}


def test_the_smallest_number_counts_where_jobs_of_one_key_name_several() -> None:
    reservations = PaceReservations()
    seconds = reserve(reservations, [*paced([(0, 9)] * 4, per_second=3), *paced([(0, 9)] * 2, per_second=1)])
    assert max(Counter(seconds.values()).values()) == 1 and not reservations.over


@pytest.mark.long
def test_far_too_many_are_spread_over_the_tolerance() -> None:
    """A pace of one a second, 100,000 due at once: no execution is lost, and the reservation takes a second or two."""
    reservations = PaceReservations()
    began = time.process_time()
    executions = reservations.reserve(paced([(0, 600)] * 100_000, 1), START)
    counts = Counter(execution.due_at for execution in executions)
    assert time.process_time() - began < 20
    assert (counts.total(), len(counts), reservations.over) == (100_000, 601, 100_000 - 601)
    assert max(counts.values()) - min(counts.values()) <= 1


def test_every_execution_of_a_hostile_tenant_with_its_own_tolerance_takes_no_longer() -> None:
    rng = random.Random(8)
    due = [(rng.randrange(600), rng.randrange(1, 601)) for _ in range(20_000)]
    began = time.process_time()
    assert len(reserve(PaceReservations(), paced(due, 1))) == 20_000
    assert time.process_time() - began < 20


def test_a_pace_has_shards_of_its_own() -> None:
    numbers = [
        pace_number(tenant, Pace(key, 1, 60)) for tenant in ("a", "b") for key in ("c", "d", "arn:aws:sqs:x")
    ]
    assert len(set(numbers)) == 6
    assert pace_number("a", Pace("c", 5, 9)) == numbers[0]
    for number in (0, *numbers):
        for nth in (0, 1, 999_999):
            assert pace_of(shard_number(number, nth)) == number
            assert nth_shard(shard_number(number, nth)) == nth
    assert pace_number("a", None) == 0
    assert {len(str(number)) for number in numbers} == {20}


def test_a_group_is_looked_through_for_shards_of_one_pace_only() -> None:
    """Thousands of paces of one tenant must not slow the registrations of others."""
    with open_world() as world:
        directory, group = world.index.directory, "every|600|0"
        numbers = [0, *(pace_number("mallory", Pace(f"key{n}", 1, 60)) for n in range(50))]
        for number in numbers:
            for nth in (0, 10):
                directory.open([Listing(Shard(group, shard_number(number, nth)))])
        read: list[str] = []
        world.dynamodb.before = read.append
        for number in (0, numbers[7]):
            between = keys.shards_of_pace(group, number)
            shards = list(directory.shards(keys.directory_partition(group), between))
            assert sorted(shard for _, shard, _ in shards) == sorted(  # type: ignore[misc]
                shard_number(number, nth) for nth in (0, 10)
            )
        assert len(read) == 2
        new = directory.pick(group, random.Random(8), conflicts=2, pace=numbers[7])
        assert pace_of(new.shard.shard) == numbers[7]


def test_a_pace_is_in_one_share_and_a_pace_that_is_too_large_is_divided_into_slices() -> None:
    first, second = (shard_number(pace_number("alice", Pace(key, 1, 60)), 0) for key in ("crm", "erp"))
    shards = [
        shard
        for n in range(10)
        for shard in (
            Shard(f"every|600|{n}", 0, 60),
            Shard(f"every|600|{n}", first, 10),
            Shard(f"every|600|{n}", second, 100),
        )
    ]
    shares = list(divide(shards, WINDOW, 500))
    of_second = [share for share in shares if share.shards[0].shard == second]
    assert [share.pace_slice for share in of_second] == [
        PaceSlice(n, len(of_second)) for n in range(len(of_second))
    ]
    assert len(of_second) > 1
    assert all(share.pace_slice == (0, 1) for share in shares if share not in of_second)
    (of_first,) = [share for share in shares if any(shard.shard == first for shard in share.shards)]
    assert sum(shard.shard == first for shard in of_first.shards) == 10
    assert sorted(shard for share in shares for shard in share.shards) == sorted(shards)
