"""How the tests call HTTPS endpoints on a local server."""

from __future__ import annotations

from typing import Any

from common.runs.outcome import Outcome
from common.tenants.webhook_secrets import new_secret
from executor.network_guard import NetworkGuard, Resolver
from executor.targets.http_endpoint import HttpEndpoints
from tests.executor.contexts import event
from tests.executor.servers import Server, trusting
from tests.manual_clock import ManualClock
from tests.worlds import at

NOW = at("2026-11-21T03:00:01Z")
SECRETS = (new_secret(), new_secret())


def endpoints(**fields: Any) -> HttpEndpoints:
    """As in production, except that the resolver knows the server's name and loopback is allowed."""
    settings: dict[str, Any] = {
        "secrets_of": lambda tenant, now: SECRETS[:1],
        "clock": ManualClock(NOW),
        "guard": NetworkGuard(Resolver(lambda host, port: ["127.0.0.1"]), lambda ip: ip.is_loopback),
        "tls": trusting,
    }
    return HttpEndpoints(**settings | fields)


def call(
    server: Server, timeout_s: float = 20, payload: Any = None, attempt: int = 1, **fields: Any
) -> Outcome:
    target = {"kind": "http", "url": server.url, "method": "POST"} | fields
    return endpoints().call(target, event(payload=payload, attempt=attempt), timeout_s)
