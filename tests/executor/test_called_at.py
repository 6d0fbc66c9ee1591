"""What is noted of when a call went out, next to a target that logs its own clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.storage import outgoing
from executor.targets import aws_services, clients
from executor.targets.clients import FairCache
from tests.executor.contexts import US, call_function, event
from tests.executor.servers import certificate_file, serving

LAMBDA = {"kind": "lambda", "arn": f"arn:aws:lambda:{US}:function:report", "invocation": "RequestResponse"}
SQS = {"kind": "sqs", "arn": f"arn:aws:sqs:{US}:queue"}


@pytest.fixture(params=["direct", "botocore"])
def logged(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[list[tuple[float, float]]]:
    """When requests arrived and were answered. The server takes its time to answer."""
    if request.param == "direct":
        monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "f")
    requests: list[tuple[float, float]] = []

    def reply(handler: Any) -> tuple[int, dict[str, str], bytes]:
        arrived_at = time.monotonic()
        time.sleep(0.1)
        requests.append((arrived_at, time.monotonic()))
        return 200, {}, b"{}"

    with serving(protocol="HTTP/1.1") as server:
        server.reply = reply
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"https://localhost:{server.port}")
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate_file(tmp_path)))
        monkeypatch.setattr(clients, "_clients", FairCache[Any](8))
        yield requests
        for client in clients._clients:
            client.close()


@pytest.mark.parametrize("call", [(call_function, LAMBDA), (aws_services.send_message, SQS)])
def test_a_call_goes_out_when_the_target_sees_it(
    logged: list[tuple[float, float]], call: tuple[Any, Any]
) -> None:
    by_kind, target = call
    for _ in range(2):  # the first one connects
        outgoing.reset()
        assert outgoing.seconds_since_sent() is None
        by_kind(target, event(), 5)
        checked_at = time.monotonic()
        assert (ago_s := outgoing.seconds_since_sent()) is not None
        arrived_at, answered_at = logged[-1]
        assert checked_at - ago_s <= arrived_at
        assert time.monotonic() - ago_s < answered_at
