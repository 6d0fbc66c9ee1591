"""An endpoint of AWS on this machine, which answers as a test says."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Reply = bytes | Callable[[socket.socket], bytes]


class Endpoint:
    """Takes whole requests, and answers each with the next of `replies`, the last one for ever.

    It closes the connection behind an empty reply, and behind each if `closes`.
    """

    def __init__(self) -> None:
        self.replies: list[Reply] = [OK]
        self.closes = False
        self.requests: list[bytes] = []
        self.connections = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._server.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    def _talk(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while request := _request(connection):
                self.requests.append(request)
                reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
                connection.sendall(answer := reply if isinstance(reply, bytes) else reply(connection))
                if not answer or self.closes or b"Connection: close" in answer:
                    return


def _request(connection: socket.socket) -> bytes:
    received = b""
    while b"\r\n\r\n" not in received or len(received.partition(b"\r\n\r\n")[2]) < _length(received):
        if not (part := connection.recv(65536)):
            return b""
        received += part
    return received


def _length(request: bytes) -> int:
    return int(request.partition(b"\r\nContent-Length: ")[2].partition(b"\r\n")[0])


def answer(status: int, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def refused(code: str, status: int = 400, **more: Any) -> bytes:
    return answer(status, json.dumps({"__type": f"x#{code}", "message": "m", **more}).encode())
