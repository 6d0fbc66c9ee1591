"""HTTPS endpoints on the public internet, called and waited for. Every call is signed, as Standard Webhooks has it.

Redirects are not followed: the job is to name where it means, and a signed body goes to nobody else.
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any

from common.clock import Clock
from common.runs.records import Outcome
from common.tenants.web_address import BadUrl, WebAddress, read_url
from common.tenants.webhook_secrets import signature
from executor.network_guard import ForbiddenAddress, NetworkGuard, Unreachable
from executor.targets import answers
from executor.targets.events import Event, context, encoded, execution_hash

# Of an answer so much is read; the rest is nobody's business.
ANSWER_BYTES = 64 * 1024
_CONNECT_S = 10.0
_BODILESS = ("GET", "DELETE")
# A client's error is its own until it is mended, save for these. https://www.rfc-editor.org/rfc/rfc9110#name-status-codes
_PASSING_4XX = (408, 425, 429)
_CONTEXT_HEADERS = ("tenant", "job_id", "execution_id", "fire_at", "attempt")


@cache
def _public_tls() -> ssl.SSLContext:
    return ssl.create_default_context()


@dataclass(frozen=True, slots=True)
class Answer:
    """What an endpoint said; of the body the beginning."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class HttpEndpoints:
    """Calls endpoints. `secrets_of(tenant, now)` gives the secrets to sign with."""

    secrets_of: Callable[[str, float], tuple[str, ...]]
    clock: Clock
    plain_http: bool = False
    guard: NetworkGuard = field(default_factory=NetworkGuard)
    tls: Callable[[], ssl.SSLContext] = _public_tls

    def call(self, target: Mapping[str, Any], event: Event, timeout_s: float) -> Outcome:
        """Send one request and wait for its answer, `timeout_s` in all."""
        try:
            address = read_url(target["url"])
        except BadUrl as error:
            return _never("BadUrl", str(error))
        if address.scheme != "https" and not self.plain_http:
            return _never("NotHttps", "this deployment calls https only")
        now = self.clock.now()
        signing = self.secrets_of(context(event, "tenant"), now)
        if not signing:
            return _never(
                "NoWebhookSecret", "the tenant has no webhook secret yet, so the call cannot be signed"
            )
        body = b"" if target["method"] in _BODILESS else encoded(event).encode()
        headers = _headers(target, event, address, body) | _signed(signing, event, int(now), body)
        try:
            return classify(self._exchange(address, target["method"], headers, body, timeout_s), now)
        except ForbiddenAddress as error:
            return _never("ForbiddenAddress", str(error))
        except ssl.SSLCertVerificationError as error:
            return _never("CertificateRefused", error.verify_message or str(error))
        except TimeoutError:
            return Outcome(ok=False, error_type="TimedOut", error=f"no answer within {timeout_s:g} s")
        except (OSError, http.client.HTTPException, Unreachable) as error:
            return Outcome(
                ok=False, error_type=type(error).__name__, error=answers.cut(str(error), answers.ERROR_BYTES)
            )

    def _exchange(
        self, address: WebAddress, method: str, headers: Mapping[str, str], body: bytes, timeout_s: float
    ) -> Answer:
        ends_at = time.monotonic() + timeout_s
        connection = self.guard.connect(address, min(timeout_s, _CONNECT_S))
        try:
            connection.settimeout(max(0.001, ends_at - time.monotonic()))
            if address.scheme == "https":
                connection = self.tls().wrap_socket(connection, server_hostname=address.host)
            with _Watchdog(connection, ends_at) as watchdog:
                try:
                    answer = _request(connection, address, method, headers, body)
                except (OSError, http.client.HTTPException):
                    if watchdog.bit:
                        raise TimeoutError from None
                    raise
            if watchdog.bit:  # what was read is cut off
                raise TimeoutError
            return answer
        finally:
            connection.close()


class _Watchdog:
    """Ends a connection at a moment. A socket's own time limit begins anew with every byte that drips in."""

    def __init__(self, connection: socket.socket, ends_at: float) -> None:
        self._connection = connection
        self._timer = threading.Timer(max(0.0, ends_at - time.monotonic()), self._bite)
        self._timer.daemon = True
        self.bit = False

    def __enter__(self) -> _Watchdog:
        self._timer.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._timer.cancel()

    def _bite(self) -> None:
        self.bit = True
        with contextlib.suppress(OSError):  # it may have ended by itself
            # The plain socket's way: TLS's own would let go of its state under the reader's hands.
            socket.socket.shutdown(self._connection, socket.SHUT_RDWR)


def _request(
    connection: socket.socket, address: WebAddress, method: str, headers: Mapping[str, str], body: bytes
) -> Answer:
    client = http.client.HTTPConnection(address.host, address.port)
    client.auto_open = 0  # it has its connection, and must never make one of its own
    client.sock = connection
    client.putrequest(method, address.target, skip_host=True, skip_accept_encoding=True)
    for name, value in headers.items():
        client.putheader(name, value)
    client.endheaders(body or None)
    response = client.getresponse()
    lower = {name.lower(): value for name, value in response.getheaders()}
    return Answer(response.status, lower, response.read(ANSWER_BYTES))


def _headers(target: Mapping[str, Any], event: Event, address: WebAddress, body: bytes) -> dict[str, str]:
    headers = {"user-agent": "minute8", "accept": "*/*"}
    if target["method"] not in _BODILESS:
        headers["content-type"] = "application/json"
    headers |= {name.lower(): value for name, value in target.get("headers", {}).items()}
    headers |= {f"minute8-{name.replace('_', '-')}": context(event, name) for name in _CONTEXT_HEADERS}
    if target["method"] not in _BODILESS:
        headers["content-length"] = str(len(body))
    return headers | {"host": address.host_header, "accept-encoding": "identity", "connection": "close"}


def _signed(signing: tuple[str, ...], event: Event, timestamp: int, body: bytes) -> dict[str, str]:
    # A hash, since the convention allows no full stop in the id, and a job's name does. Alike for all attempts.
    webhook_id = f"exec_{execution_hash(event)[:32]}"
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(signing, webhook_id, timestamp, body),
    }


def classify(answer: Answer, now: float) -> Outcome:
    """The outcome that an answer stands for."""
    said = answers.cut(answer.body[: answers.LOG_TAIL_BYTES].decode(errors="replace"), answers.LOG_TAIL_BYTES)
    request_id = answers.cut(answer.headers.get("x-request-id", ""), answers.TYPE_BYTES)
    status = answer.status
    if 200 <= status < 300:
        return answers.with_details(answers.wish(answer.body) or Outcome(ok=True), said, request_id)
    permanent = status < 400 or (status < 500 and status not in _PASSING_4XX)
    error = f"answered {status}"
    if 300 <= status < 400:
        error += f" to {answers.cut(answer.headers.get('location', ''), 200)}; redirects are not followed"
    refused = Outcome(
        ok=False,
        permanent=permanent,
        throttled=status == 429,
        error_type=f"Http{status}",
        error=error,
        retry_after_s=None if permanent else retry_after_s(answer.headers.get("retry-after", ""), now),
    )
    return answers.with_details(refused, said, request_id)


def retry_after_s(text: str, now: float) -> float | None:
    """Retry-After, seconds or a date. https://www.rfc-editor.org/rfc/rfc9110#name-retry-after"""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return answers.seconds(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError, OSError):
        return None


def _never(error_type: str, error: str) -> Outcome:
    return Outcome(
        ok=False, permanent=True, error_type=error_type, error=answers.cut(error, answers.ERROR_BYTES)
    )
