"""What a hostile endpoint may send: raw bytes from a seeded generator, and a server that sends them.

Most are almost HTTP: the parts of an answer, put together wrongly.
"""

from __future__ import annotations

import contextlib
import gzip
import random
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

# The pieces to send, each after a wait.
Script = list[tuple[float, bytes]]

_NUMBERS = [
    *(
        b"-1",
        b"-0",
        b"+5",
        b"0x10",
        b"1_0",
        b"0",
        b"5",
        b"ffffffffffffffffffff",
        b"1e9",
        b" 7 ",
        b"",
        b"\xb2",
    ),
    *(b"9" * 19, b"9" * 5_000, b"00000005", b"5, 5", b"5, 6", b"nan", b"inf", b"1e130"),
]
_WORDS = [
    b"chunked",
    b"gzip",
    b"identity",
    b"gzip, chunked",
    b"chunked, chunked",
    b"deflate",
    b"\xff",
    b"x" * 70_000,
]
_WISHES = [
    b'{"minute8": {"retry_after_s": 1e130}}',
    b'{"minute8": {"retry_after_s": -1e999}}',
    b'{"minute8": {"retry_after_s": NaN}}',
    b'{"minute8": {"retry_after_s": ' + b"9" * 5_000 + b"}}",
    b'{"minute8": {"permanent": true, "error": "\\ud800\\u0000"}}',
    b'{"minute8": {"permanent": true, "error": ' + b"[" * 990 + b"]" * 990 + b"}}",
    b'{"minute8": ' + b'{"a":' * 60_000,
]


_CONTENTS = [b"ok", b"", b"ok", b"y" * 200_000, gzip.compress(b"0" * 10_000_000), *_WISHES]
_DATES = [b"Fri, 99 Nov 2026 03:00:00 GMT", b"Fri, 20 Nov 99999 03:00:00 +9999"]
_CODES = [b"204", b"304", b"404", b"429", b"500", b"503", b"099", b"-1", b"999", b"2000"]


def script(rng: random.Random) -> Script:
    """One answer."""
    body, is_chunked = _body(rng)
    framing = [b"Transfer-Encoding: chunked\r\n"] if is_chunked else []
    headers = [*framing, *[_header(rng) for _ in range(rng.choice([0, 0, 0, 1, 2, 150, 3_000]))]]
    interims = [_interim(rng) for _ in range(rng.choice([0, 0, 0, 0, 0, 1, 3, 5_000]))]
    parts = [*interims, _status(rng) + b"".join(headers) + b"\r\n", *body]
    if rng.random() < 0.2:
        parts = [_mutated(rng, part) for part in parts]
    if rng.random() < 0.1:
        parts.insert(rng.randrange(len(parts) + 1), rng.randbytes(rng.choice([1, 100, 100_000])))
    pause = rng.choice([0.0] * 7 + [0.001, 0.05])
    return [(pause, part) for part in parts]


def _interim(rng: random.Random) -> bytes:
    return b"HTTP/1.1 %d x\r\n%s\r\n" % (
        rng.choice([100, 102, 103, 199, 101]),
        _header(rng) * rng.randrange(2),
    )


def _status(rng: random.Random) -> bytes:
    version = rng.choice([b"HTTP/1.1"] * 30 + [b"HTTP/1.0", b"HTTP/2", b"http/1.1", b"", b"ICY"])
    reason = rng.choice([b" OK"] * 10 + [b"", b" \xff\x00", b" " + b"y" * 40_000])
    return version + b" " + rng.choice([b"200"] * 20 + _CODES) + reason + b"\r\n"


def _header(rng: random.Random) -> bytes:
    name, value = rng.choice(
        [
            (b"Content-Length", rng.choice(_NUMBERS)),
            (b"Transfer-Encoding", rng.choice(_WORDS)),
            (b"Content-Encoding", rng.choice(_WORDS)),
            (b"Retry-After", rng.choice(_NUMBERS + _DATES)),
            (b"X-Request-Id", rng.randbytes(20)),
            (b"Location", b"http://" + rng.randbytes(5)),
            (rng.randbytes(3), rng.randbytes(3)),
            (b"a", b"b\r\n  folded"),
        ]
    )
    colon = rng.choice([b": "] * 10 + [b":", b" : ", b""])
    return name + colon + value + rng.choice([b"\r\n"] * 10 + [b"\n", b"\r"])


def _body(rng: random.Random) -> tuple[list[bytes], bool]:
    """The pieces of a body, and whether they are chunks."""
    content = rng.choice(_CONTENTS)
    if rng.random() < 0.5:
        return [content] * rng.choice([1, 1, 1, 20]), False
    chunks = []
    for _ in range(rng.choice([1, 2, 10])):
        size = rng.choice([b"%x" % len(content)] * 20 + _NUMBERS)
        chunks.append(size + rng.choice([b"", b";a=b", b";" + b"z" * 20_000]) + b"\r\n" + content + b"\r\n")
    if rng.random() < 0.2:
        chunks.append(b"1\r\ny\r\n" * 30_000)
    trailers = [_header(rng) for _ in range(rng.choice([0, 0, 1, 2_000]))]
    return [*chunks, b"0\r\n", *trailers, b"\r\n"], True


def _mutated(rng: random.Random, part: bytes) -> bytes:
    changed = bytearray(part)
    for _ in range(rng.choice([1, 3])):
        if not changed:
            break
        at = rng.randrange(len(changed))
        changed[at : at + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
    return bytes(changed)


@dataclass
class RawServer:
    """Sends `script` to each client, and then ends the connection as `ends` says."""

    port: int = 0
    script: Script = field(default_factory=list)
    ends: Callable[[socket.socket], None] = lambda connection: None


@contextmanager
def sending(tls: ssl.SSLContext | None = None) -> Iterator[RawServer]:
    """A server during the block; with `tls` it uses TLS."""
    server = RawServer()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server.port = listening.getsockname()[1]
        threading.Thread(target=_serve, args=(server, listening, tls), daemon=True).start()
        try:
            yield server
        finally:
            listening.shutdown(socket.SHUT_RDWR)


def _serve(server: RawServer, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return
        arguments = (connection, list(server.script), server.ends, tls)
        threading.Thread(target=_answer, args=arguments, daemon=True).start()


def _answer(
    connection: socket.socket,
    script: Script,
    ends: Callable[[socket.socket], None],
    tls: ssl.SSLContext | None,
) -> None:
    with contextlib.suppress(OSError, ValueError):
        connection.settimeout(5)
        if tls:
            connection = tls.wrap_socket(connection, server_side=True)
        _read_request(connection)
        for pause, part in script:
            time.sleep(pause)
            connection.sendall(part)
        script.clear()  # a hanging connection must not hold memory
        ends(connection)
    connection.close()


def _read_request(connection: socket.socket) -> None:
    """Read the whole request: unread bytes would end the connection before the answer arrives."""
    request = connection.recv(65_536)
    while request.startswith((b"POST ", b"GET ")) and b"\r\n\r\n" not in request:
        request += connection.recv(65_536)
    head, _, body = request.partition(b"\r\n\r\n")
    lengths = [line[15:] for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    remaining_bytes = int(lengths[0]) - len(body) if lengths else 0
    while remaining_bytes > 0 and (more := connection.recv(65_536)):
        remaining_bytes -= len(more)
