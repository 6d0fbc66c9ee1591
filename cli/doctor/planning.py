"""Checks of stage one: do ticks run, and is everything planned that should be?"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, Final

from cli.doctor.deployment import Deployment
from cli.doctor.expected import SDK, TICK_EXPRESSION
from cli.doctor.findings import DEPLOY, Finding, failed, not_checked, ok, warning
from cli.output import when
from common.planning.due_index import BadEntry, Mark
from common.planning.quarantine import shown
from common.timing.windows import WINDOW_S, planning_end
from common.timing.zones import TZDATA_VERSION

_TICK_MINUTE_S: Final = 480
# EventBridge invokes within a minute of the rule's time, and a tick takes seconds.
_TICK_GRACE_S: Final = 90
# A tick and a planner each end within 300 s.
_UNFINISHED_S: Final = 300
# A registration enqueues its executions within a second of its commit.
_PENDING_S: Final = 2


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


def mark(deployment: Deployment) -> Iterator[Finding]:
    """Up to when everything is planned: this shows that ticks run and succeed."""
    now, found = deployment.clock.now(), deployment.index().mark()
    if found is None:
        yield warning(
            "nothing has been planned yet: no tick came, and no job was registered",
            "look again after the next minute 8; then the scheduler's log says why",
        )
        return
    planned = f"planned until {when(found.planned_until, now)}"
    missed = ticks_missed(found, now)
    log = f"look at the log of {deployment.named('scheduler')}; the next tick plans what was missed"
    if missed and found.planned_until <= now:
        yield failed(f"executions are late: {planned}, {missed} ticks are missed", log)
    elif missed:
        yield warning(f"the last tick is missed, and executions are about to be late: {planned}", log)
    yield ok(planned)


def ticks_missed(mark: Mark, now: float) -> int:
    """How many ticks should have moved the mark by now, but did not."""
    last = (int(now) - _TICK_GRACE_S - _TICK_MINUTE_S) // WINDOW_S * WINDOW_S + _TICK_MINUTE_S
    return max(0, math.ceil((planning_end(last) - mark.planned_until) / WINDOW_S))


def unfinished(deployment: Deployment) -> Iterator[Finding]:
    """A window that a tick began and did not finish, and interrupted registrations."""
    now, found = deployment.clock.now(), deployment.index().mark()
    if found and found.is_open and now - found.decided_at > _UNFINISHED_S:
        began = when(int(found.decided_at), now)
        if found.is_divided:
            left = len(deployment.shares().left(found))
            yield warning(
                f"{left} shares of the window that a tick divided at {began} are not handed over",
                f"look at the log of {deployment.named('planner')}; the next tick sends them again",
            )
        else:
            yield warning(
                f"the tick of {began} has not finished its window",
                f"look at the log of {deployment.named('scheduler')}; the next tick finishes it",
            )
    if left := _left_pending(deployment):
        yield warning(
            f"{left} registrations were cut off before they handed their executions over",
            "the next tick does it; if they stay, its log says why",
        )
    yield ok("no window is half planned, and no registration half done")


def set_aside(deployment: Deployment) -> Iterator[Finding]:
    """What could not be planned: groups and shares that wait for it, and jobs' entries in the windows just planned."""
    now = deployment.clock.now()
    waiting = list(deployment.quarantine().waiting())
    if waiting:
        since = when(min(one.start_at for one in waiting), now)
        yield failed(
            f"{len(waiting)} groups or shares are not planned, the first since {since}: {shown(waiting)}",
            "each tick tries them again; where the reason is a later version or other time zones, deploy it again",
        )
    bad = [one for one in deployment.quarantine().bad_entries() if one.seen_at > now - 2 * WINDOW_S]
    if bad:
        yield warning(
            f"{len(bad)} jobs cannot be planned: {shown(bad)}",
            "each has a skipped run with the reason; the tenant can put the job again",
        )
    yield ok("nothing is set aside")


def _left_pending(deployment: Deployment) -> int:
    """How many are pending in two reads; this leaves out registrations in progress."""
    before = _pending_keys(deployment)
    if not before:
        return 0
    deployment.clock.sleep(_PENDING_S)
    return len(before & _pending_keys(deployment))


def _pending_keys(deployment: Deployment) -> set[str]:
    return {
        f"{pending.tenant}#{pending.job_id}" if isinstance(pending, BadEntry) else pending.key["sk"]
        for pending in deployment.index().pending()
    }


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
