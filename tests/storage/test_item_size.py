"""DynamoDB's limit of 400 KB per item: checked before a write, and never reached by a tenant's items."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError
from msgspec import structs

from common.errors import InvalidInput, ItemTooLarge
from common.jobs.calendars import Calendars
from common.jobs.idempotency import IdempotencyKey
from common.planning.execution import Execution
from common.registration.calendar_store import CalendarStore
from common.runs.claims import Claim
from common.runs.outcome import Outcome
from common.runs.records import Runs
from common.storage.keys import Key
from common.storage.table import Table
from common.storage.transactions import Transaction
from common.storage.wire import Expression, item_bytes, item_to_wire, to_wire
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import TABLES, World, make_tables, make_world

CALENDAR_NAME_CHARS = 64
JOB_ID_CHARS = 128
MAX_ATTEMPTS_KEPT = 110
MAX_CALENDARS = 10
MAX_DATES = 2_500
MAX_EXCLUDED_DATES = 400
MAX_ITEM_BYTES = 409_600
NAME_CHARS = 200
NONCE_CHARS = 32
NOTE_CHARS = 500
TENANT_ID_CHARS = 64

KEY: Key = {"pk": "p", "sk": "s"}
# The longest text beside the key's names and values and its own name.
MAX_TEXT_BYTES = MAX_ITEM_BYTES - len("pkpskst")
WIDE = "\U0001f600"  # four bytes in UTF-8
TENANT, JOB_ID = "t" * TENANT_ID_CHARS, "j" * JOB_ID_CHARS


@pytest.fixture(scope="module")
def table(dynamodb_local: Any) -> Table:
    make_tables(dynamodb_local, "large")
    return Table(dynamodb_local, "large-jobs")


@pytest.mark.parametrize(
    "text", ["x" * MAX_TEXT_BYTES, "ü" * (MAX_TEXT_BYTES // 2) + "x" * (MAX_TEXT_BYTES % 2)]
)
def test_the_limit_is_dynamodbs_to_the_byte(table: Table, text: str) -> None:
    table.put({**KEY, "t": text})
    assert table.get(KEY) == {**KEY, "t": text}
    larger = {**KEY, "t": text + "x"}
    with pytest.raises(ClientError, match="Item size"):
        table.client.put_item(TableName=table.name, Item=to_wire(larger))
    with pytest.raises(ItemTooLarge, match=f"takes {MAX_ITEM_BYTES + 1} bytes"):
        table.put(larger)
    with pytest.raises(ItemTooLarge):
        Transaction(table.client).put(table, larger)
    assert table.get(KEY) == {**KEY, "t": text}


def test_nested_values_count_at_least_as_much_as_in_dynamodb(table: Table) -> None:
    parts = [{"n": -12_345, "b": True, "text": "x" * 990} for _ in range(394)]
    item: dict[str, Any] = {**KEY, "parts": parts, "t": ""}
    item["t"] = "x" * (MAX_ITEM_BYTES - item_bytes(to_wire(item)))
    table.put(item)
    with pytest.raises(ItemTooLarge):
        table.put({**item, "t": item["t"] + "x"})


def test_an_update_that_makes_an_item_too_large_has_the_same_error(table: Table) -> None:
    table.put({**KEY, "t": "x" * (MAX_TEXT_BYTES - 10)})
    with pytest.raises(ItemTooLarge) as refused:
        table.update(KEY, Expression("SET #more = :more", {":more": "x" * 20}))
    assert isinstance(refused.value, InvalidInput)
    tx = Transaction(table.client)
    tx.update(table, KEY, Expression("SET #more = :more", {":more": "x" * 20}))
    with pytest.raises(ItemTooLarge):
        tx.commit()
    assert table.get(KEY) == {**KEY, "t": "x" * (MAX_TEXT_BYTES - 10)}


def largest_definition(letter: str) -> dict[str, Any]:
    """A job with every field at its bound; another letter changes every field."""
    return {
        "name": letter * NAME_CHARS,
        "tags": [f"{n:02}" + letter * 62 for n in range(20)],
        "schedule": {
            "cron": ",".join(map(str, range(60)))
            + " 1,3,5,7,9,11,13,15,17,19 1,3,5,7,9,11,13,15,17 1,3,5,7,9,11 1,3",
            "timezone": "America/Argentina/ComodRivadavia",
            "start_at": "2026-01-01T00:00:00.000000000+00:00",
            "end_at": "2199-01-01T00:00:00.000000000+00:00",
            "jitter_s": 3_600,
            "exclude": {
                "dates": [f"20{n // 28 + 30}-01-{n % 28 + 1:02}" for n in range(MAX_EXCLUDED_DATES)],
                "calendars": [f"{n}" * CALENDAR_NAME_CHARS for n in range(MAX_CALENDARS)],
            },
        },
        "target": {
            "kind": "http",
            "url": "https://example.com/".ljust(2_048, "x" if letter == WIDE else "y"),
            "headers": {f"h{n:02}".ljust(64, "x"): "v" * 1_024 for n in range(20)},
        },
        "payload": letter * ((128 * 1024 - 2) // len(letter.encode())),
        "retry": {"max_attempts": 100, "factor": 1.23456, "max_age_s": 14 * 86_400},
        "pause_after_failures": 1_000,
        "alert": {"longer_than_s": 14 * 86_400, "shorter_than_s": 86_400, "no_success_for_s": 28 * 86_400},
    }


def largest_run(runs: Runs) -> None:
    outcome = Outcome(
        ok=False,
        error_type=WIDE * 100,
        error=WIDE * 500,
        log_tail=WIDE * 500,
        request_id=WIDE * 100,
        retry_after_s=1e130,
    )
    first = Execution(
        TENANT, JOB_ID, 1_795_230_900, 1_795_230_900, 999_999_999, trigger_id="m-" + "n" * NONCE_CHARS
    )
    for attempt in range(1, MAX_ATTEMPTS_KEPT + 1):
        claim = Claim(
            structs.replace(first, attempt=attempt), "m" * 100, 1_795_230_900.125, 1_795_230_999.125
        )
        assert runs.claim(claim) is None
        assert runs.finish(claim, outcome, 1_795_230_901.125, 1_795_230_902.125)
    runs.give_up(
        structs.replace(first, attempt=MAX_ATTEMPTS_KEPT + 1), WIDE * 25, WIDE * 100, 1_795_230_903.125
    )


@pytest.fixture(scope="module")
def stored() -> dict[str, int]:
    """The bytes of the largest item of each kind, after a tenant has stored as much as it may."""
    dynamodb = MemoryDynamoDB()
    world: World = make_world(dynamodb, "2026-11-21T03:12:00Z")
    calendars = CalendarStore(world.table("jobs"), world.store.audited)
    dates = [f"{2000 + n // 336}-{n // 28 % 12 + 1:02}-{n % 28 + 1:02}" for n in range(MAX_DATES)]
    for n in range(MAX_CALENDARS):
        source = {"text": WIDE * 480} if n else {"text": "x" * 480}
        calendars.put(TENANT, f"{n}" * CALENDAR_NAME_CHARS, {"dates": dates, "source": source}, 1)
    key = IdempotencyKey.of(TENANT, "key", {})
    world.registry.create(TENANT, JOB_ID, largest_definition("\u20ac"), key)
    world.registry.put(TENANT, JOB_ID, largest_definition(WIDE))
    world.store.pause(TENANT, JOB_ID, WIDE * NOTE_CHARS)
    world.registry.create(TENANT, JOB_ID[1:], largest_definition(WIDE))
    largest_run(world.runs)
    assert len(list(Calendars(world.table("jobs")).list_calendars(TENANT))) == MAX_CALENDARS
    sizes: dict[str, int] = {}
    for name in TABLES:
        for item in dynamodb.scan(f"test-{name}")["Items"]:
            kind = f"{name}:{item['sk']['S'].partition('#')[0]}" if name == "jobs" else name
            kind = "jobs:text" if item["pk"]["S"].endswith("#text") else kind
            sizes[kind] = max(sizes.get(kind, 0), item_bytes(item))
    return sizes


# Kind of item, and the least size of the largest one: less would mean that it is not at its bounds.
AT_LEAST = {
    "jobs:JOB": 40_000,
    "jobs:text": 128 * 1024,
    "jobs:ONCE": 400,
    "jobs:CALENDAR": 29_000,
    "runs": MAX_ATTEMPTS_KEPT * 1_400,
    "audit": 2_000,
    "due": 5_000,
}


@pytest.mark.parametrize(("kind", "least"), AT_LEAST.items())
def test_the_largest_items_stay_below_the_bound(stored: dict[str, int], kind: str, least: int) -> None:
    assert least < stored[kind] < MAX_ITEM_BYTES * 3 // 4, stored


def test_nothing_else_is_larger(stored: dict[str, int]) -> None:
    assert max(stored.values()) == max(stored[kind] for kind in AT_LEAST), stored


def test_an_arn_cannot_be_as_long_as_a_body(world: World) -> None:
    """The partition after `aws` and the region's name had no bound, so a job could be larger than an item."""
    for arn in (
        f"arn:aws{'-x' * 200_000}:lambda:us-east-1:123456789012:function:f",
        f"arn:aws:lambda:us{'-east' * 80_000}-1:123456789012:function:f",
    ):
        target = {"kind": "lambda", "arn": arn}
        with pytest.raises(InvalidInput) as refused:
            world.registry.create("alice", "job", {"schedule": {"every": "1h"}, "target": target})
        assert refused.value.field == "target.arn"


def test_small_items_are_as_they_were() -> None:
    item = {**KEY, "n": 3, "m": {"l": [1, None, {"x": 0.5}]}, "none": None}
    assert item_to_wire(item) == to_wire(item)
