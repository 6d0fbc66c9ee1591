"""One HTTP/1.1 answer, as httptools' parser reads it from a connection to an endpoint of AWS."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import httptools

# Status lines and headers, those of interim answers (1xx) included.
_MAX_HEAD_LINES: Final = 100
_MAX_LINE_BYTES: Final = 16 * 1024
_MAX_HEAD_BYTES: Final = 256 * 1024


@dataclass(frozen=True, slots=True)
class Response:
    """Status, headers by their names in lower case, and the body, or its beginning if no more was requested."""

    status: int
    headers: dict[str, str]
    body: bytes


class NotHttp(Exception):
    """The answer is not HTTP/1.1, or breaks off."""


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

    def response(self, max_bytes: int) -> Response:
        """What has come, with at most `max_bytes` of the body."""
        return Response(self.status, self._headers, b"".join(self._body)[:max_bytes])

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
