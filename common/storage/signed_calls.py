"""Signed requests to AWS's own endpoints, without botocore: same bytes, a fifth of the processor time.

Of a hot request, of each execution and of each tick, only what succeeds ends here. Any other answer, or a failure to
get one, goes to botocore as the answer to its own first attempt. So it parses errors, waits and tries again as it
always does. Calls of KMS and SSM have no client of botocore's: it would add their descriptions to the Lambda package.

Untrusted endpoints get `executor/targets/bounded_http.py`.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partialmethod
from typing import Any, Final, NoReturn, Protocol, cast
from urllib.parse import quote, urlsplit

from botocore.awsrequest import AWSResponse
from botocore.exceptions import BotoCoreError, ClientError
from botocore.httpsession import get_cert_path
from botocore.utils import get_environ_proxies
from msgspec.json import decode

from common.errors import Busy
from common.limits import RESULT_BYTES
from common.storage import outgoing
from common.storage.connections import MAX_BYTES, Connections, Repeat, Response
from common.storage.domains import domain_of, partition_of
from common.storage.outgoing import Steps, at_once
from common.timing.instants import compact_time

# A request that serves several tenants. Each of them then makes its own.
_ONCE_S: Final = 1.0
_ERROR_BYTES: Final = 200
# What a call may name besides, in botocore's order.
_NAMING_HEADERS: Final = (
    ("DurableExecutionName", "X-Amz-Durable-Execution-Name"),
    ("TenantId", "X-Amz-Tenant-Id"),
)
# KMS and SSM: somebody waits for the rest of the answer.
_CALL_S: Final = 3
_BINARY: Final = ("CiphertextBlob", "Plaintext")
_TRACE_SAFE: Final = "-=;:+&[]{}\"',"

# Of one client: about the targets that an environment calls by turns. One takes a kilobyte or two.
_TEMPLATES: Final = 512
# Stands for the date in a template.
_DATE: Final = "\0"

# The answer that botocore takes for that of its first attempt, or why there is none.
_received: ContextVar[AWSResponse | BotoCoreError | None] = ContextVar("_received", default=None)


class Credentials(Protocol):
    """botocore's frozen credentials. `token` is None for those of a user."""

    access_key: str
    secret_key: str
    token: str | None


@dataclass(frozen=True, slots=True)
class Request:
    """A POST without a query. `path` is percent-encoded; `headers` are those to sign, without date and token."""

    path: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


@dataclass(frozen=True, slots=True)
class Service:
    """The service that a request goes to."""

    region: str
    name: str


def signature_of(text: str, secret_key: str, day: str, region: str, service: str) -> str:
    """The signature of what is to be signed of a request, in hexadecimal digits."""
    # A copy takes a third of the time that a new HMAC takes.
    signing = _signing(secret_key, day, region, service).copy()
    signing.update(text.encode())
    return signing.hexdigest()


@lru_cache(maxsize=4_096)
def _signing(secret_key: str, day: str, region: str, service: str) -> hmac.HMAC:
    """The HMAC that signs a day's requests to a service, before it has read a text."""
    key = f"AWS4{secret_key}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.new(key, digestmod="sha256")


class Endpoint:
    """An endpoint of AWS and the connections to it. `roots`: a file of roots to trust, or True for botocore's own.

    With `passes_trace_on` requests carry Lambda's trace, as botocore's do by default.
    """

    def __init__(
        self,
        url: str,
        service: Service,
        roots: str | bool,
        user_agent: str,
        *,
        connect_timeout_s: float,
        max_idle: int,
        passes_trace_on: bool = True,
    ) -> None:
        parts, trusted = urlsplit(url), cast(Any, roots)
        self.url, self._host, self._service = parts.geturl(), parts.netloc, service
        self._user_agent, self._passes_trace_on = user_agent, passes_trace_on
        self._template = lru_cache(_TEMPLATES)(self._new_template)
        self.connections = Connections(
            parts,
            get_cert_path(trusted) if parts.scheme == "https" else None,
            connect_timeout_s=connect_timeout_s,
            max_idle=max_idle,
        )

    def encoded(self, request: Request, credentials: Credentials, now: float, invocation_id: str) -> bytes:
        """The bytes that botocore would send."""
        template = self._template(request.path, request.headers, credentials.token)
        date, service = compact_time(int(now)), self._service
        canonical = (
            template.before_date + date + template.after_date + hashlib.sha256(request.body).hexdigest()
        )
        scope = f"{date[:8]}/{service.region}/{service.name}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{date}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = signature_of(text, credentials.secret_key, date[:8], service.region, service.name)
        trace = _trace() if self._passes_trace_on else ""
        head = (
            f"{template.head}{trace}X-Amz-Date: {date}\r\n{template.token_line}"
            f"Authorization: AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, "
            f"SignedHeaders={template.signed_names}, Signature={signature}\r\n"
            f"amz-sdk-invocation-id: {invocation_id}\r\namz-sdk-request: attempt=1\r\n"
            f"Content-Length: {len(request.body)}\r\n\r\n"
        )
        return head.encode("latin-1") + request.body

    def _new_template(self, path: str, headers: tuple[tuple[str, str], ...], token: str | None) -> _Template:
        signed = [(name.lower(), " ".join(value.split())) for name, value in (*headers, ("host", self._host))]
        signed.append(("x-amz-date", _DATE))
        if token:
            signed.append(("x-amz-security-token", token))
        signed.sort()
        names = ";".join(name for name, _ in signed)
        lines = "".join(f"{name}:{value}\n" for name, value in signed)
        canonical = f"POST\n{path.replace('%', '%25')}\n\n{lines}\n{names}\n"
        before_date, _, after_date = canonical.partition(_DATE)
        sent = [f"POST {path} HTTP/1.1", f"Host: {self._host}", "Accept-Encoding: identity"]
        sent += [f"{name}: {value}" for name, value in (*headers, ("User-Agent", self._user_agent))]
        token_line = f"X-Amz-Security-Token: {token}\r\n" if token else ""
        return _Template(before_date, after_date, names, "\r\n".join(sent) + "\r\n", token_line)


@dataclass(frozen=True, slots=True)
class _Template:
    """What requests to a path with the same headers and token share: what is signed beside the date, and sent."""

    before_date: str
    after_date: str
    signed_names: str
    head: str
    token_line: str


class Requests(Endpoint):
    """Signs and sends a client's requests. Use only where `is_plain(client)`.

    `credentials` and `trusted_roots` are those that the client was built with, which it does not tell.
    """

    def __init__(
        self, client: Any, credentials: Any, trusted_roots: str | bool, *, passes_trace_on: bool = True
    ) -> None:
        config, url = client.meta.config, client.meta.endpoint_url
        super().__init__(
            url,
            Service(client.meta.region_name, client.meta.service_model.signing_name),
            trusted_roots,
            config.user_agent,
            connect_timeout_s=config.connect_timeout,
            max_idle=config.max_pool_connections,
            passes_trace_on=passes_trace_on,
        )
        self._credentials = credentials
        self.read_timeout_s: float = config.read_timeout
        client.meta.events.register_first("before-send", _answer_for_botocore)

    def send(
        self,
        request: Request,
        by_botocore: Callable[[], Any],
        *,
        read_timeout_s: float | None = None,
        max_bytes: int = MAX_BYTES,
        repeat: Repeat = Repeat.ALWAYS,
    ) -> Steps[Response | Any]:
        """The answer if it is a success; else what `by_botocore` returns, which makes the same request.

        By default the request may be made twice, as botocore would.

        Raises what botocore raises.
        """
        encoded = self.encoded(
            request, self._credentials.get_frozen_credentials(), time.time(), str(uuid.uuid4())
        )
        received: AWSResponse | BotoCoreError
        try:
            timeout_s = read_timeout_s or self.read_timeout_s
            response = yield from self.connections.exchange(encoded, timeout_s, max_bytes, repeat)
        except BotoCoreError as error:
            received = error
        else:
            if 200 <= response.status < 300:
                return response
            headers: Any = response.headers
            received = AWSResponse(self.url + request.path, response.status, headers, _Raw(response.body))
        token = _received.set(received)
        try:
            return by_botocore()
        finally:
            _received.reset(token)


def is_plain(client: Any) -> bool:
    """Whether this client's requests are plain: signed by version 4, without a proxy, to the root of an endpoint."""
    url = client.meta.endpoint_url
    return bool(
        client.meta.config.signature_version == "v4"
        and urlsplit(url).path in ("", "/")
        and not client.meta.config.proxies
        and not get_environ_proxies(url)
    )


class _DirectClient:
    """A client of botocore's, some of whose calls are direct; all others are botocore's."""

    def __init__(self, client: Any, requests: Requests, *, is_once: bool = False) -> None:
        """With `is_once`, a direct call that fails is not tried again, and has a short time limit."""
        self._client = client
        self._is_once = is_once
        self.requests = requests

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def _call(self, call: str, headers: tuple[tuple[str, str], ...], **arguments: Any) -> Any:
        """The answer to a request in JSON, which the method `call` of botocore's client makes as well."""
        request = Request("/", headers, json.dumps(arguments).encode())
        by_botocore = getattr(self._client, call)
        again = _raise_failure if self._is_once else lambda: by_botocore(**arguments)
        limit_s = _ONCE_S if self._is_once else None
        # Without a second attempt, silence ends at the limit: what follows opens its own connections.
        repeat = Repeat.UNSEEN if self._is_once else Repeat.ALWAYS
        response = at_once(self.requests.send(request, again, read_timeout_s=limit_s, repeat=repeat))
        return decode(response.body) if isinstance(response, Response) else response


def _json_headers(target: str) -> tuple[tuple[str, str], ...]:
    return ("X-Amz-Target", target), ("Content-Type", "application/x-amz-json-1.0")


def _direct(call: str) -> Any:
    """A method that makes the call of DynamoDB which botocore's `call` makes."""
    operation = "".join(word.capitalize() for word in call.split("_"))
    return partialmethod(_DirectClient._call, call, _json_headers(f"DynamoDB_20120810.{operation}"))


class DirectDynamoDB(_DirectClient):
    """A DynamoDB client whose calls for items are direct."""

    get_item = _direct("get_item")
    batch_get_item = _direct("batch_get_item")
    query = _direct("query")
    put_item = _direct("put_item")
    update_item = _direct("update_item")
    delete_item = _direct("delete_item")
    batch_write_item = _direct("batch_write_item")
    batch_execute_statement = _direct("batch_execute_statement")
    _transact_write_items = _direct("transact_write_items")

    @cached_property
    def once(self) -> DirectDynamoDB:
        """The same client for requests that serve several tenants: none waits while another's is tried again."""
        return DirectDynamoDB(self._client, self.requests, is_once=True)

    def transact_write_items(self, **request: Any) -> Any:
        # A request that is made again has the same token, so the transaction happens once.
        token = request.get("ClientRequestToken") or str(uuid.uuid4())
        return self._transact_write_items(**request | {"ClientRequestToken": token})


class DirectSQS(_DirectClient):
    """An SQS client whose `send_message_batch` is direct."""

    send_message_batch = partialmethod(
        _DirectClient._call,
        "send_message_batch",
        (*_json_headers("AmazonSQS.SendMessageBatch"), ("x-amzn-query-mode", "true")),
    )


class DirectLambda(_DirectClient):
    """A Lambda client whose `invoke` is direct, and returns the beginning of a result."""

    def __init__(self, client: Any, requests: Requests, read_timeout_s: Callable[[], float | None]) -> None:
        """`read_timeout_s` returns how long the calling thread's next call waits for an answer."""
        super().__init__(client, requests)
        self._read_timeout_s = read_timeout_s

    def invoke(self, **request: Any) -> Any:
        return at_once(self.invoke_in_steps(**request))

    def invoke_in_steps(self, **request: Any) -> Steps[Any]:
        headers = (
            ("X-Amz-Invocation-Type", request["InvocationType"]),
            ("X-Amz-Log-Type", request["LogType"]),
            *((header, request[name]) for name, header in _NAMING_HEADERS if name in request),
        )
        response = yield from self.requests.send(
            Request(_invocations(request["FunctionName"]), headers, request["Payload"]),
            lambda: self._client.invoke(**request),
            read_timeout_s=self._read_timeout_s(),
            # Lambda has accepted an event by its status: a body that breaks off does not matter.
            max_bytes=0 if request["InvocationType"] == "Event" else RESULT_BYTES,
            repeat=Repeat.UNSEEN if outgoing.may_be_repeated() else Repeat.NEVER,
        )
        if not isinstance(response, Response):
            return response
        result = {
            "Payload": io.BytesIO(response.body),
            "ResponseMetadata": {"RequestId": response.headers.get("x-amzn-requestid", "")},
        }
        for name, header in (
            ("FunctionError", "x-amz-function-error"),
            ("LogResult", "x-amz-log-result"),
            ("DurableExecutionArn", "x-amz-durable-execution-arn"),
        ):
            if header in response.headers:
                result[name] = response.headers[header]
        return result


@dataclass(frozen=True, slots=True)
class PlainCalls:
    """Calls that no client of botocore's makes, with the rights of a session of botocore's."""

    session: Any
    trusted_roots: str | bool

    def call(self, service: str, operation: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request; `operation` as in the header X-Amz-Target. The call may happen twice.

        Raises ClientError (the service refuses), BotoCoreError (it does not answer), ValueError (it answers no JSON).
        """
        region = self.session.get_config_variable("region")
        endpoint = _plain_endpoint(_url_of(service, region), Service(region, service), self.trusted_roots)
        headers = ("X-Amz-Target", operation), ("Content-Type", "application/x-amz-json-1.1")
        credentials = self.session.get_credentials().get_frozen_credentials()
        request = Request("/", headers, json.dumps(body).encode())
        encoded = endpoint.encoded(request, credentials, time.time(), str(uuid.uuid4()))
        response = at_once(endpoint.connections.exchange(encoded, _CALL_S, repeat=Repeat.ALWAYS))
        answer: dict[str, Any] = decode(response.body)
        if response.status == 200:
            return answer
        code = str(answer.get("__type", "")).rpartition("#")[2] or str(response.status)
        message = str(answer.get("message") or answer.get("Message") or "")
        raise ClientError({"Error": {"Code": code, "Message": message}}, operation.rpartition(".")[2])

    def encrypt(self, **request: Any) -> dict[str, Any]:
        """As boto3's client for KMS. Raises what `call` raises."""
        return self._binary("TrentService.Encrypt", request)

    def decrypt(self, **request: Any) -> dict[str, Any]:
        """As boto3's client for KMS. Raises what `call` raises."""
        return self._binary("TrentService.Decrypt", request)

    def _binary(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        body = {
            name: base64.b64encode(value).decode() if isinstance(value, bytes) else value
            for name, value in request.items()
        }
        answer = self.call("kms", operation, body)
        return answer | {name: base64.b64decode(answer[name]) for name in _BINARY if name in answer}


def _url_of(service: str, region: str) -> str:
    endpoint = os.environ.get(f"AWS_ENDPOINT_URL_{service.upper()}") or os.environ.get("AWS_ENDPOINT_URL")
    return endpoint or f"https://{service}.{region}.{domain_of(partition_of(region))}"


@cache
def _plain_endpoint(url: str, service: Service, roots: str | bool) -> Endpoint:
    """Its connections stay open: to read the roots takes longer than a call."""
    return Endpoint(url, service, roots, "minute8", connect_timeout_s=_CALL_S, max_idle=8)


@lru_cache(_TEMPLATES)
def _invocations(arn: str) -> str:
    # `quote` is slow where it has something to encode, and an ARN always has colons.
    name = quote(arn, safe=":").replace(":", "%3A")
    return f"/2015-03-31/functions/{name}/invocations"


def _answer_for_botocore(**_: object) -> AWSResponse | None:
    """The answer that was received, once; botocore sends nothing then. Raises why there is none."""
    received = _received.get()
    _received.set(None)
    if isinstance(received, BotoCoreError):
        raise received
    return received


def _raise_failure() -> NoReturn:
    """Raise the failure of a request that is not tried again."""
    received = _received.get()
    if isinstance(received, BotoCoreError):
        raise received
    assert received is not None
    raise Busy(f"a request was refused: {received.status_code} {received.content[:_ERROR_BYTES]!r}")


def _trace() -> str:
    """The header with Lambda's trace, which carries its chain of invocations on: it stops endless ones.

    https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
    """
    if "AWS_LAMBDA_FUNCTION_NAME" not in os.environ:
        return ""
    return _trace_line(os.environ.get("_X_AMZN_TRACE_ID", ""))


@lru_cache(8)
def _trace_line(trace: str) -> str:
    return f"X-Amzn-Trace-Id: {quote(trace, safe=_TRACE_SAFE)}\r\n" if trace else ""


class _Raw:
    """A body that was read already, as botocore reads one."""

    def __init__(self, body: bytes) -> None:
        self._file = io.BytesIO(body)

    def read(self, *amount: int) -> bytes:
        return self._file.read(*amount)

    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        yield self._file.read()
