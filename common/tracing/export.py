"""The export of spans, within a time that a dead collector cannot stretch. Nothing of an execution depends on it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from common import telemetry
from common.clock import Clock, SystemClock
from common.config import config
from common.storage import aws
from common.tracing.spans import Span

# The longest that a batch or a tick waits for the collector.
EXPORT_S: Final = 1.0
# After a failure spans are dropped for so long.
REST_S: Final = 60.0
# Of one batch; the others are dropped. A batch of ten full packs has 300.
MAX_SPANS: Final = 1_000

# Sends spans to a collector. Raises anything if it does not take them.
Send = Callable[[Sequence[Span]], None]


class NoHeaders(Exception):
    """The parameter of SSM with the collector's headers does not exist."""


class SpanExport:
    """Sends the spans of a batch. `connect` returns what sends them; after a failure it is asked again."""

    def __init__(self, connect: Callable[[], Send], clock: Clock) -> None:
        self._connect = connect
        self._clock = clock
        self._send: Send | None = None
        self._rests_until = 0.0
        self._thread: threading.Thread | None = None
        self._problem = ""

    def export(self, spans: Sequence[Span]) -> bool:
        """Send these spans, and wait at most EXPORT_S. Returns whether the collector has them. Raises nothing."""
        under_way = self._thread is not None and self._thread.is_alive()
        if not spans or under_way or self._clock.now() < self._rests_until:
            return False
        self._problem = f"no answer within {EXPORT_S:g} s"
        # In a thread: no setting of a client bounds the look-up of a name, or an answer that comes byte by byte.
        self._thread = threading.Thread(target=self._try, args=(spans[:MAX_SPANS],), daemon=True)
        try:
            self._thread.start()
            self._thread.join(EXPORT_S)
        except RuntimeError as error:  # no thread can be started
            self._thread, self._problem = None, repr(error)
        if not self._problem:
            return True
        self._rests_until = self._clock.now() + REST_S
        telemetry.logger().warning(
            "spans not exported; none are sent for a minute", problem=self._problem, spans=len(spans)
        )
        return False

    def _try(self, spans: Sequence[Span]) -> None:
        try:
            self._send = self._send or self._connect()
            self._send(spans)
            self._problem = ""
        except Exception as error:  # noqa: BLE001  whatever this is, executions go on
            self._send = None  # the headers may have changed
            # The type alone: the words of a client may show a header.
            self._problem = type(error).__name__


@cache
def span_export() -> SpanExport | None:
    """This process's export; None if the parameter `otlpEndpoint` is off. Raises ImportError without the layer."""
    settings = config()
    if not settings.otlp_endpoint:
        return None
    from common.tracing.otlp import Collector, read_headers

    def connect() -> Send:
        text = aws.read_parameter(settings.otlp_headers) if settings.otlp_headers else ""
        if text is None:
            raise NoHeaders
        return Collector(settings.otlp_endpoint, read_headers(text), settings.stage, EXPORT_S).send

    return SpanExport(connect, SystemClock())
