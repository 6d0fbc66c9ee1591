"""A local HTTPS server for the tests, with a certificate of its own authority."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

NAME = "hooks.example.com"


@dataclass
class ReceivedRequest:
    """One received request."""

    method: str
    path: str
    headers: dict[str, str]
    names: list[str]
    body: bytes


@dataclass
class Server:
    """`reply` writes the answer: status, headers, body; or it writes to the handler itself and returns None."""

    port: int = 0
    connections: int = 0
    requests: list[ReceivedRequest] = field(default_factory=list)
    reply: Callable[[BaseHTTPRequestHandler], tuple[int, dict[str, str], bytes] | None] = lambda handler: (
        200,
        {},
        b"",
    )

    @property
    def url(self) -> str:
        return f"https://{NAME}:{self.port}/run?a=1"


@contextmanager
def serving(*, tls: bool = True, protocol: str = "HTTP/1.0") -> Iterator[Server]:
    """A server during the block. With HTTP/1.1 it keeps connections."""
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = protocol
        disable_nagle_algorithm = True

        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            names = [name.lower() for name in self.headers]
            server.requests.append(ReceivedRequest(self.command, self.path, headers, names, body))
            if (reply := server.reply(self)) is None:
                return
            status, more, answer = reply
            self.send_response(status)
            for name, value in ({"Content-Length": str(len(answer))} | more).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        do_POST = do_PUT = do_PATCH = do_GET = do_DELETE = _answer

        def log_message(self, *args: object) -> None: ...

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def process_request(self, request: Any, client_address: Any) -> None:
            server.connections += 1
            super().process_request(request, client_address)

        def handle_error(self, *args: object) -> None: ...

    httpd = Quiet(("127.0.0.1", 0), Handler)
    server.port = httpd.server_port
    if tls:
        httpd.socket = _server_side().wrap_socket(
            httpd.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        httpd.shutdown()
        httpd.server_close()
        thread.join()


def trusting() -> ssl.SSLContext:
    """A TLS context that trusts only this server's authority."""
    return ssl.create_default_context(cadata=_certificate()[0].decode())


def certificate_file(directory: Path) -> Path:
    """The authority, as a file for AWS_CA_BUNDLE."""
    path = directory / "authority.pem"
    path.write_bytes(_certificate()[0])
    return path


@cache
def _certificate() -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.DNSName(NAME), x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.9"))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


@cache
def _server_side() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with TemporaryDirectory() as folder:
        for part, content in zip(("certificate", "key"), _certificate(), strict=True):
            (Path(folder) / part).write_bytes(content)
        context.load_cert_chain(Path(folder) / "certificate", Path(folder) / "key")
    return context
