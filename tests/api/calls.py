"""Calling the real handler with the events that API Gateway sends (payload format 2.0)."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import httpx

from minute8.api import handler
from tests.api.alarm_board import AlarmBoard
from tests.api.dead_letters import LetterBox
from tests.worlds import World


@dataclass(frozen=True)
class Answer:
    """What came back, as it goes over the wire."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def text(self) -> str:
        is_compressed = self.headers.get("content-encoding") == "gzip"
        return (gzip.decompress(self.content) if is_compressed else self.content).decode()

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def problem(self) -> str:
        """The problem's name: its type without the prefix that all types have."""
        assert self.headers["content-type"] == "application/problem+json", self
        assert self.json["status"] == self.status
        assert self.json["request_id"] == self.headers["x-request-id"] == "request-1"
        return str(self.json["type"]).removeprefix("urn:minute8:problem:")


def event(
    method: str,
    url: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    *,
    base64d: bool = False,
) -> dict[str, Any]:
    """As an HTTP API sends it: the path decoded, header names in lower case.

    https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
    """
    parts = urlsplit(url)
    gateway_event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "ANY /v1/{proxy+}",
        "rawPath": unquote(parts.path),
        "rawQueryString": parts.query,
        "headers": {name.lower(): value for name, value in (headers or {}).items()},
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "api",
            "http": {
                "method": method,
                "path": unquote(parts.path),
                "protocol": "HTTP/1.1",
                "sourceIp": "192.0.2.1",
            },
            "requestId": "request-1",
            "stage": "$default",
        },
        "isBase64Encoded": base64d,
    }
    if query := parse_qsl(parts.query, keep_blank_values=True):
        gateway_event["queryStringParameters"] = {
            name: ",".join(value for other, value in query if other == name) for name, _ in query
        }
    if body is not None:
        gateway_event["body"] = base64.b64encode(body).decode() if base64d else body.decode()
    return gateway_event


def send(
    method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
) -> Answer:
    """One request, through the handler that Lambda calls."""
    raw = handler.handle(event(method, url, headers, body), None)
    names = {name.lower(): value for name, value in raw["headers"].items()}
    # API Gateway accepts a missing body; the embedded AWS answers it with 500.
    assert isinstance(raw["body"], str), raw
    content = base64.b64decode(raw["body"]) if raw["isBase64Encoded"] else raw["body"].encode()
    return Answer(raw["statusCode"], names, content)


@dataclass
class Caller:
    """A caller with a key, or without one."""

    key: str | None
    headers: dict[str, str] = field(default_factory=dict)

    def __call__(self, method: str, url: str, body: Any = None, **headers: str) -> Answer:
        """`body` goes as JSON, a tuple as NDJSON, bytes as they are; If_Match=… becomes the header If-Match."""
        sent = {}
        if isinstance(body, tuple):
            sent["content-type"] = "application/x-ndjson"
            body = b"\n".join(json.dumps(line).encode() for line in body)
        elif body is not None:
            sent["content-type"] = "application/json"
        if self.key is not None:
            sent["authorization"] = f"Bearer {self.key}"
        sent |= {name.replace("_", "-").lower(): value for name, value in headers.items()}
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        return send(method, url, sent, data)


@dataclass
class Office:
    """A world with its API, keys and tokens of every role, and invalid keys and tokens."""

    world: World
    dead_letters: LetterBox
    board: AlarmBoard
    alice: Caller
    alice_reads: Caller
    alice_admin: Caller
    bob: Caller
    operator: Caller
    nobody: Mapping[str, Caller]
    alice_tokens: Mapping[str, Caller]
    bob_token: Caller
    new_key: Callable[..., str]

    @property
    def everybody(self) -> dict[str, Caller]:
        """By the names of the walk (`tests/api/walk.py`)."""
        return {
            "alice's read key": self.alice_reads,
            "alice's write key": self.alice,
            "alice's admin key": self.alice_admin,
            "bob's admin key": self.bob,
            "an operator key": self.operator,
            **{f"alice's {role} token": caller for role, caller in self.alice_tokens.items()},
            "bob's admin token": self.bob_token,
            **self.nobody,
        }

    def stored(self) -> list[dict[str, Any]]:
        """Every item that a refusal must not change: all but the counts of requests."""
        items: list[dict[str, Any]] = []
        for name in ("jobs", "due", "tenants", "audit", "runs"):
            items += self.world.dynamodb.scan(TableName=f"test-{name}")["Items"]
        return [item for item in items if item["sk"]["S"] != "RATE"]


class HandlerTransport(httpx.BaseTransport):
    """The API's handler in place of a network. The first requests fail with `failures`: statuses or exceptions."""

    def __init__(self, failures: Sequence[int | Exception] = ()) -> None:
        self.failures = list(failures)
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.failures:
            failure = self.failures.pop(0)
            if isinstance(failure, Exception):
                raise failure
            return httpx.Response(failure, json={"message": "Service Unavailable"}, request=request)
        body = request.read() or None
        answer = send(request.method, request.url.raw_path.decode(), dict(request.headers), body)
        return httpx.Response(answer.status, headers=answer.headers, content=answer.content, request=request)


class AsyncHandlerTransport(httpx.AsyncBaseTransport):
    """The same for the asynchronous clients."""

    def __init__(self, failures: Sequence[int | Exception] = ()) -> None:
        self.handler = HandlerTransport(failures)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await asyncio.sleep(0)  # other tasks get a turn, as during a real request
        return self.handler.handle_request(request)
