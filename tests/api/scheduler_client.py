"""boto3's own client of EventBridge Scheduler against our handler, without a network."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from common.platform.signing_masters import Masters, StoredMasters
from tests.api.calls import send

HOST = "https://minute8.example.com"
MASTERS = Masters(1, {1: bytes(range(32))})


def stored_masters() -> StoredMasters:
    return StoredMasters(MASTERS.to_text)


class _Raw:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_: Any) -> Any:
        yield self._body


def scheduler_client(access_key_id: str, secret: str, **options: Any) -> Any:
    """A client with this key pair. Its clock is the machine's, as botocore's is; `at` sets it."""
    client: Any = boto3.client(
        "scheduler",
        endpoint_url=f"{HOST}/eventbridge",
        region_name=options.pop("region", "us-east-1"),
        aws_access_key_id=access_key_id,
        aws_secret_access_key=secret,
        config=Config(retries={"total_max_attempts": 1}, **options),
    )
    client.meta.events.register("before-send.scheduler.*", _through_the_handler)
    return client


def _through_the_handler(request: Any, **_: Any) -> AWSResponse:
    headers = {name: _text(value) for name, value in request.headers.items()}
    headers.setdefault("Host", "minute8.example.com")
    body = request.body.encode() if isinstance(request.body, str) else request.body
    answer = send(request.method, request.url, headers, bytes(body) if body else None)
    return AWSResponse(request.url, answer.status, dict(answer.headers), _Raw(answer.text.encode()))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
