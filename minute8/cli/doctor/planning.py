"""Checks of stage one: do ticks run, and is everything planned that should be?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from common.platform.findings import (
    DEPLOY,
    Finding,
    Repair,
    failed,
    not_checked,
    ok,
    repairable,
    warning,
)
from common.timing.zones import TZDATA_VERSION
from minute8.cli.doctor.deployment import Deployment
from minute8.cli.doctor.inventory import EXPORT_EXPRESSION, ROUND_EXPRESSION, SDK, TICK_EXPRESSION


def rule(deployment: Deployment) -> Iterator[Finding]:
    """The rule that starts the scheduler at minute 8 of every ten minutes."""
    return _rule(deployment, "tick", "scheduler", TICK_EXPRESSION, "nothing is planned")


def notify_rule(deployment: Deployment) -> Iterator[Finding]:
    """The rule that starts the notifier each minute."""
    return _rule(deployment, "notify", "notifier", ROUND_EXPRESSION, "subscriptions get no messages")


def export_rule(deployment: Deployment) -> Iterator[Finding]:
    """The rule that starts the export of runs each hour, and its function, if the stage has `runsExport`."""
    configuration = deployment.function("exporter")
    if configuration is None:
        yield ok("runs are not exported")
        return
    if configuration["State"] == "Failed":
        yield failed(f"it takes no invocations: {configuration.get('StateReason', 'state Failed')}", DEPLOY)
    yield from _rule(deployment, "export", "exporter", EXPORT_EXPRESSION, "no runs leave for the bucket")


def _rule(
    deployment: Deployment, rule_name: str, function: str, schedule: str, consequence: str
) -> Iterator[Finding]:
    events, name = deployment.client("events"), deployment.named(rule_name)
    called = deployment.called_arn(function)
    put = Repair(
        f"aws events put-rule --name {name} --schedule-expression {schedule!r}",
        lambda: events.put_rule(Name=name, ScheduleExpression=schedule, State="ENABLED"),
    )
    target = Repair(
        f"aws events put-targets --rule {name} --targets Id={function},Arn={called}",
        lambda: events.put_targets(Rule=name, Targets=[{"Id": function, "Arn": called}]),
        order=1,
    )
    let_in = _letting_in(deployment, name, function)
    try:
        current = events.describe_rule(Name=name)
    except events.exceptions.ResourceNotFoundException:
        repair = Repair(
            f"{put.description}, put-targets, and aws lambda add-permission",
            lambda: [repair.do() for repair in (put, target, let_in)],
        )
        yield repairable(f"there is no rule {name}: {consequence}", repair)
        return
    if current["State"] == "DISABLED":
        enable = f"aws events enable-rule --name {name}"
        repair = Repair(enable, lambda: events.enable_rule(Name=name))
        yield failed(f"{name} is disabled: {consequence}", enable, repair)
    expression = current.get("ScheduleExpression", "")
    if expression != schedule:
        yield repairable(f"{name} fires at {expression!r} instead of {schedule!r}", put)
    targets = [target["Arn"] for target in events.list_targets_by_rule(Rule=name)["Targets"]]
    if called not in targets:
        yield repairable(f"{name} calls {', '.join(targets) or 'nothing'} instead of {called}", target)
    if not _may_invoke(deployment, function, current["Arn"]):
        yield repairable(f"{name} may not invoke {deployment.named(function)}: {consequence}", let_in)
    yield ok(f"{name} is enabled, {expression}, and calls the {function}")


def _letting_in(deployment: Deployment, name: str, function: str) -> Repair:
    events, full_name = deployment.client("events"), deployment.called_arn(function)

    def add() -> None:
        deployment.client("lambda").add_permission(
            FunctionName=full_name,
            StatementId=f"{name}-{int(deployment.clock.now())}",
            Action="lambda:InvokeFunction",
            Principal="events.amazonaws.com",
            SourceArn=events.describe_rule(Name=name)["Arn"],
        )

    return Repair(
        f"aws lambda add-permission --function-name {full_name} --principal events.amazonaws.com for {name}",
        add,
    )


def _may_invoke(deployment: Deployment, function: str, rule_arn: str) -> bool:
    """Whether the function's policy allows the rule to start it."""
    client = deployment.client("lambda")
    try:
        policy = json.loads(client.get_policy(FunctionName=deployment.called_arn(function))["Policy"])
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
    progress = deployment.planning().index().progress()
    if progress is None or not progress.tzdata:
        yield not_checked("no tick has said yet which time zone database it plans by")
    elif progress.tzdata != TZDATA_VERSION:
        newer = "this machine" if progress.tzdata < TZDATA_VERSION else "the deployment"
        yield warning(
            f"ticks plan by tzdata {progress.tzdata}, this machine previews by {TZDATA_VERSION}",
            f"{newer} has the newer rules: "
            + (DEPLOY if newer == "this machine" else "update this checkout"),
        )
    else:
        yield ok(f"tzdata {TZDATA_VERSION}, here and there")


def sdk(deployment: Deployment) -> Iterator[Finding]:
    """Whether the functions run with the version of the AWS SDK that Minute8 was tested with."""
    progress = deployment.planning().index().progress()
    if progress is None or not progress.sdk:
        yield not_checked("no tick has said yet which version of botocore it runs with")
    elif progress.sdk != SDK:
        yield warning(
            f"the last tick ran with botocore {progress.sdk}, and this version was tested with {SDK}", DEPLOY
        )
    else:
        yield ok(f"botocore {progress.sdk}, as tested")
