"""Checks of stage one: do ticks run, and is everything planned that should be?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cli.doctor.deployment import Deployment
from cli.doctor.expected import SDK, TICK_EXPRESSION
from common.platform.findings import DEPLOY, Finding, failed, not_checked, ok, warning
from common.timing.zones import TZDATA_VERSION


def rule(deployment: Deployment) -> Iterator[Finding]:
    """The rule that starts the scheduler at minute 8 of every ten minutes."""
    events, name = deployment.client("events"), deployment.named("tick")
    try:
        found = events.describe_rule(Name=name)
    except events.exceptions.ResourceNotFoundException:
        yield failed(f"there is no rule {name}: nothing is planned", DEPLOY)
        return
    if found["State"] == "DISABLED":
        yield failed(f"{name} is disabled: nothing is planned", f"aws events enable-rule --name {name}")
    expression = found.get("ScheduleExpression", "")
    if expression != TICK_EXPRESSION:
        yield failed(f"{name} fires at {expression!r} instead of {TICK_EXPRESSION!r}", DEPLOY)
    scheduler = deployment.function_arn("scheduler")
    targets = [target["Arn"] for target in events.list_targets_by_rule(Rule=name)["Targets"]]
    if scheduler not in targets:
        yield failed(f"{name} calls {', '.join(targets) or 'nothing'} instead of {scheduler}", DEPLOY)
    if not _may_invoke(deployment, found["Arn"]):
        yield failed(f"{name} may not invoke {deployment.named('scheduler')}: nothing is planned", DEPLOY)
    yield ok(f"{name} is enabled, {expression}, and calls the scheduler")


def _may_invoke(deployment: Deployment, rule_arn: str) -> bool:
    """Whether the scheduler's policy allows the rule to start it."""
    client = deployment.client("lambda")
    try:
        policy = json.loads(client.get_policy(FunctionName=deployment.named("scheduler"))["Policy"])
    except client.exceptions.ResourceNotFoundException:
        return False
    return any(_lets_in(statement, rule_arn) for statement in policy["Statement"])


def _lets_in(statement: dict[str, Any], rule_arn: str) -> bool:
    principal = statement.get("Principal")
    service = principal.get("Service") if isinstance(principal, dict) else principal
    conditions = statement.get("Condition", {}).get("ArnLike", {})
    source = next((arn for key, arn in conditions.items() if key.lower() == "aws:sourcearn"), rule_arn)
    return (
        statement["Effect"] == "Allow"
        and service in ("events.amazonaws.com", "*")
        and statement["Action"] in ("lambda:InvokeFunction", "lambda:*", "*")
        and source == rule_arn
    )


def time_zones(deployment: Deployment) -> Iterator[Finding]:
    """Whether this machine's previews and the deployment's ticks use the same time zone rules."""
    found = deployment.index().mark()
    if found is None or not found.tzdata:
        yield not_checked("no tick has said yet which time zone database it plans by")
    elif found.tzdata != TZDATA_VERSION:
        newer = "this machine" if found.tzdata < TZDATA_VERSION else "the deployment"
        yield warning(
            f"ticks plan by tzdata {found.tzdata}, this machine previews by {TZDATA_VERSION}",
            f"{newer} has the newer rules: "
            + (DEPLOY if newer == "this machine" else "update this checkout"),
        )
    else:
        yield ok(f"tzdata {TZDATA_VERSION}, here and there")


def sdk(deployment: Deployment) -> Iterator[Finding]:
    """Whether the functions run with the version of the AWS SDK that Minute8 was tested with."""
    found = deployment.index().mark()
    if found is None or not found.sdk:
        yield not_checked("no tick has said yet which version of botocore it runs with")
    elif found.sdk != SDK:
        yield warning(
            f"the last tick ran with botocore {found.sdk}, and this version was tested with {SDK}", DEPLOY
        )
    else:
        yield ok(f"botocore {found.sdk}, as tested")
