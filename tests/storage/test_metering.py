"""What a request costs is counted where tables are read and written, in its own thread and in others."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from botocore.exceptions import ClientError

from common.errors import Busy
from common.storage.keys import Key
from common.storage.metering import Meter, ahead, in_threads, metered, present_meter
from common.storage.table import Query, Table
from common.storage.transactions import Transaction
from common.storage.wire import Expression
from tests.worlds import World, make_tables

SMALL: Key = {"pk": "p", "sk": "s"}
LARGE: Key = {"pk": "p", "sk": "large"}
ABSENT: Key = {"pk": "p", "sk": "absent"}
ADD_ONE = Expression("ADD #n :one", {":one": 1})


def _transaction(table: Table) -> None:
    transaction = Transaction(table.client)
    transaction.put(table, {"pk": "p", "sk": "t"})
    transaction.check(table, SMALL, Expression("attribute_exists(pk)", {}))
    transaction.commit()


# Each work with the read units and the write units that it costs. The large item has 41 KB.
WORK: dict[str, tuple[Callable[[Table], Any], float, float]] = {
    "get": (lambda table: table.get(SMALL), 1, 0),
    "get, eventually": (lambda table: table.get(SMALL, consistent=False), 0.5, 0),
    "get nothing": (lambda table: table.get(ABSENT), 1, 0),
    "get large": (lambda table: table.get(LARGE), 11, 0),
    "get many": (lambda table: list(table.get_many([SMALL, LARGE])), 12, 0),
    "query": (lambda table: list(table.query(Query("p"))), 11, 0),
    "query that finds nothing": (
        lambda table: list(table.query(Query("p", where=Expression("#n = :one", {":one": 1})))),
        11,
        0,
    ),
    "query by pages": (lambda table: list(table.query(Query("p", page=1))), 12, 0),
    "put": (lambda table: table.put({"pk": "p", "sk": "u"}), 0, 1),
    "put large": (lambda table: table.put({"pk": "p", "sk": "v", "text": "x" * 20_000}), 0, 20),
    "update": (lambda table: table.update(SMALL, ADD_ONE), 0, 1),
    "put many": (lambda table: table.put_many([{"pk": "p", "sk": f"m{n}"} for n in range(3)]), 0, 3),
}


@pytest.fixture
def table(world: World) -> Table:
    return _filled(world.table("jobs"))


def _filled(table: Table) -> Table:
    table.put({**SMALL, "n": 0})
    table.put({**LARGE, "text": "x" * 41_000})
    return table.metered()


@pytest.mark.parametrize("name", WORK)
def test_units_are_counted(table: Table, name: str) -> None:
    work, read_units, write_units = WORK[name]
    work(table)
    meter = Meter(lambda: 0.0)
    with metered(meter):
        work(table)
    assert meter.write_units == write_units
    # The last page of a query by pages is empty in the memory.
    assert meter.read_units == pytest.approx(read_units, abs=1 if "pages" in name else 0)
    assert present_meter() is None


def test_dynamodb_local_reports_the_same(dynamodb_local: Any) -> None:
    make_tables(dynamodb_local, "metered")
    try:
        table = _filled(Table(dynamodb_local, "metered-jobs"))
        for name, (work, read_units, write_units) in WORK.items():
            meter = Meter(lambda: 0.0)
            with metered(meter):
                work(table)
            assert (meter.read_units, meter.write_units) == (
                pytest.approx(read_units, abs=1),
                pytest.approx(write_units),
            ), name
        meter = Meter(lambda: 0.0)
        with metered(meter):
            _transaction(table)
        assert meter.write_units == 4
    finally:
        for name in dynamodb_local.list_tables()["TableNames"]:
            if name.startswith("metered-"):
                dynamodb_local.delete_table(TableName=name)


def test_without_a_meter_the_requests_are_unchanged(world: World) -> None:
    requests: list[dict[str, Any]] = []

    class Client:
        def get_item(self, **request: Any) -> dict[str, Any]:
            requests.append(request)
            return {}

    client: Any = Client()
    plain, counted = Table(client, "t"), Table(client, "t").metered()
    plain.get(SMALL)
    counted.get(SMALL)
    assert requests[0] == requests[1]
    with metered(Meter(lambda: 0.0)):
        counted.get(SMALL)
    assert requests[2] == {**requests[0], "ReturnConsumedCapacity": "TOTAL"}


def test_threads_work_for_the_request_that_started_them(table: Table) -> None:
    """Another request meanwhile has a meter of its own."""
    both = threading.Barrier(2)
    meters = [Meter(lambda: 0.0), Meter(lambda: 0.0)]

    def request(meter: Meter, reads: int) -> None:
        with metered(meter):
            both.wait()
            in_threads(lambda _: table.get(SMALL), range(reads), 4)

    threads = [
        threading.Thread(target=request, args=(meter, 10 * nth)) for nth, meter in enumerate(meters, 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [meter.read_units for meter in meters] == [10, 20]


def test_processor_time_is_that_of_all_threads(table: Table) -> None:
    ticks = count()
    meter = Meter(lambda: float(next(ticks)))
    with metered(meter):
        in_threads(lambda _: None, range(3), 1)
    assert meter.processor_s == 3 + 7  # each of three works, and the request around them


def test_calls_ahead_are_in_order_and_not_further_than_twice_the_threads() -> None:
    numbers: list[int] = []
    arguments = (numbers.append(number) or number for number in range(20))  # type: ignore[func-returns-value]
    results = ahead(lambda number: -number, arguments, 2)
    assert (next(results), numbers) == (0, [0, 1, 2, 3, 4])
    assert (next(results), len(numbers)) == (-1, 6)
    assert list(results) == [-number for number in range(2, 20)]


def test_what_a_request_raises_is_counted_up_to_there(table: Table) -> None:
    meter = Meter(lambda: 0.0)
    with pytest.raises(ZeroDivisionError), metered(meter):
        table.get(SMALL)
        raise ZeroDivisionError
    assert meter.read_units == 1


@pytest.mark.parametrize(
    ("code", "is_busy"),
    [
        ("ProvisionedThroughputExceededException", True),
        ("ThrottlingException", True),
        ("RequestLimitExceeded", True),
        ("ValidationException", False),
    ],
)
@pytest.mark.parametrize("name", ["get", "get many", "query", "put", "update"])
def test_a_throttled_partition_is_busy(world: World, code: str, is_busy: bool, name: str) -> None:
    """With and without a meter."""
    table = _filled(world.table("jobs"))

    def throttled(_: str) -> None:
        raise ClientError({"Error": {"Code": code, "Message": "later"}}, "any")

    world.dynamodb.before = throttled
    for meter in (None, Meter(lambda: 0.0)):
        with pytest.raises(Busy if is_busy else ClientError), metered(meter):
            WORK[name][0](table)
