"""Calls of AWS without botocore's client: one connection for many calls, and a new one after a pause."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from common.storage import aws
from common.storage.connections import LastUse
from tests.executor.servers import Server, serving


@pytest.fixture
def kms(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Server]]:
    with serving(tls=False, protocol="HTTP/1.1") as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.port}")
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "test")
        server.reply = lambda handler: (200, {}, json.dumps({"Plaintext": "YQ=="}).encode())
        yield aws.kms(), server


def decrypt(kms: Any) -> bytes:
    value: bytes = kms.decrypt(CiphertextBlob=b"x")["Plaintext"]
    return value


def test_calls_share_a_connection_until_a_pause(
    kms: tuple[Any, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, server = kms
    assert [decrypt(client) for _ in range(5)] == [b"a"] * 5
    assert (len(server.requests), server.connections) == (5, 1)
    monkeypatch.setattr(LastUse, "is_within", lambda last_use, seconds: False)
    decrypt(client)
    assert server.connections == 2


def test_a_connection_that_ends_without_an_answer_costs_one_more_request(kms: tuple[Any, Server]) -> None:
    client, server = kms
    answer = server.reply

    def ends(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True
        server.reply = answer

    decrypt(client)
    server.reply = ends
    assert decrypt(client) == b"a"
    assert (len(server.requests), server.connections) == (3, 2)


def test_what_kms_refuses_is_asked_once(kms: tuple[Any, Server]) -> None:
    client, server = kms
    server.reply = lambda handler: (400, {}, b'{"__type": "x#DisabledException"}')
    with pytest.raises(ClientError, match="DisabledException"):
        decrypt(client)
    assert len(server.requests) == 1


def test_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with pytest.raises(EndpointConnectionError):
        decrypt(aws.kms())
