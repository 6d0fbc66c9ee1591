"""The due index: the mark's protocol, shards and their counts, pending registrations."""

from __future__ import annotations

import random

import pytest

from common.planning import due_index
from common.planning.due_index import DueIndex, Shard
from common.planning.plan import DueEntry
from common.registration.schedule_text import parse_schedule
from common.storage import keys
from common.storage.tables import Table, Transaction

NOW = 1_795_230_720  # 2026-11-21T03:12:00Z
DAILY = "cron|UTC|0-9 12 * * *"
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
        index.put_entry(tx, entry(job_id), group, shard)
    else:
        index.delete_entry(tx, group, shard, "alice", job_id)
    index.count(tx, group, shard, change)
    tx.commit()


def test_the_mark_is_made_once_and_moves_forward_only(index: DueIndex) -> None:
    first = index.ensure_mark(NOW)
    assert index.ensure_mark(NOW + 5_000) == first
    assert not first.is_open
    announced = index.begin_planning(first, first.planned_until + 600, NOW + 0.1239)
    assert (announced.is_open, announced.decided_at) == (True, NOW + 0.124)
    again = index.begin_planning(first, first.planned_until + 1_200, NOW + 60)
    assert again == announced == index.mark()  # a window is announced once; the first decision stays
    done = index.finish_planning(announced.planning_until)
    assert not done.is_open
    assert index.finish_planning(first.planned_until) == done


def test_a_tick_that_read_before_another_finished_announces_no_earlier_window(index: DueIndex) -> None:
    stale = index.ensure_mark(NOW)
    other = index.begin_planning(stale, stale.planned_until + 600, NOW)
    done = index.finish_planning(other.planning_until)
    assert index.begin_planning(stale, stale.planned_until + 300, NOW + 1) == done


def test_shards_count_their_entries_and_fall_away_when_empty(
    index: DueIndex, tables: dict[str, Table]
) -> None:
    add(index, tables, DAILY, 0, "a")
    add(index, tables, DAILY, 0, "b")
    add(index, tables, ONE_OFF, 0, "c")
    assert list(index.recurring_shards()) == [Shard(DAILY, 0, 2)]
    assert list(index.one_off_shards(NOW, NOW + 600)) == [Shard(ONE_OFF, 0, 1)]
    assert list(index.one_off_shards(NOW + 600, NOW + 1_200)) == []
    assert list(index.entries(Shard(DAILY, 0))) == [entry("a"), entry("b")]
    assert not index.drop_empty(Shard(DAILY, 0))
    add(index, tables, DAILY, 0, "a", -1)
    add(index, tables, DAILY, 0, "b", -1)
    assert index.drop_empty(Shard(DAILY, 0))
    assert list(index.recurring_shards()) == []


def test_empty_shards_are_dropped_a_hundred_in_a_request_and_a_filled_one_stays(
    index: DueIndex, tables: dict[str, Table]
) -> None:
    shards = [Shard(f"every|{n}|0", 0) for n in range(601, 701)]
    requests: list[str] = []
    for shard in shards:
        tables["due"].put({**keys.directory(shard.group, 0), "jobs": 0})
    events = tables["due"].client.meta.events
    events.register("before-call.dynamodb", lambda model, **_: requests.append(model.name), "seen")
    index.drop_all_empty(shards[:99])
    assert requests == ["TransactWriteItems"]
    events.unregister("before-call.dynamodb", unique_id="seen")
    assert [shard.group for shard in index.recurring_shards() if isinstance(shard, Shard)] == ["every|700|0"]
    add(index, tables, "every|690|0", 0, "filled again")
    index.drop_all_empty(shards)
    assert list(index.recurring_shards()) == [Shard("every|690|0", 0, 1)]


def test_a_group_opens_a_shard_when_its_shards_are_full(
    index: DueIndex, tables: dict[str, Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due_index, "SHARD_ENTRIES", 2)
    rng = random.Random(1)
    for n in range(5):
        add(index, tables, DAILY, index.pick_shard(DAILY, rng), str(n))
    assert [(s.shard, s.jobs) for s in index.recurring_shards()] == [(0, 2), (1, 2), (2, 1)]


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
    assert {type(p).__name__ for p in index.pending()} == {"Pending", "BadEntry"}
