"""The hot requests, of each execution and of each tick, without botocore: same bytes, a sixth of the processor time.

Only what succeeds ends here. Any other answer, or a failure to get one, goes to botocore as the answer to its own first
attempt. So it parses errors, waits and tries again as it always does.
"""

from __future__ import annotations

import io
import json
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Final
from urllib.parse import quote, urlsplit

from botocore.awsrequest import AWSResponse
from botocore.exceptions import BotoCoreError
from botocore.httpsession import get_cert_path
from botocore.utils import get_environ_proxies

from common.storage.connections import MAX_BYTES, Answer, Connections
from common.storage.signing import Credentials, sign
from common.storage.steps import Steps, at_once

Headers = Sequence[tuple[str, str]]

# The answer that botocore takes for that of its first attempt, or why there is none.
_received: ContextVar[AWSResponse | BotoCoreError | None] = ContextVar("_received", default=None)
# How much of a result is read: Lambda's answers have up to 6 MB, and only the beginning is used.
_RESULT_BYTES: Final = 256 * 1024
_TRACE_SAFE: Final = "-=;:+&[]{}\"',"


class Requests:
    """Signs and sends a client's requests. Use only where `is_possible(client)`.

    With `passes_trace_on` they carry Lambda's trace, as botocore's do by default.
    """

    def __init__(self, client: Any, *, passes_trace_on: bool = True) -> None:
        self._passes_trace_on = passes_trace_on
        config = client.meta.config
        url = urlsplit(client.meta.endpoint_url)
        session = client._endpoint.http_session
        self.url = url.geturl()
        self.host = url.netloc
        self.read_timeout_s: float = config.read_timeout
        self._signer = client._request_signer
        self._user_agent: str = config.user_agent
        self.connections = Connections(
            url,
            get_cert_path(session._verify) if url.scheme == "https" else None,
            connect_timeout_s=config.connect_timeout,
            most_idle=config.max_pool_connections,
        )
        client.meta.events.register_first("before-send", _given)

    def send(
        self,
        path: str,
        headers: Headers,
        body: bytes,
        botocores: Callable[[], Any],
        *,
        read_timeout_s: float | None = None,
        most_bytes: int = MAX_BYTES,
    ) -> Steps[Answer | Any]:
        """The answer if it is a success; else what `botocores` returns, which makes the same request through botocore.

        Raises what botocore raises.
        """
        credentials = self._signer._credentials.get_frozen_credentials()
        request = self.encoded(path, headers, body, credentials, time.time(), str(uuid.uuid4()))
        received: AWSResponse | BotoCoreError
        try:
            timeout_s = read_timeout_s or self.read_timeout_s
            answer = yield from self.connections.exchange(request, timeout_s, most_bytes)
        except BotoCoreError as error:
            received = error
        else:
            if 200 <= answer.status < 300:
                return answer
            headers_: Any = answer.headers
            received = AWSResponse(self.url + path, answer.status, headers_, _Raw(answer.body))
        given = _received.set(received)
        try:
            return botocores()
        finally:
            _received.reset(given)

    def encoded(
        self, path: str, headers: Headers, body: bytes, credentials: Credentials, now: float, id_: str
    ) -> bytes:
        """The bytes that botocore would send."""
        signer = self._signer
        signed = sign(
            credentials,
            signer.region_name,
            signer.signing_name,
            path,
            [*headers, ("host", self.host)],
            body,
            now,
        )
        lines = [f"POST {path} HTTP/1.1", f"Host: {self.host}", "Accept-Encoding: identity"]
        lines += [f"{name}: {value}" for name, value in headers]
        lines.append(f"User-Agent: {self._user_agent}")
        if self._passes_trace_on and (trace := _trace()):
            lines.append(f"X-Amzn-Trace-Id: {trace}")
        lines.append(f"X-Amz-Date: {signed.date}")
        if credentials.token:
            lines.append(f"X-Amz-Security-Token: {credentials.token}")
        lines += [
            f"Authorization: {signed.authorization}",
            f"amz-sdk-invocation-id: {id_}",
            "amz-sdk-request: attempt=1",
            f"Content-Length: {len(body)}",
        ]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body


def is_possible(client: Any) -> bool:
    """Whether this client's requests are plain: signed by version 4, without a proxy, to the root of an endpoint."""
    url = client.meta.endpoint_url
    signer = client._request_signer
    return bool(
        signer.signature_version == "v4"
        and signer._credentials is not None
        and client._endpoint.http_session._verify
        and urlsplit(url).path in ("", "/")
        and not client.meta.config.proxies
        and not get_environ_proxies(url)
    )


class DirectDynamoDB:
    """A DynamoDB client whose calls in each execution are direct; all others are botocore's."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.requests = Requests(client)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def get_item(self, **request: Any) -> Any:
        return self._call("GetItem", self._client.get_item, request)

    def batch_get_item(self, **request: Any) -> Any:
        return self._call("BatchGetItem", self._client.batch_get_item, request)

    def query(self, **request: Any) -> Any:
        return self._call("Query", self._client.query, request)

    def update_item(self, **request: Any) -> Any:
        return self._call("UpdateItem", self._client.update_item, request)

    def batch_execute_statement(self, **request: Any) -> Any:
        return self._call("BatchExecuteStatement", self._client.batch_execute_statement, request)

    def _call(self, operation: str, botocores: Callable[..., Any], request: dict[str, Any]) -> Any:
        headers = [
            ("X-Amz-Target", f"DynamoDB_20120810.{operation}"),
            ("Content-Type", "application/x-amz-json-1.0"),
        ]
        body = json.dumps(request).encode()
        answer = at_once(self.requests.send("/", headers, body, lambda: botocores(**request)))
        return json.loads(answer.body) if isinstance(answer, Answer) else answer


class DirectSQS:
    """An SQS client whose `send_message_batch` is direct; all other calls are botocore's.

    The requests do not carry Lambda's trace (common/storage/aws.py says why).
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self.requests = Requests(client, passes_trace_on=False)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def send_message_batch(self, **request: Any) -> Any:
        headers = [
            ("X-Amz-Target", "AmazonSQS.SendMessageBatch"),
            ("Content-Type", "application/x-amz-json-1.0"),
            ("x-amzn-query-mode", "true"),
        ]
        body = json.dumps(request).encode()
        sending = self.requests.send("/", headers, body, lambda: self._client.send_message_batch(**request))
        answer = at_once(sending)
        return json.loads(answer.body) if isinstance(answer, Answer) else answer


class DirectLambda:
    """A Lambda client whose `invoke` is direct, and returns the beginning of a result."""

    def __init__(self, client: Any, read_timeout_s: Callable[[], float | None]) -> None:
        """`read_timeout_s` returns how long the calling thread's next call waits for an answer."""
        self._client = client
        self._read_timeout_s = read_timeout_s
        self.requests = Requests(client)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def invoke(self, **request: Any) -> Any:
        return at_once(self.invoke_in_steps(**request))

    def invoke_in_steps(self, **request: Any) -> Steps[Any]:
        headers = [
            ("X-Amz-Invocation-Type", request["InvocationType"]),
            ("X-Amz-Log-Type", request["LogType"]),
        ]
        answer = yield from self.requests.send(
            _invocations(request["FunctionName"]),
            headers,
            request["Payload"],
            lambda: self._client.invoke(**request),
            read_timeout_s=self._read_timeout_s(),
            # Lambda has accepted an event by its status: a body that breaks off does not matter.
            most_bytes=0 if request["InvocationType"] == "Event" else _RESULT_BYTES,
        )
        if not isinstance(answer, Answer):
            return answer
        found = {
            "Payload": io.BytesIO(answer.body),
            "ResponseMetadata": {"RequestId": answer.headers.get("x-amzn-requestid", "")},
        }
        for name, header in (
            ("FunctionError", "x-amz-function-error"),
            ("LogResult", "x-amz-log-result"),
        ):
            if header in answer.headers:
                found[name] = answer.headers[header]
        return found


def _invocations(arn: str) -> str:
    # `quote` is slow where it has something to encode, and an ARN always has colons.
    name = quote(arn, safe=":").replace(":", "%3A")
    return f"/2015-03-31/functions/{name}/invocations"


def _given(**_: object) -> AWSResponse | None:
    """The answer that was received, once; botocore sends nothing then. Raises why there is none."""
    received = _received.get()
    _received.set(None)
    if isinstance(received, BotoCoreError):
        raise received
    return received


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
