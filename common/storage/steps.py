"""Work in steps: it pauses where it would wait, so one thread can have several requests in flight.

A step yields the socket whose answer the next step reads. It yields None if the next step may block for another reason.
"""

from __future__ import annotations

from collections.abc import Generator
from socket import socket
from typing import TypeAlias, TypeVar

Result = TypeVar("Result")
Steps: TypeAlias = Generator[socket | None, None, Result]


def at_once(steps: Steps[Result]) -> Result:
    """Run all steps in this thread. Blocks where they wait, and raises what they raise."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
