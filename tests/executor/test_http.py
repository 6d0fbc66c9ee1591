"""HTTPS endpoints against a local server: the request, the meaning of answers, and who is not called."""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import time
from datetime import UTC, datetime
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from common.errors import Busy
from common.storage import outgoing
from executor.network_guard import Resolver
from executor.targets.http_endpoint import HttpEndpoints, retry_after_s
from tests.executor.contexts import event, parsed
from tests.executor.endpoints import NOW, SECRETS, call, endpoints
from tests.executor.servers import NAME, Server, serving
from tests.manual_clock import ManualClock

LOG_TAIL_BYTES = 800


def verify(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """The receiver's check, written from the convention's text with its own HMAC (RFC 2104): it shares no code."""
    key = base64.b64decode(secret.split("_", 1)[1])
    key = (hashlib.sha256(key).digest() if len(key) > 64 else key).ljust(64, b"\0")
    signed = b".".join([headers["webhook-id"].encode(), headers["webhook-timestamp"].encode(), body])
    inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key) + signed).digest()
    expected = base64.b64encode(hashlib.sha256(bytes(byte ^ 0x5C for byte in key) + inner).digest()).decode()
    return f"v1,{expected}" in headers["webhook-signature"].split(" ")


def test_an_endpoint_gets_the_event_signed(server: Server) -> None:
    outcome = call(server, payload={"a": "ü"}, headers={"X-Team": "a", "Authorization": "Bearer x"})
    (request,) = server.requests
    assert outcome.ok
    assert (request.method, request.path) == ("POST", "/run?a=1")
    assert json.loads(request.body) == parsed(event(payload={"a": "ü"}))
    assert request.headers["host"] == f"{NAME}:{server.port}"
    assert (request.headers["x-team"], request.headers["authorization"]) == ("a", "Bearer x")
    assert request.headers["content-type"] == "application/json"
    assert request.headers["minute8-execution-id"] == "alice:report:20261121T030000Z"
    assert request.headers["webhook-timestamp"] == str(NOW)
    assert verify(SECRETS[0], request.headers, request.body)
    assert not verify(SECRETS[1], request.headers, request.body)
    assert not verify(SECRETS[0], request.headers, request.body + b" ")
    assert not verify(SECRETS[0], request.headers | {"webhook-timestamp": str(NOW + 1)}, request.body)
    assert len(request.names) == len(set(request.names)), "no header twice"


@pytest.mark.parametrize(
    ("payload", "body", "content_type"),
    [
        ({"text": "done"}, b'{"text":"done"}', "application/json"),
        ("a=1&b=2", b"a=1&b=2", "text/plain; charset=utf-8"),
        (None, b"", "application/json"),
    ],
)
def test_without_envelope_the_payload_is_the_body(
    server: Server, payload: Any, body: bytes, content_type: str
) -> None:
    assert call(server, payload=payload, envelope=False).ok
    assert call(server, payload=payload, envelope=False, headers={"Content-Type": "text/x"}).ok
    first, second = server.requests
    assert (first.body, first.headers["content-type"]) == (body, content_type)
    assert (second.body, second.headers["content-type"]) == (body, "text/x")
    assert first.headers["minute8-execution-id"] == "alice:report:20261121T030000Z"
    assert verify(SECRETS[0], first.headers, body)


def test_while_secrets_change_both_sign(server: Server) -> None:
    both = endpoints(secrets_of=lambda tenant, now: SECRETS)
    assert both.call({"url": server.url, "method": "POST"}, event(), 5).ok
    (request,) = server.requests
    assert all(verify(secret, request.headers, request.body) for secret in SECRETS)


def test_the_id_is_the_executions_for_all_attempts_and_holds_no_full_stop(server: Server) -> None:
    for attempt in (1, 2):
        call(server, attempt=attempt)
    endpoints().call({"url": server.url, "method": "POST"}, event(job_id="a.b.c"), 5)
    first, second, third = (request.headers["webhook-id"] for request in server.requests)
    assert [request.headers["idempotency-key"] for request in server.requests] == [
        f'"{key}"' for key in (first, second, third)
    ]
    assert first == second != third
    assert "." not in third


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_method_without_a_body_is_signed_too(server: Server, method: str) -> None:
    assert call(server, payload="x", method=method).ok
    (request,) = server.requests
    assert (request.method, request.body) == (method, b"")
    assert "content-length" not in request.headers
    assert verify(SECRETS[0], request.headers, b"")


def test_a_tenant_without_a_secret_calls_nobody(server: Server) -> None:
    none = endpoints(secrets_of=lambda tenant, now: ())
    outcome = none.call({"url": server.url, "method": "POST"}, event(), 5)
    assert (outcome.ok, outcome.permanent, outcome.error_type) == (False, False, "NoWebhookSecret")
    assert not server.requests


def test_a_secret_that_cannot_be_read_or_only_slowly_is_no_attempt(server: Server) -> None:
    """The lease must outlast the call. At half of the job's time the target is called, with what is left of it."""
    clock = ManualClock(NOW)

    def slow(seconds: float) -> tuple[str, ...]:
        clock.sleep(seconds)
        return SECRETS[:1]

    def refused(tenant: str, now: float) -> tuple[str, ...]:
        raise Busy("KMS does not decrypt the secret 'webhook-signature' now: AccessDeniedException")

    target = {"url": server.url, "method": "POST"}
    outcomes = [
        endpoints(secrets_of=refused, clock=clock).call(target, event(), 5),
        endpoints(secrets_of=lambda tenant, now: slow(4.1), clock=clock).call(target, event(), 60),
        endpoints(secrets_of=lambda tenant, now: slow(2.6), clock=clock).call(target, event(), 5),
    ]
    assert {(outcome.error_type, outcome.throttled) for outcome in outcomes} == {("NotSigned", True)}
    assert "AccessDeniedException" in outcomes[0].error and "in 4.1 s" in outcomes[1].error
    assert not server.requests
    assert endpoints(secrets_of=lambda tenant, now: slow(2.5), clock=clock).call(target, event(), 5).ok


@pytest.mark.parametrize(
    ("status", "permanent", "throttled"),
    [
        *((status, False, False) for status in (408, 425, 500, 501, 502, 503, 504, 599)),
        (429, False, True),
        *((status, True, False) for status in (400, 401, 403, 404, 405, 409, 410, 413, 422, 499)),
    ],
)
def test_a_status_decides_about_a_retry(
    server: Server, status: int, permanent: bool, throttled: bool
) -> None:
    server.reply = lambda handler: (status, {"X-Request-Id": "r-9"}, b"why")
    outcome = call(server)
    assert (outcome.ok, outcome.permanent, outcome.throttled) == (False, permanent, throttled)
    assert (outcome.error_type, outcome.log_tail, outcome.request_id) == (f"Http{status}", "why", "r-9")


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_every_2xx_is_a_success(server: Server, status: int) -> None:
    server.reply = lambda handler: (status, {}, b"")
    assert call(server).ok


@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
@pytest.mark.parametrize(
    "location", ["https://169.254.169.254/latest/", "http://localhost/", "/elsewhere", "\x7f", ""]
)
def test_a_redirect_is_never_followed(server: Server, status: int, location: str) -> None:
    server.reply = lambda handler: (status, {"Location": location}, b"")
    outcome = call(server)
    assert (outcome.ok, outcome.permanent, outcome.error_type) == (False, True, f"Http{status}")
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 503, 500])
def test_retry_after_is_honoured(server: Server, status: int) -> None:
    server.reply = lambda handler: (status, {"Retry-After": "120"}, b"")
    assert call(server).retry_after_s == 120


def test_retry_after_of_a_permanent_refusal_means_nothing(server: Server) -> None:
    server.reply = lambda handler: (404, {"Retry-After": "120"}, b"")
    assert call(server).retry_after_s is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        (format_datetime(datetime.fromtimestamp(NOW + 90, UTC), usegmt=True), 90.0),
        (format_datetime(datetime.fromtimestamp(NOW - 90, UTC), usegmt=True), 0.0),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("١٢", None),
        ("9" * 400, None),
        ("Fri, 99 Nov 2026 03:00:00 GMT", None),
        ("Fri, 20 Nov 99999 03:00:00 GMT", None),
    ],
)
def test_retry_after_as_seconds_or_date(text: str, seconds: float | None) -> None:
    assert retry_after_s(text, NOW) == seconds


def test_an_endpoint_may_ask_for_a_retry_as_a_function_may(server: Server) -> None:
    server.reply = lambda handler: (200, {}, b'{"minute8": {"retry_after_s": 60}}')
    outcome = call(server)
    assert (outcome.ok, outcome.retry_after_s, outcome.error_type) == (False, 60.0, "RetryLater")


def test_without_the_secrets_table_no_attempt_is_used_up(server: Server) -> None:
    def fails(tenant: str, now: float) -> tuple[str, ...]:
        raise ConnectionError("no way to DynamoDB")

    outcome = endpoints(secrets_of=fails).call({"url": server.url, "method": "POST"}, event(), 5)
    assert (outcome.ok, outcome.permanent, outcome.throttled) == (False, False, True)
    assert not server.requests


def test_an_answer_of_half_characters_can_be_recorded(server: Server) -> None:
    server.reply = lambda handler: (500, {}, b"\xff" * 1000 + "é".encode() * 1000)
    outcome = call(server)
    assert len(outcome.log_tail.encode("utf-8")) <= LOG_TAIL_BYTES


def test_a_certificate_of_nobody_known_is_refused(server: Server) -> None:
    untrusting = endpoints(tls=HttpEndpoints.__dataclass_fields__["tls"].default)
    outcome = untrusting.call({"url": server.url, "method": "POST"}, event(), 5)
    assert (outcome.ok, outcome.permanent, outcome.error_type) == (False, True, "CertificateRefused")
    assert not server.requests


def test_a_certificate_of_another_name_is_refused(server: Server) -> None:
    url = server.url.replace(NAME, "other.example.com")
    outcome = endpoints().call({"url": url, "method": "POST"}, event(), 5)
    assert (outcome.permanent, outcome.error_type) == (True, "CertificateRefused")


def test_plain_http_only_where_the_deployment_allows_it() -> None:
    with serving(tls=False) as plain:
        target = {"url": plain.url.replace("https", "http"), "method": "POST"}
        assert endpoints().call(target, event(), 5).error_type == "NotHttps"
        assert not plain.requests
        assert endpoints(plain_http=True).call(target, event(), 5).ok


def test_without_the_tests_switch_this_machine_is_out_of_reach(server: Server) -> None:
    default = HttpEndpoints.__dataclass_fields__["guard"].default_factory()  # type: ignore[misc]
    guard = dataclasses.replace(default, resolver=Resolver(lambda host, port: ["127.0.0.1"]))
    outcome = endpoints(guard=guard).call({"url": server.url, "method": "POST"}, event(), 5)
    assert (outcome.ok, outcome.permanent, outcome.error_type) == (False, True, "ForbiddenAddress")
    assert not server.requests


@pytest.mark.parametrize(
    "url", ["https://localhost./", "https://2130706433/", "https://a@b.com/", "ftp://a.com", ""]
)
def test_a_stored_url_is_read_again_before_the_call(url: str) -> None:
    outcome = endpoints().call({"url": url, "method": "POST"}, event(), 5)
    assert (outcome.ok, outcome.permanent, outcome.error_type) == (False, True, "BadUrl")


def test_nobody_listening_may_pass() -> None:
    outcome = endpoints().call({"url": f"https://{NAME}:1025/", "method": "POST"}, event(), 5)
    assert (outcome.ok, outcome.permanent, outcome.error_type) == (False, False, "Unreachable")


def test_a_call_goes_out_when_the_endpoint_sees_it(server: Server) -> None:
    arrived, answered = list[float](), list[float]()

    def reply(handler: BaseHTTPRequestHandler) -> tuple[int, dict[str, str], bytes]:
        arrived.append(time.monotonic())
        time.sleep(0.1)
        answered.append(time.monotonic())
        return 200, {}, b""

    server.reply = reply
    outgoing.reset()
    assert call(server).ok
    checked_at = time.monotonic()
    assert (ago_s := outgoing.seconds_since_sent()) is not None
    assert checked_at - ago_s <= arrived[0] < answered[0]
    assert time.monotonic() - ago_s < answered[0]
