"""HTTPS endpoints on the public internet. Minute8 waits for the answer. Calls are signed (Standard Webhooks).

Redirects are not followed: the job must name the final address, and a signed body must go to no other server.
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cache
from http import HTTPStatus
from typing import Any, Final

from common.clock import Clock
from common.deployment import Deployment
from common.limits import CONNECT_S, LOG_TAIL_BYTES, RECEIVED_BYTES
from common.runs.outcome import Outcome, cut, not_called, unless_minute8_fails
from common.storage.connections import Response
from common.tenants.web_address import BadUrl, WebAddress, is_public_or_loopback, read_url
from common.tenants.webhook_secrets import signature
from executor.network_guard import ForbiddenAddress, NetworkGuard, NoLookup, Unreachable
from executor.targets import answers
from executor.targets.bounded_http import BadAnswer, BoundedConnection, TooMuch, exchange
from executor.targets.events import Event, context, execution_hash, is_empty, is_plain, message_body

# Minute8 could not read or decrypt the tenant's secret: nothing was called.
NOT_SIGNED: Final = "NotSigned"
# A slower read of secrets is no attempt: the lease must outlast the call, and the target have its time. What was read
# stays known to the next try.
_SIGNED_WITHIN_S: Final = 4
_BODILESS = ("GET", "DELETE")
# Client errors are permanent, except these. https://www.rfc-editor.org/rfc/rfc9110#name-status-codes
_TEMPORARY_4XX = (408, 425, 429)
_CONTEXT_HEADERS = ("tenant", "job_id", "execution_id", "fire_at", "attempt")


@cache
def _public_tls() -> ssl.SSLContext:
    return ssl.create_default_context()


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A request before it is signed. `webhook_id` is the same for all its repetitions, and contains no full stop."""

    url: str
    method: str
    headers: Mapping[str, str]
    body: bytes
    webhook_id: str


@dataclass(frozen=True, slots=True)
class HttpEndpoints:
    """Calls endpoints. `secrets_of(tenant, now)` returns the secrets to sign with."""

    secrets_of: Callable[[str, float], tuple[str, ...]]
    clock: Clock
    plain_http: bool = False
    guard: NetworkGuard = field(default_factory=NetworkGuard)
    tls: Callable[[], ssl.SSLContext] = _public_tls

    @classmethod
    def of(cls, deployment: Deployment) -> HttpEndpoints:
        """Calls endpoints for a deployment."""
        settings = deployment.settings
        guard = NetworkGuard(allows=is_public_or_loopback) if settings.loopback_targets else NetworkGuard()
        secrets_of = deployment.webhook_secrets.signing
        return cls(secrets_of, deployment.clock, settings.plain_http_targets, guard)

    def call(self, target: Mapping[str, Any], event: Event, timeout_s: float) -> Outcome:
        """Send one request and wait for its answer, at most `timeout_s` in all."""
        body = _body(target, event)
        request = Outgoing(target["url"], target["method"], _headers(target, event), body, _webhook_id(event))
        return self.send(context(event, "tenant"), request, timeout_s)

    def send(self, tenant: str, request: Outgoing, timeout_s: float) -> Outcome:
        """Sign a request for the tenant, send it, and wait for its answer, at most `timeout_s` in all."""
        try:
            address = read_url(request.url)
        except BadUrl as error:
            return _never("BadUrl", str(error))
        if address.scheme != "https" and not self.plain_http:
            return _never("NotHttps", "this deployment calls https only")
        now = self.clock.now()
        signing = unless_minute8_fails(lambda: self.secrets_of(tenant, now), NOT_SIGNED)
        if isinstance(signing, Outcome):
            return signing
        took_s = max(0.0, self.clock.now() - now)
        if took_s > min(_SIGNED_WITHIN_S, timeout_s / 2):
            late = f"the webhook secret was not read in time, but in {took_s:.1f} s"
            return not_called(NOT_SIGNED, late)
        if not signing:
            missing = "the tenant has no webhook secret yet, so the call cannot be signed"
            return Outcome(ok=False, error_type="NoWebhookSecret", error=missing)
        headers = _framed(request, address) | _signed(signing, request, int(now))
        try:
            answer = self._exchange(tenant, address, request, headers, timeout_s - took_s)
            return classify(answer, now)
        except ForbiddenAddress as error:
            return _never("ForbiddenAddress", str(error))
        except NoLookup as error:  # nothing was called, so the attempt must not count
            return not_called("NoLookup", str(error))
        except ssl.SSLCertVerificationError as error:
            return _never("CertificateRefused", error.verify_message or str(error))
        except TimeoutError:
            return answers.timed_out(timeout_s)
        except (OSError, Unreachable, BadAnswer) as error:
            return Outcome(ok=False, error_type=type(error).__name__, error=str(error))

    def _exchange(
        self,
        tenant: str,
        address: WebAddress,
        request: Outgoing,
        headers: Mapping[str, str],
        timeout_s: float,
    ) -> Response:
        """Raises ForbiddenAddress, Unreachable, NoLookup, BadAnswer, and OSError if the connection fails."""
        ends_at = time.monotonic() + timeout_s
        with self.guard.connect(address, min(timeout_s, CONNECT_S), tenant) as plain:
            connection = BoundedConnection(plain, ends_at, RECEIVED_BYTES)
            try:
                if address.scheme == "https":
                    connection.start_tls(self.tls(), address.host)
                return exchange(connection, request.method, address.target, headers, request.body)
            except TooMuch:
                raise BadAnswer(f"no answer within {RECEIVED_BYTES} bytes") from None


def _body(target: Mapping[str, Any], event: Event) -> bytes:
    if target["method"] in _BODILESS or is_empty(target, event):
        return b""
    return message_body(target, event).encode()


def _webhook_id(event: Event) -> str:
    """The same for all attempts. A hash: it must not contain a full stop, and a job's name can."""
    return f"exec_{execution_hash(event)[:32]}"


def _headers(target: Mapping[str, Any], event: Event) -> dict[str, str]:
    headers = {}
    if target["method"] not in _BODILESS:
        headers["content-type"] = (
            "text/plain; charset=utf-8" if is_plain(target, event) else "application/json"
        )
    # Unless the job has its own. The key is a string of structured fields, so it has quotes.
    headers["traceparent"] = context(event, "traceparent")
    headers["idempotency-key"] = f'"{_webhook_id(event)}"'
    headers |= {name.lower(): value for name, value in target.get("headers", {}).items()}
    headers |= {f"minute8-{name.replace('_', '-')}": context(event, name) for name in _CONTEXT_HEADERS}
    callback = event["minute8"].get("callback", {})
    return headers | {f"minute8-callback-{name}": str(value) for name, value in callback.items()}


def _framed(request: Outgoing, address: WebAddress) -> dict[str, str]:
    headers = {"user-agent": "minute8", "accept": "*/*", **request.headers}
    if request.method not in _BODILESS:
        headers["content-length"] = str(len(request.body))
    return headers | {"host": address.host_header, "accept-encoding": "identity", "connection": "close"}


def _signed(signing: tuple[str, ...], request: Outgoing, timestamp: int) -> dict[str, str]:
    return {
        "webhook-id": request.webhook_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signature(signing, request.webhook_id, timestamp, request.body),
    }


def classify(answer: Response, now: float) -> Outcome:
    """The outcome of an answer."""
    log_tail = answer.body[:LOG_TAIL_BYTES].decode(errors="replace")
    request_id = answer.headers.get("x-request-id", "")
    status = answer.status
    if 200 <= status < 300:
        return answers.with_details(
            answers.retry_directive(answer.body) or Outcome(ok=True, accepted=status == HTTPStatus.ACCEPTED),
            log_tail,
            request_id,
        )
    permanent = status < 400 or (status < 500 and status not in _TEMPORARY_4XX)
    error = f"answered {status}"
    if 300 <= status < 400:
        error += f" to {cut(answer.headers.get('location', ''), 200)}; redirects are not followed"
    refused = Outcome(
        ok=False,
        permanent=permanent,
        throttled=status == 429,
        error_type=f"Http{status}",
        error=error,
        retry_after_s=None if permanent else retry_after_s(answer.headers.get("retry-after", ""), now),
    )
    return answers.with_details(refused, log_tail, request_id)


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
    return Outcome(ok=False, permanent=True, error_type=error_type, error=error)
