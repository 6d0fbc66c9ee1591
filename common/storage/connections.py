"""Kept connections to an endpoint of AWS, and the HTTP/1.1 answers that httptools' parser reads from them.

Lambda freezes an environment between two invocations, and purges the connections of one that stays frozen. A connection
that was idle for long is not used, and one that fails before it answers is replaced.
https://docs.aws.amazon.com/lambda/latest/dg/best-practices.html
"""

from __future__ import annotations

import errno
import re
import select
import socket
import ssl
import time
import weakref
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import Final
from urllib.parse import SplitResult

import httptools
from botocore.exceptions import (
    BotoCoreError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
    SSLError,
)

from common.storage import outgoing
from common.storage.outgoing import Steps

# An idle connection of a frozen environment is said to be purged after 350 s, and endpoints close some earlier.
# AWS's SDK for Java keeps one for 60 s. A job that runs each minute opens new ones.
MAX_IDLE_S: Final = 30.0
# How long sent bytes may stay without an acknowledgement. Four are lost in a row before that.
_UNACKNOWLEDGED_MS: Final = 3000
# DynamoDB answers with at most 16 MB of items.
MAX_BYTES: Final = 64 * 1024 * 1024
_READ_BYTES: Final = 64 * 1024
# The system takes so much without waiting, for a connection that carries nothing else.
SEND_BUFFER_BYTES: Final = 8 * 1024
# A read without any time would fail in another way than by its time limit.
_MIN_READ_S: Final = 0.001
# A connection that is made ready for later is still young enough when it is used.
_READY_IDLE_S: Final = MAX_IDLE_S / 2
# A purged connection is reset within a round trip. After this time a function may have begun its work.
_RESET_S: Final = 1.0
# How long a kept connection may be silent before the request is made on a new one.
_SILENT_S: Final = 2.0
# Status lines and headers, those of interim answers (1xx) included.
_MAX_HEAD_LINES: Final = 100
_MAX_LINE_BYTES: Final = 16 * 1024
_MAX_HEAD_BYTES: Final = 256 * 1024
# The head of a final answer with a body of its own length: status line, and headers of visible ASCII.
_PLAIN_HEAD: Final = re.compile(
    rb"HTTP/1\.1 ([2-5]\d\d)(?<!204|304)(?: [\t -~]{0,200})?\r\n"
    rb"((?:[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}:[\t -~]{0,4000}\r\n){1,50})\r\n"
)


@dataclass(frozen=True, slots=True)
class Response:
    """Status, headers by their names in lower case, and the body, or its beginning if no more was requested."""

    status: int
    headers: dict[str, str]
    body: bytes

    def up_to(self, max_bytes: int) -> Response:
        """The same with at most so many bytes of the body."""
        return self if len(self.body) <= max_bytes else replace(self, body=self.body[:max_bytes])


class NotHttp(Exception):
    """The answer is not HTTP/1.1, or breaks off."""


def whole_answer(received: bytes) -> tuple[Response, bool] | None:
    """An answer that came in one piece, and whether its connection stays open. Pure.

    None: `Answer` reads it, since it is cut off, is not plain, has no length of its own, or more follows it.
    """
    if not (head := _PLAIN_HEAD.match(received)):
        return None
    lines = [line.partition(":") for line in head[2].decode("latin-1").split("\r\n")[:-1]]
    headers = {name.lower(): value.strip() for name, _, value in lines}
    is_plain = len(headers) == len(lines) and "transfer-encoding" not in headers
    if not is_plain or headers.get("content-length") != str(len(received) - head.end()):
        return None
    response = Response(int(head[1]), headers, received[head.end() :])
    return response, headers.get("connection", "keep-alive").lower() == "keep-alive"


class Answer:
    """The answer that httptools' parser fills by its callbacks. Interim answers (1xx) before it are dropped."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._body: list[bytes] = []
        self.has_head = False
        self._head_bytes = 0
        self._head_lines = 0
        self.body_bytes = 0
        self.status = 0
        self.is_complete = False
        # Whether bytes came that do not belong to the answer.
        self.is_followed = False
        self._stays_open = False

    def feed(self, received: bytes) -> None:
        """Take in bytes of the connection. No bytes: the service has closed the connection. Raises NotHttp."""
        if not received:
            if not self.has_head or self._has_length():
                raise NotHttp("the answer breaks off")
            self.is_complete = True  # without a length, the body ends with the connection
            return
        if not self.has_head:
            self._head_bytes += len(received)
        try:
            self._parser.feed_data(received)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self.is_complete:
                raise NotHttp(f"the answer is not HTTP: {error}") from error
            self.is_followed = True
        if self.is_complete and not received.endswith(self._end()):
            self.is_followed = True  # the parser passes over empty lines
        if not self.has_head and self._head_bytes > _MAX_HEAD_BYTES:
            raise NotHttp("too many bytes of headers, or of interim answers")

    def response(self) -> Response:
        """What has come."""
        return Response(self.status, self._headers, b"".join(self._body))

    def keeps_alive(self) -> bool:
        """Whether the connection can be used again."""
        return self.is_complete and not self.is_followed and self._has_length() and self._stays_open

    def _end(self) -> bytes:
        """The last bytes of the answer."""
        return self._body[-1] if self._body and "content-length" in self._headers else b"\n"

    def _count_line(self, line: bytes) -> None:
        self._head_lines += 1
        if self._head_lines > _MAX_HEAD_LINES or len(line) > _MAX_LINE_BYTES:
            raise NotHttp("too many headers or interim answers, or a header that is too long")

    def _has_length(self) -> bool:
        return "content-length" in self._headers or "transfer-encoding" in self._headers or self.status == 204

    def on_message_begin(self) -> None:
        self.is_followed = self.is_complete
        self._count_line(b"")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_line(value)
        if not self.is_complete:
            self._headers[name.decode("latin-1").lower()] = value.decode("latin-1").strip()

    def on_headers_complete(self) -> None:
        if self.is_complete:
            return
        self.status = self._parser.get_status_code()
        if self._parser.get_http_version() != "1.1":
            raise NotHttp(f"HTTP of version {self._parser.get_http_version()}")
        if self.status >= 200:
            self.has_head = True

    def on_body(self, body: bytes) -> None:
        if not self.is_complete:
            self._body.append(body)
            self.body_bytes += len(body)

    def on_message_complete(self) -> None:
        if self.status >= 200:
            self.is_complete = True
            self._stays_open = self._parser.should_keep_alive()
        else:
            self._headers.clear()


class Repeat(Enum):
    """Whether a request is made once more on a new connection after a kept one failed before any byte of an answer."""

    NEVER = "never"
    # Only if the endpoint has most likely not seen it: the connection broke at once, or nothing was acknowledged.
    UNSEEN = "unseen"
    # Also if the connection is silent: for reads, and for writes that may be made twice.
    ALWAYS = "always"


class LastUse:
    """An instant on two clocks. Each of them has been seen to lose time in a frozen or restored environment.

    The monotonic clock stops in a virtual machine that is restored from a snapshot. The wall clock may be set back.
    """

    def __init__(self) -> None:
        self._wall_at, self._monotonic_at = time.time(), time.monotonic()

    def is_within(self, seconds: float) -> bool:
        """Whether it is at most so many seconds ago by both clocks."""
        return max(time.time() - self._wall_at, time.monotonic() - self._monotonic_at) <= seconds


def socket_options() -> list[tuple[int, int, int]]:
    """The options of a connection to AWS, in the order of `setsockopt`."""
    options = [
        (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    ]
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        options.append((socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNACKNOWLEDGED_MS))
    return options


class _Connection:
    def __init__(self, connected: socket.socket) -> None:
        self.socket = connected
        self._poll = select.poll()
        self._poll.register(connected, select.POLLIN)
        self.last_use = LastUse()
        # Whether a byte has come since the last request.
        self.has_answered = False

    def is_usable(self) -> bool:
        """Whether nothing but TLS's own records came since the last answer. An endpoint that closes sends its end."""
        if not self._poll.poll(0):  # costs a fifth of an attempt to read
            return True
        self.socket.settimeout(0)
        try:
            self.socket.recv(1)
        except (
            BlockingIOError,
            ssl.SSLWantReadError,
        ):  # nothing, or the session tickets that follow a handshake
            return True
        except OSError:
            return False
        return False

    def send(self, request: bytes, timeout_s: float) -> None:
        """Send a whole request. Raises OSError."""
        self.has_answered = False
        self.socket.settimeout(timeout_s)
        outgoing.note_sent()
        self.socket.sendall(request)

    def receive(self, max_bytes: int, first_byte_s: float, read_timeout_s: float) -> tuple[Response, bool]:
        """The next answer, and whether the connection can be used again. Raises NotHttp, OSError.

        Of a failure the whole body is read: botocore reads its error from it.
        """
        self.socket.settimeout(max(_MIN_READ_S, first_byte_s))
        received = self.socket.recv(_READ_BYTES)
        self.has_answered = bool(received)
        if parsed_answer := whole_answer(received):
            self.last_use = LastUse()
            return parsed_answer[0].up_to(
                max_bytes if parsed_answer[0].status < 300 else MAX_BYTES
            ), parsed_answer[1]
        answer = Answer()
        answer.feed(received)
        self.socket.settimeout(max(_MIN_READ_S, read_timeout_s))
        while not answer.is_complete:
            if answer.has_head and answer.body_bytes >= (max_bytes if answer.status < 300 else MAX_BYTES):
                return answer.response().up_to(max_bytes), False
            answer.feed(self.socket.recv(_READ_BYTES))
        self.last_use = LastUse()
        response = answer.response().up_to(max_bytes if answer.status < 300 else MAX_BYTES)
        return response, answer.keeps_alive()

    def close(self) -> None:
        self.socket.close()


class Connections:
    """The connections to an endpoint, as many as there are requests at once. At most `max_idle` are kept."""

    def __init__(
        self, url: SplitResult, roots: str | None, *, connect_timeout_s: float, max_idle: int
    ) -> None:
        """`roots` is the file of the certificates to trust; it is read once. None: the endpoint has no TLS."""
        self._url = url.geturl()
        self._host = url.hostname or ""
        self._port = url.port or (443 if roots else 80)
        self._roots = roots
        self._connect_timeout_s = connect_timeout_s
        self._max_idle = max_idle
        self._idle: list[_Connection] = []
        weakref.finalize(self, _close_all, self._idle)

    def warm_up(self, count: int = 1) -> None:
        """Have so many connections open that stay young enough for a while. Raises as `exchange`."""
        opened: list[_Connection] = []
        try:
            opened.extend(self._kept(_READY_IDLE_S) or self._connected() for _ in range(count))
        finally:
            for connection in opened:
                self._give_back(connection)

    def exchange(
        self,
        request: bytes,
        read_timeout_s: float,
        max_bytes: int = MAX_BYTES,
        repeat: Repeat = Repeat.NEVER,
    ) -> Steps[Response]:
        """Send a request, and return the answer; of the body of a success at most `max_bytes`.

        The first step sends it if a connection is kept and the request is short; the next one may connect otherwise.

        Raises botocore's own errors: EndpointConnectionError, ConnectTimeoutError, SSLError, ReadTimeoutError, and
        ConnectionClosedError, also for an answer that is not HTTP.
        """
        kept = self._kept() if len(request) <= SEND_BUFFER_BYTES else None
        if kept is None:
            yield None
            kept = self._kept()
        if kept is not None:
            sent_at = time.monotonic()
            first_byte_s = min(read_timeout_s, _SILENT_S) if repeat is Repeat.ALWAYS else read_timeout_s
            try:
                return (yield from self._once(kept, request, first_byte_s, read_timeout_s, max_bytes))
            except BotoCoreError as error:
                if kept.has_answered or not _is_repeated(repeat, error, time.monotonic() - sent_at):
                    raise
            _close_all(self._idle)  # they were idle across the same freeze
            yield None
        fresh = self._connected()
        return (yield from self._once(fresh, request, read_timeout_s, read_timeout_s, max_bytes))

    def _once(
        self,
        connection: _Connection,
        request: bytes,
        first_byte_s: float,
        read_timeout_s: float,
        max_bytes: int,
    ) -> Steps[Response]:
        is_reusable = False
        try:
            connection.send(request, read_timeout_s)
            sent_at = time.monotonic()
            yield connection.socket
            waited_s = time.monotonic() - sent_at
            response, is_reusable = connection.receive(
                max_bytes, first_byte_s - waited_s, read_timeout_s - waited_s
            )
        except (OSError, NotHttp) as error:
            if isinstance(error, TimeoutError) and error.errno != errno.ETIMEDOUT:
                raise ReadTimeoutError(endpoint_url=self._url, error=error) from error
            raise ConnectionClosedError(endpoint_url=self._url, error=error) from error
        finally:
            if is_reusable:
                self._give_back(connection)
            else:
                connection.close()
        return response

    def _kept(self, max_idle_s: float = MAX_IDLE_S) -> _Connection | None:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # another thread was faster
                break
            if connection.last_use.is_within(max_idle_s) and connection.is_usable():
                return connection
            connection.close()
        return None

    def _give_back(self, connection: _Connection) -> None:
        if len(self._idle) < self._max_idle:
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
            for option in socket_options():
                plain.setsockopt(*option)
            if self._roots:
                plain = _trusting(self._roots).wrap_socket(plain, server_hostname=self._host)
        except TimeoutError as error:
            plain.close()
            raise ConnectTimeoutError(endpoint_url=self._url, error=error) from error
        except OSError as error:
            plain.close()
            raise SSLError(endpoint_url=self._url, error=error) from error
        return _Connection(plain)


def _is_repeated(repeat: Repeat, error: BotoCoreError, after_s: float) -> bool:
    if repeat is Repeat.ALWAYS:
        return True
    if repeat is Repeat.NEVER or not isinstance(error, ConnectionClosedError):
        return False
    is_unacknowledged = getattr(error.__cause__, "errno", None) == errno.ETIMEDOUT
    return after_s < _RESET_S or is_unacknowledged


def _close_all(connections: list[_Connection]) -> None:
    while connections:
        try:
            connections.pop().close()
        except IndexError:  # another thread was faster
            return


@cache
def _trusting(roots: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks certificate and name
    context.load_verify_locations(roots)
    return context
