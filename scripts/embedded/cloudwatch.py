"""CloudWatch, as far as deploy/alarms.yml needs it: metrics from logs, AWS's own metrics, metric math, alarms.

The server takes alarms of one metric, and evaluates them without dimensions, missing data or M of N. Here
scripts/cloudwatch evaluates each alarm once a minute. The metrics are in memory: after a restart there are none, as
after a first deployment.

AWS's own metrics are derived from what the server does: each invocation, each throttled one, each request to the API,
and the queues once a minute. Tables are throttled under the strict layer alone.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from scripts.cloudwatch.alarms import state_of
from scripts.cloudwatch.metrics import Metric, Metrics

logger = logging.getLogger("embedded")

# The longest window of an alarm is six hours, of which CloudWatch looks at three.
_RETENTION_S: Final = 19 * 3600
_MINUTE_S: Final = 60


class Emitted:
    """The metrics of everything that the server does. Any thread may add to them. `now` is the clock."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self.now = now
        self.metrics = Metrics()
        self.lock = threading.Lock()

    def add(self, namespace: str, name: str, value: float, **dimensions: str) -> None:
        with self.lock:
            self.metrics.add(Metric.of(namespace, name, **dimensions), self.now(), value)

    def invocation(self, function: str, log: str, *, error: bool, duration_ms: float, in_flight: int) -> None:
        """What Lambda and CloudWatch Logs emit for an invocation."""
        self.add("AWS/Lambda", "Invocations", 1, FunctionName=function)
        self.add("AWS/Lambda", "Errors", int(error), FunctionName=function)
        self.add("AWS/Lambda", "Duration", duration_ms, FunctionName=function)
        self.add("AWS/Lambda", "ConcurrentExecutions", in_flight)
        with self.lock:
            self.metrics.add_log(log.splitlines(), self.now())

    def request(self, api: str, status: int, latency_ms: float) -> None:
        """What API Gateway emits for a request to an HTTP API."""
        self.add("AWS/ApiGateway", "Count", 1, ApiId=api)
        self.add("AWS/ApiGateway", "5xx", int(status >= 500), ApiId=api)
        self.add("AWS/ApiGateway", "Latency", latency_ms, ApiId=api)

    def throttled(self, table: str, writes: bool) -> None:
        """What DynamoDB emits for a request that it throttles."""
        self.add("AWS/DynamoDB", f"{'Write' if writes else 'Read'}ThrottleEvents", 1, TableName=table)

    def queue(self, name: str, messages: list[Mapping[str, Any]], now: float) -> None:
        """What SQS emits for a queue each minute. Whether AWS counts delayed messages in the age is not documented."""
        waiting = [message for message in messages if message["visible_at"] <= now]
        self.add("AWS/SQS", "ApproximateNumberOfMessagesVisible", len(waiting), QueueName=name)
        oldest_s = max((now - message["sent_at"] for message in messages), default=0.0)
        self.add("AWS/SQS", "ApproximateAgeOfOldestMessage", oldest_s, QueueName=name)


def install(cloudwatch: Any, provisioners: Any, lambda_svc: Any, apigateway: Any, sqs: Any) -> Emitted:
    """Change these modules of ministack.services, and evaluate the alarms from now on. Returns the metrics."""
    emitted = Emitted()
    _take_expressions(provisioners)
    provisioners._RESOURCE_HANDLERS["AWS::CloudWatch::CompositeAlarm"] = {
        "create": lambda _id, properties, _stack: _put_composite(cloudwatch, properties),
        "update": lambda _id, _old, properties, _stack: _put_composite(cloudwatch, properties),
        "delete": lambda name, _properties: cloudwatch._composite_alarms.pop(name, None),
    }
    cloudwatch._evaluate_alarm = lambda _alarm: None
    _listen_to_functions(lambda_svc, emitted)
    _poll_for_what_is_turned_off(lambda_svc)
    _listen_to_the_api(apigateway, emitted)
    watch = lambda: _watch(cloudwatch, sqs, emitted)  # noqa: E731
    threading.Thread(target=watch, daemon=True, name="alarms").start()
    return emitted


def _take_expressions(provisioners: Any) -> None:
    """CloudFormation's alarms may have `Metrics`."""
    stock: Callable[[str, Any], dict[str, Any]] = provisioners._cw_metric_alarm_record

    def record(name: str, properties: Any) -> dict[str, Any]:
        if not (queries := properties.get("Metrics")):
            return stock(name, properties)
        simple = {**properties, "MetricName": "-", "Namespace": "-"}
        alarm = stock(name, {key: value for key, value in simple.items() if key != "Metrics"})
        for key in ("MetricName", "Namespace", "Statistic", "ExtendedStatistic", "Period", "Dimensions"):
            del alarm[key]
        return {**alarm, "Metrics": queries}

    provisioners._cw_metric_alarm_record = record


def _put_composite(cloudwatch: Any, properties: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    status, _, body = cloudwatch._put_composite_alarm({}, dict(properties), False, is_json=True)
    if status != 200:
        raise ValueError(json.loads(body).get("message", "not a valid composite alarm"))
    name = str(properties["AlarmName"])
    return name, {"Arn": cloudwatch._composite_alarms[name]["AlarmArn"]}


def _listen_to_functions(lambda_svc: Any, emitted: Emitted) -> None:
    write_log, stock_metrics = lambda_svc._emit_lambda_logs, lambda_svc._emit_lambda_metrics

    def with_metrics(
        function: Any, request_id: str, log: str, error: bool, duration_ms: int, **options: Any
    ) -> None:
        write_log(function, request_id, log, error, duration_ms, **options)
        name = (function.get("config") or function).get("FunctionName", "")
        in_flight, _ = lambda_svc.executions_in_flight()
        emitted.invocation(name, log, error=error, duration_ms=duration_ms, in_flight=in_flight)

    def throttled(name: str, duration_ms: float, error: bool, throttle: bool) -> None:
        stock_metrics(name, duration_ms, error, throttle)
        if throttle:
            emitted.add("AWS/Lambda", "Throttles", 1, FunctionName=name)

    lambda_svc._emit_lambda_logs, lambda_svc._emit_lambda_metrics = with_metrics, throttled


def _poll_for_what_is_turned_off(lambda_svc: Any) -> None:
    """Pollers of a function whose reserved concurrency is 0 go on, and Lambda throttles them. The server stops them."""
    stock: Callable[..., int] = lambda_svc._sqs_esm_concurrency
    lambda_svc._sqs_esm_concurrency = lambda *mapping: max(1, stock(*mapping))


def _listen_to_the_api(apigateway: Any, emitted: Emitted) -> None:
    stock = apigateway.handle_execute

    async def timed(api_id: str, *arguments: Any, **named: Any) -> Any:
        began = time.monotonic()
        answer = await stock(api_id, *arguments, **named)
        emitted.request(api_id, answer[0], (time.monotonic() - began) * 1000)
        return answer

    apigateway.handle_execute = timed


def _watch(cloudwatch: Any, sqs: Any, emitted: Emitted) -> None:
    while True:
        time.sleep(_MINUTE_S - time.time() % _MINUTE_S)
        try:
            now = time.time()
            for queue in list(sqs._queues._data.values()):
                emitted.queue(queue["name"], list(queue["messages"]), now - 1)
            evaluate(cloudwatch, emitted, now)
            with emitted.lock:
                emitted.metrics.forget(now - _RETENTION_S)
        except Exception:
            logger.exception("alarms not evaluated")


def evaluate(cloudwatch: Any, emitted: Emitted, now: float) -> None:
    """Move each metric alarm to its state; composite alarms and actions follow."""
    for alarm in list(cloudwatch._alarms.values()):
        with emitted.lock:
            state = state_of(alarm, emitted.metrics, now, alarm["StateValue"])
        if state == (before := alarm["StateValue"]):
            continue
        reason = (
            f"{before} to {state}, as of the metrics until {time.strftime('%H:%M', time.gmtime(now))} UTC"
        )
        alarm |= {"StateValue": state, "StateReason": reason, "StateUpdatedTimestamp": int(now)}
        cloudwatch._record_history(alarm["AlarmName"], before, state, reason)
        cloudwatch._dispatch_alarm_actions(alarm, before, state, reason)
        cloudwatch._evaluate_parent_alarms(alarm)
