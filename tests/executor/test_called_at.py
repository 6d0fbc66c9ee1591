"""What is noted of when a call went out, next to a target that logs its own clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.storage import outgoing
from executor.targets import clients, lambda_function, sqs_queue
from executor.targets.fair_cache import FairCache
from tests.executor.contexts import US, event
from tests.executor.servers import certificate_file, serving

LAMBDA = {"kind": "lambda", "arn": f"arn:aws:lambda:{US}:function:report", "invocation": "RequestResponse"}
SQS = {"kind": "sqs", "arn": f"arn:aws:sqs:{US}:queue"}
ANSWERS_AFTER_S = 0.3


@pytest.fixture(params=["direct", "botocore"])
def logged(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[list[float]]:
    """When requests arrived. The server takes its time to answer."""
    if request.param == "direct":
        monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "f")
    arrived: list[float] = []

    def reply(handler: Any) -> tuple[int, dict[str, str], bytes]:
        arrived.append(time.time())
        time.sleep(ANSWERS_AFTER_S)
        return 200, {}, b"{}"

    with serving(protocol="HTTP/1.1") as server:
        server.reply = reply
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"https://localhost:{server.port}")
        monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate_file(tmp_path)))
        monkeypatch.setattr(clients, "_clients", FairCache[Any](8))
        yield arrived
        for _, client in clients._clients._kept.values():
            client.close()


@pytest.mark.parametrize("call", [(lambda_function, LAMBDA), (sqs_queue, SQS)])
def test_a_call_goes_out_when_the_target_sees_it(logged: list[float], call: tuple[Any, Any]) -> None:
    kind, target = call
    for _ in range(2):  # the first one connects
        outgoing.forget()
        assert outgoing.went_s_ago() is None
        kind.call(target, event(), 5)
        ago_s = outgoing.went_s_ago()
        assert ago_s is not None
        went_at = time.time() - ago_s
        assert ago_s >= ANSWERS_AFTER_S
        assert -0.01 < logged[-1] - went_at < ANSWERS_AFTER_S
