"""The API's processor time for a request, next to a bare handler. Tables are in memory, without their conditions."""

from __future__ import annotations

import json
import os
import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any
from unittest import mock
from urllib.parse import urlencode

from common import config, telemetry
from common.clock import SystemClock
from common.platform.tenants import Tenants
from common.storage import aws
from common.storage.table import Table as DynamoTable
from minute8.api import handler
from scripts.benchmarks import bare_api
from scripts.benchmarks.stub_aws import StubAws
from scripts.measure.result import Goal, Result, Table
from scripts.measure.rounds import ratio, take_turns

LISTED = 20
_CALLS = 100
_ROUNDS = 9
# The request to the API, and the request to the bare handler.
PAIRS = {
    "get a job": "bare get: one GetItem",
    f"list {LISTED} jobs": "bare list: one Query",
    "create a job": "bare create: one PutItem",
}
_TENANTS = (bare_api.TENANT, bare_api.MAKER)
_TARGET = "arn:aws:lambda:us-east-1:123456789012:function:report"
ENVIRONMENT = {
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "stub",
    "AWS_SECRET_ACCESS_KEY": "stub",
    "STAGE": "local",
    "JOBS_TABLE": bare_api.TABLE,
    "DUE_TABLE": "due",
    "RUNS_TABLE": "runs",
    "TENANTS_TABLE": "tenants",
    "EXECUTIONS_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/executions",
    "LOG_LEVEL": "CRITICAL",
}


def run(scale: float) -> Result:
    """Measure, with a hundred requests of each kind in a round at scale 1."""
    with in_process(max(2, int(_CALLS * min(scale, 1)))) as calls:
        take_turns(calls, 1)
        cpu_s = take_turns(calls, max(2, round(_ROUNDS * min(scale, 1))))
    ratios = {name: ratio(cpu_s[name], cpu_s[bare]) for name, bare in PAIRS.items()}
    rows = [
        [name, f"{statistics.median(times) * 1000:.2f}", f"{ratios[name]:.2f}" if name in ratios else ""]
        for name, times in cpu_s.items()
    ]
    get = next(iter(PAIRS))
    return Result(
        "api_cpu",
        scale,
        tables=[Table("Processor time of a request", ["request", "CPU ms", "÷ the bare one"], rows)],
        goals=[Goal("API: get a job, processor time / a bare handler's", 2, ratios[get], at_least=False)],
        figures={"cpu": ratios},
    )


def definition(target: str) -> dict[str, Any]:
    """A job with distant fire times: none of its executions is enqueued."""
    return {
        "schedule": {"cron": "30 2 1 1 *", "timezone": "Europe/Paris"},
        "target": {"kind": "lambda", "arn": target},
        "payload": {"customer": 42, "report": "nightly"},
        "retry": {"max_attempts": 3, "base_s": 30},
        "tags": ["nightly"],
    }


class Memory:
    """Stores items and returns them; an update only leaves the tenant's budget of requests where it was."""

    def __init__(self, stub: StubAws) -> None:
        self._items: dict[tuple[str, str, str], Any] = {}
        stub.answers |= {
            "GetItem": self._get,
            "PutItem": self._put,
            "Query": self._query,
            "TransactWriteItems": self._transact,
            "UpdateItem": _updated,
        }

    def _get(self, request: dict[str, Any]) -> bytes:
        item = self._items.get(_key(request["TableName"], request["Key"]))
        return json.dumps({"Item": item} if item else {}).encode()

    def _put(self, request: dict[str, Any]) -> bytes:
        self._items[_key(request["TableName"], request["Item"])] = request["Item"]
        return b"{}"

    def _query(self, request: dict[str, Any]) -> bytes:
        values = [value["S"] for value in request["ExpressionAttributeValues"].values() if "S" in value]
        table, pk, prefix = request["TableName"], values[0], values[1] if len(values) > 1 else ""
        items = [
            item
            for key, item in sorted(self._items.items())
            if key[:2] == (table, pk) and key[2].startswith(prefix)
        ]
        return json.dumps({"Items": items[: request.get("Limit")]}).encode()

    def _transact(self, request: dict[str, Any]) -> bytes:
        for part in request["TransactItems"]:
            if put := part.get("Put"):
                self._put(put)
        return b"{}"


def _updated(request: dict[str, Any]) -> bytes:
    unused = request["ExpressionAttributeValues"].get(":oldest", {"N": "0"})
    return json.dumps({"Attributes": request["Key"] | {"used_until_us": unused}}).encode()


def _key(table: str, item: dict[str, Any]) -> tuple[str, str, str]:
    return table, item["pk"]["S"], item["sk"]["S"]


@contextmanager
def in_process(
    calls: int, requests: dict[str, dict[str, float]] | None = None
) -> Iterator[dict[str, Callable[[], float]]]:
    """The processor time of one call, over `calls` calls; by its name in PAIRS. `requests` takes what a call sends."""
    stub = StubAws()
    Memory(stub)
    dynamodb, queue, stock = stub.direct("dynamodb"), stub.direct("sqs"), stub.stock_client("dynamodb")
    with (
        mock.patch.dict(os.environ, ENVIRONMENT),
        mock.patch.object(aws, "dynamodb", lambda: dynamodb),
        mock.patch.object(aws, "sqs", lambda: queue),
        mock.patch.object(bare_api, "client", lambda: stock),
    ):
        _forget()
        try:
            api_keys = {tenant: _api_key(dynamodb, tenant) for tenant in _TENANTS}
            yield _candidates(stub, calls, api_keys, {} if requests is None else requests)
        finally:
            _forget()


def _api_key(client: Any, tenant: str) -> str:
    tenants, now = Tenants(DynamoTable(client, "tenants")), SystemClock().now()
    tenants.create(tenant, "", now, {"allowed_targets": ["*"]})
    return tenants.api_keys.create_key(tenant, "write", now)[0]


def _candidates(
    stub: StubAws, calls: int, api_keys: Mapping[str, str], sent: dict[str, dict[str, float]]
) -> dict[str, Callable[[], float]]:
    number, job = count(), json.dumps(definition(_TARGET))
    reader, maker = (api_keys[tenant] for tenant in _TENANTS)

    def cpu_s(
        name: str, handle: Callable[[Any, None], Any], key: str, method: str, path: str, body: str = ""
    ) -> float:
        requests = [event(key, method, path.replace("{n}", str(next(number))), body) for _ in range(calls)]
        with stub.measured() as cost:
            for request in requests:
                answer = handle(request, None)
                assert answer["statusCode"] in (200, 201), answer
        each = {operation: round(number / calls) for operation, number in cost.requests.items()}
        sent[name] = {operation: number for operation, number in each.items() if number}
        return cost.cpu_s / calls

    for n in range(LISTED):
        answer = handler.handle(event(reader, "PUT", f"/v1/jobs/listed-{n:02}", job), None)
        assert answer["statusCode"] == 201, answer
    api, bare = handler.handle, bare_api.handle
    requests: dict[str, tuple[Any, ...]] = {
        "get a job": (api, reader, "GET", "/v1/jobs/listed-00"),
        "bare get: one GetItem": (bare, "", "GET", "/bare/get/listed-00"),
        f"list {LISTED} jobs": (api, reader, "GET", "/v1/jobs"),
        "bare list: one Query": (bare, "", "GET", "/bare/list"),
        "create a job": (api, maker, "PUT", "/v1/jobs/made-{n}", job),
        "bare create: one PutItem": (bare, "", "POST", "/bare/create/made-{n}", job),
    }
    return {name: partial(cpu_s, name, *arguments) for name, arguments in requests.items()}


def event(
    key: str, method: str, path: str, body: str = "", query: Mapping[str, str] | None = None, **headers: str
) -> dict[str, Any]:
    """A request as API Gateway gives it to the function."""
    request: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "ANY /v1/{proxy+}",
        "rawPath": path,
        "rawQueryString": urlencode(query or {}),
        "queryStringParameters": query,
        "headers": {"authorization": f"Bearer {key}", "content-type": "application/json", **headers},
        "requestContext": {
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"},
            "requestId": "request",
            "stage": "$default",
        },
        "isBase64Encoded": False,
    }
    return request | ({"body": body} if body else {})


def _forget() -> None:
    for cached in (handler._services, config.config, telemetry.logger, telemetry.metrics):
        cached.cache_clear()
