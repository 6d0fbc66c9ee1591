"""The due index: planned_until's protocol, shards and their counts, pending registrations."""

from __future__ import annotations

import random
from typing import Any

import pytest

from common.planning import directory
from common.planning.directory import Listing, Shard
from common.planning.due_entry import DueEntry
from common.planning.due_index import DueIndex
from common.registration.schedule_text import parse_schedule
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Table
from common.storage.transactions import Transaction
from common.timing.instants import DAY_S
from tests.storage.requests import Requests

NOW = 1_795_230_720  # 2026-11-21T03:12:00Z
DAILY = "cron|UTC|0-9 12 * * *"
NOON = (NOW - NOW % DAY_S + DAY_S // 2, NOW - NOW % DAY_S + DAY_S // 2 + 600)
ONE_OFF = f"at|{NOW - NOW % 600}"


def entry(job_id: str = "job") -> DueEntry:
    schedule = parse_schedule({"cron": "0 12 * * *"}, job_key="alice/job", now=NOW, shortest_interval_s=1)
    return DueEntry("alice", job_id, schedule, NOW, 1, "latest")


@pytest.fixture
def index(tables: dict[str, Table]) -> DueIndex:
    return DueIndex(tables["due"])


def add(
    index: DueIndex, tables: dict[str, Table], group: str, shard: int, job_id: str, change: int = 1
) -> None:
    tx = Transaction(tables["due"].client)
    if change > 0:
        index.directory.open([Listing(Shard(group, shard))])
        index.put_entry(tx, entry(job_id), group, shard)
    else:
        index.delete_entry(tx, group, shard, "alice", job_id)
    index.directory.count(tx, group, shard, change)
    tx.commit()


def listings(index: DueIndex) -> list[Listing]:
    return [listing for listing in index.directory.all() if isinstance(listing, Listing)]


def listed(index: DueIndex, start: int, end: int) -> list[Listing]:
    return [listing for listing in index.directory.listed(start, end) if isinstance(listing, Listing)]


def test_the_mark_is_made_once_and_moves_forward_only(index: DueIndex) -> None:
    first = index.ensure_progress(NOW)
    assert index.ensure_progress(NOW + 5_000) == first
    assert not first.is_open
    announced = index.begin_planning(first, first.planned_until + 600, NOW + 0.1239)
    assert (announced.is_open, announced.decided_at) == (True, NOW + 0.124)
    again = index.begin_planning(first, first.planned_until + 1_200, NOW + 60)
    assert again == announced == index.progress()  # a window is announced once; the first decision stays
    done = index.finish_planning(announced.planning_until)
    assert not done.is_open
    assert index.finish_planning(first.planned_until) == done


def test_a_tick_that_read_before_another_finished_announces_no_earlier_window(index: DueIndex) -> None:
    stale = index.ensure_progress(NOW)
    other = index.begin_planning(stale, stale.planned_until + 600, NOW)
    done = index.finish_planning(other.planning_until)
    assert index.begin_planning(stale, stale.planned_until + 300, NOW + 1) == done


def test_shards_count_their_entries_and_fall_away_when_empty(
    index: DueIndex, tables: dict[str, Table]
) -> None:
    add(index, tables, DAILY, 0, "a")
    add(index, tables, DAILY, 0, "b")
    add(index, tables, ONE_OFF, 0, "c")
    daily = Listing(Shard(DAILY, 0, 2), ("s72",))
    assert list(index.directory.all()) == [daily]
    assert list(index.directory.one_off_shards(NOW, NOW + 600)) == [Shard(ONE_OFF, 0, 1)]
    assert list(index.directory.one_off_shards(NOW + 600, NOW + 1_200)) == []
    assert list(index.entries(Shard(DAILY, 0))) == [entry("a"), entry("b")]
    index.directory.drop_empty([daily])
    assert list(index.directory.all()) == [daily]
    add(index, tables, DAILY, 0, "a", -1)
    add(index, tables, DAILY, 0, "b", -1)
    index.directory.drop_empty([daily])
    assert list(index.directory.all()) == list(index.directory.listed(*NOON)) == []


def test_empty_shards_are_dropped_many_in_a_request_and_a_filled_one_stays(
    index: DueIndex, tables: dict[str, Table]
) -> None:
    weekly = [Listing(Shard(f"every|604800|{n}", 0)) for n in range(51)]
    index.directory.open(weekly)
    empty = listings(index)
    client: Any = Requests(tables["due"].client)
    DueIndex(Table(client, tables["due"].name)).directory.drop_empty(empty[:50])
    assert client.names == ["transact_write_items"]
    assert listings(index) == empty[50:]
    index.directory.open(weekly)
    add(index, tables, "every|604800|7", 0, "filled again")
    index.directory.drop_empty(empty)
    filled = Listing(Shard("every|604800|7", 0, 1), ("w7",))
    assert listings(index) == [filled]
    assert [listing.shard.group for listing in listed(index, 0, 7 * DAY_S)] == ["every|604800|7"]


def test_a_shard_takes_entries_only_while_it_is_listed(index: DueIndex, tables: dict[str, Table]) -> None:
    add(index, tables, DAILY, 0, "a")
    add(index, tables, DAILY, 0, "a", -1)
    index.directory.drop_empty(listings(index))
    tx = Transaction(tables["due"].client)
    index.directory.count(tx, DAILY, 0, 1)
    with pytest.raises(ConditionFailed):
        tx.commit()


def test_a_shard_of_an_earlier_version_is_opened_before_it_takes_more(
    index: DueIndex, tables: dict[str, Table]
) -> None:
    tables["due"].put({**keys.directory(DAILY, 0), "jobs": 3})
    picked = index.directory.pick(DAILY, random.Random(1))
    assert (picked.shard, picked.is_open) == (Shard(DAILY, 0, 3), False)
    index.directory.open([picked])
    assert listings(index) == [Listing(Shard(DAILY, 0, 3), ("s72",))]
    assert [listing.shard.group for listing in listed(index, *NOON)] == [DAILY]


def test_a_shard_that_was_listed_elsewhere_is_moved(index: DueIndex, tables: dict[str, Table]) -> None:
    tables["due"].put({**keys.directory(DAILY, 0), "jobs": 3, "filed": "s71 s73"})
    for place in ("s71", "s73"):
        tables["due"].put({**keys.listing(place, DAILY, 0)})
    index.directory.open(listings(index))
    assert [listing.places for listing in listed(index, NOON[0] - 1_200, NOON[1] + 1_200)] == [("s72",)]


def test_a_listed_group_without_a_directory_item_counts_as_empty(
    index: DueIndex, tables: dict[str, Table]
) -> None:
    tables["due"].put({**keys.listing("s72", DAILY, 0)})
    orphans = list(index.directory.counted(listed(index, *NOON)))
    assert orphans == [Listing(Shard(DAILY, 0, 0), ("s72",))]
    index.directory.drop_empty([listing for listing in orphans if isinstance(listing, Listing)])
    assert listed(index, *NOON) == []


def test_a_group_opens_a_shard_when_its_shards_are_full(
    index: DueIndex, tables: dict[str, Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "SHARD_ENTRIES", 2)
    rng = random.Random(1)
    for n in range(5):
        add(index, tables, DAILY, index.directory.pick(DAILY, rng).shard.shard, str(n))
    assert [listing.shard[1:] for listing in listings(index)] == [(0, 2), (1, 2), (2, 1)]


def test_pending_registrations_are_distinguished_by_revision(
    index: DueIndex, tables: dict[str, Table]
) -> None:
    tx = Transaction(tables["due"].client)
    first, second = index.put_pending(tx, entry(), 1), index.put_pending(tx, entry(), 2)
    tx.commit()
    assert list(index.pending()) == [first, second]
    index.confirm(first)
    index.confirm(first)
    assert list(index.pending()) == [second]
    bad = {**keys.pending("alice", "bad", 1), "entry": "[]"}
    tables["due"].put(bad)
    assert {type(p).__name__ for p in index.pending()} == {"PendingRegistration", "Unreadable"}
