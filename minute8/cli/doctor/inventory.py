"""The parts of a deployment, as serverless.yml deploys them; tests/deploy compares the two."""

from __future__ import annotations

from typing import Final, NamedTuple

TICK_EXPRESSION: Final = "cron(8/10 * * * ? *)"
ROUND_EXPRESSION: Final = "cron(* * * * ? *)"
# Of a stage with `runsExport`.
EXPORT_EXPRESSION: Final = "cron(13 * * * ? *)"
RUNTIME: Final = "python3.13"
# The version of botocore in requirements/lambda.txt, with which everything was tested.
SDK: Final = "1.43.106"
TABLES: Final = ("jobs", "due", "tenants", "audit", "runs")
INDEXES: Final = {"runs": ("failures",)}
TTL_ATTRIBUTE: Final = "expires_at"
# The windows of the burn alarms, which notify nobody by themselves.
QUIET_ALARMS: Final = ("burn-fast-hour", "burn-fast-now", "burn-slow-hours", "burn-slow-now")
# All other stages count as production.
STAGES_TO_LOSE: Final = ("dev", "local", "test")


class Feed(NamedTuple):
    """A queue, and the function that reads it. Its dead letters are in the queue of the same name and `-dead`."""

    queue: str
    function: str
    batch_size: int
    # A function that does not report failed messages returns a whole batch to the queue for one bad message.
    reports_failures: bool


FEEDS: Final = (
    Feed("executions", "executor", 10, True),
    Feed("planning", "planner", 1, False),
    Feed("outcomes", "outcomes", 10, True),
)

_READ = {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"}
_WRITE = {"dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}
_RECORD = {"dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"}
# Actions of an operator on dead letters.
_LETTERS = {
    *("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage")
}
# Function -> what its role may do, except its own log. Add new permissions here too.
PERMISSIONS: Final[dict[str, dict[str, set[str]]]] = {
    "Scheduler": {
        "DueTable": _WRITE | _READ | {"dynamodb:BatchWriteItem"},
        # The items of a deleted tenant are removed from all of them.
        "JobsTable": {
            "dynamodb:BatchGetItem",
            *("dynamodb:BatchWriteItem", "dynamodb:DeleteItem", "dynamodb:GetItem"),
            *("dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"),
        },
        "RunsTable": {
            *("dynamodb:BatchGetItem", "dynamodb:BatchWriteItem", "dynamodb:DeleteItem"),
            *("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"),
        },
        "TenantsTable": _WRITE | _READ | {"dynamodb:BatchWriteItem"},
        "AuditTable": {"dynamodb:BatchWriteItem", "dynamodb:PutItem", "dynamodb:Query"},
        "EventsBus": {"events:PutEvents"},
        "ExecutionsQueue": {"sqs:GetQueueAttributes", "sqs:SendMessage"},
        "PlanningQueue": {"sqs:SendMessage"},
    },
    "Planner": {
        "DueTable": {"dynamodb:BatchWriteItem", "dynamodb:GetItem", "dynamodb:Query"} | _WRITE,
        # What is over is deleted, as by the scheduler.
        "JobsTable": {
            *("dynamodb:BatchGetItem", "dynamodb:BatchWriteItem", "dynamodb:DeleteItem", "dynamodb:GetItem"),
            *("dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"),
        },
        "RunsTable": _WRITE | {"dynamodb:BatchWriteItem", "dynamodb:Query"},
        "TenantsTable": _WRITE | {"dynamodb:BatchWriteItem", "dynamodb:GetItem", "dynamodb:Query"},
        "AuditTable": {"dynamodb:BatchWriteItem", "dynamodb:PutItem", "dynamodb:Query"},
        "EventsBus": {"events:PutEvents"},
        "ExecutionsQueue": {"sqs:SendMessage"},
        "PlanningQueue": {
            *("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes"),
            *("sqs:ReceiveMessage", "sqs:SendMessage"),
        },
    },
    "Executor": {
        "JobsTable": _RECORD | {"dynamodb:BatchGetItem"},
        "DueTable": _RECORD | {"dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:Query"},
        "EventsBus": {"events:PutEvents"},
        "TenantsTable": {"dynamodb:BatchGetItem", "dynamodb:GetItem", "dynamodb:Query"},
        "AuditTable": {"dynamodb:PutItem"},
        "RunsTable": _RECORD
        | {"dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:PartiQLInsert", "dynamodb:Query"},
        "ExecutionsQueue": {
            *("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes"),
            *("sqs:ReceiveMessage", "sqs:SendMessage"),
        },
        "PlanningQueue": {"sqs:SendMessage"},
        # The ARNs in targetArns; an action has no effect on another service's ARN.
        "function:*": {
            *("events:PutEvents", "lambda:InvokeFunction", "sns:Publish", "sqs:SendMessage"),
            *("states:StartExecution", "states:StopExecution", "sts:AssumeRole"),
            *("lambda:GetDurableExecution", "lambda:ListDurableExecutionsByFunction"),
            "lambda:StopDurableExecution",
        },
        "function:canary-minute8-<stage>": {"lambda:InvokeFunction"},
    },
    "Outcomes": {
        "JobsTable": _RECORD,
        "DueTable": _RECORD | {"dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:Query"},
        "EventsBus": {"events:PutEvents"},
        "AuditTable": {"dynamodb:PutItem"},
        "RunsTable": {"dynamodb:GetItem", "dynamodb:Query", "dynamodb:UpdateItem"},
        "OutcomesQueue": {
            *("sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes"),
            "sqs:ReceiveMessage",
        },
    },
    "Notifier": {
        "JobsTable": _READ | {"dynamodb:DeleteItem", "dynamodb:PutItem"},
        "DueTable": {"dynamodb:GetItem"},
        "RunsTable": {"dynamodb:BatchGetItem", "dynamodb:Query"},
        "${RunsTable.Arn}/index/failures": {"dynamodb:Query"},
        "TenantsTable": {"dynamodb:GetItem", "dynamodb:Query"},
        "AuditTable": {"dynamodb:PutItem"},
        "EventsBus": {"events:PutEvents"},
        # The ARNs in targetArns; an action has no effect on another service's ARN.
        "function:*": {"sns:Publish"},
    },
    "Api": {
        "JobsTable": _READ | _WRITE | {"dynamodb:ConditionCheckItem"},
        "DueTable": _READ | _WRITE | {"dynamodb:BatchWriteItem"},
        "TenantsTable": _READ | _WRITE | {"dynamodb:ConditionCheckItem"},
        "AuditTable": {"dynamodb:PutItem", "dynamodb:Query"},
        "RunsTable": _RECORD | {"dynamodb:BatchGetItem", "dynamodb:DeleteItem", "dynamodb:Query"},
        "${RunsTable.Arn}/index/failures": {"dynamodb:Query"},
        "SigningMasters": {"ssm:GetParameter"},
        # Registrations by event, where rules may send them.
        "RegistrationsQueue": _LETTERS | {"sqs:SendMessage"},
        "RegistrationsDeadLetterQueue": _LETTERS | {"sqs:SendMessage"},
        "EventsBus": {"events:PutEvents"},
        **{f"{feed.queue.title()}Queue": {"sqs:SendMessage"} for feed in FEEDS},
        **{f"{feed.queue.title()}DeadLetterQueue": _LETTERS for feed in FEEDS},
        "*": {"cloudwatch:DescribeAlarms"},
        "function:*": {"lambda:GetFunctionConfiguration"},
    },
}
FUNCTIONS: Final = tuple(name.lower() for name in PERMISSIONS)
