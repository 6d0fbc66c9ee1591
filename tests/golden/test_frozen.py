"""What is stored is frozen since 1.0: each kind of entity has items in `entities.jsonl`, with all its fields.

A line has what it is, the class that is declared for it, the item, and what the item means.
"""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final, get_args

import pytest
from msgspec import Struct, structs, to_builtins

import common
from common.errors import Damaged
from common.planning.execution import Execution
from common.planning.packs import Pack, QueueMessage, Wake
from common.storage import keys, stored
from common.storage.stored import Stored, unpacked
from common.storage.wire import from_wire, item_to_wire

HERE: Final = Path(__file__).parent
CASES: Final = [json.loads(line) for line in (HERE / "entities.jsonl").read_text().splitlines()]
FROZEN: Final = (
    "This form is frozen since 1.0: deployments have such items. Do not change what stands in tests/golden. "
    "A field may be added with a default, with a line that has it. What an older version would misread needs a "
    "version, and two releases: docs/upgrading.md, Formats."
)
# Rows without a golden item: their items are written attribute by attribute, or are made anew by the next write. A new
# kind of row is not added here, but gets an item.
WITHOUT_ITEM: Final = {
    *(
        "additions",
        "address_off",
        "api_key_reference",
        "asked_by_hand",
        "audit",
        "due_entry",
        "group_deletion",
    ),
    *("idempotency_key", "key_permits", "listing", "newest_event", "overlap_permit", "planned_window"),
    *(
        "request_rate",
        "schedule_group",
        "set_aside",
        "share",
        "stopped_tenant",
        "subscriber",
        "tenant_listing",
    ),
    *("throttled", "unrecorded", "waiting_line"),
}
READERS: Final = ("read", "stored.read", "convert")
MISSING: Final = (
    "is stored and has no line in tests/golden/entities.jsonl: add one with its item and what it means"
)


def modules() -> Iterator[ModuleType]:
    """All of common."""
    for module in pkgutil.walk_packages(common.__path__, "common."):
        yield importlib.import_module(module.name)


def read_kinds() -> dict[str, type[Struct]]:
    """The classes that modules of common read whole items as."""
    kinds = {}
    for module in modules():
        for node in ast.walk(ast.parse(Path(module.__file__ or "").read_text())):
            if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in READERS:
                source, *names = map(ast.unparse, node.args)
                if source == "item" and names[0].isidentifier() and names[0][0].isupper():
                    kinds[names[0]] = getattr(module, names[0])
    return kinds


def stored_kinds() -> dict[str, type[Struct]]:
    """The classes with items of their own."""
    assert list(modules())
    return {kind.__name__: kind for kind in Stored.__subclasses__()} | read_kinds()


KINDS: Final = stored_kinds()


def unpacked_item(kind: type[Struct], item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Another zlib may compress the same text to other bytes."""
    texts = {name: unpacked(item[name]) for name in getattr(kind, "packed", ()) if name in item}
    return {**item, **texts}


def read(kind: type[Struct], item: Mapping[str, Any]) -> Struct:
    return kind.from_item(item) if issubclass(kind, Stored) else stored.read(item, kind)


@pytest.mark.parametrize("name", sorted(KINDS))
def test_each_kind_of_entity_has_an_item_and_each_field_is_in_one(name: str) -> None:
    items = [from_wire(case["item"]) for case in CASES if case["kind"] == name]
    assert items, f"{name} {MISSING}"
    # The first version is not written.
    fields = {field.encode_name for field in structs.fields(KINDS[name])} - {"v"}
    assert fields <= set().union(*items), f"a field of {name} {MISSING}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']}: {case['what']}")
def test_an_item_is_read_and_written_the_same(case: Mapping[str, Any]) -> None:
    kind, item = KINDS[case["kind"]], from_wire(case["item"])
    entity = read(kind, item)
    assert json.loads(json.dumps(to_builtins(entity))) == case["means"], FROZEN
    if isinstance(entity, Stored):
        written = from_wire(item_to_wire(entity.to_item()))
        assert unpacked_item(kind, written) == unpacked_item(kind, item), FROZEN
    later = {**item, "of_a_later_version": {"a": 1}}
    assert read(kind, later) == entity, "an added attribute is passed over"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']}: {case['what']}")
def test_a_damaged_item_is_refused_by_its_key(case: Mapping[str, Any]) -> None:
    kind, item = KINDS[case["kind"]], from_wire(case["item"])
    for field in structs.fields(kind):
        if field.encode_name in item and field.encode_name != "sk":
            with pytest.raises(Damaged, match=re.escape(f"{item['pk']} {item['sk']}")):
                read(
                    kind, {**item, field.encode_name: 1 if isinstance(item[field.encode_name], str) else "no"}
                )


def test_each_kind_of_message_has_a_line() -> None:
    assert set(get_args(QueueMessage)) == {Pack, Wake}, "add its text to tests/golden/messages.*.jsonl"
    texts = [json.loads(line)["text"] for line in (HERE / "messages.v1.jsonl").read_text().splitlines()]
    written = set().union(*(json.loads(text) for text in texts))
    assert {field.encode_name for field in structs.fields(Execution)} <= written, f"a field {MISSING}"


class Part:
    """What fills the key of a row, and finds the keys of all such items."""

    def __format__(self, spec: str) -> str:
        return "\0"


def patterns(row: keys.Row) -> tuple[str, str]:
    key = row(*[Part()] * row._all)
    return re.escape(key["pk"]).replace("\0", "[^#]*"), re.escape(key["sk"]).replace("\0", "[^#]*")


def golden_items(value: Any) -> Iterator[tuple[str, str]]:
    """The keys of all items in a golden line, also of those that are texts in it."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        with suppress(ValueError):
            value = json.loads(value)
    if isinstance(value, dict) and {"pk", "sk"} <= value.keys():
        yield tuple(part["S"] if isinstance(part, dict) else part for part in (value["pk"], value["sk"]))
    if isinstance(value, (dict, list)):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from golden_items(inner)


def test_each_kind_of_row_has_an_item() -> None:
    lines = [json.loads(line) for file in HERE.glob("*.jsonl") for line in file.read_text().splitlines()]
    item_keys = set(golden_items(lines))
    rows = {name: patterns(row) for name, row in vars(keys).items() if isinstance(row, keys.Row)}
    without = {
        name
        for name, (pk, sk) in rows.items()
        if not any(re.fullmatch(pk, key[0]) and re.fullmatch(sk, key[1]) for key in item_keys)
    }
    assert without == WITHOUT_ITEM, f"an item of {without ^ WITHOUT_ITEM} {MISSING}"
