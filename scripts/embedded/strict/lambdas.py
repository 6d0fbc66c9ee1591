"""Rules of Lambda: how many batches of a queue run at once, and that an update's code follows its configuration."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final

# An update's old code runs so long with its new configuration and layers.
APART_S: Final = 1.0
_FUNCTION: Final = "AWS::Lambda::Function"
# A queue that had no batch for so long begins anew. AWS does not say when it does.
_QUIET_S: Final = 60.0
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
_WITHOUT_MAXIMUM, _WITH_MAXIMUM, _GROWTH_A_MINUTE, _MAX_BATCHES = 2, 5, 300, 1_250


def batches_at_once(has_maximum: bool, busy_s: float) -> int:
    """How many batches of a queue run at once after it was busy for so long.

    Five and 300 more each minute. Lambda may begin with two, unless the mapping has a maximum concurrency.
    """
    return min(
        _MAX_BATCHES,
        (_WITH_MAXIMUM if has_maximum else _WITHOUT_MAXIMUM) + int(busy_s / 60 * _GROWTH_A_MINUTE),
    )


def grow_concurrency(lambda_svc: Any) -> None:
    """Into the server's module ministack.services.lambda_svc."""
    stock = lambda_svc._sqs_esm_concurrency
    busy: dict[str, tuple[float, float]] = {}  # since when, and the last time that a batch ran

    def grown(mapping: Mapping[str, Any], *more: Any, **named: Any) -> int:
        limit = int(stock(mapping, *more, **named))
        now, name = time.monotonic(), str(mapping["UUID"])
        since, last = busy.get(name, (now, now))
        if now - last > _QUIET_S:
            since = now
        if lambda_svc._esm_inflight.get(name):
            last = now
        busy[name] = since, last
        has_maximum = bool((mapping.get("ScalingConfig") or {}).get("MaximumConcurrency"))
        # Without a maximum the server stops at five.
        return min(limit, batches_at_once(has_maximum, now - since))

    lambda_svc._sqs_esm_concurrency = grown


def update_configuration_first(stacks: Any, provisioners: Any) -> None:
    """Into the server's CloudFormation: for a second a function's old code has its new configuration and layers.

    Lambda takes the two by two calls: https://github.com/aws/aws-cdk/issues/8446
    """
    handler = provisioners._RESOURCE_HANDLERS[_FUNCTION]
    update, runs_on_worker_thread = handler["update"], stacks._runs_on_worker_thread

    def apart(
        physical_id: str, old: Mapping[str, Any], new: Mapping[str, Any], *more: Any, **named: Any
    ) -> Any:
        if old.get("Code") == new.get("Code"):
            return update(physical_id, old, new, *more, **named)
        configured = {**new, "Code": old.get("Code")}
        result = update(physical_id, old, configured, *more, **named)
        time.sleep(APART_S)
        return update(result[0], configured, new, *more, **named)

    handler["update"] = apart
    # The server goes on meanwhile: functions are invoked.
    stacks._runs_on_worker_thread = lambda kind: kind == _FUNCTION or runs_on_worker_thread(kind)
