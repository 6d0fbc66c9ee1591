"""The API's own handler, and the bare one, over the stub: items are kept in memory, and conditions are ignored."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any
from unittest import mock

from api import handler
from benchmarks import bare_api
from benchmarks.api_stage import LISTED, definition
from benchmarks.stub_aws import StubAws
from common import config
from common.clock import SystemClock
from common.platform.tenants import Tenants
from common.storage import aws
from common.storage.table import Table

_TENANTS = (bare_api.TENANT, bare_api.MAKER)
_TARGET = "arn:aws:lambda:us-east-1:123456789012:function:report"
_ENVIRONMENT = {
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


class Memory:
    """Stores items and returns them; an update changes nothing."""

    def __init__(self, stub: StubAws) -> None:
        self._items: dict[tuple[str, str, str], Any] = {}
        stub.answers |= {
            "GetItem": self._get,
            "PutItem": self._put,
            "Query": self._query,
            "TransactWriteItems": self._transact,
            "UpdateItem": lambda request: json.dumps({"Attributes": request["Key"]}).encode(),
        }

    def _get(self, request: dict[str, Any]) -> bytes:
        found = self._items.get(_key(request["TableName"], request["Key"]))
        return json.dumps({"Item": found} if found else {}).encode()

    def _put(self, request: dict[str, Any]) -> bytes:
        self._items[_key(request["TableName"], request["Item"])] = request["Item"]
        return b"{}"

    def _query(self, request: dict[str, Any]) -> bytes:
        values = [value["S"] for value in request["ExpressionAttributeValues"].values() if "S" in value]
        table, pk, prefix = request["TableName"], values[0], values[1] if len(values) > 1 else ""
        found = [
            item
            for key, item in sorted(self._items.items())
            if key[:2] == (table, pk) and key[2].startswith(prefix)
        ]
        return json.dumps({"Items": found[: request.get("Limit")]}).encode()

    def _transact(self, request: dict[str, Any]) -> bytes:
        for part in request["TransactItems"]:
            if put := part.get("Put"):
                self._put(put)
        return b"{}"


def _key(table: str, item: dict[str, Any]) -> tuple[str, str, str]:
    return table, item["pk"]["S"], item["sk"]["S"]


@contextmanager
def in_process(calls: int) -> Iterator[dict[str, Callable[[], float]]]:
    """The processor time of one call, over `calls` calls; names as in api_latency.py."""
    stub = StubAws()
    Memory(stub)
    ours, queue, stock = stub.client("dynamodb"), stub.client("sqs"), stub.stock_client("dynamodb")
    with (
        mock.patch.dict(os.environ, _ENVIRONMENT),
        mock.patch.object(aws, "dynamodb", lambda: ours),
        mock.patch.object(aws, "sqs", lambda: queue),
        mock.patch.object(bare_api, "client", lambda: stock),
    ):
        _forget()
        try:
            yield _candidates(stub, calls, {tenant: _api_key(ours, tenant) for tenant in _TENANTS})
        finally:
            _forget()


def _api_key(client: Any, tenant: str) -> str:
    tenants, now = Tenants(Table(client, "tenants")), SystemClock().now()
    tenants.create(tenant, "", now, {"allowed_targets": ["*"]})
    return tenants.api_keys.create_key(tenant, "write", now)[0]


def _candidates(stub: StubAws, calls: int, api_keys: Mapping[str, str]) -> dict[str, Callable[[], float]]:
    number, job = count(), json.dumps(definition(_TARGET))
    reader, maker = (api_keys[tenant] for tenant in _TENANTS)

    def asked(handle: Callable[[Any, None], Any], key: str, method: str, path: str, body: str = "") -> float:
        events = [_event(key, method, path.replace("{n}", str(next(number))), body) for _ in range(calls)]
        with stub.measured() as cost:
            for event in events:
                answer = handle(event, None)
                assert answer["statusCode"] in (200, 201), answer
        return cost.cpu_s / calls

    for n in range(LISTED):
        answer = handler.handle(_event(reader, "PUT", f"/v1/jobs/listed-{n:02}", job), None)
        assert answer["statusCode"] == 201, answer
    ours, bare = handler.handle, bare_api.handle
    return {
        "get a job": partial(asked, ours, reader, "GET", "/v1/jobs/listed-00"),
        "bare get: one GetItem": partial(asked, bare, "", "GET", "/bare/get/listed-00"),
        f"list {LISTED} jobs": partial(asked, ours, reader, "GET", "/v1/jobs"),
        "bare list: one Query": partial(asked, bare, "", "GET", "/bare/list"),
        "create a job": partial(asked, ours, maker, "PUT", "/v1/jobs/made-{n}", job),
        "bare create: one PutItem": partial(asked, bare, "", "POST", "/bare/create/made-{n}", job),
    }


def _event(key: str, method: str, path: str, body: str) -> dict[str, Any]:
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "ANY /v1/{proxy+}",
        "rawPath": path,
        "rawQueryString": "",
        "headers": {"authorization": f"Bearer {key}", "content-type": "application/json"},
        "requestContext": {
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"},
            "requestId": "request",
            "stage": "$default",
        },
        "isBase64Encoded": False,
    }
    return event | ({"body": body} if body else {})


def _forget() -> None:
    for cached in (handler._services, config.config):
        cached.cache_clear()
