"""No tenant can evict what others use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
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


class _Client(SimpleNamespace):
    """A client of a service whose model has so many shapes."""

    def __init__(self, service: str, shapes: int = 100) -> None:
        model = SimpleNamespace(service_name=service, shape_names=range(shapes))
        super().__init__(meta=SimpleNamespace(service_model=model))


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The settings of each client that was built."""
    built: list[Any] = []

    def build(*settings: Any) -> object:
        built.append(settings)
        return _Client(settings[0])

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


def test_who_has_a_client_waits_for_nobodys_build(monkeypatch: pytest.MonkeyPatch) -> None:
    """60 runs of as many services held one lock while each client was built: 3 s for a client that was ready."""
    services = [f"service-{n}" for n in range(60)]
    began, may_end = threading.Semaphore(0), threading.Event()

    def build(service: str, *_: Any) -> Any:
        if service in services:
            began.release()
            assert may_end.wait(30)
        return _Client(service)

    monkeypatch.setattr(aws, "target_client", build)
    clients._clients.clear()
    ready = clients.before_any_call("sqs", US, 5)
    threads = [
        threading.Thread(target=clients.before_any_call, args=(service, US, 5)) for service in services
    ]
    for thread in threads:
        thread.start()
    try:
        assert all(began.acquire(timeout=30) for _ in services)
        assert clients.before_any_call("sqs", US, 5) is ready
        assert clients.before_any_call("sns", US, 5) is not ready
    finally:
        may_end.set()
        for thread in threads:
            thread.join()
        clients._clients.clear()


def test_threads_share_the_build_of_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    began, may_end, built = threading.Event(), threading.Event(), []

    def build(service: str, *_: Any) -> Any:
        began.set()
        assert may_end.wait(30)
        built.append(service)
        return _Client(service)

    monkeypatch.setattr(aws, "target_client", build)
    clients._clients.clear()
    with ThreadPoolExecutor(8) as threads:
        got = [threads.submit(clients.before_any_call, "ecs", US, 5) for _ in range(8)]
        assert began.wait(30)
        may_end.set()
        assert all(future.result() for future in got)
    clients._clients.clear()
    assert set(built) == {"ecs"} and len(built) < 8


def test_clients_are_bounded_by_bytes_and_the_greedy_tenant_loses_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(aws, "target_client", lambda service, *_: _Client(service, shapes=4_000))
    clients._clients.clear()
    credentials = ("a", "b", "c")
    of_alice = clients._client("ecs", US, 5, credentials, "alice")
    for n in range(200):
        clients._client(f"service-{n}", US, 5, credentials, "mallory")
        assert sum(map(clients._weight, clients._clients)) <= 101_000_000
    assert clients._client("ecs", US, 5, credentials, "alice") is of_alice
    clients._clients.clear()
