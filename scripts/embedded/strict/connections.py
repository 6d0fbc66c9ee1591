"""Purged connections: the first request over one that was idle for long meets a reset, as after Lambda's freeze.

AWS: "Lambda purges idle connections over time. Attempting to reuse an idle connection when invoking a function will
result in a connection error." The deployment tool's process is never frozen, so its connections stay.
https://docs.aws.amazon.com/lambda/latest/dg/best-practices.html
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from typing import Any, Final

# AWS names no time. Short, so that it happens often; above what httpx keeps a connection for.
PURGED_AFTER_S: Final = 10.0
# In the requests of osls. The functions, and what else is in Python, use botocore or their own client.
_DEPLOYMENT_TOOL: Final = b"aws-sdk-js"


def install(tcp_server: Any, purged_after_s: float = PURGED_AFTER_S) -> None:
    """Into the class `TCPServer` of hypercorn, which serves one connection."""
    init = tcp_server.__init__

    def with_purge(server: Any, *arguments: Any) -> None:
        *parts, reader, writer = arguments
        init(server, *parts, Purged(reader, writer, purged_after_s), writer)

    tcp_server.__init__ = with_purge


class Purged:
    """The reader of a connection; it resets one that was idle for too long when bytes come."""

    def __init__(
        self, reader: Any, writer: Any, purged_after_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._reader, self._writer, self._clock = reader, writer, clock
        self._purged_after_s = purged_after_s
        # The instant of the last answer. None: no answer has gone out since the last request.
        self._idle_since: float | None = None
        self._write, writer.write = writer.write, self._noted

    def _noted(self, data: bytes) -> None:
        self._idle_since = self._clock()
        self._write(data)

    def at_eof(self) -> bool:
        return bool(self._reader.at_eof())

    async def read(self, count: int) -> bytes:
        """The next bytes; none if the connection was purged."""
        data: bytes = await self._reader.read(count)
        since, self._idle_since = self._idle_since, None
        is_old = since is not None and self._clock() - since > self._purged_after_s
        if is_old and data and _DEPLOYMENT_TOOL not in data:
            connected = self._writer.get_extra_info("socket")
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self._writer.transport.abort()
            raise ConnectionResetError("the connection was purged")
        return data
