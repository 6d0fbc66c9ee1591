"""The executor Lambda: takes a batch of messages, and returns the ids of those to deliver again."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from common import telemetry
from common.clock import SystemClock
from common.config import config
from common.deployment import Deployment
from common.planning.packs import hold_s, is_wake
from common.storage import aws
from executor.batch import execute_batch
from executor.pipeline import EVENT_TIMEOUT_S, Executor, Message
from executor.recorder import Report, has_started, service_level
from executor.redelivery import Redelivery
from executor.targets import clients, kinds
from executor.threads import MAX_EVENTS_AT_ONCE

if TYPE_CHECKING:
    from executor.run_spans import RunSpans
    from executor.targets.http_endpoint import HttpEndpoints
    from minute8.eventbridge.group_metrics import Attempt

# A crowded batch claims some of its executions at once, and reads jobs meanwhile.
WAKE_CONNECTIONS: Final = 4
# The numbers of this environment's batches.
_batches: Final = itertools.count()


def handle(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """SQS event → partial batch response.

    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html
    """
    messages = [_message(record) for record in event["Records"]]
    is_new = not next(_batches)
    if all(is_wake(message.body) for message in messages):
        _wake(hold_s(len(messages), is_new))
        return {"batchItemFailures": []}
    received_at = SystemClock().now()
    reports, failed = execute_batch(_executor(), messages, _redelivery())
    _log_and_count(reports, len(failed))
    if spans := _spans():
        spans.export(received_at, _sent_at(event["Records"]))
    return {"batchItemFailures": [{"itemIdentifier": message_id} for message_id in failed]}


def _message(record: Mapping[str, Any]) -> Message:
    receives = int(record.get("attributes", {}).get("ApproximateReceiveCount", 1))
    return Message(record["messageId"], record["body"], record.get("receiptHandle", ""), receives)


def _sent_at(records: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """When each message was sent, by its id: SQS tells it in milliseconds."""
    sent = {record["messageId"]: record.get("attributes", {}).get("SentTimestamp", "") for record in records}
    return {message_id: int(text) / 1_000 for message_id, text in sent.items() if text.isdecimal()}


def _log_and_count(reports: list[Report], failed: int) -> None:
    logger, metrics = telemetry.logger(), telemetry.metrics()
    for report in reports:
        if report.result in ("failed", "skipped"):
            logger.info(report.result, detail=report.detail, **report.execution.log_fields)
        if has_started(report):
            metrics.add_metric(telemetry.LATENESS_S, "Seconds", report.lateness_s)
    for result, count in Counter(report.result for report in reports).items():
        if result != "unrecorded":
            metrics.add_metric(f"{telemetry.RUNS}.{result}", "Count", count)
    if (level := service_level(reports, config().service_lateness_s)).total:
        metrics.add_metric(telemetry.SERVICE_GOOD, "Count", level.good)
        metrics.add_metric(telemetry.SERVICE_TOTAL, "Count", level.total)
    if groups := config().schedule_group_metrics:
        _count_groups(groups, reports)
    if failed:
        metrics.add_metric(telemetry.MESSAGES_FAILED, "Count", failed)
    metrics.flush_metrics()


def _count_groups(groups: str, reports: list[Report]) -> None:
    from minute8.eventbridge.group_metrics import counted, named_groups, write_metrics

    write_metrics(config().stage, counted(named_groups(groups), group_attempts(reports)))


def group_attempts(reports: Iterable[Report]) -> Iterator[Attempt]:
    """What the metrics of schedule groups count."""
    from minute8.eventbridge.group_metrics import Attempt

    for report in reports:
        yield Attempt(
            report.execution.tenant,
            report.execution.job_id,
            report.result,
            is_call=has_started(report),
            is_throttled=report.is_throttled,
            letter_error=report.letter_error,
        )


@cache
def _deployment() -> Deployment:
    return Deployment(config())


@cache
def _executor() -> Executor:
    endpoints, spans = aws.on_first_use(_endpoints), _spans()
    supported = kinds(lambda target, event, timeout_s: endpoints.call(target, event, timeout_s))
    if spans is None:
        return Executor.of(_deployment(), supported)
    return replace(Executor.of(_deployment(), spans.flagging(supported)), note=spans.note)


def _endpoints() -> HttpEndpoints:
    from executor.targets.http_endpoint import HttpEndpoints

    return HttpEndpoints.of(_deployment())


@cache
def _spans() -> RunSpans | None:
    """What exports the spans of runs; None where the parameter `otlpEndpoint` is off."""
    settings = config()
    if not settings.otlp_endpoint:
        return None
    with telemetry.spans_are_packaged():
        from common.tracing.export import span_export
        from executor.run_spans import RunSpans

        if export := span_export():
            return RunSpans(export, settings.executions_queue_url, settings.otlp_ratio, SystemClock())
    return None


@cache
def _redelivery() -> Redelivery:
    deployment = _deployment()
    return Redelivery(deployment.sqs, config().required("executions_queue_url"), deployment.clock)


def _warm_up() -> None:
    """Build the objects and clients of every batch, and open their first connections.

    The init phase has a whole processor, an invocation at 512 MB less than a third of one.
    https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
    """
    _executor()
    _redelivery()
    telemetry.logger()
    telemetry.metrics()
    aws.sqs()  # used by each batch that takes long
    aws.connect(aws.dynamodb())
    aws.connect(_functions())


def _wake(held_s: float) -> None:
    """Open the connections of a crowded batch, and be busy meanwhile: Lambda starts others for the other wakes."""
    aws.connect(aws.dynamodb(), WAKE_CONNECTIONS)
    aws.connect(_functions(), MAX_EVENTS_AT_ONCE)
    SystemClock().sleep(held_s)


def _functions() -> Any:
    """The client of most targets: functions of this region, with the executor's own rights."""
    return clients.before_any_call("lambda", aws.dynamodb().meta.region_name, EVENT_TIMEOUT_S)


if aws.in_lambda():
    _warm_up()
