"""Each widget shows a metric that something emits, and so does the way out to Prometheus."""

from __future__ import annotations

import json
import re
from typing import Any, get_args, get_type_hints

import pytest
import yaml

from common import telemetry
from common.planning.execution import Execution
from executor.completion import Result
from executor.recorder import Report
from minute8.canary import handler as canary
from minute8.cli.doctor.inventory import FEEDS, FUNCTIONS, TABLES
from scripts.cloudwatch.alarms import metrics_of
from scripts.cloudwatch.metrics import Metric
from scripts.parameters import DEFAULTS
from tests.alarms import template

QUEUES = [name for feed in FEEDS for name in (feed.queue, f"{feed.queue}-dead")]
# What AWS emits for such a resource, as far as widgets and alarms use it.
# https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-available-cloudwatch-metrics.html
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/metrics-dimensions.html
# https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-metrics.html
OF_AWS: dict[str, tuple[str, list[str], set[str]]] = {
    "AWS/Lambda": (
        "FunctionName",
        [f"minute8-prod-{name}" for name in (*FUNCTIONS, "exporter")],
        {
            *("Invocations", "Errors", "Throttles", "Duration"),
            *("ConcurrentExecutions", "RecursiveInvocationsDropped"),
        },
    ),
    "AWS/SQS": (
        "QueueName",
        [f"minute8-prod-{name}" for name in QUEUES],
        {
            *("ApproximateNumberOfMessagesVisible", "ApproximateNumberOfMessagesDelayed"),
            *("ApproximateNumberOfMessagesNotVisible", "ApproximateAgeOfOldestMessage"),
        },
    ),
    "AWS/DynamoDB": (
        "TableName",
        [f"minute8-prod-{name}" for name in TABLES],
        {
            *("ReadThrottleEvents", "WriteThrottleEvents"),
            *("ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits"),
        },
    ),
    "AWS/ApiGateway": ("ApiId", [template.API_ID], {"Count", "4xx", "5xx", "Latency"}),
}


def names_of_ours() -> set[str]:
    """The names that the functions emit: those of telemetry, and one for each way in which a run or an outcome ends."""
    plain = {
        value
        for name, value in vars(telemetry).items()
        if name.isupper() and isinstance(value, str) and name != "NAMESPACE"
    }
    results = set(get_args(get_type_hints(Report)["result"])) - {"unrecorded"}
    runs = {f"{telemetry.RUNS}.{result}" for result in results}
    outcomes = {f"{telemetry.OUTCOMES}.{result}" for result in get_args(Result)}
    return (plain - {telemetry.RUNS, telemetry.OUTCOMES}) | runs | outcomes | {canary.METRIC}


def is_emitted(metric: Metric) -> bool:
    if metric.namespace == telemetry.NAMESPACE:
        return (
            metric.dimensions == (("service", "minute8"), ("stage", "prod"))
            and metric.name in names_of_ours()
        )
    if metric == Metric.of("AWS/Lambda", "ConcurrentExecutions"):
        return True  # of the account
    dimension, resources, names = OF_AWS[metric.namespace]
    [(name, value)] = metric.dimensions
    return name == dimension and value in resources and metric.name in names


def bodies() -> dict[str, dict[str, Any]]:
    body_by_name = {}
    for resource in template.resolved("dashboards.yml")["Resources"].values():
        body = resource["Properties"]["DashboardBody"]["Fn::Sub"].replace("${HttpApi}", template.API_ID)
        body_by_name[resource["Properties"]["DashboardName"]] = json.loads(body)
    return body_by_name


WIDGETS = [(name, widget) for name, body in bodies().items() for widget in body["widgets"]]


def shown(widget: dict[str, Any]) -> list[Metric]:
    rows = [row for row in widget["properties"].get("metrics", ()) if isinstance(row[0], str)]
    plain = [[cell for cell in row if isinstance(cell, str)] for row in rows]
    return [Metric(row[0], row[1], tuple(sorted(zip(row[2::2], row[3::2], strict=True)))) for row in plain]


@pytest.mark.parametrize(("name", "widget"), WIDGETS)
def test_a_widget_shows_what_is_emitted(name: str, widget: dict[str, Any]) -> None:
    metrics = shown(widget)
    assert metrics or widget["type"] != "metric"
    assert [metric for metric in metrics if not is_emitted(metric)] == []


@pytest.mark.parametrize("alarm", template.NOTIFYING)
def test_an_alarm_reads_what_is_emitted(alarm: str) -> None:
    properties = template.alarms()[alarm]
    if "AlarmRule" not in properties:
        assert [metric for metric in metrics_of(properties) if not is_emitted(metric)] == []


def test_the_query_of_failed_runs_reads_fields_of_the_log() -> None:
    query = query_of("people")
    read = re.findall(r"count_distinct\((\w+)\)| by (\w+)", query)
    fields = Execution("alice", "report", 1_000, 1_000, 1).log_fields
    assert {counted or grouped for counted, grouped in read} == {"job_id", "tenant"} <= fields.keys()
    assert f"'/aws/lambda/minute8-prod-{FUNCTIONS[2]}'" in query
    assert "message = 'failed'" in query


def test_the_query_of_refused_requests_reads_fields_of_the_access_log() -> None:
    query = query_of("engineers")
    service = (template.ROOT / "serverless.yml").read_text()
    [entry] = re.findall(r"AccessLogSettings:.*?Format: >-\n(.*?)\n *- \{ Ref", service, re.DOTALL)
    logged = set(re.findall(r'"(\w+)":"\$context', entry))
    assert {"status", "latency_ms", "from"} <= logged
    for use in ("filter status", "sum(latency_ms)", "by `from`"):
        assert use in query
    assert "SOURCE '/aws/http-api/minute8-prod'" in query
    assert f"LogGroupName: {query.split(chr(39))[1].replace('prod', '${sls:stage}')}" in service
    [memory] = re.findall(r"sum\(latency_ms\) \* (\d+) \*", query)
    assert int(memory) == DEFAULTS["apiMemoryMb"]


def query_of(dashboard: str) -> str:
    [widget] = [
        widget for name, widget in WIDGETS if name == f"minute8-prod-{dashboard}" and widget["type"] == "log"
    ]
    return str(widget["properties"]["query"])


def test_a_metric_that_nothing_emits_is_noticed() -> None:
    assert not is_emitted(Metric.of("Minute8", "Runs.lost", service="minute8", stage="prod"))
    assert not is_emitted(Metric.of("Minute8", "SetAside", stage="prod"))
    assert not is_emitted(Metric.of("AWS/Lambda", "Errors", FunctionName="minute8-prod-other"))


def test_a_dashboard_has_few_enough_metrics_to_be_free() -> None:
    for body in bodies().values():
        assert sum(len(shown(widget)) for widget in body["widgets"]) <= 50


def test_the_widgets_of_a_dashboard_fit() -> None:
    covered: set[tuple[str, int, int]] = set()
    for name, widget in WIDGETS:
        cells = {
            (name, x, y)
            for x in range(widget["x"], widget["x"] + widget["width"])
            for y in range(widget["y"], widget["y"] + widget["height"])
        }
        assert not covered & cells, widget["properties"]["title"]
        assert widget["x"] + widget["width"] <= 24
        covered |= cells


def test_prometheus_is_given_what_is_emitted() -> None:
    config = yaml.safe_load((template.ROOT / "deploy" / "prometheus.yml").read_text())
    [namespace] = config["customNamespace"]
    assert namespace["namespace"] == telemetry.NAMESPACE
    assert {metric["name"] for metric in namespace["metrics"]} <= names_of_ours()
    # All that an alarm or a person reads, and the most that is free of noise: how many of each result.
    assert {
        metric.name
        for alarm in template.NOTIFYING
        for metric in read_by(alarm)
        if metric.namespace == "Minute8"
    } <= {metric["name"] for metric in namespace["metrics"]}
    for job in config["discovery"]["jobs"]:
        assert {metric["name"] for metric in job["metrics"]} <= OF_AWS[job["type"]][2]
        assert job["searchTags"] == [{"key": "service", "value": "^minute8$"}]


# What yet-another-cloudwatch-exporter reads of its file; it ignores what it does not know.
# https://github.com/prometheus-community/yet-another-cloudwatch-exporter/blob/master/pkg/config/config.go
OF_EXPORTER = {
    "metric": {"name", "statistics", "period", "length"},
    "job": {"type", "regions", "searchTags", "period", "length", "metrics"},
    "namespace": {"name", "namespace", "regions", "dimensionNameRequirements", "period", "length", "metrics"},
}


def test_the_exporter_knows_each_field_and_statistic() -> None:
    config = yaml.safe_load((template.ROOT / "deploy" / "prometheus.yml").read_text())
    assert config.keys() == {"apiVersion", "customNamespace", "discovery"}
    assert config["apiVersion"] == "v1alpha1" and config["discovery"].keys() == {"jobs"}
    for kind, parts in (("namespace", config["customNamespace"]), ("job", config["discovery"]["jobs"])):
        for part in parts:
            assert part.keys() <= OF_EXPORTER[kind] and part["regions"] and part["metrics"]
            for metric in part["metrics"]:
                assert metric.keys() <= OF_EXPORTER["metric"]
                assert metric.get("length", part["length"]) >= metric.get("period", part["period"])
                for statistic in metric["statistics"]:
                    assert re.fullmatch(r"Sum|Maximum|Minimum|Average|SampleCount|p\d\d", statistic)


def read_by(alarm: str) -> list[Metric]:
    properties = template.alarms()[alarm]
    return metrics_of(properties) if "AlarmRule" not in properties else read_by(f"{alarm}-now")
