"""The resolver: bounded, fair by tenant, and with a deadline of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from executor import network_guard
from executor.network_guard import NetworkGuard, NoLookup, Resolver, Unreachable
from tests.executor.contexts import event
from tests.executor.endpoints import endpoints

LOOKUPS = 64
MAX_TENANT_LOOKUPS = 16

ADDRESS = "192.0.2.1"


class NameServer:
    """Names of `hang.example.com` get no answer until `answers` is set."""

    def __init__(self) -> None:
        self.answers = threading.Event()
        self.lookups = 0

    def __call__(self, host: str, port: int) -> list[str]:
        self.lookups += 1
        if host.endswith("hang.example.com"):
            self.answers.wait(60)
        return [ADDRESS]


@pytest.fixture
def server() -> Iterator[NameServer]:
    server = NameServer()
    yield server
    server.answers.set()


def hang(names: Resolver, tenants: Sequence[str]) -> list[Exception]:
    """Look up a name for each of these tenants at once; each is another name, and hangs."""

    def look_up(tenant: str, number: int) -> Exception:
        with pytest.raises((Unreachable, NoLookup)) as raised:
            names.addresses(tenant, f"{number}.hang.example.com", 443, 0.05)
        return raised.value

    with ThreadPoolExecutor(len(tenants)) as pool:
        return list(pool.map(look_up, tenants, range(len(tenants))))


def resolving() -> int:
    return sum(thread.name == "resolve" for thread in threading.enumerate())


def test_names_that_hang_take_a_bounded_number_of_threads(server: NameServer) -> None:
    names, before = Resolver(server), resolving()
    errors = hang(names, ["hostile"] * 100)
    assert resolving() - before == MAX_TENANT_LOOKUPS
    assert {type(error) for error in errors} == {Unreachable}, (
        "the tenant's attempts, since its own names hang"
    )
    assert names.addresses("quiet", "example.com", 443, 1) == [ADDRESS]


def test_many_hostile_tenants_leave_a_thread_to_a_quiet_one(server: NameServer) -> None:
    names, before = Resolver(server), resolving()
    for n in range(12):
        hang(names, [f"hostile-{n}"] * 20)
    assert resolving() - before < LOOKUPS
    assert names.addresses("quiet", "example.com", 443, 1) == [ADDRESS]


def test_sixteen_threads_are_only_for_tenants_that_have_none(server: NameServer) -> None:
    names = Resolver(server)
    for n in range(9):  # as many as take all that tenants with several names may have
        hang(names, [f"hostile-{n}"] * 20)
    quiet = [str(error) for error in hang(names, [f"quiet-{n}" for n in range(16)])]
    assert all("was not resolved within" in error for error in quiet), quiet
    (late,) = hang(names, ["quiet-16"])
    assert isinstance(late, NoLookup)


def test_a_quiet_tenant_s_attempt_is_not_spent_if_all_threads_are_taken(server: NameServer) -> None:
    names = Resolver(server)
    hang(names, [f"hostile-{n}" for n in range(LOOKUPS)])
    quiet = endpoints(guard=NetworkGuard(names))
    target = {"kind": "http", "url": "https://example.com/", "method": "POST"}
    outcome = quiet.call(target, event(), 0.2)
    assert (outcome.throttled, outcome.error_type) == (True, "NoLookup")
    server.answers.set()
    assert names.addresses("quiet", "example.com", 443, 5) == [ADDRESS], "threads come back"


def test_a_thread_that_cannot_start_spends_no_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    names = Resolver(lambda host, port: ["127.0.0.1"])
    monkeypatch.setattr(threading.Thread, "start", no_more)
    target = {"kind": "http", "url": "https://example.com/", "method": "POST"}
    outcome = endpoints(guard=NetworkGuard(names)).call(target, event(), 5)
    assert (outcome.throttled, outcome.error_type) == (True, "NoLookup")
    assert "can't start new thread" in outcome.error
    monkeypatch.undo()
    assert names.addresses("alice", "example.com", 443, 5) == ["127.0.0.1"]


def test_a_lookup_has_its_own_deadline(server: NameServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_guard, "LOOKUP_S", 0.1)
    began = time.monotonic()
    with pytest.raises(Unreachable, match=r"not resolved within 0\.1 s"):
        Resolver(server).addresses("alice", "hang.example.com", 443, 60)
    assert time.monotonic() - began < 10


def test_lookups_of_one_name_share_a_thread_within_a_tenant(server: NameServer) -> None:
    names = Resolver(server)
    with ThreadPoolExecutor(10) as pool:
        for tenant in ("alice", "bob"):
            for _ in range(5):
                pool.submit(names.addresses, tenant, "hang.example.com", 443, 0.5)
    assert server.lookups == 2


@pytest.mark.parametrize(
    ("raised", "words"),
    [
        (OSError("no such host"), "no such host"),
        (UnicodeError("label too long"), "label too long"),
        (KeyError("unforeseen"), "the resolver ended"),
    ],
)
def test_a_lookup_that_fails_ends_at_once_and_frees_its_place(
    raised: Exception, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)  # pytest fails for what a thread raises

    def fails(host: str, port: int) -> list[str]:
        raise raised

    names, began = Resolver(fails), time.monotonic()
    for _ in range(3 * MAX_TENANT_LOOKUPS):
        with pytest.raises(Unreachable, match=words):
            names.addresses("alice", "example.com", 443, 60)
    assert time.monotonic() - began < 50, "nobody waited for the deadline"
    for thread in threading.enumerate():
        if thread.name == "resolve":
            thread.join(5)
