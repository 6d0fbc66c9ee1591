"""One HTTP/1.1 request and the beginning of its answer, over a bounded connection.

h11 parses the answer: it refuses what is not HTTP, and buffers only what it receives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from common.storage import outgoing
from executor.targets.bounded_connection import BoundedConnection, TooMuch

if TYPE_CHECKING:
    import h11

# How much of a body is read.
ANSWER_BYTES: Final = 64 * 1024
_HEAD_BYTES: Final = 32 * 1024
# The most parse events: bodies of one-byte chunks and floods of `100 Continue` cost processor time.
_MAX_PARTS: Final = 4_096


class BadAnswer(Exception):
    """The received data is not a valid answer; this may be temporary."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An endpoint's answer: header names in lower case, and the beginning of the body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def exchange(
    connection: BoundedConnection, method: str, target: str, headers: Mapping[str, str], body: bytes
) -> Answer:
    """Send a request and read the beginning of its answer. Raises BadAnswer, OSError, TooMuch."""
    import h11  # only jobs with HTTP endpoints need it

    http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_BYTES)
    request = h11.Request(method=method, target=target, headers=list(headers.items()))
    outgoing.goes_out()
    for part in (request, *([h11.Data(body)] if body else []), h11.EndOfMessage()):
        connection.send(http.send(part) or b"")
    try:
        return _answer(connection, http)
    except h11.RemoteProtocolError as error:
        raise BadAnswer(f"not an HTTP answer: {error}") from error


def _answer(connection: BoundedConnection, http: h11.Connection) -> Answer:
    import h11

    head: h11.Response | None = None
    body = bytearray()
    for _ in range(_MAX_PARTS):
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
    named = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
    return Answer(head.status_code, named, bytes(body[:ANSWER_BYTES]))
