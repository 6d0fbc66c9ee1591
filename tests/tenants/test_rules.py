"""A tenant's rules: what can be set, the meaning of older items, and how they are cached."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from msgspec import to_builtins

from common.errors import InvalidInput
from common.platform.tenants import changed
from common.storage import keys
from common.storage.stored import read
from common.storage.table import Table
from common.storage.wire import Item
from common.tenants.rules_cache import KnownTenants
from common.tenants.tenant import Quotas, TenantRules
from tests.worlds import World


def test_a_new_tenant_may_call_nothing() -> None:
    assert TenantRules().allowed_targets == []
    assert read({"tenant_id": "old", "created_at": 1}, TenantRules) == TenantRules()


def test_rules_are_stored_and_read() -> None:
    rules = TenantRules("suspended", ["*.example.com"], Quotas(jobs=7), 400)
    assert read(to_builtins(rules), TenantRules) == rules
    later = to_builtins(rules) | {"quotas": {"jobs": 7, "moons": 3}}
    assert read(later, TenantRules).quotas == Quotas(jobs=7)


def test_given_fields_change_and_null_is_the_default() -> None:
    rules = changed(TenantRules(), {"quotas": {"jobs": 7, "payload_bytes": 9}, "retention_days": 3})
    rules = changed(rules, {"quotas": {"payload_bytes": None}, "allowed_targets": ["a.b", "*", "a.b"]})
    assert rules == TenantRules("active", ["a.b", "*"], Quotas(jobs=7), 3)
    assert changed(rules, dict.fromkeys(("quotas", "retention_days", "allowed_targets"))) == TenantRules()


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"retention_days": 0}, "retention_days"),
        ({"retention_days": 401}, "retention_days"),
        ({"retention_days": True}, "retention_days"),
        ({"retention_days": "30"}, "retention_days"),
        ({"quotas": {"jobs": -1}}, "quotas.jobs"),
        ({"quotas": {"jobs": 1.5}}, "quotas.jobs"),
        ({"quotas": {"shortest_interval_s": 0}}, "quotas.shortest_interval_s"),
        ({"quotas": {"payload_bytes": 256 * 1024 + 1}}, "quotas.payload_bytes"),
        ({"quotas": {"moons": 1}}, "quotas.moons"),
        ({"quotas": []}, "quotas"),
        ({"allowed_targets": "*"}, "allowed_targets"),
        ({"allowed_targets": ["*"] * 101}, "allowed_targets"),
        ({"allowed_targets": ["*", ""]}, "allowed_targets.1"),
        ({"allowed_targets": ["https://example.com/"]}, "allowed_targets.0"),
        ({"allowed_targets": ["arn:aws:lambda:*"]}, "allowed_targets.0"),
        ({"allowed_targets": ["hooks.*.com"]}, "allowed_targets.0"),
        ({"allowed_targets": [None]}, "allowed_targets.0"),
        ({"allowed_targets": ["x" * 513]}, "allowed_targets.0"),
    ],
)
def test_invalid_rules_are_refused(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        changed(TenantRules(), changes)
    assert refused.value.field == field


@pytest.mark.parametrize(
    "pattern",
    ["*", "arn:aws:lambda:*:123456789012:function:a-?*", "arn:*:*:*:*:*", "hooks.example.com", "*.example.com:8443",
     "[2001:db8::1]:443", "localhost", "arn:aws:iam::123456789012:role/x"],
)  # fmt: skip
def test_valid_patterns_are_accepted(pattern: str) -> None:
    assert changed(TenantRules(), {"allowed_targets": [pattern]}).allowed_targets == [pattern]


def test_many_threads_share_one_read(world: World) -> None:
    table = Table(world.dynamodb, "test-tenants")
    table.put({**keys.tenant("alice"), "tenant_id": "alice", "created_at": 1})
    gate = threading.Barrier(10)
    known = KnownTenants(table)
    results: list[Any] = []

    def ask() -> None:
        gate.wait()
        results.append(known.rules("alice", 100.0))

    threads = [threading.Thread(target=ask) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [TenantRules()] * 10
    assert known.reads == 1


def test_rules_are_forgotten_after_their_time_and_when_the_clock_steps_back(world: World) -> None:
    table = Table(world.dynamodb, "test-tenants")
    known = KnownTenants(table)
    assert known.rules("alice", 100.0) is None
    item: Item = {**keys.tenant("alice"), "tenant_id": "alice", "created_at": 1}
    table.put(item)
    assert known.rules("alice", 114.9) is None
    assert known.rules("alice", 115.0) == TenantRules()
    table.put(item | {"state": "suspended"})
    assert known.rules("alice", 90.0) == TenantRules(state="suspended")
