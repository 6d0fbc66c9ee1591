"""Kept connections to one endpoint of AWS, and HTTP/1.1 over them: a request costs a fifth of urllib3's processor time.

Only for AWS's own endpoints. Untrusted ones get `executor/targets/bounded_http.py`.
"""

from __future__ import annotations

import select
import socket
import ssl
import time
import weakref
from dataclasses import dataclass
from functools import cache
from typing import BinaryIO, Final
from urllib.parse import SplitResult

from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
    SSLError,
)

from common.storage import outgoing
from common.storage.steps import Steps

_MAX_LINE: Final = 16 * 1024
_MAX_HEADERS: Final = 100
# How much the system takes at once for a connection that carries nothing else.
_SENT_AT_ONCE: Final = 8 * 1024
# A read without any time would fail in another way than by its time limit.
_MIN_READ_S: Final = 0.001
# DynamoDB answers with at most 16 MB of items.
MAX_BYTES: Final = 64 * 1024 * 1024


class _Garbled(Exception):
    """The answer is not HTTP/1.1."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, headers by their names in lower case, and the body, or its beginning where that was asked for."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class _Connection:
    socket: socket.socket
    file: BinaryIO

    def is_usable(self) -> bool:
        """Whether nothing came since its last answer but TLS's own records: an endpoint that closes says so."""
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        if not poll.poll(0):
            return True
        self.socket.settimeout(0)
        try:
            self.socket.recv(1)
        except ssl.SSLWantReadError:  # the session tickets that follow a handshake
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        self.file.close()
        self.socket.close()


class Connections:
    """The connections to an endpoint, as many as there are requests at once. At most `most_idle` are kept."""

    def __init__(
        self, url: SplitResult, roots: str | None, *, connect_timeout_s: float, most_idle: int
    ) -> None:
        """`roots` is the file of the certificates to trust; it is read once. None: the endpoint has no TLS."""
        self._url = url.geturl()
        self._host = url.hostname or ""
        self._port = url.port or (443 if roots else 80)
        self._roots = roots
        self._connect_timeout_s = connect_timeout_s
        self._most_idle = most_idle
        self._idle: list[_Connection] = []
        weakref.finalize(self, _close_all, self._idle)

    def warm_up(self, count: int = 1) -> None:
        """Have so many connections open, if nothing else uses some. Raises as `exchange`."""
        taken: list[_Connection] = []
        try:
            taken.extend(self._take() for _ in range(count))
        finally:
            for connection in taken:
                self._give_back(connection)

    def exchange(self, request: bytes, read_timeout_s: float, most_bytes: int = MAX_BYTES) -> Steps[Answer]:
        """Send a request once, and return the answer; of the body of a success at most `most_bytes`.

        The first step sends it if a connection is kept and the request is short; the next one may connect otherwise.

        Raises botocore's own errors: EndpointConnectionError, ConnectTimeoutError, SSLError, ReadTimeoutError, and
        ConnectionClosedError, also for an answer that is not HTTP.
        """
        connection = self._kept() if len(request) <= _SENT_AT_ONCE else None
        if connection is None:
            yield None
            connection = self._take()
        is_reusable = False
        try:
            connection.socket.settimeout(read_timeout_s)
            outgoing.goes_out()
            connection.socket.sendall(request)
            ends_at = time.monotonic() + read_timeout_s
            yield connection.socket
            connection.socket.settimeout(max(_MIN_READ_S, ends_at - time.monotonic()))
            answer, is_reusable = _read(connection.file, most_bytes)
        except TimeoutError as error:
            raise ReadTimeoutError(endpoint_url=self._url, error=error) from error
        except (OSError, _Garbled) as error:
            raise ConnectionClosedError(endpoint_url=self._url, error=error) from error
        finally:
            if is_reusable:
                self._give_back(connection)
            else:
                connection.close()
        return answer

    def _take(self) -> _Connection:
        return self._kept() or self._connected()

    def _kept(self) -> _Connection | None:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread took the last one
                break
            if connection.is_usable():
                return connection
            connection.close()
        return None

    def _give_back(self, connection: _Connection) -> None:
        if len(self._idle) < self._most_idle:
            self._idle.append(connection)
        else:
            connection.close()

    def _connected(self) -> _Connection:
        try:
            plain = socket.create_connection((self._host, self._port), self._connect_timeout_s)
        except TimeoutError as error:
            raise ConnectTimeoutError(endpoint_url=self._url, error=error) from error
        except OSError as error:
            raise EndpointConnectionError(endpoint_url=self._url, error=error) from error
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self._roots:
                plain = _trusting(self._roots).wrap_socket(plain, server_hostname=self._host)
        except TimeoutError as error:
            plain.close()
            raise ConnectTimeoutError(endpoint_url=self._url, error=error) from error
        except OSError as error:
            plain.close()
            raise SSLError(endpoint_url=self._url, error=error) from error
        return _Connection(plain, plain.makefile("rb"))


def _close_all(connections: list[_Connection]) -> None:
    for connection in connections:
        connection.close()


@cache
def _trusting(roots: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks certificate and name
    context.load_verify_locations(roots)
    return context


def _read(file: BinaryIO, most_bytes: int) -> tuple[Answer, bool]:
    """The next answer, and whether the connection can be used again. Raises _Garbled, OSError."""
    status = 100
    while 100 <= status < 200:  # 1xx come before the answer
        status = _status(_line(file))
        headers = _headers(file)
    if status >= 300:
        most_bytes = MAX_BYTES
    if status == 204:
        return Answer(status, headers, b""), headers.get("connection", "").lower() != "close"
    if headers.get("transfer-encoding", "").lower() == "chunked":
        body, is_complete = _chunks(file, most_bytes)
    elif (length := headers.get("content-length")) is not None:
        body = _exactly(file, min(_number(length, 10), most_bytes))
        is_complete = len(body) == int(length)
    else:  # the body ends with the connection
        body, is_complete = file.read(most_bytes), False
    return Answer(status, headers, body), is_complete and headers.get("connection", "").lower() != "close"


def _status(line: bytes) -> int:
    version, _, rest = line.partition(b" ")
    if version != b"HTTP/1.1":
        raise _Garbled(f"not HTTP/1.1: {line[:100]!r}")
    return _number(rest[:3].decode("latin-1"), 10)


def _headers(file: BinaryIO) -> dict[str, str]:
    found: dict[str, str] = {}
    for _ in range(_MAX_HEADERS):
        if not (line := _line(file)):
            return found
        name, _, value = line.decode("latin-1").partition(":")
        found[name.strip().lower()] = value.strip()
    raise _Garbled("too many headers")


def _chunks(file: BinaryIO, most_bytes: int) -> tuple[bytes, bool]:
    """A chunked body, and whether it was read to its end."""
    parts: list[bytes] = []
    left = most_bytes
    while size := _number(_line(file).partition(b";")[0].decode("latin-1").strip(), 16):
        parts.append(_exactly(file, min(size, left)))
        left -= size
        if left < 0:
            return b"".join(parts), False
        _line(file)
    _headers(file)  # trailers
    return b"".join(parts), True


def _exactly(file: BinaryIO, size: int) -> bytes:
    if len(body := file.read(size)) < size:
        raise _Garbled("the answer breaks off")
    return body


def _line(file: BinaryIO) -> bytes:
    line = file.readline(_MAX_LINE)
    if not line.endswith(b"\n"):
        raise _Garbled("the answer breaks off, or has a line that is too long")
    return line.rstrip(b"\r\n")


def _number(text: str, base: int) -> int:
    # int() alone would accept signs, spaces and underscores.
    if not text.isascii() or not text.isalnum():
        raise _Garbled(f"not a number: {text[:20]!r}")
    try:
        return int(text, base)
    except ValueError as error:
        raise _Garbled(str(error)) from error
