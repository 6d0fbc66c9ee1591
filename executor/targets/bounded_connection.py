"""A connection to an untrusted endpoint: bounded in time, in bytes and in reads, whatever is sent.

TLS uses buffers in memory. So handshakes, tickets and empty records count towards the same bounds as the answer. Single
bytes do not extend the time, nor do they cost a read each without end.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

_READ_BYTES = 16 * 1024
# Each read costs processor time, however few bytes it returns.
MAX_READS = 4_096

Done = TypeVar("Done")


class TooMuch(Exception):
    """The endpoint sent more than the connection takes."""


class BoundedConnection:
    """Sends and receives until `ends_at` (of `time.monotonic`), and accepts at most `most_bytes` in MAX_READS.

    Every method raises OSError if the connection fails, TimeoutError at `ends_at`, and TooMuch.
    """

    def __init__(self, plain: socket.socket, ends_at: float, most_bytes: int) -> None:
        self._plain = plain
        self._ends_at = ends_at
        self._bytes_left = most_bytes
        self._reads_left = MAX_READS
        self._tls: ssl.SSLObject | None = None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()

    def start_tls(self, context: ssl.SSLContext, host: str) -> None:
        """Shake hands, and check that the certificate is the host's. Raises ssl.SSLCertVerificationError, too."""
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=host)
        self._until_done(self._tls.do_handshake)

    def send(self, data: bytes) -> None:
        """Send all of it."""
        if self._tls is None:
            self._send_plain(data)
            return
        left = memoryview(data)
        while left:
            left = left[self._until_done(partial(self._tls.write, left)) :]

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
            self._plain.settimeout(self._left_s())
            self._plain.sendall(data)  # the time limit covers all of the data

    def _receive_plain(self) -> bytes:
        if self._bytes_left <= 0 or self._reads_left <= 0:
            raise TooMuch
        self._reads_left -= 1
        self._plain.settimeout(self._left_s())
        received = self._plain.recv(min(_READ_BYTES, self._bytes_left))
        self._bytes_left -= len(received)
        return received

    def _left_s(self) -> float:
        left_s = self._ends_at - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s
