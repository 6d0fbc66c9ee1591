"""No tenant can evict what others use."""

from __future__ import annotations

from typing import Any

import pytest

from common.storage import aws
from executor.targets import clients
from executor.targets.clients import FairCache
from tests.executor.contexts import US, event


def test_who_floods_it_loses_its_own() -> None:
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


def test_what_is_used_stays_longest() -> None:
    cache: FairCache[int] = FairCache(3)
    for n in (1, 2, 3):
        cache.get(n, "alice", lambda n=n: n)  # type: ignore[misc]
    cache.get(1, "alice", lambda: -1)
    cache.get(4, "alice", lambda: 4)
    assert cache.get(1, "alice", lambda: -1) == 1
    assert cache.get(2, "alice", lambda: -2) == -2


def test_what_cannot_be_built_is_not_kept() -> None:
    cache: FairCache[int] = FairCache(3)
    with pytest.raises(ZeroDivisionError):
        cache.get(1, "alice", lambda: 1 // 0)
    assert cache.get(1, "alice", lambda: 5) == 5


def test_a_tenants_time_limits_evict_nobodys_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Any] = []

    def build(*settings: Any) -> object:
        built.append(settings)
        return object()

    monkeypatch.setattr(aws, "target_client", build)
    monkeypatch.setattr(aws, "takes_timeouts_per_call", lambda: False)  # as with botocore before 1.43
    clients._clients.clear()
    target = {"arn": f"arn:aws:lambda:{US}:function:report"}
    try:
        of_alice = clients.client("lambda", target, event(tenant="alice"), 60)
        for timeout_s in range(1, 290):
            if timeout_s != 60:
                clients.client("lambda", target, event(tenant="mallory"), timeout_s)
        assert clients.client("lambda", target, event(tenant="alice"), 60) is of_alice
        assert len(built) == 289
    finally:
        clients._clients.clear()
