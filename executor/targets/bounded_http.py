"""One HTTP/1.1 request to an untrusted endpoint: bounded in time, in bytes and in reads, whatever the endpoint sends.

TLS uses buffers in memory. So handshakes, tickets and empty records count towards the same bounds as the answer. Single
bytes do not extend the time, nor do they cost a read each without end. h11 parses the answer: it refuses what is not
HTTP, and buffers only what it receives.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from common.limits import ANSWER_BYTES, ANSWER_PARTS, ENDPOINT_READS, HEAD_BYTES
from common.storage import outgoing
from common.storage.connections import Response

if TYPE_CHECKING:
    import h11

_READ_BYTES: Final = 16 * 1024

Done = TypeVar("Done")


class TooMuch(Exception):
    """The endpoint sent more than the connection takes."""


class BoundedConnection:
    """Sends and receives until `ends_at` (of `time.monotonic`), and accepts at most `max_bytes` in ENDPOINT_READS.

    Every method raises OSError if the connection fails, TimeoutError at `ends_at`, and TooMuch.
    """

    def __init__(self, plain: socket.socket, ends_at: float, max_bytes: int) -> None:
        self._plain = plain
        self._ends_at = ends_at
        self._remaining_bytes = max_bytes
        self._remaining_reads = ENDPOINT_READS
        self._tls: ssl.SSLObject | None = None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()

    def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        """Shake hands, and check that the certificate is the host's. Raises ssl.SSLCertVerificationError, too."""
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._until_done(self._tls.do_handshake)

    def send(self, data: bytes) -> None:
        """Send all of the data."""
        if self._tls is None:
            self._send_plain(data)
            return
        remaining = memoryview(data)
        while remaining:
            remaining = remaining[self._until_done(partial(self._tls.write, remaining)) :]

    def receive(self) -> bytes:
        """The received data, at most about 16 KiB; empty if the other side has ended the connection."""
        if self._tls is None:
            return self._receive_plain()
        with suppress(ssl.SSLEOFError):  # ended without a TLS close, as many servers do
            return self._until_done(self._read)
        return b""

    def _read(self) -> bytes:
        """All that can be decrypted. Raises ssl.SSLWantReadError if that is nothing."""
        assert self._tls
        parts = [self._tls.read(_READ_BYTES)]
        with suppress(ssl.SSLWantReadError, ssl.SSLEOFError):
            while parts[-1]:
                parts.append(self._tls.read(_READ_BYTES))
        return b"".join(parts)

    def _until_done(self, step: Callable[[], Done]) -> Done:
        """Repeat a step of TLS, and carry its bytes over the plain connection, until it is done."""
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                self._send_plain(self._outgoing.read())
                if received := self._receive_plain():
                    self._incoming.write(received)
                else:
                    self._incoming.write_eof()
            else:
                self._send_plain(self._outgoing.read())
                return result

    def _send_plain(self, data: bytes) -> None:
        if data:
            self._plain.settimeout(self._remaining_s())
            self._plain.sendall(data)  # the time limit covers all of the data

    def _receive_plain(self) -> bytes:
        if self._remaining_bytes <= 0 or self._remaining_reads <= 0:
            raise TooMuch
        self._remaining_reads -= 1
        self._plain.settimeout(self._remaining_s())
        received = self._plain.recv(min(_READ_BYTES, self._remaining_bytes))
        self._remaining_bytes -= len(received)
        return received

    def _remaining_s(self) -> float:
        remaining_s = self._ends_at - time.monotonic()
        if remaining_s <= 0:
            raise TimeoutError
        return remaining_s


class BadAnswer(Exception):
    """The received data is not a valid answer; this may be temporary."""


def exchange(
    connection: BoundedConnection, method: str, target: str, headers: Mapping[str, str], body: bytes
) -> Response:
    """Send a request and read the beginning of its answer. Raises BadAnswer, OSError, TooMuch."""
    import h11  # only jobs with HTTP endpoints need it

    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)
    request = h11.Request(method=method, target=target, headers=list(headers.items()))
    outgoing.note_sent()
    for part in (request, *([h11.Data(body)] if body else []), h11.EndOfMessage()):
        connection.send(http.send(part) or b"")
    try:
        return _answer(connection, http)
    except h11.RemoteProtocolError as error:
        raise BadAnswer(f"not an HTTP answer: {error}") from error


def _answer(connection: BoundedConnection, http: h11.Connection) -> Response:
    import h11

    head: h11.Response | None = None
    body = bytearray()
    for _ in range(ANSWER_PARTS):
        part = http.next_event()
        if part is h11.NEED_DATA:
            try:
                received = connection.receive()
            except TooMuch:
                break
            if not received and head is None:
                raise BadAnswer("the endpoint ended the connection without an answer")
            http.receive_data(received)
        elif isinstance(part, h11.Response):
            head = part
        elif isinstance(part, h11.Data):
            body += part.data
            if len(body) >= ANSWER_BYTES:
                break
        elif not isinstance(part, h11.InformationalResponse):
            break  # the body has ended
    if head is None:
        raise BadAnswer("no answer within the first parts and bytes that are read")
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    return Response(head.status_code, headers, bytes(body[:ANSWER_BYTES]))
