"""AWS's rules that the server has not: what `start(strict=True)` adds to it. docs/embedded-aws.md lists them."""

from __future__ import annotations

from collections.abc import Callable

from scripts.embedded.strict import (
    conflicts,
    delays,
    duplicates,
    polls,
    recursion,
    rules,
    shares,
    throughput,
)


def install(throttled: Callable[[str, bool], None], *, with_shares: bool) -> None:
    """Into the server of this process. `with_shares`: functions get the processor share of their memory too.

    `throttled` gets the name of a table, and whether its writes were throttled or its reads.
    """
    from ministack.core import lambda_runtime  # type: ignore[import-untyped]
    from ministack.services import dynamodb, eventbridge, lambda_svc, sqs  # type: ignore[import-untyped]

    recursion.install(sqs, lambda_svc)
    conflicts.install(dynamodb)
    throughput.install(dynamodb, throttled)
    delays.install(sqs)
    duplicates.install(sqs)
    polls.install(sqs)
    rules.install(eventbridge)
    if with_shares:
        shares.install(lambda_runtime)
