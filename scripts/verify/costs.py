"""Dollars: an estimate before a verification, and afterwards what CloudWatch counted, at list prices."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from scripts.measure.prices import PRICES
from scripts.measure.result import kept
from scripts.verify.trials import INVOCATIONS, Size

# A transaction of seven items, each written at twice the price, when a job is created, and again when it is deleted.
_WRITES_A_JOB: Final = 28
# What is not modelled is taken to cost as much again: logs, storage, this program's requests, the target's seconds.
_MARGIN: Final = 2
_TABLES: Final = ("jobs", "due", "tenants", "audit", "runs")
_QUEUES: Final = ("executions", "planning", "outcomes")
_FUNCTIONS: Final = ("scheduler", "planner", "executor", "outcomes", "notifier", "api")
_SENT_FOR: Final = (
    "NumberOfMessagesSent",
    "NumberOfMessagesReceived",
    "NumberOfMessagesDeleted",
    "NumberOfEmptyReceives",
)
_QUERIES_A_REQUEST: Final = 500


def estimate(size: Size) -> float:
    """Dollars that a verification of this size costs, by list prices, rounded up by a margin. Pure."""
    (requests,) = kept(["requests"])
    a_million = max(float(requests.figures[invocation]["total"]) for invocation in INVOCATIONS)
    jobs = size.workload_jobs + size.alone + sum(size.bursts) * len(INVOCATIONS)
    runs = jobs + size.workload_s + size.backfill + size.delayed
    return _MARGIN * (runs * a_million / 1e6 + jobs * _WRITES_A_JOB * PRICES["dynamodb_write_unit"])


def charged(
    cloudwatch: Any, stage: str, memory_mb: Mapping[str, int], since: float, until: float
) -> dict[str, Any]:
    """What CloudWatch counted in [since, until): `lines` of what, how many and dollars. Empty if it has no figures.

    `memory_mb` is that of each function, the target's and the bare one's included, by its full name.
    """
    queries: dict[tuple[str, str], tuple[str, str, str, str]] = {}
    for table in _TABLES:
        name = f"minute8-{stage}-{table}"
        for metric in ("ConsumedWriteCapacityUnits", "ConsumedReadCapacityUnits"):
            queries[name, metric] = ("AWS/DynamoDB", metric, "TableName", name)
    for queue in _QUEUES:
        name = f"minute8-{stage}-{queue}"
        for metric in _SENT_FOR:
            queries[name, metric] = ("AWS/SQS", metric, "QueueName", name)
    for name in memory_mb:
        for metric in ("Invocations", "Duration"):
            queries[name, metric] = ("AWS/Lambda", metric, "FunctionName", name)
    sums = dict(zip(queries, _sums(cloudwatch, list(queries.values()), since, until), strict=True))
    if not any(sums.values()):
        return {}

    def total(metric: str) -> float:
        return sum(value for (_, counted_metric), value in sums.items() if counted_metric == metric)

    gb_s = sum(sums[name, "Duration"] / 1000 * mb / 1024 for name, mb in memory_mb.items())
    lines = [
        ("DynamoDB write units", total("ConsumedWriteCapacityUnits"), PRICES["dynamodb_write_unit"]),
        ("DynamoDB read units", total("ConsumedReadCapacityUnits"), PRICES["dynamodb_read_unit"]),
        (
            "SQS messages sent, received, deleted, empty receives",
            sum(map(total, _SENT_FOR)),
            PRICES["sqs_request"],
        ),
        ("Lambda invocations", total("Invocations"), PRICES["lambda_request"]),
        ("Lambda GB-seconds", gb_s, PRICES["lambda_gb_s_arm64"]),
    ]
    return {
        "lines": [[title, round(count, 1), round(count * price, 6)] for title, count, price in lines],
        "dollars": round(sum(count * price for _, count, price in lines), 6),
    }


def memories(client: Callable[[str], Any], stage: str, *more: str) -> dict[str, int]:
    """The memory of each function of the stage, and of these functions."""
    names = [*(f"minute8-{stage}-{function}" for function in _FUNCTIONS), *more]
    functions = client("lambda")
    return {name: functions.get_function_configuration(FunctionName=name)["MemorySize"] for name in names}


def _sums(
    cloudwatch: Any, metrics: list[tuple[str, str, str, str]], since: float, until: float
) -> list[float]:
    queries = [
        {
            "Id": f"m{number}",
            "MetricStat": {
                "Metric": {
                    "Namespace": namespace,
                    "MetricName": metric,
                    "Dimensions": [{"Name": dimension, "Value": name}],
                },
                "Period": 60,
                "Stat": "Sum",
            },
        }
        for number, (namespace, metric, dimension, name) in enumerate(metrics)
    ]
    assert len(queries) <= _QUERIES_A_REQUEST
    pages = cloudwatch.get_paginator("get_metric_data").paginate(
        MetricDataQueries=queries,
        StartTime=datetime.fromtimestamp(since, UTC),
        EndTime=datetime.fromtimestamp(until, UTC),
    )
    sums: dict[str, float] = {}
    for page in pages:
        for result in page["MetricDataResults"]:
            sums[result["Id"]] = sums.get(result["Id"], 0.0) + sum(result["Values"])
    return [sums.get(f"m{number}", 0.0) for number in range(len(metrics))]
