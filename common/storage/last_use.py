"""How long a connection was idle, and the options of every connection to AWS."""

from __future__ import annotations

import socket
import time
from typing import Final

# An idle connection of a frozen environment is said to be purged after 350 s, and endpoints close some earlier.
# AWS's SDK for Java keeps one for 60 s. A job that runs each minute opens new ones.
MAX_IDLE_S: Final = 30.0
# How long sent bytes may stay without an acknowledgement. Four are lost in a row before that.
_UNACKNOWLEDGED_MS: Final = 3000


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
