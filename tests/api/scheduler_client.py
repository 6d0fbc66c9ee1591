"""boto3's own client of EventBridge Scheduler against our handler, without a network."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.awsrequest import AWSResponse
from botocore.config import Config

from common.platform.signing_masters import Masters, StoredMasters
from minute8.api import handler
from tests.api.calls import send
from tests.manual_clock import ManualClock

HOST = "https://minute8.example.com"
MASTERS = Masters(1, {1: bytes(range(32))})


class Parameter:
    """The parameter of SSM with the masters."""

    def read(self) -> str:
        return MASTERS.to_text()


def stored_masters() -> StoredMasters:
    return StoredMasters(Parameter().read)


def sign_at(clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let botocore sign at the clock's time."""
    monkeypatch.setattr(
        "botocore.auth.get_current_datetime",
        lambda: datetime.fromtimestamp(clock.now(), UTC).replace(tzinfo=None),
    )


def new_pair(tenant: str, role: str, now: float, **more: Any) -> tuple[str, str]:
    """The access key id and the secret of a new pair, of the API that runs."""
    api_keys = handler._services().tenants.api_keys
    secret, key = api_keys.create_key(tenant, role, now, masters=MASTERS, **more)
    assert key.access_key_id
    return key.access_key_id, secret


class _Raw:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_: Any) -> Any:
        yield self._body


def scheduler_client(access_key_id: str, secret: str, **options: Any) -> Any:
    """A client with this key pair; `options` are its region and botocore's configuration."""
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
