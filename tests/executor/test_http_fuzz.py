"""Any bytes from an endpoint give an outcome that can be stored, within the time limit, in little memory.

MINUTE8_FUZZ_SECONDS=3600 plays for an hour; MINUTE8_FUZZ_SEED begins at another case.
"""

from __future__ import annotations

import os
import random
import socket
import struct
import time
from contextlib import ExitStack
from pathlib import Path

from common.runs.outcome import Outcome
from common.storage.wire import to_wire
from executor.network_guard import NetworkGuard, Resolver
from executor.targets.http_endpoint import HttpEndpoints
from tests.executor.contexts import event
from tests.executor.endpoints import SECRETS
from tests.executor.hostile_answers import RawServer, script, sending
from tests.executor.servers import NAME, _server_side, trusting
from tests.manual_clock import ManualClock
from tests.worlds import at

MAX_RETRY_AFTER_S = 31536000.0

# Without a time, the same cases in each run, however quick the machine is.
SECONDS = float(os.environ.get("MINUTE8_FUZZ_SECONDS", "0"))
CASES = 300
SEED = int(os.environ.get("MINUTE8_FUZZ_SEED", "1"))
TIMEOUT_S = 0.4
# The machine may be busy.
MARGIN_S = 20.0
MAX_CPU_S = 1.9
MEMORY_MB = 96


def _resets(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _hangs(connection: socket.socket) -> None:
    connection.recv(1)


def _resident_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def _play(seed: int, endpoints: HttpEndpoints, plain: RawServer, tls: RawServer) -> Outcome:
    rng = random.Random(seed)
    server, scheme = rng.choice([(plain, "http"), (plain, "http"), (plain, "https"), (tls, "https")])
    server.script = script(rng)
    server.ends = rng.choice([lambda connection: None] * 8 + [_resets, _hangs])
    target = {"url": f"{scheme}://{NAME}:{server.port}/", "method": rng.choice(["POST", "GET"])}
    began, used = time.perf_counter(), time.thread_time()
    outcome = endpoints.call(target, event(payload="x" * rng.choice([0, 200_000])), TIMEOUT_S)
    assert time.perf_counter() - began < TIMEOUT_S + MARGIN_S, f"seed {seed} took too long"
    assert time.thread_time() - used < MAX_CPU_S, f"seed {seed} used too much processor time"
    return outcome


def test_no_answer_escapes() -> None:
    endpoints = HttpEndpoints(
        secrets_of=lambda tenant, now: SECRETS[:1],
        clock=ManualClock(at("2026-11-21T03:00:01Z")),
        plain_http=True,
        guard=NetworkGuard(Resolver(lambda host, port: ["127.0.0.1"]), lambda ip: ip.is_loopback),
        tls=trusting,
    )
    kinds: dict[str, int] = {}
    with ExitStack() as stack:
        plain, tls = stack.enter_context(sending()), stack.enter_context(sending(_server_side()))
        for seed in range(SEED, SEED + 20):
            _play(seed, endpoints, plain, tls)  # one-time allocations happen here
        before_mb, until = _resident_mb(), time.monotonic() + SECONDS
        seed = SEED
        while seed < SEED + CASES or time.monotonic() < until:
            outcome = _play(seed, endpoints, plain, tls)
            item = to_wire(outcome.to_item())
            assert len(str(item).encode()) < 8_000, f"seed {seed}"
            assert 0 <= (outcome.retry_after_s or 0) <= MAX_RETRY_AFTER_S, f"seed {seed}"
            kinds[outcome.error_type] = kinds.get(outcome.error_type, 0) + 1
            seed += 1
    # This includes the server's own threads and scripts.
    assert _resident_mb() - before_mb < MEMORY_MB
    print(seed - SEED, kinds)
    assert {"", "BadAnswer"} <= kinds.keys(), kinds
    assert not {"RecursionError", "ValueError", "TypeError", "AssertionError", "MemoryError"} & kinds.keys()
