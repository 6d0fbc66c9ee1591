"""Faults of a stage that the embedded AWS can have, each with the page whose commands repair it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from minute8.canary.handler import JOB_ID, TENANT
from tests.runbook.site import Site

_GARBAGE: Final = "not written by Minute8"
_PLANNED: Final = frozenset({"ticks"})


@dataclass(frozen=True)
class Fault:
    """A page has the name of its alarm.

    `checks` are the doctor's that find it. Faults of one `part` are not made at once: one would hide the other. Nor is
    one made while a part is broken that it `needs`: without executions it would not show, or its repair would not.
    `shows_after_s` is how long the fault takes to show in the alarm's metric, beside a minute or two. `rings` says
    whether it shows there at all on the embedded AWS.
    """

    name: str
    page: str
    part: str
    breaks: Callable[[Site], object]
    checks: frozenset[str] = frozenset()
    shows_after_s: int = 0
    rings: bool = True
    needs: frozenset[str] = frozenset()


def rule_is_disabled(site: Site) -> None:
    site.client("events").disable_rule(Name=site.named("tick"))


def permission_is_lost(function: str) -> Callable[[Site], None]:
    def breaks(site: Site) -> None:
        """All of the function's own policies go, as after a wrong edit in IAM's console."""
        configuration = site.client("lambda").get_function_configuration(FunctionName=site.named(function))
        role, iam = configuration["Role"].rpartition("/")[2], site.client("iam")
        iam.delete_role_policy(RoleName=role, PolicyName=function)

    return breaks


def runs_cannot_be_written(site: Site) -> None:
    """The executor's role loses what its policy says of the runs table."""
    configuration = site.client("lambda").get_function_configuration(FunctionName=site.named("executor"))
    role, iam = configuration["Role"].rpartition("/")[2], site.client("iam")
    policy = iam.get_role_policy(RoleName=role, PolicyName="executor")["PolicyDocument"]
    policy["Statement"] = [
        statement for statement in policy["Statement"] if site.named("runs") not in json.dumps(statement)
    ]
    iam.put_role_policy(RoleName=role, PolicyName="executor", PolicyDocument=json.dumps(policy))


def mapping_is_disabled(function: str) -> Callable[[Site], None]:
    def breaks(site: Site) -> None:
        functions = site.client("lambda")
        mappings = functions.list_event_source_mappings(FunctionName=f"{site.named(function)}:live")
        for mapping in mappings["EventSourceMappings"]:
            functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)

    return breaks


def outcomes_wait(site: Site) -> None:
    """The outcome is of an invocation that was not Minute8's, so it is ignored once it is read."""
    mapping_is_disabled("outcomes")(site)
    outcome = {"version": "1.0", "requestContext": {"condition": "Success"}, "requestPayload": {}}
    site.client("sqs").send_message(QueueUrl=site.queue_url("outcomes"), MessageBody=json.dumps(outcome))


def executor_is_turned_off(site: Site) -> None:
    site.client("lambda").put_function_concurrency(
        FunctionName=site.named("executor"), ReservedConcurrentExecutions=0
    )


def loops_are_stopped(site: Site) -> None:
    site.client("lambda").put_function_recursion_config(
        FunctionName=site.named("executor"), RecursiveLoop="Terminate"
    )


def dead_letter(queue: str) -> Callable[[Site], None]:
    def breaks(site: Site) -> None:
        site.client("sqs").send_message(QueueUrl=site.queue_url(f"{queue}-dead"), MessageBody=_GARBAGE)

    return breaks


def mark_is_set_back(site: Site) -> None:
    """As after a restored table: half an hour is not planned."""
    progress = site.stage.progress()
    assert progress
    site.client("dynamodb").update_item(
        TableName=site.named("due"),
        Key={"pk": {"S": "PROGRESS"}, "sk": {"S": "PROGRESS"}},
        UpdateExpression="SET planned_until = :until, planning_until = :until, filed_until = :until",
        ExpressionAttributeValues={":until": {"N": str(progress.planned_until - 1800)}},
    )


def account_is_reserved(site: Site) -> None:
    """A tenant's function has nearly all of the account. (AWS itself would leave a hundred to the others.)"""
    functions, name = site.client("lambda"), site.stage.deploy_target().rpartition(":")[2]
    quota = functions.get_account_settings()["AccountLimit"]["ConcurrentExecutions"]
    functions.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=quota - 10)
    site.know(FUNCTION=name)


def canary_is_paused(site: Site) -> None:
    site.stage.store.pause(TENANT, JOB_ID, "by mistake")


FAULTS: Final = (
    Fault("the tick's rule is disabled", "no-tick", "ticks", rule_is_disabled, frozenset({"rule"})),
    Fault(
        "the scheduler loses its permissions",
        "tick-errors",
        "ticks",
        permission_is_lost("scheduler"),
        frozenset({"permissions scheduler"}),
    ),
    Fault(
        "planning is half an hour behind",
        "planning-lag",
        "ticks",
        mark_is_set_back,
        frozenset({"planned until"}),
        rings=False,  # the next tick puts it right, sooner than the alarm rings
    ),
    Fault(
        "the mapping to the executor is disabled",
        "overdue",
        "executor",
        mapping_is_disabled("executor"),
        frozenset({"mapping executions"}),
        needs=_PLANNED,
    ),
    Fault(
        "the executor is turned off",
        "executor-throttles",
        "executor",
        executor_is_turned_off,
        frozenset({"function executor"}),
        needs=_PLANNED,
    ),
    Fault(
        "the executor may not write runs",
        "burn-fast",
        "executor",
        runs_cannot_be_written,
        frozenset({"permissions executor"}),
        needs=_PLANNED,
    ),
    Fault("the canary's job is paused", "canary", "executor", canary_is_paused, needs=_PLANNED),
    Fault(
        "garbage among the dead letters",
        "dead-letters",
        "dead letters",
        dead_letter("executions"),
        frozenset({"dead letters executions"}),
    ),
    Fault(
        "garbage among the planners' dead letters",
        "planning-dead-letters",
        "planners' dead letters",
        dead_letter("planning"),
        frozenset({"dead letters planning"}),
    ),
    Fault(
        "garbage among the outcomes' dead letters",
        "outcomes-dead-letters",
        "outcomes' dead letters",
        dead_letter("outcomes"),
        frozenset({"dead letters outcomes"}),
    ),
    Fault(
        "the mapping to outcomes is disabled",
        "outcomes-lag",
        "outcomes",
        outcomes_wait,
        frozenset({"mapping outcomes"}),
        shows_after_s=300,
    ),
    Fault(
        "the notifier loses its permissions",
        "notifier-errors",
        "notifier",
        permission_is_lost("notifier"),
        frozenset({"permissions notifier"}),
    ),
    Fault(
        "loops of the executor are stopped",
        "recursion",
        "loops",
        loops_are_stopped,
        frozenset({"function executor"}),
        rings=False,  # the embedded AWS drops no retries
    ),
    Fault(
        "another function reserves the account's concurrency",
        "concurrency",
        "account",
        account_is_reserved,
        frozenset({"concurrency"}),
        rings=False,  # the embedded AWS does not run as many functions at once
    ),
    Fault(
        "the API loses its permissions",
        "api-errors",
        "api",
        permission_is_lost("api"),
        frozenset({"permissions api"}),
    ),
)
