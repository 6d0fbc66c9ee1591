"""The notifier Lambda: EventBridge calls it each minute; it ignores the event."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from common import telemetry
from common.clock import SystemClock
from common.config import config
from common.storage import aws
from common.storage.table import Tables
from common.tenants.rules_cache import KnownTenants
from common.tenants.secrets import SecretKey
from common.tenants.web_address import is_public_or_loopback
from common.tenants.webhook_secrets import SigningSecrets
from executor.network_guard import NetworkGuard
from executor.targets.http_endpoint import HttpEndpoints
from minute8.notifier.delivery import TIMEOUT_S, Delivery
from minute8.notifier.notifier import Notifier, notifier

if TYPE_CHECKING:
    from minute8.notifier.daily_report import DailyReports

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
    if config().daily_report_topic:
        send_daily_report(deployed.clock.now())
    return counts


def send_daily_report(now: float) -> None:
    """Send the platform's report if it is time. What fails is tried again in a minute."""
    try:
        if _daily_reports().send_if_due(now):
            telemetry.logger().info("daily report sent")
    except Exception as error:  # noqa: BLE001  tenants' messages are sent, whatever this is
        telemetry.logger().error("daily report not sent", error=repr(error)[:500])


def _daily_reports() -> DailyReports:
    from common.platform.dead_letters import DeadLetters
    from executor.targets.clients import client
    from minute8.notifier.daily_report import DailyReports

    settings = config()
    sns = client("sns", {"arn": settings.daily_report_topic}, {"minute8": {"tenant": ""}}, TIMEOUT_S)
    tables, topic = Tables.of(settings), settings.daily_report_topic
    letters = DeadLetters(aws.sqs(), settings.required("executions_queue_url"))
    return DailyReports(tables, settings.stage, topic, settings.daily_report_hour, sns, letters)


@cache
def _notifier() -> Notifier:
    settings, clock = config(), SystemClock()
    tables = Tables.of(settings)
    guard = NetworkGuard(allows=is_public_or_loopback) if settings.loopback_targets else NetworkGuard()
    secrets = SigningSecrets(tables.tenants, lambda: SecretKey.of(settings.secrets_key, aws.kms))
    endpoints = HttpEndpoints(secrets.signing, clock, settings.plain_http_targets, guard)
    return notifier(
        tables,
        clock,
        KnownTenants(tables.tenants),
        Delivery(endpoints),
        ThreadPoolExecutor(_THREADS, "tenant"),
        ThreadPoolExecutor(_THREADS, "read"),
    )


if aws.in_lambda():
    aws.warm_up(_notifier)
