"""A connection to an endpoint that sends single bytes."""

from __future__ import annotations

import math
import socket
import ssl
from collections.abc import Callable
from itertools import chain, repeat
from typing import Any

import pytest

from executor.targets.bounded_http import BoundedConnection, TooMuch

ENDPOINT_READS = 4_096

# The head of a TLS handshake record of 16 KiB.
RECORD = b"\x16\x03\x03\x40\x00"


class Dripping:
    """A socket that receives one byte each time."""

    def __init__(self, first: bytes) -> None:
        self._bytes = chain(first, repeat(0))
        self.reads = 0

    def recv(self, most: int) -> bytes:
        self.reads += 1
        return bytes([next(self._bytes)])

    def settimeout(self, seconds: float) -> None:
        pass

    def sendall(self, data: bytes) -> None:
        pass


def forever(connection: BoundedConnection) -> None:
    while True:
        connection.receive()


def handshake(connection: BoundedConnection) -> None:
    connection.start_tls(ssl.create_default_context(), "example.com")


@pytest.mark.parametrize("step", [forever, handshake])
def test_single_bytes_end_after_so_many_reads(step: Callable[[BoundedConnection], None]) -> None:
    dripping: Any = Dripping(RECORD)
    plain: socket.socket = dripping
    with pytest.raises(TooMuch):
        step(BoundedConnection(plain, math.inf, 512 * 1024))
    assert dripping.reads == ENDPOINT_READS
