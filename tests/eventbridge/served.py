"""Our API on a port, for clients that are programs of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.api.calls import Office, send


@contextmanager
def served(office: Office) -> Iterator[str]:
    """The address of the office's API, which lives at the time of this machine. Its requests come one after another."""
    clock, at_once = office.world.clock, threading.Lock()
    clock.move_to(time.time())

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            with at_once:
                clock.move_to(max(clock.now(), time.time()))
                answer = send(self.command, self.path, dict(self.headers), body or None)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.content)))
            self.end_headers()
            self.wfile.write(answer.content)

        do_POST = do_PUT = do_DELETE = do_GET

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
