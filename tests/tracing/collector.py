"""A collector of OpenTelemetry: an HTTP server that reads requests with the classes generated from OTLP's own files."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Received:
    """What the collector got. `status`: what it answers."""

    address: str = ""
    status: int = 200
    paths: list[str] = field(default_factory=list)
    # Of the connections' other ends.
    ports: set[int] = field(default_factory=set)
    headers: list[dict[str, str]] = field(default_factory=list)
    # `ResourceSpans` of OTLP.
    resources: list[Any] = field(default_factory=list)

    @property
    def spans(self) -> list[Any]:
        return [span for resource in self.resources for scope in resource.scope_spans for span in scope.spans]

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


def attributes_of(holder: Any) -> dict[str, Any]:
    """The attributes of a span or a resource."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in holder.attributes}


@contextmanager
def open_collector() -> Iterator[Received]:
    """A collector on a free port of this machine."""
    # Here, for few environments have the packages: the tests are collected without them.
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,
        ExportTraceServiceResponse,
    )

    received = Received()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # keeps its connections

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers["content-encoding"] == "gzip":
                body = gzip.decompress(body)
            received.paths.append(self.path)
            received.ports.add(self.client_address[1])
            received.headers.append({name.lower(): value for name, value in self.headers.items()})
            received.resources.extend(ExportTraceServiceRequest.FromString(body).resource_spans)
            answer = ExportTraceServiceResponse().SerializeToString()
            self.send_response(received.status)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    received.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield received
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
