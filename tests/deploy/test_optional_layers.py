"""A deployment with an issuer of tokens and a collector of spans: its functions use what the layers bring."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from common.planning.execution import Execution
from common.tracing.spans import SpanId, tick_id, windows_between
from scripts.embedded import Embedded, deploy
from scripts.embedded.deployment import client
from tests.tracing.collector import Received, attributes_of, open_collector
from tests.waiting import PATIENCE_S

pytestmark = pytest.mark.embedded

ISSUER = {"jwtIssuer": "https://127.0.0.1:9", "jwtAudience": "minute8", "jwksUrl": "https://127.0.0.1:9/keys"}
HEADERS = "/minute8/local/otlp-headers"


@pytest.fixture(scope="module")
def collector() -> Iterator[Received]:
    with open_collector() as received:
        yield received


@pytest.fixture(scope="module")
def api(deployed: Embedded, collector: Received) -> Embedded:
    """The same file as another stage; no server listens at the issuer's address."""
    params = {**ISSUER, "otlpEndpoint": collector.address, "otlpHeaders": HEADERS}
    client(deployed, "ssm").put_parameter(Name=HEADERS, Value="x-key=a%20b", Type="SecureString")
    return deploy(deployed, stage="local", params=params)


def test_functions_have_the_layers_that_their_parameters_ask_for(api: Embedded) -> None:
    functions = client(api, "lambda").list_functions()["Functions"]
    layers = {
        function["FunctionName"]: [layer["Arn"].split(":")[-2] for layer in function["Layers"]]
        for function in functions
        if function["FunctionName"].startswith("minute8-local-")
    }
    assert layers.pop("minute8-local-api") == ["minute8-local-deps", "minute8-local-jwt"]
    for name in ("scheduler", "executor"):
        assert layers.pop(f"minute8-local-{name}") == ["minute8-local-deps", "minute8-local-otlp"]
    assert set(map(tuple, layers.values())) == {("minute8-local-deps",)}


def test_a_token_is_checked_with_what_the_layer_brings(api: Embedded) -> None:
    """The check gets as far as the request to the issuer, which fails. The signature's library is loaded before it."""
    parts = (json.dumps(part).encode() for part in ({"alg": "RS256", "kid": "a"}, {"sub": "ann"}))
    text = ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in (*parts, b"signature"))
    answer = httpx.get(
        f"{api.api_url}/v1/jobs", headers={"Authorization": f"Bearer {text}"}, timeout=PATIENCE_S
    )
    assert answer.status_code == 503, answer.text
    assert answer.json()["type"] == "urn:minute8:problem:issuer-unreachable"


def test_ticks_and_runs_send_spans_with_what_the_layer_brings(api: Embedded, collector: Received) -> None:
    functions, now = client(api, "lambda"), int(time.time())
    answer = functions.invoke(FunctionName="minute8-local-scheduler:live", Payload=b"{}")
    summary = json.load(answer["Payload"])
    record = {
        "messageId": "a-message-of-a-test",
        "body": Execution("spans", "no-job", now, now, 1).encode(),
        "attributes": {"SentTimestamp": str((now - 60) * 1_000), "ApproximateReceiveCount": "1"},
    }
    payload = json.dumps({"Records": [record]}).encode()
    answer = functions.invoke(FunctionName="minute8-local-executor:live", Payload=payload)
    assert json.load(answer["Payload"]) == {"batchItemFailures": []}
    configuration = functions.get_function_configuration(FunctionName="minute8-local-executor")
    queue_url = configuration["Environment"]["Variables"]["EXECUTIONS_QUEUE_URL"]
    ticks = {_id_of(tick) for tick in collector.named("tick")}
    assert (
        {
            tick_id(queue_url, window)
            for window in windows_between(summary["start"], summary["planning_until"])
        }
        <= ticks
        != set()
    )
    [run] = [span for span in collector.named("run") if attributes_of(span)["minute8.tenant"] == "spans"]
    assert attributes_of(run)["minute8.reason"] == "deleted"
    assert [_id_of(link) for link in run.links] == [tick_id(queue_url, now)]
    [queue] = [span for span in collector.named("queue") if span.span_id == run.parent_span_id]
    assert queue.start_time_unix_nano == (now - 60) * 10**9
    assert {headers["x-key"] for headers in collector.headers} == {"a b"}


def _id_of(span: Any) -> SpanId:
    return SpanId(int.from_bytes(span.trace_id), int.from_bytes(span.span_id))


def test_keys_go_on_working(api: Embedded) -> None:
    answer = httpx.get(
        f"{api.api_url}/v1/jobs", headers={"Authorization": "Bearer m8_alice"}, timeout=PATIENCE_S
    )
    assert (answer.status_code, answer.json()["type"]) == (401, "urn:minute8:problem:unauthenticated")
