"""A function's process with its memory's share of a processor, and the AWS that it calls over TLS.

That AWS is in this process, which has no quota.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from scripts import build_layer
from scripts.embedded.strict import certificate
from scripts.embedded.strict.quota import Quota

ROOT = Path(__file__).resolve().parents[2]


class TlsServer:
    """Serves AWS's JSON protocol. `answer` gets the operation and the request; it returns a status and a body."""

    def __init__(self, directory: Path, answer: Callable[[str, dict[str, Any]], tuple[int, bytes]]) -> None:
        bundle, context = certificate.make(directory)
        self.connections = 0
        tls = self

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def process_request(self, request: Any, client_address: Any) -> None:
                tls.connections += 1
                super().process_request(request, client_address)

            def handle_error(self, *_: object) -> None: ...

        self._server = Server(("127.0.0.1", 0), _handler(answer))
        self._server.socket = context.wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.environment = {
            "PATH": os.environ["PATH"],
            "AWS_ENDPOINT_URL": f"https://localhost:{self._server.server_port}",
            "AWS_CA_BUNDLE": str(bundle),
        }

    def __enter__(self) -> TlsServer:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(answer: Callable[[str, dict[str, Any]], tuple[int, bytes]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            operation = self.headers.get("x-amz-target", "").partition(".")[2] or "Invoke"
            self._send(*answer(operation, json.loads(body)))

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


class Worker:
    """The process; `init_s` is how long its init phase took."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.init_s: float = self._read()["init_s"]

    def handle(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Let it handle an event: its `answer`, and the durations `took_s` and `cpu_s`."""
        assert self._process.stdin
        self._process.stdin.write(json.dumps(event) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


@contextmanager
def worker(kind: str, environment: Mapping[str, str], memory_mb: int) -> Iterator[Worker]:
    """A process after its init at full speed, with the share of this memory from then on. Raises QuotaError.

    `kind` is one of strict_worker.py. Ours import from their layer, the bare one from the whole boto3, as Lambda
    provides it.
    """
    layer, _ = build_layer.build("local", "layer")
    paths = [str(ROOT)] if kind == "bare" else [str(ROOT), str(layer / "python")]
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "scripts" / "benchmarks" / "strict_worker.py"), kind],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": os.pathsep.join(paths)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    quota = Quota(f"{memory_mb}", memory_mb)
    try:
        quota.add(process.pid)
        started = Worker(process)
        quota.limit()
        yield started
    finally:
        process.kill()
        process.communicate()
        quota.remove()
