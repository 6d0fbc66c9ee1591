"""Lambda against a server of the Invoke API: answers, refusals, time limits, assumed roles."""

from __future__ import annotations

import base64
import json
import math
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import Mock
from urllib.parse import unquote

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from executor.targets import answers, aws_services, clients, kinds
from executor.targets.clients import AssumedRoles, Credentials, external_id, session_name
from minute8.canary import handler as canary
from tests.executor.contexts import US, call_function, event, parsed, refused
from tests.faults.test_packs import in_a_pack
from tests.worlds import World, job

ERROR_BYTES = 400
LOG_TAIL_BYTES = 800

ARN = f"arn:aws:lambda:{US}:function:report:live"
TARGET = {"kind": "lambda", "arn": ARN, "invocation": "RequestResponse"}
Reply = tuple[int, dict[str, str], bytes]


@dataclass
class FakeLambda:
    """Answers as `reply` says, and records the requests."""

    reply: Reply | Callable[[], Reply] = (200, {}, b"null")
    requests: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLambda]:
    fake = FakeLambda()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            fake.requests.append((unquote(self.path), headers, json.loads(body)))
            status, more, answer = fake.reply() if callable(fake.reply) else fake.reply
            self.send_response(status)
            for name, value in (
                {"x-amzn-RequestId": "r-3", "content-length": str(len(answer))} | more
            ).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", f"http://127.0.0.1:{server.server_port}")
    clients._clients.clear()
    yield fake
    clients._clients.clear()
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_function_is_called_with_the_event_and_waited_for(service: FakeLambda) -> None:
    log = base64.b64encode(b"x" * 2000 + b" the end").decode()
    service.reply = (200, {"X-Amz-Log-Result": log}, b'{"items": 3}')
    outcome = call_function(TARGET, event(payload={"a": "ü"}), 5)
    ((path, headers, body),) = service.requests
    assert path == f"/2015-03-31/functions/{ARN}/invocations"
    assert (headers["x-amz-invocation-type"], headers["x-amz-log-type"]) == ("RequestResponse", "Tail")
    assert body == parsed(event(payload={"a": "ü"}))
    assert (outcome.ok, outcome.request_id) == (True, "r-3")
    assert outcome.log_tail.endswith("the end")
    assert len(outcome.log_tail.encode()) == LOG_TAIL_BYTES


def test_only_the_canarys_own_tenant_calls_its_function(service: FakeLambda) -> None:
    """An event of the same look, as a payload without an envelope, would hide that the canary does not run."""
    call = kinds(Mock())["lambda"].call
    target = TARGET | {"arn": f"arn:aws:lambda:{US}:function:canary-minute8-prod", "envelope": False}
    forged = event(tenant=canary.TENANT, job_id=canary.JOB_ID)
    outcome = call(target, event(tenant="mallory", payload=forged), 5)
    assert (outcome.ok, outcome.permanent, outcome.error_type) == (False, True, "NotAllowed")
    assert service.requests == []
    assert call(target, event(tenant=canary.TENANT, job_id=canary.JOB_ID), 5).ok


@pytest.mark.parametrize("invocation", ["RequestResponse", "Event"])
def test_a_call_names_its_jobs_tenant_if_the_function_isolates_tenants(
    service: FakeLambda, invocation: str
) -> None:
    """A target has no other field for the tenant id, so no tenant enters the environments of another."""
    target = TARGET | {"invocation": invocation}
    assert call_function(target | {"tenant_isolation": True}, event(tenant="acme.eu-1"), 5).ok
    assert call_function(target, event(tenant="acme.eu-1"), 5).ok
    assert [headers.get("x-amz-tenant-id") for _, headers, _ in service.requests] == ["acme.eu-1", None]


@pytest.mark.parametrize("invocation", ["RequestResponse", "Event"])
def test_in_a_pack_of_several_tenants_each_call_is_signed_with_its_own_tenant(
    service: FakeLambda, world: World, invocation: str
) -> None:
    world.executor = replace(world.executor, kinds=kinds(Mock()))
    names = {f"job-of-{tenant}": tenant for tenant in ("alice", "bob", "carol")}
    for job_id, tenant in names.items():
        target = TARGET | {"invocation": invocation, "tenant_isolation": True}
        payload = {"minute8": {"tenant": "mallory"}, "TenantId": "mallory"}
        definition = job(at="2026-11-21T03:15:00Z") | {"target": target, "payload": payload}
        world.registry.create(tenant, job_id, definition)
    world.tick()
    in_a_pack(world, names)
    world.deliver()
    named = {body["minute8"]["job_id"]: headers["x-amz-tenant-id"] for _, headers, body in service.requests}
    assert named == names
    for _, headers, _ in service.requests:
        signed = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0]
        assert "x-amz-tenant-id" in signed.split(";")


@pytest.mark.parametrize(
    ("isolation", "words"),
    [
        (False, "the function isolates its tenants: tenant_isolation of the target must be true"),
        (True, "the function does not isolate its tenants: tenant_isolation of the target must be false"),
    ],
)
def test_a_refusal_for_the_tenant_id_says_what_to_change(
    service: FakeLambda, isolation: bool, words: str
) -> None:
    message = (
        "Tenant ID configuration not specified or passed to a function when tenant isolation is not enabled."
    )
    body = json.dumps({"Type": "User", "message": message}).encode()
    service.reply = (400, {"x-amzn-ErrorType": "InvalidParameterValueException"}, body)
    outcome = call_function(TARGET | {"tenant_isolation": isolation}, event(), 5)
    assert (outcome.ok, outcome.permanent) == (False, True)
    assert outcome.error == f"{words} ({message})"


def test_an_environment_for_another_tenant_that_lambda_has_no_room_for_costs_no_attempt(
    service: FakeLambda,
) -> None:
    """At most 2,500 environments of tenants exist for each 1,000 of concurrency; the next call is throttled."""
    body = json.dumps({"Type": "User", "message": "Rate exceeded", "Reason": "CallerRateLimitExceeded"})
    service.reply = (429, {"x-amzn-ErrorType": "TooManyRequestsException"}, body.encode())
    outcome = call_function(TARGET | {"tenant_isolation": True, "invocation": "Event"}, event(), 5)
    assert (outcome.throttled, outcome.permanent) == (True, False)


def test_an_event_is_handed_over(service: FakeLambda) -> None:
    service.reply = (202, {}, b"")
    assert call_function(TARGET | {"invocation": "Event"}, event(), 5).ok
    ((_, headers, _),) = service.requests
    assert headers["x-amz-invocation-type"] == "Event"


@pytest.mark.parametrize(
    ("body", "error_type", "error"),
    [
        (b'{"errorType": "ValueError", "errorMessage": "no"}', "ValueError", "no"),
        (b'{"errorMessage": "Task timed out"}', "FunctionError", '{"errorMessage": "Task timed out"}'),
        (b"plain", "FunctionError", "plain"),
        (b"[1]", "FunctionError", "[1]"),
        (b"\xff\xfe", "FunctionError", "\ufffd\ufffd"),
        (b'{"errorType": "\\ud800", "errorMessage": "\\udfff"}', "?", "?"),
        (b'{"errorType": null, "errorMessage": {"a": 1}}', "None", "{'a': 1}"),
        (b"[" * 100_000, "FunctionError", "[" * 400),
    ],
)
def test_a_failed_functions_error_is_recorded_whatever_it_returned(
    service: FakeLambda, body: bytes, error_type: str, error: str
) -> None:
    service.reply = (200, {"X-Amz-Function-Error": "Unhandled"}, body)
    outcome = call_function(TARGET, event(), 5)
    assert (outcome.ok, outcome.permanent, outcome.throttled) == (False, False, False)
    assert (outcome.error_type, outcome.error) == (error_type, error)
    assert len(outcome.error.encode()) <= ERROR_BYTES


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({"minute8": {"retry_after_s": 90}}, (False, False, 90.0, "RetryLater")),
        ({"minute8": {"retry_after_s": 0.5, "error": "not yet"}}, (False, False, 0.5, "RetryLater")),
        ({"minute8": {"permanent": True, "error": "gone"}}, (False, True, None, "Permanent")),
        ({"minute8": {"permanent": True, "retry_after_s": 5}}, (False, True, None, "Permanent")),
        ({"minute8": {"permanent": False}}, (True, False, None, "")),
        ({"minute8": {"permanent": 1}}, (True, False, None, "")),
        ({"minute8": {}}, (True, False, None, "")),
        ({"minute8": 5}, (True, False, None, "")),
        (["minute8"], (True, False, None, "")),
        ("minute8", (True, False, None, "")),
        ({"a": {"minute8": {"permanent": True}}}, (True, False, None, "")),
        ({"minute8": {"retry_after_s": -1}}, (False, False, None, "BadAnswer")),
        ({"minute8": {"retry_after_s": "60"}}, (False, False, None, "BadAnswer")),
        ({"minute8": {"retry_after_s": True}}, (False, False, None, "BadAnswer")),
        ({"minute8": {"retry_after_s": None}}, (False, False, None, "BadAnswer")),
        ({"minute8": {"retry_after_s": float("nan")}}, (False, False, None, "BadAnswer")),
        ({"minute8": {"retry_after_s": float("inf")}}, (False, False, None, "BadAnswer")),
        ({"minute8": {"retry_after_s": 10**400}}, (False, False, None, "BadAnswer")),
    ],
)
def test_a_result_may_ask_for_a_retry_later_or_for_none(
    service: FakeLambda, result: Any, expected: tuple[bool, bool, float | None, str]
) -> None:
    service.reply = (200, {}, json.dumps(result).encode())
    outcome = call_function(TARGET, event(), 5)
    assert (outcome.ok, outcome.permanent, outcome.retry_after_s, outcome.error_type) == expected


def test_a_function_that_answers_too_late_has_timed_out_and_was_called_once(service: FakeLambda) -> None:
    is_over = threading.Event()

    def late() -> Reply:
        is_over.wait(60)
        return 200, {}, b"null"

    service.reply = late
    outcome = call_function(TARGET, event(), 1)
    is_over.set()
    assert (outcome.ok, outcome.permanent, outcome.error_type) == (False, False, "TimedOut")
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("code", "status", "permanent", "throttled"),
    [
        ("TooManyRequestsException", 429, False, True),
        ("EC2ThrottledException", 502, False, True),
        ("ResourceNotFoundException", 404, True, False),
        ("AccessDeniedException", 403, True, False),
        ("RequestTooLargeException", 413, True, False),
        ("ServiceException", 500, False, True),
        ("ResourceConflictException", 409, False, False),
        ("SomethingNewException", 500, False, False),
    ],
)
def test_a_refusal_is_classified_and_not_repeated(
    service: FakeLambda, code: str, status: int, permanent: bool, throttled: bool
) -> None:
    service.reply = (status, {"x-amzn-ErrorType": code}, b'{"Message": "no"}')
    outcome = call_function(TARGET, event(), 5)
    assert (outcome.ok, outcome.error_type) == (False, code)
    assert (outcome.permanent, outcome.throttled, outcome.error) == (permanent, throttled, "no")
    assert len(service.requests) == 1


def test_lambda_says_when_to_come_back(service: FakeLambda) -> None:
    service.reply = (429, {"x-amzn-ErrorType": "TooManyRequestsException", "Retry-After": "7"}, b"{}")
    assert call_function(TARGET, event(), 5).retry_after_s == 7.0


@pytest.mark.parametrize(
    ("code", "permanent", "throttled"),
    [
        ("RequestThrottled", False, True),
        ("KmsThrottled", False, True),
        ("OverLimit", False, True),
        ("QueueDoesNotExist", True, False),
        ("AWS.SimpleQueueService.NonExistentQueue", True, False),
        ("InvalidMessageContents", True, False),
        ("KmsAccessDenied", True, False),
        ("Throttled", False, True),
        ("NotFound", True, False),
        ("AuthorizationError", True, False),
        ("InternalError", False, True),
        ("KMSThrottlingException", False, True),
        ("ExecutionLimitExceeded", False, True),
        ("StateMachineDoesNotExist", True, False),
        ("InvalidExecutionInput", True, False),
        ("ServiceUnavailable", False, True),
        ("ExpiredToken", False, False),
        ("AccessDenied", True, False),
    ],
)
def test_codes_of_the_other_services(code: str, permanent: bool, throttled: bool) -> None:
    outcome = answers.refused_by_aws(refused(code), 5)
    assert (outcome.ok, outcome.permanent, outcome.throttled) == (False, permanent, throttled)
    assert (outcome.error_type, outcome.request_id) == (code, "r-1")


def test_no_code_is_both_permanent_and_throttled() -> None:
    assert not answers.PERMANENT & answers.THROTTLED


@pytest.mark.parametrize(("region", "is_outage"), [(US, True), ("us-east-9", False)])
def test_only_an_endpoint_that_exists_can_be_away(region: str, is_outage: bool) -> None:
    url = f"https://lambda.{region}.amazonaws.com/2015-03-31/functions/report/invocations"
    outcome = answers.refused_by_aws(EndpointConnectionError(endpoint_url=url, error="no such name"), 5)
    assert (outcome.permanent, outcome.throttled) == (False, is_outage)
    assert region in outcome.error


def test_nothing_listening_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_LAMBDA", "http://127.0.0.1:9")
    clients._clients.clear()
    outcome = call_function(TARGET, event(), 5)
    clients._clients.clear()
    assert (outcome.ok, outcome.permanent, outcome.error_type) == (
        False,
        False,
        EndpointConnectionError.__name__,
    )
    assert outcome.throttled, "nothing was called, so it is no attempt of the tenant's"


# Assumed roles

ROLE = "arn:aws:iam::210987654321:role/minute8"


def test_the_external_id_always_names_the_tenant() -> None:
    target = {"role_arn": ROLE, "external_id": "s3cret"}
    assert external_id({"role_arn": ROLE}, event()) == "minute8:alice"
    assert external_id(target, event()) == "minute8:alice:s3cret"
    assert external_id(target, event(tenant="bob")) != external_id(target, event())
    assert external_id({"external_id": "bob"}, event(tenant="minute8")) != external_id(
        {}, event(tenant="bob")
    )


def test_the_session_is_named_after_tenant_and_job() -> None:
    assert session_name(event()) == "alice@report"
    long = session_name(event(tenant="t" * 64, job_id="j" * 128))
    assert len(long) == 64
    assert long != session_name(event(tenant="t" * 64, job_id="j" * 127))


def test_a_role_is_assumed_once_for_a_while_and_apart_for_each_tenant(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    roles, assumed = AssumedRoles(), []

    def assume(self: AssumedRoles, *key: str) -> tuple[float, Credentials]:
        assumed.append(key)
        return time.monotonic() + 3_000, Credentials(f"key-{len(assumed)}", "secret", "token")

    monkeypatch.setattr(AssumedRoles, "_assume", assume)
    target = {"role_arn": ROLE, "external_id": "s3cret"}
    first = roles.get(target, event())
    assert roles.get(target, event(attempt=2)) is first
    assert roles.get(target, event(tenant="bob")) != first
    later = time.monotonic() + 3_001
    monkeypatch.setattr(time, "monotonic", lambda: later)
    assert roles.get(target, event()) != first
    assert assumed[0] == (ROLE, "minute8:alice:s3cret", "alice@report")


def test_256_roles_are_kept_and_the_tenant_with_most_loses_its_oldest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    roles, assumed = AssumedRoles(), []

    def assume(self: AssumedRoles, *key: str) -> tuple[float, Credentials]:
        assumed.append(key[0])
        return math.inf, Credentials("key", "secret", "token")

    monkeypatch.setattr(AssumedRoles, "_assume", assume)

    def call(tenant: str, number: int) -> None:
        roles.get({"role_arn": f"{ROLE}-{number}"}, event(tenant=tenant))

    call("bob", 1_000)
    for _ in range(2):
        for number in range(255):
            call("alice", number)
    assert len(assumed) == 256
    call("alice", 255)
    call("bob", 1_000)
    assert len(assumed) == 257
    call("alice", 0)
    assert assumed[257:] == [f"{ROLE}-0"]


def test_the_call_is_made_with_the_roles_credentials(
    service: FakeLambda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        AssumedRoles, "_assume", lambda self, *key: (math.inf, Credentials("AKROLE", "secret", "tok"))
    )
    monkeypatch.setattr(clients, "_assumed_roles", AssumedRoles())
    assert call_function(TARGET | {"role_arn": ROLE}, event(), 5).ok
    assert call_function(TARGET, event(), 5).ok
    (_, with_role, _), (_, without, _) = service.requests
    assert "Credential=AKROLE/" in with_role["authorization"]
    assert with_role["x-amz-security-token"] == "tok"
    assert "AKROLE" not in without["authorization"]


@pytest.mark.parametrize("call", [call_function, aws_services.send_message])
def test_a_role_that_may_not_be_assumed_is_permanent(monkeypatch: pytest.MonkeyPatch, call: Any) -> None:
    def assume(self: AssumedRoles, *key: str) -> Credentials:
        raise refused("AccessDenied", 403)

    monkeypatch.setattr(AssumedRoles, "_assume", assume)
    outcome = call(TARGET | {"role_arn": ROLE}, event(), 5)
    assert (outcome.ok, outcome.permanent, outcome.error_type) == (False, True, "AccessDenied")
    assert isinstance(refused("x"), ClientError)
