"""An AWS inside this process: the whole client runs (it serialises, signs, parses); only the socket is missing.

The stub's own time is measured on its threads and subtracted.
"""

from __future__ import annotations

import json
import queue
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import botocore.session
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.credentials import Credentials

from common.storage import aws
from common.storage.connections import Response
from common.storage.outgoing import Steps
from common.storage.signed_calls import DirectDynamoDB, DirectLambda, DirectSQS, Requests

Answer = Callable[[dict[str, Any]], bytes]
_CREDENTIALS = Credentials("stub", "stub")
_MESSAGE_ID = "5fea7756-0ea4-451a-a703-a558b933e274"
QUEUE_URL = "https://sqs.us-east-1.amazonaws.com/123456789012/minute8-executions"


class Cost:
    """The processor time of one measured piece of work, without the stub's part."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self.wall_s = 0.0
        self.bytes_read = 0
        self.requests: Counter[str] = Counter()


class StubAws:
    """Answers requests by operation name: `stub.answers["Query"]` makes a body of the request's JSON.

    `takes_s` is how long each operation's requests stay on the way.
    """

    def __init__(self, takes_s: Mapping[str, float] | None = None) -> None:
        self.answers: dict[str, Answer] = {
            "SendMessageBatch": send_message_batch,
            "SendMessage": send_message,
        }
        self._takes_s = takes_s or {}
        self._requests: Counter[str] = Counter()
        self._bytes_read = 0
        self._cpu_s = 0.0
        self._lock = threading.Lock()

    def client(self, service: str) -> Any:
        """A real client of `service`, configured as common/storage/aws.py does it."""
        client = self.stock_client(service, aws._own_config())
        return aws.tuned(client) if service == "dynamodb" else client

    def direct(self, service: str) -> Any:
        """A client of `service` as the functions have it: its hot calls go around botocore."""
        client = self.client(service)
        direct: Any
        requests = Requests(client, _CREDENTIALS, True, passes_trace_on=service != "sqs")
        match service:
            case "dynamodb":
                direct = DirectDynamoDB(client, requests)
            case "sqs":
                direct = DirectSQS(client, requests)
            case _:
                direct = DirectLambda(client, requests, lambda: None)
        direct.requests.connections = (_Polled if service == "lambda" else _Connections)(self)
        return direct

    def stock_client(self, service: str, config: Config | None = None) -> Any:
        """A real client with default settings."""
        client: Any = botocore.session.get_session().create_client(
            service,
            region_name="us-east-1",
            config=config or Config(max_pool_connections=64),
            aws_access_key_id=_CREDENTIALS.access_key,
            aws_secret_access_key=_CREDENTIALS.secret_key,
        )
        client.meta.events.register("before-send", self._answer)
        return client

    def _answer(self, request: Any, **_: object) -> Any:
        began = time.thread_time()
        target = request.headers.get("X-Amz-Target")
        body, operation = self._body(target.decode() if isinstance(target, bytes) else target, request.body)
        headers: Any = {"content-type": "application/x-amz-json-1.0", "x-amzn-RequestId": "stub"}
        answer = AWSResponse(request.url, 202 if operation == "Invoke" else 200, headers, _Body(body))
        self._count(operation, body, began)
        time.sleep(self._takes_s.get(operation, 0))
        return answer

    def exchange(self, request: bytes) -> tuple[Response, float]:
        """The answer to a direct request, and how long it stays on the way."""
        began = time.thread_time()
        head, _, sent = request.partition(b"\r\n\r\n")
        target = head.partition(b"\r\nX-Amz-Target: ")[2].partition(b"\r\n")[0]
        body, operation = self._body(target.decode() or None, sent)
        answer = Response(202 if operation == "Invoke" else 200, {"x-amzn-requestid": "stub"}, body)
        self._count(operation, body, began)
        return answer, self._takes_s.get(operation, 0)

    def _body(self, target: str | None, request: bytes) -> tuple[bytes, str]:
        operation = "Invoke" if target is None else target.partition(".")[2]
        return self.answers[operation](json.loads(request)), operation

    def _count(self, operation: str, body: bytes, began: float) -> None:
        with self._lock:
            self._requests[operation] += 1
            self._bytes_read += len(body)
            self._cpu_s += time.thread_time() - began

    def count_cpu(self, cpu_s: float) -> None:
        """Subtract this from what is measured."""
        with self._lock:
            self._cpu_s += cpu_s

    @contextmanager
    def measured(self) -> Iterator[Cost]:
        """Measures the block; the cost is set at its end."""
        cost = Cost()
        self._requests, self._bytes_read, self._cpu_s = Counter(), 0, 0.0
        began, began_at = time.process_time(), time.perf_counter()
        yield cost
        cost.wall_s = time.perf_counter() - began_at
        cost.cpu_s = time.process_time() - began - self._cpu_s
        cost.requests, cost.bytes_read = self._requests, self._bytes_read


def send_message(request: dict[str, Any]) -> bytes:
    """SQS takes it."""
    return json.dumps({"MessageId": _MESSAGE_ID, "MD5OfMessageBody": "0" * 32}).encode()


def send_message_batch(request: dict[str, Any]) -> bytes:
    """SQS accepts everything."""
    entries = [
        {"Id": entry["Id"], "MessageId": _MESSAGE_ID, "MD5OfMessageBody": "0" * 32}
        for entry in request["Entries"]
    ]
    return json.dumps({"Successful": entries, "Failed": []}).encode()


class _Connections:
    """Stands in for a client's kept connections."""

    def __init__(self, aws: StubAws) -> None:
        self._aws = aws

    def exchange(self, request: bytes, *_: object) -> Steps[Response]:
        answer, takes_s = self._aws.exchange(request)
        time.sleep(takes_s)
        yield from ()
        return answer


class _Polled(_Connections):
    """Its answers come over sockets, one after the other: each is on the way for as long as the others."""

    def __init__(self, aws: StubAws) -> None:
        super().__init__(aws)
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._under_way: queue.SimpleQueue[tuple[float, socket.socket]] = queue.SimpleQueue()
        threading.Thread(target=self._deliver, daemon=True).start()

    def exchange(self, request: bytes, *_: object) -> Steps[Response]:
        answer, takes_s = self._aws.exchange(request)
        if takes_s:
            began = time.thread_time()
            pair = self._pairs.pop() if self._pairs else socket.socketpair()
            self._under_way.put((time.perf_counter() + takes_s, pair[1]))
            self._aws.count_cpu(time.thread_time() - began)
            yield pair[0]
            pair[0].recv(1)
            self._pairs.append(pair)
        return answer

    def _deliver(self) -> None:
        while True:
            due_at, peer = self._under_way.get()
            began = time.thread_time()
            time.sleep(max(0.0, due_at - time.perf_counter()))
            peer.send(b"x")
            self._aws.count_cpu(time.thread_time() - began)


class _Body:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self, **_: object) -> Iterator[bytes]:
        yield self._content

    def read(self, *_: object) -> bytes:
        content, self._content = self._content, b""
        return content

    def close(self) -> None:
        """There is nothing to close."""
