"""What an account would refuse, found before anything is created: permissions, quotas, names and the stack's state.

It creates nothing. What the user may not ask is `not checked`, and hinders nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from common.config import OFF
from common.platform.findings import Finding, Level, failed, not_checked, ok, warning
from common.storage.domains import partition_of
from minute8.cli.doctor.inventory import TABLES
from scripts.build_layer import ROOT
from scripts.concurrency import LEFT_UNRESERVED, SMALLEST_ACCOUNT, account_of
from scripts.verify.made import is_denied, is_gone, resources_of

DEPLOY_POLICY: Final = ROOT / "deploy" / "policies" / "deploy.json"
VERIFY_POLICY: Final = ROOT / "deploy" / "policies" / "verify.json"
POLICIES: Final = (DEPLOY_POLICY, VERIFY_POLICY)

_RESERVING: Final = ("apiReservedConcurrency", "executorReservedConcurrency")
# A stack in these states takes no update.
_STUCK: Final = {
    *("CREATE_FAILED", "DELETE_FAILED", "REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED"),
    "UPDATE_ROLLBACK_FAILED",
}

# Actions that a deployment needs of its user, by the resource: each is called here, by osls or by CloudFormation.
NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "cloudformation:{region}:{account}:stack/minute8-{stage}/*": (
        *("cloudformation:CreateStack", "cloudformation:UpdateStack", "cloudformation:DeleteStack"),
        *("cloudformation:DescribeStacks", "cloudformation:DescribeStackEvents", "cloudformation:GetTemplate"),
        *("cloudformation:DescribeStackResource", "cloudformation:DescribeStackResources"),
        "cloudformation:ListStackResources",
    ),
    "dynamodb:{region}:{account}:table/minute8-{stage}-jobs": (
        *("dynamodb:CreateTable", "dynamodb:UpdateTable", "dynamodb:DeleteTable", "dynamodb:DescribeTable"),
        *("dynamodb:DescribeTimeToLive", "dynamodb:UpdateTimeToLive", "dynamodb:TagResource"),
        *("dynamodb:DescribeContinuousBackups", "dynamodb:UpdateContinuousBackups"),
        *("dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query", "dynamodb:UpdateItem"),
    ),
    "sqs:{region}:{account}:minute8-{stage}-executions": (
        *("sqs:CreateQueue", "sqs:DeleteQueue", "sqs:SetQueueAttributes", "sqs:GetQueueAttributes"),
        *("sqs:GetQueueUrl", "sqs:TagQueue"),
    ),
    "lambda:{region}:{account}:function:minute8-{stage}-executor": (
        *("lambda:CreateFunction", "lambda:DeleteFunction", "lambda:GetFunction", "lambda:TagResource"),
        *("lambda:UpdateFunctionCode", "lambda:UpdateFunctionConfiguration", "lambda:InvokeFunction"),
        *("lambda:GetFunctionConfiguration", "lambda:AddPermission", "lambda:RemovePermission"),
        *("lambda:PutFunctionConcurrency", "lambda:PutFunctionRecursionConfig", "lambda:GetPolicy"),
        *("lambda:PutFunctionEventInvokeConfig", "lambda:DeleteFunctionEventInvokeConfig"),
        *("lambda:PublishVersion", "lambda:ListVersionsByFunction", "lambda:CreateAlias", "lambda:GetAlias"),
        *("lambda:UpdateAlias", "lambda:DeleteAlias"),
    ),
    "lambda:{region}:{account}:layer:minute8-{stage}-deps": ("lambda:PublishLayerVersion",),
    "lambda:{region}:{account}:layer:minute8-{stage}-deps:1": (
        *("lambda:GetLayerVersion", "lambda:DeleteLayerVersion"),
    ),
    "iam::{account}:role/minute8-{stage}-ExecutorRole-1": (
        *("iam:CreateRole", "iam:DeleteRole", "iam:GetRole", "iam:PutRolePolicy", "iam:DeleteRolePolicy"),
        *("iam:GetRolePolicy", "iam:ListRolePolicies", "iam:ListAttachedRolePolicies", "iam:TagRole"),
        "iam:PassRole",
    ),
    "s3:::minute8-{stage}-serverlessdeploymentbucket-1": (
        *("s3:CreateBucket", "s3:DeleteBucket", "s3:ListBucket", "s3:PutBucketPolicy", "s3:PutBucketTagging"),
        *("s3:PutEncryptionConfiguration", "s3:DeleteBucketPolicy", "s3:GetBucketPolicy"),
    ),
    "s3:::minute8-{stage}-serverlessdeploymentbucket-1/*": ("s3:GetObject", "s3:PutObject", "s3:DeleteObject"),
    "events:{region}:{account}:rule/minute8-{stage}-tick": (
        *("events:PutRule", "events:DeleteRule", "events:DescribeRule", "events:PutTargets"),
        *("events:RemoveTargets", "events:TagResource"),
    ),
    "events:{region}:{account}:event-bus/minute8-{stage}": ("events:CreateEventBus", "events:DeleteEventBus"),
    "cloudwatch:{region}:{account}:alarm:minute8-{stage}-overdue": (
        *("cloudwatch:PutMetricAlarm", "cloudwatch:PutCompositeAlarm", "cloudwatch:DeleteAlarms"),
    ),
    "logs:{region}:{account}:log-group:/aws/lambda/minute8-{stage}-executor:*": (
        *("logs:CreateLogGroup", "logs:DeleteLogGroup", "logs:PutRetentionPolicy", "logs:TagResource"),
    ),
    "apigateway:{region}::/apis": ("apigateway:POST", "apigateway:GET"),
    "apigateway:{region}::/apis/*": (
        *("apigateway:GET", "apigateway:POST", "apigateway:PATCH", "apigateway:DELETE"),
    ),
    "ssm:{region}:{account}:parameter/minute8/{stage}/signing-masters": ("ssm:GetParameter", "ssm:PutParameter"),
    "*": (
        *("cloudformation:ValidateTemplate", "cloudwatch:DescribeAlarms", "cloudwatch:GetMetricData"),
        *("lambda:CreateEventSourceMapping", "lambda:GetEventSourceMapping", "lambda:GetAccountSettings"),
        *("lambda:UpdateEventSourceMapping", "lambda:DeleteEventSourceMapping", "lambda:ListEventSourceMappings"),
        *("logs:DescribeLogGroups", "logs:CreateLogDelivery", "logs:PutResourcePolicy", "ssm:DescribeParameters"),
        "iam:SimulatePrincipalPolicy",
    ),
}  # fmt: skip
# What a verification needs besides.
NEEDED_BY_VERIFY: Final[Mapping[str, tuple[str, ...]]] = {
    "lambda:{region}:{account}:function:verify-{stage}-target": (
        *("lambda:CreateFunction", "lambda:DeleteFunction", "lambda:GetFunction"),
    ),
    "sqs:{region}:{account}:verify-{stage}-bare": (
        *("sqs:CreateQueue", "sqs:DeleteQueue", "sqs:GetQueueAttributes", "sqs:GetQueueUrl", "sqs:SendMessage"),
    ),
    "logs:{region}:{account}:log-group:/aws/lambda/verify-{stage}-target:*": (
        *("logs:DeleteLogGroup", "logs:FilterLogEvents"),
    ),
    "ssm:{region}:{account}:parameter/minute8/{stage}/signing-masters": ("ssm:DeleteParameter",),
    "*": ("lambda:ListFunctions", "dynamodb:ListTables", "sqs:ListQueues", "iam:ListRoles", "s3:ListAllMyBuckets",
          "events:ListRules", "events:ListEventBuses"),
}  # fmt: skip


Clients = Callable[[str], Any]


def of_new_stage(clients: Clients, stage: str, region: str, params: Mapping[str, str]) -> list[Finding]:
    """What `make verify` finds: the stage must not exist, and nothing may have its names."""
    needed = [*NEEDED.items(), *NEEDED_BY_VERIFY.items()]
    return _all(
        lambda: permissions(clients("sts"), clients("iam"), stage, region, needed),
        lambda: concurrency(clients("lambda"), stage, params),
        lambda: unused_names(stage, region),
    )


def of_deployment(clients: Clients, stage: str, region: str, params: Mapping[str, str]) -> list[Finding]:
    """What `make deploy` finds: of a first deployment and of a later one."""
    return _all(
        lambda: permissions(clients("sts"), clients("iam"), stage, region, list(NEEDED.items())),
        lambda: concurrency(clients("lambda"), stage, params),
        lambda: stack_state(clients("cloudformation"), stage),
        lambda: tables_outside(clients("cloudformation"), clients("dynamodb"), stage),
    )


def _all(*checks: Callable[[], Iterator[Finding]]) -> list[Finding]:
    findings: list[Finding] = []
    for check in checks:
        try:
            findings += check()
        except (BotoCoreError, ClientError) as error:
            level = not_checked if isinstance(error, ClientError) and is_denied(error) else failed
            findings.append(level(str(error), ""))
    return findings


def permissions(
    sts: Any, iam: Any, stage: str, region: str, needed: list[tuple[str, tuple[str, ...]]]
) -> Iterator[Finding]:
    """Whether IAM's simulator allows the user what a deployment needs. Raises ClientError."""
    identity = sts.get_caller_identity()
    user, account = identity["Arn"], identity["Account"]
    if user.endswith(":root"):
        yield ok(f"as {user}, who may do everything")
        return
    if ":assumed-role/" in user:  # the simulator wants the role, whose path only IAM knows
        user = iam.get_role(RoleName=user.split("/")[1])["Role"]["Arn"]
    denied = []
    for pattern, actions in needed:
        resource = pattern.format(region=region, account=account, stage=stage)
        arn = resource if resource == "*" else f"arn:{partition_of(region)}:{resource}"
        answer = iam.simulate_principal_policy(
            PolicySourceArn=user, ActionNames=list(actions), ResourceArns=[arn]
        )
        denied += [
            f"{result['EvalActionName']} on {arn}"
            for result in answer["EvaluationResults"]
            if result["EvalDecision"] != "allowed"
        ]
    if denied:
        yield failed(
            f"{user} may not: {', '.join(denied)}",
            f"give it the policies of {DEPLOY_POLICY.parent.relative_to(ROOT)} (docs/verified.md)",
        )
    else:
        yield ok(f"{user} may do what is needed")


def concurrency(functions: Any, stage: str, params: Mapping[str, str]) -> Iterator[Finding]:
    """Whether the account's quota is enough, and leaves what Lambda never reserves. Raises ClientError."""
    account = account_of(functions, stage)
    names = [name for name in _RESERVING if params.get(name, OFF) != OFF]
    reserved = sum(int(params[name]) for name in names)
    if names and account.free - reserved < LEFT_UNRESERVED:
        yield failed(
            f"{' and '.join(names)} reserve {reserved}: of the account's {account.quota} concurrent executions"
            f" {account.free} are not reserved, and Lambda keeps {LEFT_UNRESERVED} so. CloudFormation would fail",
            f"give {' and '.join(f'{name}={OFF}' for name in names)}, or ask AWS for a higher quota of Lambda's"
            " concurrent executions",
        )
    elif account.quota < SMALLEST_ACCOUNT:
        yield warning(
            f"the account may run {account.quota} functions at once: bursts are late",
            "ask AWS for a higher quota of Lambda's concurrent executions; it takes hours to days",
        )
    else:
        yield ok(f"{account.quota} concurrent executions, {account.free} not reserved by others")


def unused_names(stage: str, region: str) -> Iterator[Finding]:
    """Whether nothing has a name that the stage would give. Raises ClientError."""
    resources, unknown = resources_of(stage, region)
    for resource in resources:
        yield failed(
            f"{resource.kind} {resource.name} is there already", f"name another stage, or: {resource.command}"
        )
    yield from (not_checked(problem) for problem in unknown)
    if not resources and not unknown:
        yield ok(f"nothing is named as stage {stage} would be")


def stack_state(cloudformation: Any, stage: str) -> Iterator[Finding]:
    """Whether CloudFormation takes a deployment of the stage now. Raises ClientError."""
    name = f"minute8-{stage}"
    try:
        (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if not is_gone(error):
            raise
        yield ok(f"there is no stack {name} yet")
        return
    status = stack["StackStatus"]
    if status in _STUCK:
        remedy = f"aws cloudformation delete-stack --stack-name {name}"
        if status == "UPDATE_ROLLBACK_FAILED":
            remedy = f"aws cloudformation continue-update-rollback --stack-name {name}"
        yield failed(f"the stack {name} is {status} and takes no deployment", remedy)
    elif status.endswith("_IN_PROGRESS"):
        yield failed(f"the stack {name} is {status}", "wait until that has ended")
    else:
        yield ok(f"the stack {name} is {status}")


def tables_outside(cloudformation: Any, dynamodb: Any, stage: str) -> Iterator[Finding]:
    """Tables of the stage's names that its stack would create and cannot, since they exist. Raises ClientError."""
    try:
        pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=f"minute8-{stage}")
        own = {
            resource.get("PhysicalResourceId")
            for page in pages
            for resource in page["StackResourceSummaries"]
        }
    except ClientError as error:
        if not is_gone(error):
            raise
        own = set()
    for name in (f"minute8-{stage}-{table}" for table in TABLES):
        try:
            exists = name not in own and bool(dynamodb.describe_table(TableName=name))
        except dynamodb.exceptions.ResourceNotFoundException:
            continue
        if exists:
            yield failed(
                f"the table {name} exists outside the stack, which could not create it",
                "import it into the stack, or delete it: docs/deploying.md#removing-a-stage",
            )


def print_findings(command: str, findings: list[Finding]) -> None:
    """One line for each, and what to do about it."""
    for finding in findings:
        print(f"{command}: {'' if finding.level == Level.OK else f'{finding.level}: '}{finding.message}")
        if finding.remedy:
            print(f"{' ' * len(command)}  {finding.remedy}")
