"""The hot requests, of each execution and of each tick, without botocore: same bytes, a fifth of the processor time.

Only what succeeds ends here. Any other answer, or a failure to get one, goes to botocore as the answer to its own first
attempt. So it parses errors, waits and tries again as it always does.

Only for AWS's own endpoints. Untrusted ones get `executor/targets/bounded_http.py`.
"""

from __future__ import annotations

import io
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cached_property, partialmethod
from typing import Any, Final, NoReturn
from urllib.parse import quote, urlsplit

from botocore.awsrequest import AWSResponse
from botocore.exceptions import BotoCoreError
from botocore.httpsession import get_cert_path
from botocore.utils import get_environ_proxies

from common.errors import Busy
from common.storage import outgoing
from common.storage.connections import MAX_BYTES, Connections, Repeat
from common.storage.http_answer import Response
from common.storage.outgoing import Steps, at_once
from common.storage.signing import Credentials, Request, Service, sign

# Lambda's results have up to 6 MB, and only the beginning is used.
_RESULT_BYTES: Final = 256 * 1024
# A request that serves several tenants. Each of them then makes its own.
_ONCE_S: Final = 1.0
_ERROR_BYTES: Final = 200
# What a call may name besides, in botocore's order.
_NAMING_HEADERS: Final = (
    ("DurableExecutionName", "X-Amz-Durable-Execution-Name"),
    ("TenantId", "X-Amz-Tenant-Id"),
)
_TRACE_SAFE: Final = "-=;:+&[]{}\"',"

# The answer that botocore takes for that of its first attempt, or why there is none.
_received: ContextVar[AWSResponse | BotoCoreError | None] = ContextVar("_received", default=None)


class Requests:
    """Signs and sends a client's requests. Use only where `is_plain(client)`.

    `credentials` and `trusted_roots` are those that the client was built with, which it does not tell.
    With `passes_trace_on` they carry Lambda's trace, as botocore's do by default.
    """

    def __init__(
        self, client: Any, credentials: Any, trusted_roots: str | bool, *, passes_trace_on: bool = True
    ) -> None:
        self._credentials = credentials
        self._passes_trace_on = passes_trace_on
        config = client.meta.config
        roots: Any = trusted_roots
        url = urlsplit(client.meta.endpoint_url)
        self.url = url.geturl()
        self.host = url.netloc
        self.read_timeout_s: float = config.read_timeout
        self._service = Service(client.meta.region_name, client.meta.service_model.signing_name)
        self._user_agent: str = config.user_agent
        self.connections = Connections(
            url,
            get_cert_path(roots) if url.scheme == "https" else None,
            connect_timeout_s=config.connect_timeout,
            max_idle=config.max_pool_connections,
        )
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

    def encoded(self, request: Request, credentials: Credentials, now: float, invocation_id: str) -> bytes:
        """The bytes that botocore would send."""
        to_sign = Request(request.path, (*request.headers, ("host", self.host)), request.body)
        signed = sign(to_sign, credentials, self._service, now)
        lines = [f"POST {request.path} HTTP/1.1", f"Host: {self.host}", "Accept-Encoding: identity"]
        lines += [f"{name}: {value}" for name, value in request.headers]
        lines.append(f"User-Agent: {self._user_agent}")
        if self._passes_trace_on and (trace := _trace()):
            lines.append(f"X-Amzn-Trace-Id: {trace}")
        lines.append(f"X-Amz-Date: {signed.date}")
        if credentials.token:
            lines.append(f"X-Amz-Security-Token: {credentials.token}")
        lines += [
            f"Authorization: {signed.authorization}",
            f"amz-sdk-invocation-id: {invocation_id}",
            "amz-sdk-request: attempt=1",
            f"Content-Length: {len(request.body)}",
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + request.body


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
        return json.loads(response.body) if isinstance(response, Response) else response


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
            max_bytes=0 if request["InvocationType"] == "Event" else _RESULT_BYTES,
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
    """Lambda's trace, which carries its chain of invocations on: it stops endless ones.

    https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
    """
    if "AWS_LAMBDA_FUNCTION_NAME" not in os.environ:
        return ""
    return quote(os.environ.get("_X_AMZN_TRACE_ID", ""), safe=_TRACE_SAFE)


class _Raw:
    """A body that was read already, as botocore reads one."""

    def __init__(self, body: bytes) -> None:
        self._file = io.BytesIO(body)

    def read(self, *amount: int) -> bytes:
        return self._file.read(*amount)

    def stream(self, *_: object, **__: object) -> Iterator[bytes]:
        yield self._file.read()
