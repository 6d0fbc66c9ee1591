"""The cache of tenants' rules: entries stay valid for long while the log of changes does not name the tenant."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from common.platform.deletion import Deletions
from common.platform.tenants import Tenants
from common.storage import keys
from common.storage.table import Query, Table
from common.tenants.rules_cache import KnownTenants
from tests.worlds import World

TRUSTED_FOR_S = 15

NOW = 1_795_000_000.0
MANY = [f"tenant-{n}" for n in range(8)]


class Counted:
    """A DynamoDB client that counts requests, and fails those in `broken`."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.asked: dict[str, int] = {}
        self.consistent: list[bool] = []
        self.broken: set[str] = set()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        requested = getattr(self.client, name)

        def call(**request: Any) -> Any:
            self.asked[name] = self.asked.get(name, 0) + 1
            if name == "get_item":
                self.consistent.append(request["ConsistentRead"])
            if name in self.broken:
                raise OSError("no way to DynamoDB")
            return requested(**request)

        return call


@pytest.fixture
def tenants(world: World) -> Tenants:
    """Some tenants that were created long ago."""
    tenants = Tenants(world.table("tenants"))
    for tenant in MANY:
        tenants.create(tenant, "", NOW - 50_000)
    return tenants


@pytest.fixture
def client(world: World, tenants: Tenants) -> Counted:
    return Counted(world.dynamodb)


@pytest.fixture
def known(client: Counted) -> KnownTenants:
    return KnownTenants(Table(client, "test-tenants", now=lambda: NOW))  # type: ignore[arg-type]


def state(known: KnownTenants, tenant: str, now: float) -> str:
    rules = known.rules(tenant, now)
    return rules.state if rules else "unknown"


def test_an_hour_of_runs_reads_each_tenant_once_and_the_log_every_interval(
    known: KnownTenants, client: Counted
) -> None:
    for second in range(3_600):
        assert state(known, MANY[second % len(MANY)], NOW + second) == "active"
    assert client.asked["get_item"] == known.reads == len(MANY)
    assert client.asked["query"] == pytest.approx(3_600 / TRUSTED_FOR_S, abs=3)


def test_an_hour_is_the_longest(known: KnownTenants) -> None:
    for second in range(0, 3_601, 10):
        known.rules("tenant-1", NOW + second)
    assert known.reads == 2


@pytest.mark.parametrize("after_s", [0, 1, 14, 15, 16, 100, 1_000])
def test_a_suspension_takes_effect_within_the_interval(
    known: KnownTenants, tenants: Tenants, after_s: int
) -> None:
    for second in range(after_s + 1):
        known.rules("tenant-1", NOW + second)
        known.rules("tenant-2", NOW + second)
    tenants.suspend("tenant-1", "", NOW + after_s)
    seen = [state(known, "tenant-1", NOW + after_s + second) for second in range(1, 40)]
    assert set(seen[TRUSTED_FOR_S - 1 :]) == {"suspended"}
    assert state(known, "tenant-2", NOW + after_s + 40) == "active"


def test_a_change_that_is_committed_long_after_its_time_is_seen(
    known: KnownTenants, tenants: Tenants, world: World
) -> None:
    for second in range(0, 200, 5):
        known.rules("tenant-1", NOW + second)
    tenants.suspend("tenant-1", "", NOW + 10)  # decided at that time, and committed now
    assert state(known, "tenant-1", NOW + 200 + TRUSTED_FOR_S) == "suspended"


def test_tenants_in_the_log_are_read_consistently(
    known: KnownTenants, tenants: Tenants, client: Counted
) -> None:
    """A replica that still has the old item must not be trusted for another interval."""
    for second in (0, 15):
        known.rules("tenant-1", NOW + second)
        known.rules("tenant-2", NOW + second)
    tenants.suspend("tenant-1", "", NOW + 16)
    client.consistent.clear()
    known.rules("tenant-1", NOW + 31)
    known.rules("tenant-3", NOW + 31)
    assert client.consistent == [True, False]


def test_while_the_log_cannot_be_read_each_tenant_is(
    known: KnownTenants, tenants: Tenants, client: Counted
) -> None:
    known.rules("tenant-1", NOW)
    client.broken = {"query"}
    tenants.suspend("tenant-1", "", NOW + 1)
    assert state(known, "tenant-1", NOW + TRUSTED_FOR_S) == "suspended"
    for second in range(60):
        for tenant in MANY:
            known.rules(tenant, NOW + 100 + second)
    assert client.asked["get_item"] == 2 + 4 * len(MANY)
    assert client.asked["query"] <= 6  # an outage does not cost a request for each run
    client.broken = set()
    tenants.resume("tenant-1", NOW + 170)
    assert state(known, "tenant-1", NOW + 190) == "active"


def test_a_change_during_the_outage_is_seen_when_it_is_over(
    known: KnownTenants, tenants: Tenants, client: Counted
) -> None:
    known.rules("tenant-1", NOW)
    known.rules("tenant-1", NOW + 15)
    client.broken = {"query", "get_item"}
    with pytest.raises(OSError, match="no way"):
        known.rules("tenant-1", NOW + 31)
    tenants.suspend("tenant-1", "", NOW + 40)
    client.broken = set()
    assert state(known, "tenant-1", NOW + 900) == "suspended"


def test_a_missing_tenant_is_cached_for_one_interval(known: KnownTenants, tenants: Tenants) -> None:
    for second in (0, 10, 20, 30):
        assert state(known, "zoe", NOW + second) == "unknown"
    assert known.reads == 2
    tenants.create("zoe", "Zoe", NOW + 31)
    assert state(known, "zoe", NOW + 35) == "active"


def test_a_writer_that_knows_no_log_is_obeyed_after_an_hour(known: KnownTenants, world: World) -> None:
    known.rules("tenant-1", NOW)
    world.table("tenants").put({**keys.tenant("tenant-1"), "state": "suspended"})
    for second in range(0, 3_600, 10):
        assert state(known, "tenant-1", NOW + second) == "active"
    assert state(known, "tenant-1", NOW + 3_600) == "suspended"


def test_no_change_is_committed_without_its_entry(tenants: Tenants, world: World) -> None:
    """Create, edit, suspend, resume and removal each write to the log, and its entries expire."""
    table = world.table("tenants")
    tenants.edit("tenant-1", {"name": "New"}, NOW)
    tenants.suspend("tenant-1", "", NOW + 1)
    tenants.resume("tenant-1", NOW + 2)
    removal = Deletions(table, world.table("jobs"), world.table("runs"), world.index)
    removal.begin("tenant-1", NOW + 3)
    while not removal.move_on("tenant-1", NOW + 300).finished_at:
        pass
    entries = list(table.with_expired().query(Query(keys.TENANT_CHANGES)))
    assert [keys.changed_tenant(entry["sk"]) for entry in entries] == sorted(MANY) + ["tenant-1"] * 5
    assert [entry["expires_at"] - int(NOW) - 86_400 for entry in entries[-5:]] == [0, 1, 2, 3, 300]


def test_several_tenants_are_learnt_by_one_cheap_request(
    known: KnownTenants, tenants: Tenants, client: Counted
) -> None:
    assert known.learn([*MANY, "nobody"], NOW) == set(MANY)
    assert client.asked["batch_get_item"] == 1
    assert {state(known, tenant, NOW) for tenant in MANY} == {"active"}
    assert "get_item" not in client.asked
    known.learn(MANY, NOW + TRUSTED_FOR_S + 1)  # nothing has changed since
    assert client.asked["batch_get_item"] == 1
    tenants.suspend("tenant-1", "", NOW + 20)
    known.rules("tenant-2", NOW + 40)  # reads the log
    assert known.learn(MANY, NOW + 40) == set(MANY) - {"tenant-1"}
    assert state(known, "tenant-1", NOW + 40) == "suspended"
    assert client.consistent == [True]
    assert state(known, "nobody", NOW + 40) == "unknown"
