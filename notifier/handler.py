"""The notifier Lambda: EventBridge calls it each minute; it ignores the event."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Final

from common import telemetry
from common.clock import SystemClock
from common.config import config
from common.storage import aws
from common.storage.table import Tables
from common.tenants.rules_cache import KnownTenants
from common.tenants.web_address import is_public_or_loopback
from common.tenants.webhook_secrets import SigningSecrets
from executor.network_guard import NetworkGuard
from executor.targets.http_endpoint import HttpEndpoints
from notifier.delivery import Delivery
from notifier.notifier import Notifier, notifier

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
    return counts


@cache
def _notifier() -> Notifier:
    settings, clock = config(), SystemClock()
    tables = Tables.of(settings)
    guard = NetworkGuard(allows=is_public_or_loopback) if settings.loopback_targets else NetworkGuard()
    secrets = SigningSecrets(tables.tenants)
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
