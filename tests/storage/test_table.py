"""The base of everything else: reads, conditional writes, transactions, pages."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from botocore.exceptions import ClientError

from common.config import Config, MissingSetting
from common.deployment import Deployment
from common.errors import Busy, ItemTooLarge
from common.storage.conflicts import ConditionFailed, TransactionConflict
from common.storage.keys import Key
from common.storage.table import Query, Table
from common.storage.transactions import Transaction
from common.storage.wire import Expression
from scheduler.planner import Planner
from tests.worlds import World

MAX_WRITE_TRIES = 6

KEY: Key = {"pk": "p", "sk": "s"}
OTHER: Key = {"pk": "p", "sk": "t"}

ABSENT = Expression("attribute_not_exists(pk)", {})
ADD_ONE = Expression("ADD #n :one", {":one": 1})
NamedTables = dict[str, Table]


def test_an_item_is_read_as_it_was_written(tables: NamedTables) -> None:
    item = {
        **KEY,
        "n": 3,
        "f": 1.25,
        "neg": -7,
        "t": True,
        "text": "ü",
        "empty": "",
        "m": {"l": [1, {"x": 0.5}]},
    }
    tables["jobs"].put(item | {"none": None})
    assert tables["jobs"].get(KEY) == item
    assert list(tables["jobs"].get_many([KEY, OTHER])) == [item]
    items = tables["jobs"].get_many([KEY, OTHER], consistent=False, attributes=("n", "text", "missing"))
    assert list(items) == [{"n": 3, "text": "ü"}]
    tables["jobs"].delete(KEY)
    assert tables["jobs"].get(KEY) is None
    tables["jobs"].delete(KEY)


def test_a_condition_that_fails_shows_what_was_there_and_changes_nothing(tables: NamedTables) -> None:
    table, other = tables["jobs"], Expression("#n = :two", {":two": 2})
    table.put({**KEY, "n": 1}, ABSENT)
    for write in (
        lambda: table.put({**KEY, "n": 5}, ABSENT),
        lambda: table.update(KEY, ADD_ONE, other),
        lambda: table.delete(KEY, other),
    ):
        with pytest.raises(ConditionFailed) as conflict:
            write()
        assert conflict.value.existing == {**KEY, "n": 1}
    assert table.get(KEY) == {**KEY, "n": 1}


def test_a_condition_on_what_is_not_there_fails_without_an_item(tables: NamedTables) -> None:
    with pytest.raises(ConditionFailed) as conflict:
        tables["jobs"].update(KEY, ADD_ONE, Expression("attribute_exists(pk)", {}))
    assert not conflict.value.existing


def test_an_update_returns_the_new_item_and_makes_a_missing_one(tables: NamedTables) -> None:
    assert tables["jobs"].update(KEY, ADD_ONE) == {**KEY, "n": 1}
    change = Expression(
        "SET #l = list_append(if_not_exists(#l, :none), :more) REMOVE #n", {":none": [], ":more": [1]}
    )
    assert tables["jobs"].update(KEY, change) == {**KEY, "l": [1]}


def test_a_query_goes_in_order_over_pages_of_a_megabyte(tables: NamedTables) -> None:
    table = tables["runs"]
    for n in range(8):
        table.put({"pk": "p", "sk": f"{n}", "pad": "x" * 300_000, "odd": n % 2})
    assert [item["sk"] for item in table.query(Query("p"))] == list("01234567")
    assert [item["sk"] for item in table.query(Query("p", newest_first=True, limit=5))] == list("76543")
    assert [item["sk"] for item in table.query(Query("p", sk_between=("2", "5")))] == list("2345")
    assert [item["sk"] for item in table.query(Query("p", after={"pk": "p", "sk": "5"}))] == list("67")
    odd = Expression("#odd = :one", {":one": 1})
    assert [item["sk"] for item in table.query(Query("p", where=odd, limit=3))] == list("135")
    assert [item["sk"] for item in table.query(Query("p", sk_prefix="7"))] == ["7"]
    assert list(table.query(Query("q"))) == []


def test_an_item_that_has_expired_does_not_exist_for_any_reader(tables: NamedTables) -> None:
    table = Table(tables["jobs"].client, tables["jobs"].name, now=lambda: 100.0)
    lasting = [{"pk": "p", "sk": f"{n}", "expires_at": 101 if n % 2 else 100} for n in range(8)]
    table.put_many([*lasting, {"pk": "p", "sk": "8"}, {"pk": "p", "sk": "9", "expires_at": "words"}])
    all_keys: list[Key] = [{"pk": "p", "sk": f"{n}"} for n in range(10)]
    stored = [key["sk"] for key in all_keys if table.get(key)]
    assert stored == list("135789")
    assert sorted(item["sk"] for item in table.get_many(all_keys)) == stored
    assert sorted(item["sk"] for item in table.get_many(all_keys, attributes=("sk",))) == stored
    assert sorted(item["sk"] for item in table.get_some(all_keys)) == stored
    for page in (None, 2):
        assert [item["sk"] for item in table.query(Query("p", limit=4, page=page))] == stored[:4]
        assert [item["sk"] for item in table.query(Query("p", attributes=("sk",), page=page))] == stored


def test_a_range_that_ends_before_it_begins_is_empty(tables: NamedTables) -> None:
    """DynamoDB refuses it; moto answers."""
    table = tables["jobs"]
    table.put({"pk": "p", "sk": "b"})
    assert [item["sk"] for item in table.query(Query("p", sk_between=("b", "b")))] == ["b"]
    silent = Table(None, table.name)  # type: ignore[arg-type]
    assert list(silent.query(Query("p", sk_between=("c", "b"), limit=5, newest_first=True))) == []


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("start", ["a", "b", "c", "d", "e", "f", "g"])
def test_a_start_outside_of_the_range_is_no_error(
    tables: NamedTables, start: str, newest_first: bool
) -> None:
    """Time moves a range while somebody turns pages, and a client can write a cursor itself."""
    for name in "bcdef":
        tables["jobs"].put({"pk": "letters", "sk": name})
    after = {"pk": "letters", "sk": start}
    query = Query("letters", sk_between=("c", "e"), after=after, newest_first=newest_first)
    letters = [item["sk"] for item in tables["jobs"].query(query)]
    expected = [name for name in "cde" if (name < start if newest_first else name > start)]
    assert letters == sorted(expected, reverse=newest_first)


def test_an_item_over_400_kb_is_refused_and_says_so(tables: NamedTables) -> None:
    with pytest.raises(ItemTooLarge, match="takes 410009 bytes"):
        tables["jobs"].put({**KEY, "pad": "x" * 410_000})
    assert tables["jobs"].get(KEY) is None


def test_a_transaction_happens_whole_or_not_at_all(tables: NamedTables) -> None:
    jobs, due = tables["jobs"], tables["due"]
    for happens in (True, False):
        tx = Transaction(jobs.client)
        tx.put(jobs, {**KEY, "n": 1}, ABSENT)
        tx.update(due, KEY, ADD_ONE)
        tx.delete(due, {"pk": "p", "sk": "none"})
        if happens:
            tx.commit()
            continue
        with pytest.raises(ConditionFailed) as conflict:
            tx.commit()
        assert conflict.value.existing == {**KEY, "n": 1}
    assert due.get(KEY) == {**KEY, "n": 1}


def blocked(client: Any, times: int) -> Any:
    """A client that refuses the first writes of single items because of a transaction, which no emulator does."""

    class Held:
        exceptions = client.exceptions

        def __getattr__(self, name: str) -> Any:
            def call(**request: Any) -> Any:
                nonlocal times
                if name in ("put_item", "update_item", "delete_item") and times:
                    times -= 1
                    raise ClientError(
                        {"Error": {"Code": "TransactionConflictException", "Message": ""}}, name
                    )
                return getattr(client, name)(**request)

            return call

    return Held()


@pytest.mark.parametrize("conflicts", [1, MAX_WRITE_TRIES - 1, MAX_WRITE_TRIES])
@pytest.mark.parametrize("kind", ["put", "update", "delete"])
def test_a_write_of_an_item_that_a_transaction_holds_is_tried_again(
    tables: NamedTables, kind: str, conflicts: int
) -> None:
    waits: list[float] = []
    jobs = tables["jobs"]
    table = Table(blocked(jobs.client, conflicts), jobs.name, waits.append)
    writes = {
        "put": lambda: table.put({**KEY, "n": 1}, ABSENT),
        "update": lambda: table.update(KEY, ADD_ONE),
        "delete": lambda: table.delete(KEY),
    }
    if conflicts == MAX_WRITE_TRIES:
        with pytest.raises(Busy, match="the item is being changed"):
            writes[kind]()
        assert jobs.get(KEY) is None
    else:
        writes[kind]()
        assert jobs.get(KEY) == (None if kind == "delete" else {**KEY, "n": 1})
    assert len(waits) == min(conflicts, MAX_WRITE_TRIES - 1)


def test_transactions_in_each_others_way_lose_nothing(tables: NamedTables, engine: tuple[str, Any]) -> None:
    """Eight writers of one item: a writer with a conflict wrote nothing, each other one wrote once."""
    if engine[0] == "moto":
        pytest.skip("moto's transactions are not made for threads")
    done: list[int] = []

    def write(n: int) -> None:
        for _ in range(5):
            tx = Transaction(tables["due"].client)
            tx.update(tables["due"], KEY, ADD_ONE)
            tx.put(tables["jobs"], {"pk": "p", "sk": f"{n}"})
            try:
                tx.commit()
            except TransactionConflict:
                continue
            done.append(n)

    writers = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert tables["due"].get(KEY) == {**KEY, "n": len(done)}


def test_a_transaction_sent_twice_under_one_token_happens_once(
    tables: NamedTables, engine: tuple[str, Any]
) -> None:
    """What botocore does when an answer is lost; the fault tests depend on it."""
    if engine[0] != "dynamodb-local":
        pytest.skip(f"{engine[0]} does not know tokens")
    update = {
        "TableName": tables["due"].name,
        "Key": {"pk": {"S": "p"}, "sk": {"S": "s"}},
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    for _ in range(2):
        engine[1].transact_write_items(TransactItems=[{"Update": update}], ClientRequestToken="one-token")
    assert tables["due"].get(KEY) == {**KEY, "n": 1}


def test_many_are_deleted_in_few_requests_and_what_is_not_there_is_no_fault(tables: NamedTables) -> None:
    table = tables["jobs"]
    keys: list[Key] = [{"pk": "p", "sk": f"{n:02}"} for n in range(60)]
    for key in keys[:40]:
        table.put(key)
    assert table.delete_many(keys[10:]) == 50
    assert [item["sk"] for item in table.query(Query("p"))] == [f"{n:02}" for n in range(10)]
    assert table.delete_many([]) == 0


class Stingy:
    """A client whose BatchGetItem leaves out the last requested item, or all."""

    def __init__(self, *, gives: bool) -> None:
        self.gives, self.requests = gives, 0

    def batch_get_item(self, RequestItems: dict[str, Any]) -> dict[str, Any]:
        self.requests += 1
        ((name, request),) = RequestItems.items()
        requested = request["Keys"]
        items = requested[: max(1, len(requested) - 1)] if self.gives else []
        unprocessed = requested[len(items) :]
        return {
            "Responses": {name: items},
            "UnprocessedKeys": {name: {**request, "Keys": unprocessed}} if unprocessed else {},
        }


def test_unprocessed_keys_are_requested_again() -> None:
    client, slept = Stingy(gives=True), list[float]()
    assert len(list(Table(client, "jobs", slept.append).get_many([KEY, OTHER]))) == 2  # type: ignore[arg-type]
    assert (client.requests, slept) == (2, [])


def test_keys_that_stay_unprocessed_are_given_up_after_some_seconds() -> None:
    client, slept = Stingy(gives=False), list[float]()
    with pytest.raises(Busy, match="2 items could not be read now; try again later"):
        list(Table(client, "jobs", slept.append).get_many([KEY, OTHER]))  # type: ignore[arg-type]
    assert client.requests == 7
    assert slept == sorted(slept)
    assert 2 < sum(slept) < 5


class Trickling(Stingy):
    """A client whose BatchGetItem returns one item, then none, and so on."""

    def __init__(self) -> None:
        super().__init__(gives=False)

    def batch_get_item(self, RequestItems: dict[str, Any]) -> dict[str, Any]:
        answer = super().batch_get_item(RequestItems)
        if self.requests % 2:
            ((name, request),) = RequestItems.items()
            answer["Responses"][name] = request["Keys"][:1]
            answer["UnprocessedKeys"][name]["Keys"] = request["Keys"][1:]
        return answer


def test_the_pauses_do_not_start_anew_with_each_item_that_trickles_in() -> None:
    client, slept = Trickling(), list[float]()
    requested_keys: list[Key] = [{"pk": "p", "sk": f"{nth}"} for nth in range(50)]
    read = Table(client, "jobs", slept.append).get_many(requested_keys)  # type: ignore[arg-type]
    with pytest.raises(Busy, match="43 items could not be read now"):
        list(read)
    assert 2 < sum(slept) < 5


def test_of_some_items_those_of_one_answer_are_returned() -> None:
    client, slept = Stingy(gives=True), list[float]()
    assert Table(client, "jobs", slept.append).get_some([KEY, OTHER]) == [KEY]  # type: ignore[arg-type]
    assert (client.requests, slept) == (1, [])
    client = Stingy(gives=False)
    assert Table(client, "jobs", slept.append).get_some([KEY, OTHER]) == []  # type: ignore[arg-type]


class StingyWriter:
    """A client whose BatchWriteItem leaves out all items, or all except the first."""

    def __init__(self, *, takes: bool) -> None:
        self.takes, self.written = takes, list[Any]()

    def batch_write_item(self, RequestItems: dict[str, Any]) -> dict[str, Any]:
        ((name, requests),) = RequestItems.items()
        assert 1 <= len(requests) <= 25
        self.written += requests[: int(self.takes)]
        unprocessed = requests[int(self.takes) :]
        return {"UnprocessedItems": {name: unprocessed} if unprocessed else {}}


def test_many_items_are_put_and_what_is_left_out_is_put_again(tables: NamedTables) -> None:
    items = [{"pk": "many", "sk": f"{n:02}", "n": n} for n in range(60)]
    tables["jobs"].put_many(items)
    assert list(tables["jobs"].query(Query("many"))) == items
    client, slept = StingyWriter(takes=True), list[float]()
    Table(client, "jobs", slept.append).put_many(items[:4])  # type: ignore[arg-type]
    assert (len(client.written), len(slept)) == (4, 3)


def test_items_that_are_left_out_again_and_again_raise_busy() -> None:
    slept = list[float]()
    with pytest.raises(Busy, match="2 items could not be written now; try again later"):
        Table(StingyWriter(takes=False), "jobs", slept.append).put_many([KEY, OTHER])  # type: ignore[arg-type]
    assert 2 < sum(slept) < 5


def test_a_missing_table_is_named_when_the_parts_are_wired(world: World) -> None:
    deployment = Deployment(Config.from_env({"DUE_TABLE": "due"}), queue=world.queue)
    with pytest.raises(MissingSetting, match="JOBS_TABLE is not set"):
        Planner.of(deployment)
