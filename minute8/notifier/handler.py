"""The notifier Lambda: EventBridge calls it each minute; it ignores the event."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from common import telemetry
from common.config import config
from common.deployment import Deployment
from common.storage import aws
from executor.targets.http_endpoint import HttpEndpoints
from minute8.notifier.delivery import TIMEOUT_S, Delivery
from minute8.notifier.notifier import Notifier, notifier

if TYPE_CHECKING:
    from common.platform.daily_report import DailyReports

_THREADS: Final = 16
# After the beginning of the round. The function's timeout is a minute; a read takes seconds, a try five at most.
_MAX_READ_START_S: Final = 25
_MAX_SEND_START_S: Final = 45


def handle(event: object, context: object) -> dict[str, Any]:
    """One round. Returns how many messages were sent, failed, held and left."""
    deployed = _notifier()
    began_at = deployed.clock.now()
    counts = dict(deployed.round(began_at + _MAX_READ_START_S, began_at + _MAX_SEND_START_S))
    if counts:
        telemetry.logger().info("notices", messages=counts)
    if config().daily_report_topic_arn:
        send_daily_report(deployed.clock.now())
    return counts


def send_daily_report(now: float) -> None:
    """Send the platform's report if it is time. What fails is tried again in a minute."""
    with telemetry.tolerated("daily report not sent"):
        if _daily_reports().send_if_due(now):
            telemetry.logger().info("daily report sent")


def _daily_reports() -> DailyReports:
    from common.platform.daily_report import DailyReports
    from common.platform.dead_letters import DeadLetters
    from executor.targets.clients import client

    settings, topic = config(), config().daily_report_topic_arn
    sns = client("sns", {"arn": topic}, {"minute8": {"tenant": ""}}, TIMEOUT_S)
    dead_letters = DeadLetters(aws.sqs(), settings.required("executions_queue_url"))
    tables = _deployment().tables
    return DailyReports(tables, settings.stage, topic, settings.daily_report_hour, sns, dead_letters)


@cache
def _deployment() -> Deployment:
    return Deployment(config())


@cache
def _notifier() -> Notifier:
    deployment = _deployment()
    return notifier(
        deployment.tables,
        deployment.clock,
        deployment.rules,
        Delivery(HttpEndpoints.of(deployment)),
        ThreadPoolExecutor(_THREADS, "tenant"),
        ThreadPoolExecutor(_THREADS, "read"),
        deployment.events,
    )


if aws.in_lambda():
    aws.warm_up(_notifier)
