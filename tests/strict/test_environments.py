"""The strict layer's rules about environments: purged connections, growing concurrency, updates in two calls."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from scripts.embedded.strict import connections, lambdas


class Wire:
    """Both ends of a connection as hypercorn has them: what comes, what is sent, and whether it was reset."""

    def __init__(self, agent: str) -> None:
        self.now_s = 0.0
        self.agent = agent
        self.sent: list[bytes] = []
        self.is_reset = False
        self.transport = SimpleNamespace(abort=lambda: setattr(self, "is_reset", True))

    def write(self, data: bytes) -> None:
        self.sent.append(data)

    def get_extra_info(self, name: str) -> Any:
        return SimpleNamespace(setsockopt=lambda *option: None)

    def at_eof(self) -> bool:
        return False

    async def read(self, count: int) -> bytes:
        return f"GET / HTTP/1.1\r\nuser-agent: {self.agent}\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("agent", "answers_after_s", "idle_s", "is_reset"),
    [
        ("Botocore/1.43", 0, 9, False),
        ("Botocore/1.43", 0, 11, True),
        ("Botocore/1.43", 60, 9, False),
        ("Botocore/1.43", 60, 11, True),
        ("aws-sdk-js/3.9", 0, 11, False),
    ],
)
def test_the_first_request_after_a_long_pause_meets_a_reset(
    agent: str, answers_after_s: float, idle_s: float, is_reset: bool
) -> None:
    wire = Wire(agent)
    server = type(
        "TCPServer", (), {"__init__": lambda self, app, reader, writer: setattr(self, "reader", reader)}
    )
    connections.install(server)
    reader: Any = server(
        "app", wire, SimpleNamespace(**{name: getattr(wire, name) for name in dir(Wire)})
    ).reader
    reader._clock = lambda: wire.now_s
    writer = reader._writer
    writer.transport = wire.transport
    assert asyncio.run(reader.read(8))
    wire.now_s += answers_after_s  # a request that takes long is no pause
    writer.write(b"answer")
    wire.now_s += idle_s
    if is_reset:
        with pytest.raises(ConnectionResetError):
            asyncio.run(reader.read(8))
    else:
        assert asyncio.run(reader.read(8))
    assert (wire.is_reset, wire.sent) == (is_reset, [b"answer"])


@pytest.mark.parametrize(
    ("has_maximum", "busy_s", "batches"),
    [(False, 0, 2), (True, 0, 5), (True, 1, 10), (False, 60, 302), (True, 3600, 1_250)],
)
def test_concurrency_grows_by_300_a_minute(has_maximum: bool, busy_s: float, batches: int) -> None:
    assert lambdas.batches_at_once(has_maximum, busy_s) == batches


def test_a_mapping_begins_with_two_batches_or_with_five_if_it_has_a_maximum() -> None:
    server = SimpleNamespace(_sqs_esm_concurrency=lambda mapping: 7, _esm_inflight={})
    lambdas.grow_concurrency(server)
    assert server._sqs_esm_concurrency({"UUID": "a"}) == 2
    assert server._sqs_esm_concurrency({"UUID": "b", "ScalingConfig": {"MaximumConcurrency": 7}}) == 5


def test_old_code_meets_the_new_configuration_in_an_update(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[tuple[str, str]] = []
    monkeypatch.setattr("time.sleep", lambda s: steps.append(("wait", str(s))))

    def update(name: str, old: Any, new: Any, stack: str) -> tuple[str, dict[str, str]]:
        steps.append((new["Code"], new["Layers"]))
        return name, {}

    stock = {"create": None, "update": update}
    stacks = SimpleNamespace(_runs_on_worker_thread=lambda kind: False)
    lambdas.update_configuration_first(
        stacks, SimpleNamespace(_RESOURCE_HANDLERS={"AWS::Lambda::Function": stock})
    )
    old, new = {"Code": "old", "Layers": "1"}, {"Code": "new", "Layers": "2"}
    changed: Any = stock["update"]
    assert changed("f", old, new, "stack") == ("f", {})
    assert steps == [("old", "2"), ("wait", str(lambdas.APART_S)), ("new", "2")]
    steps.clear()
    changed("f", old, old | {"Layers": "2"}, "stack")
    assert steps == [("old", "2")]
    assert stacks._runs_on_worker_thread("AWS::Lambda::Function")
