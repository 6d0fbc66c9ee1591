"""Ten jobs of a hostile tenant, and a hundred in packs, all at their bounds, in the memory of the executor's Lambda.

The process is measured: what it takes at most must be at most 80 % of `executorMemoryMb`.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from common.planning.execution import Execution
from common.planning.packs import Pack
from common.registration.calendar_store import CalendarStore
from common.storage.keys import tenant
from scripts.parameters import DEFAULTS
from tests.executor.hostile_answers import RawServer, sending
from tests.executor.servers import NAME, _certificate, _server_side
from tests.worlds import TABLES, World, job

MAX_CALENDARS = 10
MAX_DATES = 2_500
MAX_IN_A_PACK = 10

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_S = 4
# The memory of a batch beyond the imported modules; AWS's own clients take some 40 MB more.
BATCH_MB = {1: 60, MAX_IN_A_PACK: 100}
ARN = "arn:aws:lambda:us-east-1:123456789012:function:hostile"
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = b"y" * 50_000_000
ANSWERS: dict[str, list[bytes]] = {
    "negative-chunk": [CHUNKED + b"-1\r\n" + ENDLESS],
    "silent": [],
    "tiny-chunks": [CHUNKED + b"1\r\ny\r\n" * 1_000_000],
    "no-length": [OK + b"\r\n" + ENDLESS],
    "endless-head": [OK + b"a: b\r\n" * 5_000_000],
    "interim": [b"HTTP/1.1 100 Continue\r\n\r\n" * 2_000_000],
    "bomb": [OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"0" * 50_000_000)],
    "later": [b"HTTP/1.1 503 x\r\nRetry-After: " + b"9" * 5_000 + b"\r\n\r\n" + b'{"minute8":' * 50_000],
}


def _lambda_answer() -> list[bytes]:
    result = b'{"minute8": {"permanent": true, "error": "' + b"\\ud800" * 1_000_000 + b'"}}'
    return [
        OK
        + b"x-amz-log-result: "
        + b"eHh4" * 1_365
        + b"\r\nContent-Length: %d\r\n\r\n" % len(result)
        + result
    ]


def _register(world: World, servers: dict[str, RawServer], each: int) -> list[str]:
    """Store so many jobs for each server, with every field at its bound; return their names."""
    calendars = CalendarStore(world.table("jobs"), world.store.audited)
    dates = [
        f"{year}-{month:02}-{day:02}"
        for year in range(2027, 2036)
        for month in range(1, 13)
        for day in range(1, 29)
    ]
    names = [f"calendar-{n}" for n in range(MAX_CALENDARS)]
    for name in names:
        calendars.put("alice", name, {"dates": dates[:MAX_DATES]}, int(world.clock.now()))
    fields: dict[str, Any] = {
        "payload": {"text": "{{execution_id}}" * 280 + "x" * 110_000},
        "timeout_s": TIMEOUT_S,
        "retry": {"max_attempts": 1},
        "exclude": {"calendars": names},
    }
    headers = {f"x-header-{n}": "h" * 500 for n in range(20)}
    for name, server in servers.items():
        url = f"https://{NAME}:{server.port}/"
        target: dict[str, Any] = {"kind": "http", "url": url, "headers": headers}
        if name.startswith("lambda"):
            target = {"kind": "lambda", "arn": ARN, "invocation": "RequestResponse"}
        for n in range(each):
            world.registry.create(
                "alice", f"{name}-{n}", job(cron="0 3 * * *", **fields) | {"target": target}
            )
    return [f"{name}-{n}" for n in range(each) for name in servers]


def _tables(world: World) -> dict[str, list[Any]]:
    world.table("tenants").put({**tenant("alice"), "state": "active", "allowed_targets": ["*"]})
    names = [f"test-{name}" for name in TABLES]
    return {name: world.dynamodb.scan(TableName=name)["Items"] for name in names}


@pytest.mark.parametrize("pack", BATCH_MB)
def test_a_hostile_batch_stays_within_the_lambdas_memory(world: World, tmp_path: Path, pack: int) -> None:
    memory_mb = DEFAULTS["executorMemoryMb"]
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(sending(_server_side() if name in ANSWERS else None))
            for name in [*ANSWERS, "lambda-1", "lambda-2"]
        }
        for name, server in servers.items():
            server.script = [(0.0, part) for part in ANSWERS.get(name, _lambda_answer())]
        servers["silent"].ends = lambda connection: connection.recv(1) and None
        world.clock.move_to(time.time() - 120)  # the process has the machine's clock
        jobs = _register(world, servers, pack)
        now = int(time.time())
        due = [Execution("alice", name, now, now, 1) for name in jobs]
        scenario = {
            "tables": _tables(world),
            "jobs": jobs,
            "messages": [Pack(tuple(due[n : n + pack])).encode() for n in range(0, len(due), pack)],
            "certificate": _certificate()[0].decode(),
        }
        (tmp_path / "scenario.json").write_text(json.dumps(scenario))
        done = subprocess.run(
            [sys.executable, "-m", "tests.executor.hostile_batch", str(tmp_path / "scenario.json")],
            cwd=ROOT,
            env=os.environ | {"AWS_ENDPOINT_URL_LAMBDA": f"http://127.0.0.1:{servers['lambda-1'].port}"},
            capture_output=True,
            text=True,
            timeout=120,  # an answer that were read to its end would take far longer than the job's timeout
            check=False,
        )
    assert done.returncode == 0, done.stderr[-3_000:]
    measured = json.loads(done.stdout.splitlines()[-1])
    print(measured)
    assert measured["failed"] == []
    assert len(measured["statuses"]) == 10 * pack
    assert set(measured["statuses"]) <= {"succeeded", "failed"}
    assert measured["outcomes"]["silent-0"] == "TimedOut"
    assert measured["outcomes"]["negative-chunk-0"] in ("BadAnswer", "TimedOut")
    assert measured["outcomes"]["interim-0"] in ("BadAnswer", "TimedOut")
    assert measured["peak_mb"] <= 0.8 * memory_mb
    assert measured["peak_mb"] - measured["ready_mb"] < BATCH_MB[pack]
