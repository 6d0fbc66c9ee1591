"""Places of a pace: how many a second, within which tolerance, and what is counted as too many."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from common.planning.directory import Listing, Shard
from common.planning.due_index import Mark
from common.planning.execution import Execution
from common.planning.pace import Paced, Part, Places
from common.planning.pace_shards import nth_shard, pace_number, pace_of, shard_number
from common.planning.shares import cut
from common.storage import keys
from common.timing.schedule import Pace
from tests.worlds import open_world

START = 1_763_694_600
# When it is due, and by how much it may be delayed.
Wish = tuple[int, int]
wishes = st.lists(st.tuples(st.integers(0, 12), st.integers(1, 9)), max_size=60)
WINDOW = Mark(START, START + 600, START - 120)


def paced(wanted: Sequence[Wish], per_second: int) -> list[Paced]:
    return [
        Paced(
            Execution("alice", f"job{n}", START + due, START + due, 1), Pace("crm", per_second, tolerance_s)
        )
        for n, (due, tolerance_s) in enumerate(wanted)
    ]


def placed(places: Places, some: Sequence[Paced], now: float = START - 120) -> dict[str, int]:
    """The seconds by job."""
    return {execution.job_id: execution.visible_at for execution in places.place(some, now)}


@given(wishes, st.integers(1, 4))
def test_a_second_has_at_most_so_many_unless_the_tolerance_is_exhausted(
    wanted: list[Wish], per_second: int
) -> None:
    places = Places()
    some = paced(wanted, per_second)
    found = placed(places, some)
    assert set(found) == {one.execution.job_id for one in some}
    seconds = Counter(found.values())
    for one in some:
        assert 0 <= found[one.execution.job_id] - one.execution.due_at <= one.pace.tolerance_s
    assert places.over == sum(max(0, count - per_second) for count in seconds.values())
    for second, count in seconds.items():
        if count > per_second:  # who came last had no choice
            last = max(
                (one for one in some if found[one.execution.job_id] == second),
                key=lambda one: (one.execution.due_at, one.pace.tolerance_s, one.execution.job_id),
            )
            due, end = last.execution.due_at, last.execution.due_at + last.pace.tolerance_s
            assert all(seconds[free] >= per_second for free in range(due, end + 1))


@given(wishes, st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_order_in_which_entries_are_read_changes_nothing(
    wanted: list[Wish], per_second: int, rng: random.Random
) -> None:
    some = paced(wanted, per_second)
    shuffled = rng.sample(some, len(some))
    assert placed(Places(), some) == placed(Places(), shuffled)


@given(wishes, st.integers(1, 4), st.integers(1, 12))
def test_windows_one_after_the_other_give_the_same_places_as_one_long_window(
    wanted: list[Wish], per_second: int, split: int
) -> None:
    some = paced(wanted, per_second)
    early = [one for one in some if one.execution.due_at < START + split]
    late = [one for one in some if one.execution.due_at >= START + split]
    first = Places()
    halves = placed(first, early)
    second = Places(taken=Counter(first.own))
    halves |= placed(second, late)
    whole = Places()
    assert halves == placed(whole, some)
    assert first.over + second.over == whole.over


@given(wishes, st.integers(1, 4), st.integers(1, 4))
def test_the_parts_of_a_pace_keep_it_together(wanted: list[Wish], per_second: int, of: int) -> None:
    some = paced(wanted, per_second)
    seconds: Counter[int] = Counter()
    over = 0
    for nth in range(of):
        part = Places(Part(nth, of))
        seconds.update(placed(part, some[nth::of]).values())
        over += part.over
    assert seconds.total() == len(some)
    assert over or max(seconds.values(), default=0) <= per_second


def test_an_outage_does_not_end_in_a_burst_and_the_late_ones_count_as_late() -> None:
    some = paced([(0, 60)] * 5, per_second=2)
    now = START + 300.5
    found = list(Places().place(some, now))
    assert [one.visible_at - START for one in found] == [0, 0, 302, 302, 303]
    assert {one.due_at for one in found} == {START}


def test_the_smallest_number_counts_where_jobs_of_one_key_name_several() -> None:
    places = Places()
    found = placed(places, [*paced([(0, 9)] * 4, per_second=3), *paced([(0, 9)] * 2, per_second=1)])
    assert max(Counter(found.values()).values()) == 1 and not places.over


def test_far_too_many_are_spread_over_the_tolerance() -> None:
    """A pace of one a second, 100,000 due at once: nobody is lost, and it takes a second or two."""
    places = Places()
    began = time.process_time()
    seconds = Counter(execution.due_at for execution in places.place(paced([(0, 600)] * 100_000, 1), START))
    assert time.process_time() - began < 20
    assert (seconds.total(), len(seconds), places.over) == (100_000, 601, 100_000 - 601)
    assert max(seconds.values()) - min(seconds.values()) <= 1


def test_every_execution_of_a_hostile_tenant_with_its_own_tolerance_takes_no_longer() -> None:
    rng = random.Random(8)
    wanted = [(rng.randrange(600), rng.randrange(1, 601)) for _ in range(20_000)]
    began = time.process_time()
    assert len(placed(Places(), paced(wanted, 1))) == 20_000
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
            found = list(directory.shards(keys.directory_partition(group), between))
            assert sorted(shard for _, shard, _ in found) == sorted(  # type: ignore[misc]
                shard_number(number, nth) for nth in (0, 10)
            )
        assert len(read) == 2
        new = directory.pick(group, random.Random(8), conflicts=2, pace=numbers[7])
        assert pace_of(new.shard.shard) == numbers[7]


def test_a_share_has_a_whole_pace_and_one_that_is_too_large_is_divided_in_parts() -> None:
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
    shares = list(cut(shards, WINDOW, 500))
    of_second = [share for share in shares if share.shards[0].shard == second]
    assert [share.part for share in of_second] == [Part(n, len(of_second)) for n in range(len(of_second))]
    assert len(of_second) > 1
    assert all(share.part == (0, 1) for share in shares if share not in of_second)
    (of_first,) = [share for share in shares if any(shard.shard == first for shard in share.shards)]
    assert sum(shard.shard == first for shard in of_first.shards) == 10
    assert sorted(shard for share in shares for shard in share.shards) == sorted(shards)
