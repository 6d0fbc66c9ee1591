"""The verbs for one item that others change as well: `create` and `swap`, on every engine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from common.errors import Busy, Conflict
from common.storage.conflicts import ConditionFailed
from common.storage.expressions import ABSENT, PRESENT, Attribute, change
from common.storage.keys import Key
from common.storage.table import ETAG, Query, Table
from common.storage.wire import Item
from tests.storage.requests import Requests

MAX_TRIES = 12

KEY: Key = {"pk": "p", "sk": "s"}
NamedTables = dict[str, Table]


def counted(
    tables: NamedTables, before: Callable[[str], None] = lambda name: None
) -> tuple[Table, list[str]]:
    client: Any = Requests(tables["jobs"].client, before)
    return Table(client, tables["jobs"].name, lambda _: None), client.names


def one_more(item: Item | None) -> tuple[Item, int]:
    n = (item or {}).get("n", 0) + 1
    return {"n": n}, n


def plain(item: Item | None) -> Item:
    assert item is not None
    return {name: value for name, value in item.items() if name != ETAG}


def test_an_item_is_created_once_and_the_second_creator_gets_the_first_ones(tables: NamedTables) -> None:
    assert tables["jobs"].create({**KEY, "n": 1}) is None
    assert tables["jobs"].create({**KEY, "n": 2}) == {**KEY, "n": 1}
    assert tables["jobs"].get(KEY) == {**KEY, "n": 1}


def test_an_item_that_nobody_has_is_made_with_one_write_and_deleted_with_another(tables: NamedTables) -> None:
    table, requests = counted(tables)
    stored, n = table.swap(KEY, one_more)
    assert (plain(stored), n) == ({**KEY, "n": 1}, 1)
    assert table.swap(KEY, lambda item: (None, "gone"), stored) == (None, "gone")
    assert requests == ["put_item", "delete_item"]
    assert table.get(KEY) is None


def test_a_refused_write_shows_the_item_and_the_change_is_made_to_it(tables: NamedTables) -> None:
    table, requests = counted(tables)
    table.swap(KEY, one_more)
    requests.clear()
    stored, n = table.swap(KEY, one_more)
    assert (plain(stored), n, requests) == ({**KEY, "n": 2}, 2, ["put_item", "put_item"])
    assert table.get(KEY) == stored
    requests.clear()
    assert table.swap(KEY, one_more, stored)[1] == 3
    assert requests == ["put_item"]
    assert table.swap(KEY, one_more, read=True)[1] == 4
    assert requests == ["put_item", "get_item", "put_item"]


def test_an_item_is_not_made_again_that_was_deleted_since_it_was_read(tables: NamedTables) -> None:
    tables["jobs"].put({**KEY, "n": 5})  # by a writer that knows no `swap`
    known = tables["jobs"].get(KEY)
    tables["jobs"].delete(KEY)
    assert tables["jobs"].swap(KEY, one_more, known)[1] == 1
    known = tables["jobs"].get(KEY)
    tables["jobs"].delete(KEY)
    assert tables["jobs"].swap(KEY, one_more, known)[1] == 1


def test_an_item_that_stays_the_same_is_read_and_not_written(tables: NamedTables) -> None:
    table, requests = counted(tables)
    assert table.swap(KEY, lambda item: (item, "nothing")) == (None, "nothing")
    assert requests == ["get_item"]
    stored, _ = table.swap(KEY, one_more)
    requests.clear()
    assert table.swap(KEY, lambda item: ({"n": 1}, "same"), stored) == (stored, "same")
    assert table.swap(KEY, lambda item: ({"n": 1}, "same"), read=True) == (stored, "same")
    assert requests == ["get_item", "get_item"]


def test_a_refusal_counts_only_if_the_item_was_read(tables: NamedTables) -> None:
    def positive(item: Item | None) -> tuple[Item, int]:
        if not item:
            raise Conflict("there is none")
        return one_more(item)

    table, requests = counted(tables)
    with pytest.raises(Conflict):
        table.swap(KEY, positive)
    assert requests == ["get_item"]
    table.put({**KEY, "n": 1})
    assert table.swap(KEY, positive)[1] == 2


def test_a_write_that_was_done_but_whose_answer_was_lost_is_a_success(tables: NamedTables) -> None:
    class Repeats:
        """What botocore does when the first answer is lost."""

        exceptions = tables["jobs"].client.exceptions

        def put_item(self, **request: Any) -> Any:
            tables["jobs"].client.put_item(**request)
            return tables["jobs"].client.put_item(**request)

    client: Any = Repeats()
    calls: list[Item | None] = []

    def noted(item: Item | None) -> tuple[Item, int]:
        calls.append(item)
        return one_more(item)

    stored, n = Table(client, tables["jobs"].name).swap(KEY, noted)
    assert (n, calls) == (1, [None])
    assert tables["jobs"].get(KEY) == stored


@pytest.mark.parametrize(("writes_of_others", "done"), [(MAX_TRIES, True), (MAX_TRIES + 1, False)])
def test_a_change_gives_up_when_others_are_always_faster(
    tables: NamedTables, writes_of_others: int, done: bool
) -> None:
    remaining = writes_of_others

    def faster(name: str) -> None:
        nonlocal remaining
        if remaining:
            remaining -= 1
            tables["jobs"].swap(KEY, lambda item: ({"n": 100 + remaining}, None), read=True)

    table, _ = counted(tables, faster)
    if done:
        assert table.swap(KEY, one_more)[1] == 101
    else:
        with pytest.raises(Busy, match=r"^p s is being changed by too many writers at once$"):
            table.swap(KEY, one_more)


def test_no_change_of_many_threads_is_lost(tables: NamedTables, engine: tuple[str, Any]) -> None:
    if engine[0] == "moto":
        pytest.skip("moto's conditions are not made for threads")
    threads = [
        threading.Thread(target=lambda: [tables["jobs"].swap(KEY, one_more) for _ in range(5)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert plain(tables["jobs"].get(KEY)) == {**KEY, "n": 20}


def test_each_engine_understands_the_conditions(tables: NamedTables) -> None:
    table = tables["jobs"]
    state, n = Attribute("state"), Attribute("n")
    table.put({**KEY, "state": "on", "n": 3}, ABSENT | (n <= 0))
    for blocks in (
        (state == "on") & (n < 4) & (n <= 3) & (n > 2) & (n >= 3) & (n != 4),
        PRESENT & state.is_one_of("off", "on") & state.exists & Attribute("other").is_absent,
        ABSENT | (state == "off") | (n == 3),
        Attribute("other") != "x",
    ):
        table.update(KEY, change({"state": "on"}, keep={"n": 0}), blocks)
    for fails in (
        (state == "off"),
        n < 3,
        n > 3,
        Attribute("other") == "x",
        state.is_one_of("a", "b"),
        ABSENT,
    ):
        with pytest.raises(ConditionFailed):
            table.update(KEY, change(add={"n": 1}), fails)
    assert table.update(KEY, change({"m": 1}, keep={"k": 2, "n": 9}, remove=["state"])) == {
        **KEY,
        "n": 3,
        "m": 1,
        "k": 2,
    }
    assert list(table.query(Query("p", where=(n == 3) & (Attribute("m") == 1))))


def test_an_expired_item_does_not_exist_for_a_swap(tables: NamedTables) -> None:
    table = Table(tables["jobs"].client, tables["jobs"].name, now=lambda: 101.0)
    for read in (True, False):
        table.put({**KEY, "n": 7, "expires_at": 100, ETAG: "old"})
        stored, n = table.swap(KEY, one_more, read=read)
        assert (plain(stored), n) == ({**KEY, "n": 1}, 1)
        assert table.get(KEY) == stored
    table.put({**KEY, "expires_at": 100})
    assert table.swap(KEY, lambda item: (item, item is None), read=True) == (None, True)
