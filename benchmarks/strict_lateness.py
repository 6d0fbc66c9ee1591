"""The executor under the conditions of a small function: a share of a processor, and TLS on each request."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from benchmarks.dispatch import TAKES_S
from benchmarks.executor_stub import ENVIRONMENT, ExecutorStub
from benchmarks.measure import track
from benchmarks.result import Result, Table
from common.planning.executions_queue import BATCH_SIZE
from common.planning.packs import MOST_IN_A_PACK
from scripts.embedded.strict import certificate
from scripts.embedded.strict.quota import PROCESSOR_MB, Quota

ROOT = Path(__file__).resolve().parent.parent
MEMORIES_MB = (192, 512, 1024, PROCESSOR_MB)
BATCHES = (1, 10, BATCH_SIZE * MOST_IN_A_PACK)
_ENVIRONMENTS = 5
_WARM = 8


def run(scale: float) -> Result:
    """Measure five environments of each size at scale 1. Raises QuotaError where this machine has no quotas."""
    settings = [(memory_mb, batch) for memory_mb in MEMORIES_MB for batch in BATCHES]
    found: dict[tuple[int, int], list[dict[str, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as directory, _Aws(Path(directory)) as aws:
        for _ in track(range(max(1, round(_ENVIRONMENTS * scale))), "environments"):
            for memory_mb, batch in settings:
                found[memory_mb, batch].append(environment(aws, memory_mb, batch))
    figures = {
        f"{memory_mb} MB, batches of {batch}": {
            name: min(one[name] for one in ones)
            for name in ones[0]  # other programs can only add time
        }
        for (memory_mb, batch), ones in found.items()
    }
    rows = [
        [
            f"{memory_mb:,}",
            str(batch),
            *(f"{one[name]:.2f}" for name in ("init_s", "cold_s", "half_s", "warm_s", "billed_s")),
            f"{one['cpu_s'] / batch * 1000:.1f}",
        ]
        for (memory_mb, batch), one in zip(settings, figures.values(), strict=True)
    ]
    head = [
        "memory, MB",
        "batch",
        "init, s",
        "last call, cold, s",
        "median call, warm, s",
        "last call, warm, s",
    ]
    head.append("batch, warm, s")
    return Result(
        "strict_lateness",
        scale,
        tables=[Table("`Event` calls under a quota and TLS", [*head, "CPU ms an execution"], rows)],
        goals=[],
        figures=figures,
        notes=[
            "A batch of a hundred is ten packs of ten.",
            f"Of {max(1, round(_ENVIRONMENTS * scale))} environments the quickest, of its {_WARM} warm batches the"
            " median. A batch comes when it is due; SQS delivers up to a second before, which hides as much of a cold"
            " start. Requests take as long as in Dispatch. The init phase is not held to the quota.",
        ],
    )


def environment(aws: _Aws, memory_mb: int, batch: int, root: Path = ROOT) -> dict[str, float]:
    """One environment: init at full speed, a cold batch, warm batches. Returns medians of the warm ones."""
    worker = subprocess.Popen(
        [sys.executable, str(ROOT / "benchmarks" / "strict_worker.py")],
        cwd=root,
        env=aws.environment | {"PYTHONPATH": str(root)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    quota = Quota(f"{memory_mb}", memory_mb)
    try:
        quota.add(worker.pid)
        init_s = _read(worker)["init_s"]
        quota.limit()
        cold, *warm = (aws.handled(worker, batch) for _ in range(1 + _WARM))
    finally:
        worker.kill()
        worker.communicate()
        quota.remove()
    return {
        "init_s": init_s,
        "cold_s": cold["late_s"],
        "cold_half_s": cold["half_s"],
        "cold_took_s": cold["took_s"],
        "half_s": statistics.median(one["half_s"] for one in warm),
        "warm_s": statistics.median(one["late_s"] for one in warm),
        "billed_s": statistics.median(one["took_s"] for one in warm),
        "cpu_s": statistics.median(one["cpu_s"] for one in warm),
        "connections": aws.connections_since(),
    }


def _read(worker: subprocess.Popen[str]) -> dict[str, float]:
    assert worker.stdout
    answer: dict[str, float] = json.loads(worker.stdout.readline())
    return answer


class _Aws:
    """The stub's DynamoDB and Lambda behind TLS, in this process, which has no quota."""

    def __init__(self, directory: Path) -> None:
        self._stub = ExecutorStub("Event")
        self._stub.aws.answers["ChangeMessageVisibilityBatch"] = _all_changed
        self._bundle, context = certificate.make(directory)
        self._called_at: list[float] = []
        self._connections = 0
        self._sent = self._written = 0
        aws = self

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def process_request(self, request: Any, client_address: Any) -> None:
                aws._connections += 1
                super().process_request(request, client_address)

            def handle_error(self, *_: object) -> None: ...

        self._server = Server(("127.0.0.1", 0), _handler(self))
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.environment = ENVIRONMENT | {
            "PATH": os.environ["PATH"],
            "AWS_LAMBDA_FUNCTION_NAME": "minute8-bench-executor",
            "AWS_ENDPOINT_URL": f"https://localhost:{self._server.server_port}",
            "AWS_CA_BUNDLE": str(self._bundle),
        }

    def __enter__(self) -> _Aws:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def handled(self, worker: subprocess.Popen[str], batch: int) -> dict[str, float]:
        """Let the worker handle a batch that is due now; returns the lateness of its last call, and its duration."""
        event = self._stub.event(self._sent, batch, -(-batch // BATCH_SIZE))
        self._sent += batch
        self._called_at.clear()
        self._written = 0
        assert worker.stdin
        began = time.time()
        worker.stdin.write(json.dumps(event) + "\n")
        worker.stdin.flush()
        answer = _read(worker)
        assert answer["failed"] == 0, answer
        assert len(self._called_at) == self._written == batch, (self._called_at, self._written)
        half_s = statistics.median(self._called_at) - began
        return answer | {"late_s": max(self._called_at) - began, "half_s": half_s}

    def connections_since(self) -> float:
        """The calls since the last request for them."""
        count, self._connections = self._connections, 0
        return count

    def answer(self, target: str, request: dict[str, Any]) -> tuple[int, bytes]:
        """The stub's answer, after AWS's usual time."""
        operation = target.partition(".")[2] or "Invoke"
        if operation == "Invoke":
            self._called_at.append(time.time())
        elif operation == "UpdateItem":
            self._written += 1  # a second one would record a failure
        elif operation == "BatchExecuteStatement":
            self._written += len(request["Statements"])
        time.sleep(TAKES_S.get(operation, 0.005))
        return 202 if operation == "Invoke" else 200, self._stub.aws.answers[operation](request)


def _all_changed(request: dict[str, Any]) -> bytes:
    return json.dumps({"Successful": [{"Id": entry["Id"]} for entry in request["Entries"]]}).encode()


def _handler(aws: _Aws) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            self._send(*aws.answer(self.headers.get("x-amz-target", ""), json.loads(body)))

        def do_GET(self) -> None:
            self._send(403, b"{}")

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.send_header("x-amzn-RequestId", "stub")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    return Handler
