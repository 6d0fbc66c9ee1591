"""The executor's own handler over the stub: its tables answer, its targets accept every call."""

from __future__ import annotations

import io
import json
import math
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from typing import Any
from unittest import mock

from msgspec.structs import replace

from common import config, telemetry
from common.planning.execution import Execution
from common.planning.packs import Pack
from common.storage import aws
from common.storage.wire import to_wire
from executor import handler
from scripts.benchmarks import workload
from scripts.benchmarks.stub_aws import StubAws

ENVIRONMENT = {
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "stub",
    "AWS_SECRET_ACCESS_KEY": "stub",
    "STAGE": "bench",
    "JOBS_TABLE": "jobs",
    "DUE_TABLE": "due",
    "RUNS_TABLE": "runs",
    "TENANTS_TABLE": "tenants",
    "EXECUTIONS_QUEUE_URL": "https://sqs.us-east-1.amazonaws.com/123456789012/executions",
    "LOG_LEVEL": "CRITICAL",
}
# Medians inside one region. Lambda's is of an asynchronous call, which AWS stores before it answers.
TAKES_S = {
    "GetItem": 0.003,
    "BatchGetItem": 0.003,
    "UpdateItem": 0.005,
    "BatchExecuteStatement": 0.008,
    "Invoke": 0.025,
}
_TENANT = {
    "pk": "t",
    "sk": "TENANT",
    "state": "active",
    "allowed_targets": ["arn:aws:lambda:*:*:function:*"],
}
Handle = Callable[[Mapping[str, Any], object], dict[str, Any]]


class ExecutorStub:
    """Jobs of the mix, found by the id in the execution; counts the units that DynamoDB would charge."""

    def __init__(self, invocation: str, takes_s: Mapping[str, float] | None = None) -> None:
        self.aws = StubAws(takes_s)
        self.aws.answers |= {
            "GetItem": self._get,
            "BatchGetItem": self._get_many,
            "Query": self._query,
            "UpdateItem": self._update,
            "BatchExecuteStatement": self._insert_all,
            "Invoke": self._invoke,
        }
        self.units: defaultdict[str, float] = defaultdict(float)
        self.run_bytes = 0
        self.writes = 0
        self._invocation = invocation
        self._jobs: dict[str, dict[str, Any]] = {}
        self._runs: dict[str, dict[str, Any]] = {}

    def event(self, first: int, count: int = 10, pack: int = 1) -> dict[str, Any]:
        """A batch of executions that are due now, `pack` of them a message, in the queue's format."""
        executions, now = [], int(time.time())
        for number in range(first, first + count):
            job = workload.job(number)
            target = dict(job.spec.target) | {"invocation": self._invocation}
            item = replace(job, spec=replace(job.spec, target=target)).to_item()
            self._jobs[f"JOB#{job.job_id}"] = to_wire({"pk": job.tenant, "sk": f"JOB#{job.job_id}", **item})
            executions.append(Execution(job.tenant, job.job_id, now, now, 1))
        packs = [Pack(tuple(executions[n : n + pack])) for n in range(0, count, pack)]
        return {
            "Records": [
                {"messageId": f"{first + n:08}-0ea4-451a-a703-a558b933e274", "body": pack_.encode()}
                for n, pack_ in enumerate(packs)
            ]
        }

    def _get(self, request: dict[str, Any]) -> bytes:
        units = 1.0 if request.get("ConsistentRead") else 0.5
        if request["TableName"] == "jobs":
            return json.dumps({"Item": self._job(request["Key"], units)}).encode()
        self.units["read of the tenant's rules"] += units
        return json.dumps({"Item": to_wire(_TENANT)}).encode()

    def _get_many(self, request: dict[str, Any]) -> bytes:
        ((table, requested),) = request["RequestItems"].items()
        units = 1.0 if requested.get("ConsistentRead") else 0.5
        if table == "jobs":
            items = [self._job(key, units) for key in requested["Keys"]]
        else:
            self.units["read of the tenant's rules"] += units * len(requested["Keys"])
            items = [to_wire(_TENANT) | key for key in requested["Keys"]]
        return json.dumps({"Responses": {table: items}, "UnprocessedKeys": {}}).encode()

    def _job(self, key: Mapping[str, Any], units: float) -> dict[str, Any]:
        item = self._jobs[key["sk"]["S"]]
        self.units["read of the job"] += math.ceil(item_bytes(item) / 4096) * units
        return item

    def _query(self, request: dict[str, Any]) -> bytes:
        """The log of changed tenants, which is empty."""
        self.units["read of the tenant's rules"] += 1.0 if request.get("ConsistentRead") else 0.5
        return json.dumps({"Items": [], "Count": 0}).encode()

    def _update(self, request: dict[str, Any]) -> bytes:
        """Keeps only the sizes: each run is written once, then a second time."""
        key = request["Key"]["pk"]["S"] + request["Key"]["sk"]["S"]
        values = request["ExpressionAttributeValues"]
        names = request["ExpressionAttributeNames"]
        before = self._runs.get(key, request["Key"])
        written = {names[f"#{name}"]: value for name, value in _assigned(request["UpdateExpression"], values)}
        after = {**before, **written}
        self._written(key, before, after)
        return json.dumps({"Attributes": after}).encode()

    def _insert_all(self, request: dict[str, Any]) -> bytes:
        """Every run is new."""
        for statement in request["Statements"]:
            item = inserted(statement)
            self._written(item["pk"]["S"] + item["sk"]["S"], {}, item)
        return json.dumps({"Responses": [{"TableName": "runs"} for _ in request["Statements"]]}).encode()

    def _written(self, key: str, before: Mapping[str, Any], after: dict[str, Any]) -> None:
        self._runs[key] = after
        self.writes += 1
        self.run_bytes = item_bytes(after)
        self.units["write of the run"] += math.ceil(max(item_bytes(before), item_bytes(after)) / 1024)

    def _invoke(self, request: dict[str, Any]) -> bytes:
        return b"" if self._invocation == "Event" else b'{"ok": true}'


def inserted(statement: Mapping[str, Any]) -> dict[str, Any]:
    """The item of an INSERT."""
    return dict(zip(re.findall(r"'(\w+)'", statement["Statement"]), statement["Parameters"], strict=True))


def _assigned(expression: str, values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The name and value of each assignment of an update; a list's is what is appended to it."""
    for part in expression.partition(" REMOVE ")[0].removeprefix("SET ").split(", #"):
        name, _, right = part.strip("# ").partition(" = ")
        words = [word.strip("(),") for word in right.split() if word.startswith(":")]
        if words:
            yield name.strip(), values[words[-1].strip("(),")]


def item_bytes(wire: Mapping[str, Any]) -> int:
    """An item's size as DynamoDB counts it, nearly.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    return sum(len(name) + _value_bytes(value) for name, value in wire.items())


def _value_bytes(wire: Mapping[str, Any]) -> int:
    ((kind, value),) = wire.items()
    match kind:
        case "S":
            return len(value.encode())
        case "N":
            return 2 + len(value.strip("-").replace(".", "")) // 2
        case "M":
            return 3 + sum(1 + len(name) + _value_bytes(inner) for name, inner in value.items())
        case "L":
            return 3 + sum(1 + _value_bytes(inner) for inner in value)
    return 1


@contextmanager
def installed(stub: ExecutorStub) -> Iterator[Handle]:
    """The handler, with the stub's clients in place of AWS's."""
    dynamodb, sqs, target = stub.aws.direct("dynamodb"), stub.aws.client("sqs"), stub.aws.direct("lambda")
    with (
        mock.patch.dict(os.environ, ENVIRONMENT),
        mock.patch.object(aws, "dynamodb", lambda: dynamodb),
        mock.patch.object(aws, "sqs", lambda: sqs),
        mock.patch.object(aws, "target_client", lambda *_arguments: target),
        redirect_stdout(io.StringIO()),  # the metrics
    ):
        _forget()
        try:
            yield _checked
        finally:
            _forget()


def _checked(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Fails if a message of the batch failed: such a batch would look fast."""
    answer = handler.handle(event, context)
    assert answer == {"batchItemFailures": []}, answer
    return answer


def _forget() -> None:
    from executor.targets import clients

    for cached in (
        handler._executor,
        handler._deployment,
        config.config,
        telemetry.logger,
        telemetry.metrics,
    ):
        cached.cache_clear()
    clients._clients.clear()
