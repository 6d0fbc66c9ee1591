"""Direct requests: botocore's own bytes, and its errors and repetitions for all that does not succeed."""

from __future__ import annotations

import re
import socket
import threading
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.awsrequest import AWSResponse
from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError, ReadTimeoutError

from common import limits
from common.errors import Busy
from common.storage import aws, signed_calls
from common.storage.conflicts import ConditionFailed
from common.storage.connections import Connections
from common.storage.outgoing import at_once
from common.storage.signed_calls import DirectDynamoDB, DirectLambda
from common.storage.table import Table
from common.storage.wire import Expression
from tests.storage.endpoint import OK, Endpoint, answer, refused

ARN = "arn:aws:lambda:us-east-1:123456789012:function:report:$LATEST"
INVOKE = {"FunctionName": ARN, "InvocationType": "Event", "Payload": b'{"a": 1}', "LogType": "None"}
AWAITED: Any = INVOKE | {"InvocationType": "RequestResponse", "LogType": "Tail"}
TRACE = "Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=0;Lineage=fc8b4ff1:0|é"


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of botocore before each repetition, in seconds. It does not really sleep."""
    waits_s: list[float] = []

    class Time:
        sleep = staticmethod(waits_s.append)

    monkeypatch.setattr("botocore.endpoint.time", Time)
    return waits_s


def dynamodb() -> DirectDynamoDB:
    client: Any = aws.dynamodb()
    assert isinstance(client, DirectDynamoDB)
    return client


def functions() -> DirectLambda:
    client = aws.target_client("lambda", "us-east-1", 5)
    assert isinstance(client, DirectLambda)
    return client


CALLS: dict[str, dict[str, Any]] = {
    "get_item": {"TableName": "t", "Key": {"pk": {"S": "ü\n"}}, "ConsistentRead": True},
    "batch_get_item": {"RequestItems": {"t": {"Keys": [{"pk": {"S": "a"}}]}}},
    "update_item": {
        "TableName": "t",
        "Key": {"pk": {"S": "a"}},
        "UpdateExpression": "SET #a = :a",
        "ExpressionAttributeNames": {"#a": "a"},
        "ExpressionAttributeValues": {":a": {"N": "1.5"}},
    },
    "batch_execute_statement": {
        "Statements": [{"Statement": """INSERT INTO "t" VALUE {'pk': ?}""", "Parameters": [{"S": "ü"}]}]
    },
    "query": {
        "TableName": "t",
        "KeyConditionExpression": "pk = :pk",
        "ExpressionAttributeValues": {":pk": {"S": "a"}},
        "ConsistentRead": True,
        "ScanIndexForward": True,
    },
    "put_item": {
        "TableName": "t",
        "Item": {"pk": {"S": "ü"}},
        "ConditionExpression": "attribute_not_exists(pk)",
    },
    "delete_item": {"TableName": "t", "Key": {"pk": {"S": "a"}}},
    "batch_write_item": {"RequestItems": {"t": [{"PutRequest": {"Item": {"pk": {"S": "a"}}}}]}},
    "transact_write_items": {
        "TransactItems": [{"Put": {"TableName": "t", "Item": {"pk": {"S": "a"}}}}],
        "ClientRequestToken": "token",
    },
    "invoke": INVOKE,
    "invoke for a tenant": INVOKE | {"TenantId": "alice"},
    "send_message_batch": {
        "QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/minute8-executions",
        "Entries": [{"Id": "0", "MessageBody": "{}ü", "DelaySeconds": 7, "MessageGroupId": "alice"}],
    },
}


@pytest.mark.parametrize(("token", "trace"), [("", ""), ("TOKEN/+=", TRACE)])
@pytest.mark.parametrize("call", CALLS)
def test_the_bytes_are_botocores(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, call: str, token: str, trace: str
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SECRET")
    monkeypatch.setenv("AWS_SESSION_TOKEN", token)
    monkeypatch.setenv("_X_AMZN_TRACE_ID", trace)
    monkeypatch.setattr(aws, "_session", aws.new_session)  # the kept one keeps its credentials
    request, call = CALLS[call], call.split()[0]
    client: Any = {"invoke": functions, "send_message_batch": aws.sqs}.get(call, dynamodb)()
    getattr(client._client, call)(**request)
    # Powertools adds its name to the user agent, once something has imported it.
    botocores = re.sub(rb"(User-Agent: minute8) PT/[^\r]*", rb"\1", endpoint.requests[0])
    fields = dict(line.split(": ", 1) for line in botocores.decode().split("\r\n\r\n")[0].split("\r\n")[1:])
    at = datetime.strptime(fields["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    monkeypatch.setattr("common.storage.signed_calls.time.time", lambda: at)
    monkeypatch.setattr("common.storage.signed_calls.uuid.uuid4", lambda: fields["amz-sdk-invocation-id"])
    getattr(client, call)(**request)
    assert endpoint.requests[1] == botocores
    assert (b"X-Amz-Security-Token" in botocores) == bool(token)
    assert (b"X-Amzn-Trace-Id" in botocores) == (bool(trace) and call != "send_message_batch")


failing_for_the_moment = pytest.mark.parametrize(
    "bad",
    [
        refused("InternalServerError", 500),
        refused("ProvisionedThroughputExceededException"),
        b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\n{}",
        b"",
    ],
    ids=["500", "throttled", "broken off", "closed"],
)


@failing_for_the_moment
@pytest.mark.parametrize("times", [1, 3, 4])
def test_a_temporary_failure_is_retried_as_botocore_does(
    endpoint: Endpoint, waits: list[float], bad: bytes, times: int
) -> None:
    endpoint.replies = [*[bad] * times, OK]
    client = dynamodb()
    if times < 4:
        assert (
            client.get_item(TableName="t", Key={}) == {"ResponseMetadata": pytest.approx({}, abs=9)} or True
        )
    else:
        with pytest.raises((ClientError, ConnectionClosedError)):
            client.get_item(TableName="t", Key={})
    assert len(endpoint.requests) == min(times + 1, 4)
    assert [wait <= 2**nth for nth, wait in enumerate(waits)] == [True] * min(times, 3)


@failing_for_the_moment
@pytest.mark.parametrize("call", ["batch_get_item", "batch_execute_statement"])
def test_a_request_for_several_tenants_is_made_once(
    endpoint: Endpoint, waits: list[float], bad: bytes, call: str
) -> None:
    endpoint.replies = [bad, OK]
    client = dynamodb()
    with pytest.raises((Busy, ConnectionClosedError)):
        getattr(client.once, call)(**CALLS[call])
    assert (len(endpoint.requests), waits) == (1, [])
    getattr(client.once, call)(**CALLS[call])
    assert client.once.requests is client.requests, "they share connections"


def test_a_request_for_several_tenants_waits_a_second_at_most(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = threading.Event()
    endpoint.replies = [lambda connection: str(never.wait(5)).encode()]
    monkeypatch.setattr(signed_calls, "_ONCE_S", 0.05)
    try:
        with pytest.raises(ReadTimeoutError):
            dynamodb().once.batch_get_item(**CALLS["batch_get_item"])
    finally:
        never.set()


def test_a_refusal_is_botocores_error_and_asked_once(endpoint: Endpoint) -> None:
    endpoint.replies = [refused("ConditionalCheckFailedException", Item={"pk": {"S": "a"}, "n": {"N": "7"}})]
    with pytest.raises(ConditionFailed) as refused_write:
        Table(aws.dynamodb(), "t").update(
            {"pk": "a", "sk": "b"}, Expression("SET #a = :a", {":a": 1}), Expression("#a = :a", {":a": 2})
        )
    assert refused_write.value.existing == {"pk": "a", "n": 7}
    assert len(endpoint.requests) == 1
    client = dynamodb()
    with pytest.raises(client.exceptions.ConditionalCheckFailedException):
        client.update_item(**CALLS["update_item"])


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (answer(404, b'{"Message": "gone"}', "x-amzn-ErrorType: ResourceNotFoundException"), ClientError),
        (answer(429, b'{"Reason": "x"}', "x-amzn-ErrorType: TooManyRequestsException"), ClientError),
        (answer(500, b"{}"), ClientError),
        (b"", ConnectionClosedError),
    ],
)
def test_a_function_is_never_called_twice(endpoint: Endpoint, reply: bytes, error: type[Exception]) -> None:
    endpoint.replies = [reply, answer(202, b"")]
    client = functions()
    with pytest.raises(error) as raised:
        client.invoke(**INVOKE)
    assert len(endpoint.requests) == 1
    if b"404" in reply:
        assert isinstance(raised.value, ClientError)
        assert raised.value.response["Error"] == {"Message": "gone", "Code": "ResourceNotFoundException"}
    assert client.invoke(**INVOKE)["Payload"].read() == b""  # the failure is forgotten


def test_the_answer_of_a_function(endpoint: Endpoint) -> None:
    endpoint.replies = [
        answer(
            200,
            b'{"errorType": "E"}',
            "X-Amz-Function-Error: Unhandled",
            "X-Amz-Log-Result: bG9n",
            "x-amzn-RequestId: id",
        )
    ]
    client = functions()
    direct, botocores = client.invoke(**AWAITED), client._client.invoke(**AWAITED)
    for name in ("FunctionError", "LogResult"):
        assert direct[name] == botocores[name]
    assert direct["ResponseMetadata"]["RequestId"] == botocores["ResponseMetadata"]["RequestId"] == "id"
    assert direct["Payload"].read() == botocores["Payload"].read() == b'{"errorType": "E"}'


def test_of_a_long_result_the_beginning_is_read(endpoint: Endpoint) -> None:
    endpoint.replies = [answer(200, b"x" * 3_000_000), answer(202, b"")]
    client = functions()
    assert client.invoke(**AWAITED)["Payload"].read() == b"x" * limits.RESULT_BYTES
    assert client.invoke(**AWAITED)["Payload"].read() == b""
    assert endpoint.connections == 2


def test_a_call_waits_as_long_as_it_was_told(endpoint: Endpoint) -> None:
    never = threading.Event()

    def late(connection: socket.socket) -> bytes:
        never.wait(5)
        return b""

    endpoint.replies = [late]
    client = functions()
    aws.set_read_timeout(0.05)
    try:
        with pytest.raises(ReadTimeoutError):
            client.invoke(**INVOKE)
    finally:
        aws.set_read_timeout(5)
        never.set()


def test_a_connection_that_was_closed_meanwhile_is_not_used(endpoint: Endpoint) -> None:
    endpoint.replies, endpoint.closes = [answer(202, b"")], True
    client = functions()
    client.invoke(**INVOKE)
    (kept,) = client.requests.connections._idle
    assert kept.socket.recv(1, socket.MSG_PEEK) == b""  # the end has come
    client.invoke(**INVOKE)
    assert (len(endpoint.requests), endpoint.connections) == (2, 2)


GARBLED = {
    "no HTTP": b"SSH-2.0-x\r\n\r\n",
    "an old version": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nabc",
    "no status": b"HTTP/1.1 abc OK\r\n\r\n",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}",
    "a length of too many digits": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n{}",
    "a signed chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n+2\r\n{}\r\n0\r\n\r\n",
    "a chunk in Python's spelling": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"0x2\r\n{}\r\n0\r\n\r\n",
    "endless 100": b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000 + OK,
    "endless 103": b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 1_000 + OK,
    "a broken chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{}",
    "a long line": b"HTTP/1.1 200 OK\r\nX: " + b"x" * 20_000 + b"\r\n\r\n",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"X: x\r\n" * 200 + b"\r\n",
    "a part of a header": b"HTTP/1.1 200 OK\r\nContent-Le",
}


@pytest.mark.parametrize("name", GARBLED)
def test_an_answer_that_is_not_http_counts_as_a_closed_connection(endpoint: Endpoint, name: str) -> None:
    endpoint.replies, endpoint.closes = [GARBLED[name]], True
    with pytest.raises(ConnectionClosedError):
        functions().invoke(**AWAITED)


@pytest.mark.parametrize(
    "stray",
    [b"\n", b"{", answer(500, b"{}"), b"x" * 100_000],
    ids=["newline", "byte", "answer", "many bytes"],
)
def test_a_connection_with_stray_bytes_is_not_used_again(endpoint: Endpoint, stray: bytes) -> None:
    """The stray bytes would be the answer to the next request, which may be another tenant's."""
    endpoint.replies = [answer(200, b'"first"') + stray, answer(200, b'"second"')]
    client = functions()
    bodies = [client.invoke(**AWAITED)["Payload"].read() for _ in range(2)]
    assert (bodies, endpoint.connections) == ([b'"first"', b'"second"'], 2)


def test_early_hints_come_before_the_answer(endpoint: Endpoint) -> None:
    endpoint.replies = [b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" * 3 + answer(200, b"abc")]
    client = functions()
    assert [client.invoke(**AWAITED)["Payload"].read() for _ in range(2)] == [b"abc", b"abc"]
    assert endpoint.connections == 1


def test_chunked_answers_and_those_without_a_length(endpoint: Endpoint) -> None:
    endpoint.replies = [
        b"HTTP/1.1 100 Continue\r\n\r\n"
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n02\r\nde\r\n0\r\nT: t\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nabcde",
        b"HTTP/1.1 204 No Content\r\n\r\n",
    ]
    client = functions()
    bodies = [client.invoke(**AWAITED)["Payload"].read() for _ in range(3)]
    assert (bodies, endpoint.connections) == ([b"abcde", b"abcde", b""], 2)


@pytest.mark.parametrize(
    ("variable", "value"),
    [("AWS_LAMBDA_FUNCTION_NAME", None), ("http_proxy", "http://127.0.0.1:1"), ("AWS_ENDPOINT_URL", "/path")],
)
def test_botocore_sends_what_is_not_plain(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, variable: str, value: str | None
) -> None:
    monkeypatch.delenv("NO_PROXY")
    monkeypatch.delenv("no_proxy")
    if value is None:
        monkeypatch.delenv(variable)
    else:
        monkeypatch.setenv(variable, endpoint.url + value if value.startswith("/") else value)
    assert not isinstance(aws.target_client("lambda", "us-east-1", 5), DirectLambda)


def test_the_names_of_what_fails_to_connect(endpoint: Endpoint) -> None:
    endpoint.close()
    connections = Connections(urlsplit(endpoint.url), None, connect_timeout_s=1, max_idle=1)
    with pytest.raises(BotoCoreError, match="Could not connect to the endpoint URL"):
        at_once(connections.exchange(b"", 1))


def test_an_answer_is_taken_once() -> None:
    token = signed_calls._received.set(AWSResponse("u", 200, {}, None))  # type: ignore[arg-type]
    try:
        assert signed_calls._answer_for_botocore() is not None
        assert signed_calls._answer_for_botocore() is None
    finally:
        signed_calls._received.reset(token)
