"""Items to and from DynamoDB's wire format: by hand, and the same as boto3's own reading of it."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from boto3.dynamodb.types import TypeDeserializer, TypeSerializer
from hypothesis import given
from hypothesis import strategies as st

from common.planning.directory import Shard
from common.planning.due_index import DueIndex
from common.storage import aws
from common.storage.table import Query, Table
from common.storage.wire import Foreign, NotStorable, from_wire, to_wire
from tests.worlds import World, job

numbers = st.integers(-(10**37), 10**37) | st.decimals(-1000, 1000, places=3).map(float)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(min_size=1), inner),
    max_leaves=12,
)
items = st.dictionaries(st.text(min_size=1), values)


def without_none(value: Any) -> Any:
    """An item as it is read back: a None in a map is not stored, one in a list is."""
    if isinstance(value, dict):
        return {name: without_none(inner) for name, inner in value.items() if inner is not None}
    return [without_none(inner) for inner in value] if isinstance(value, list) else value


@given(items)
def test_a_written_item_is_read_back(item: dict[str, Any]) -> None:
    back = from_wire(to_wire(item))
    assert back == without_none(item)
    assert json.loads(json.dumps(to_wire(item))) == to_wire(item)


@given(items)
def test_boto3_reads_the_same(item: dict[str, Any]) -> None:
    read = {name: TypeDeserializer().deserialize(value) for name, value in to_wire(item).items()}
    again = {name: TypeSerializer().serialize(value) for name, value in read.items()}
    assert from_wire(again) == from_wire(to_wire(item))


@pytest.mark.parametrize("text", ["3", "-3", "3.0", "1E+3", "0.125", "12345678901234567890"])
def test_whole_numbers_are_ints_however_they_are_written(text: str) -> None:
    read = from_wire({"n": {"N": text}})["n"]
    assert (read, type(read)) == (
        float(text) if text == "0.125" else int(float(text)) if "E" in text or "." in text else int(text),
        float if text == "0.125" else int,
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), b"bytes", {1, 2}])
def test_a_value_that_no_item_can_hold_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="DynamoDB holds no"):
        to_wire({"value": value})


@pytest.mark.parametrize("value", [{"B": b"\x00"}, {"NS": ["1"]}, {"SS": ["a"]}, {"BS": [b"\x00"]}])
def test_a_value_that_minute8_never_writes_stops_no_reader_and_is_kept(value: dict[str, object]) -> None:
    read = from_wire({"pk": {"S": "alice"}, "ours": {"N": "1"}, "odd": value, "in": {"L": [value]}})
    assert (read["pk"], read["ours"], read["odd"], read["in"]) == (
        "alice",
        1,
        Foreign(value),
        [Foreign(value)],
    )
    assert to_wire(read)["odd"] == value


def test_pages_read_by_json_are_what_botocore_reads(moto_world: World) -> None:
    world = moto_world
    for number in range(30):
        world.registry.create("alice", f"job-{number}", job(cron="25 3 * * *", timezone="Asia/Tokyo"))
    group = world.store.get("alice", "job-0").group
    slow = list(world.index.entries(Shard(group, 0)))
    fast = list(DueIndex(Table(aws.tuned(world.dynamodb), "test-due")).entries(Shard(group, 0)))
    assert fast == slow
    assert len(fast) == 30
    with pytest.raises(world.dynamodb.exceptions.ResourceNotFoundException):
        list(Table(world.dynamodb, "no-such-table").query(Query("x")))


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize("item", [{"a": {"": 1}}, {"a": [{"b": {"": "x"}}]}, {"a": 10**38}, {"a": deep(32)}])
def test_values_that_dynamodb_refuses_are_refused_before_the_request(item: Any) -> None:
    with pytest.raises(NotStorable):
        to_wire(item)


def test_values_that_dynamodb_accepts_are_accepted(tables: dict[str, Table]) -> None:
    item = {"pk": "a", "sk": "b", "number": 10**38 - 1, "deep": deep(31), "factor": Decimal("1.23456")}
    tables["jobs"].put(item)
    assert tables["jobs"].get({"pk": "a", "sk": "b"}) == item | {"factor": 1.23456}
