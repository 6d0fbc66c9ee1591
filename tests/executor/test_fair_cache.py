"""No tenant can evict what others use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from common.cache import FairCache
from common.storage import aws
from executor.targets import clients
from tests.executor.contexts import US, event


def test_a_tenant_that_floods_the_cache_loses_its_own_entries() -> None:
    cache: FairCache[str] = FairCache(8)
    for tenant in ("alice", "bob"):
        for n in range(3):
            cache.get((tenant, n), tenant, lambda: "built")
    for n in range(1_000):
        cache.get(("mallory", n), "mallory", lambda: "built")
    assert len(cache) == 8
    for tenant in ("alice", "bob"):
        for n in range(3):
            assert cache.get((tenant, n), tenant, lambda: "built again") == "built"


def test_a_used_entry_stays_longest() -> None:
    cache: FairCache[int] = FairCache(3)
    for n in (1, 2, 3):
        cache.get(n, "alice", lambda n=n: n)  # type: ignore[misc]
    cache.get(1, "alice", lambda: -1)
    cache.get(4, "alice", lambda: 4)
    assert cache.get(1, "alice", lambda: -1) == 1
    assert cache.get(2, "alice", lambda: -2) == -2


def test_an_entry_that_cannot_be_built_is_not_kept() -> None:
    cache: FairCache[int] = FairCache(3)
    with pytest.raises(ZeroDivisionError):
        cache.get(1, "alice", lambda: 1 // 0)
    assert cache.get(1, "alice", lambda: 5) == 5


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The settings of each client that was built."""
    built: list[Any] = []

    def build(*settings: Any) -> object:
        built.append(settings)
        return object()

    monkeypatch.setattr(aws, "target_client", build)
    clients._clients.clear()
    yield built
    clients._clients.clear()


def _client(tenant: str, account_region: str, timeout_s: float) -> Any:
    target = {"arn": f"arn:aws:lambda:{account_region}:function:report"}
    return clients.client("lambda", target, event(tenant=tenant), timeout_s)


def test_a_tenants_regions_evict_nobodys_clients(built: list[Any]) -> None:
    of_alice = _client("alice", US, 60)
    for number in range(288):
        _client("mallory", f"region-{number}:123456789012", 60)
    assert _client("alice", US, 60) is of_alice
    assert len(built) == 289


def test_all_time_limits_share_a_client(built: list[Any]) -> None:
    assert len({id(_client("mallory", US, timeout_s)) for timeout_s in range(1, 290)}) == len(built) == 1
