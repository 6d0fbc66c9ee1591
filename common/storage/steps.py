"""Work that stops where it would wait, so that one thread can have several requests under way.

Each step ends with the socket whose answer the next one reads, or with None: what comes next may take long otherwise.
"""

from __future__ import annotations

from collections.abc import Generator
from socket import socket
from typing import TypeAlias, TypeVar

Result = TypeVar("Result")
Steps: TypeAlias = Generator[socket | None, None, Result]


def at_once(steps: Steps[Result]) -> Result:
    """Do all steps in this thread, which waits where they do. Raises what they raise."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
