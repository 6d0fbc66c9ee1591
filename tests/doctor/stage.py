"""A healthy deployment on moto that tests break, and stand-ins for what moto lacks."""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from typing import Any

import boto3
import httpx
from botocore.exceptions import ClientError

from common.planning.due_index import DueIndex, PlanningProgress
from common.platform.signing_masters import parameter_name
from common.storage.table import Table
from common.tenants.audit_chain import SEALING, SealRound
from common.version import VERSION
from minute8.cli.doctor.deployment import SERVICES, Deployment
from minute8.cli.doctor.inventory import (
    EXPORT_EXPRESSION,
    FEEDS,
    FUNCTIONS,
    ROUND_EXPRESSION,
    RUNTIME,
    TABLES,
    TICK_EXPRESSION,
    TTL_ATTRIBUTE,
)
from minute8.cli.doctor.policies import restoring
from tests.alarms import template
from tests.manual_clock import ManualClock
from tests.scheduler_handler import put_position
from tests.worlds import at, make_tables

REGION = "us-east-1"
ACCOUNT = "123456789012"
API_URL = "https://api.test"
EXECUTOR_TIMEOUT_S = 20
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
    ],
}
VARIABLES = {"EXECUTOR_TIMEOUT_S": str(EXECUTOR_TIMEOUT_S), "VERSION": VERSION}
# The alarms of a stage without a canary and an export.
ALARMS = [name for name in template.NOTIFYING if name not in template.conditions()]
# moto has no composite alarms.
ALARM = {
    "Namespace": "AWS/SQS",
    "MetricName": "ApproximateNumberOfMessagesVisible",
    "Statistic": "Maximum",
    "Period": 60,
    "EvaluationPeriods": 1,
    "Threshold": 0,
    "ComparisonOperator": "GreaterThanThreshold",
}
# Two minutes after the tick of 3:18, which planned until 3:30.
NOW = "2026-11-21T03:20:00Z"


@dataclass
class Roles:
    """IAM: the roles' policies, and its simulator, which moto lacks.

    By default the simulator allows everything except calls of Minute8's own functions.
    """

    denied: set[tuple[str, str]] = field(default_factory=set)
    allowed: set[tuple[str, str]] = field(default_factory=set)
    put: list[tuple[str, str, Any]] = field(default_factory=list)
    # By role and name.
    policies: dict[tuple[str, str], Any] = field(default_factory=dict)
    trusted: dict[str, Any] = field(default_factory=dict)
    attached: set[tuple[str, str]] = field(default_factory=set)

    def get_role(self, RoleName: str) -> dict[str, Any]:
        return {"Role": {"AssumeRolePolicyDocument": self.trusted.get(RoleName, TRUST)}}

    def update_assume_role_policy(self, RoleName: str, PolicyDocument: str) -> None:
        self.trusted[RoleName] = json.loads(PolicyDocument)

    def get_role_policy(self, RoleName: str, PolicyName: str) -> dict[str, Any]:
        if (RoleName, PolicyName) not in self.policies:
            raise ClientError({"Error": {"Code": "NoSuchEntity", "Message": ""}}, "GetRolePolicy")
        return {"PolicyDocument": self.policies[RoleName, PolicyName]}

    def list_role_policies(self, RoleName: str) -> dict[str, Any]:
        return {"PolicyNames": [name for role, name in self.policies if role == RoleName]}

    def delete_role_policy(self, RoleName: str, PolicyName: str) -> None:
        del self.policies[RoleName, PolicyName]

    def list_attached_role_policies(self, RoleName: str) -> dict[str, Any]:
        return {"AttachedPolicies": [{"PolicyArn": arn} for role, arn in self.attached if role == RoleName]}

    def attach_role_policy(self, RoleName: str, PolicyArn: str) -> None:
        self.attached.add((RoleName, PolicyArn))

    def detach_role_policy(self, RoleName: str, PolicyArn: str) -> None:
        self.attached.remove((RoleName, PolicyArn))

    def simulate_principal_policy(
        self, PolicySourceArn: str, ActionNames: list[str], ResourceArns: list[str]
    ) -> dict[str, Any]:
        assert PolicySourceArn.startswith(f"arn:aws:iam::{ACCOUNT}:role/"), PolicySourceArn
        (arn,) = ResourceArns
        return {
            "EvaluationResults": [
                {"EvalActionName": action, "EvalDecision": self._decision(action, arn)}
                for action in ActionNames
            ]
        }

    def put_role_policy(self, RoleName: str, PolicyName: str, PolicyDocument: str) -> None:
        """A role with the template's policy may do what it needs, and no more."""
        self.put.append((RoleName, PolicyName, json.loads(PolicyDocument)))
        self.policies[RoleName, PolicyName] = json.loads(PolicyDocument)
        self.denied.clear()
        self.allowed.clear()

    def _decision(self, action: str, arn: str) -> str:
        refused = {name for name, suffix in self.denied if arn.endswith(suffix)} | (
            {"lambda:InvokeFunction"} - {name for name, suffix in self.allowed if arn.endswith(suffix)}
        )
        return "implicitDeny" if action in refused else "allowed"


@dataclass
class Stacks:
    """CloudFormation; moto's would need more packages."""

    status: str = "UPDATE_COMPLETE"
    tells_url: bool = True
    # Of the template, and the physical ids of those that the stack has.
    resources: dict[str, Any] = field(default_factory=dict)
    alarms: dict[str, Any] = field(default_factory=dict)
    physical_ids: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, Any] = field(default_factory=dict)

    class exceptions:
        ClientError = ClientError

    def describe_stacks(self, StackName: str) -> dict[str, Any]:
        if not self.status:
            error = {
                "Error": {"Code": "ValidationError", "Message": f"Stack with id {StackName} does not exist"}
            }
            raise ClientError(error, "DescribeStacks")  # type: ignore[arg-type]
        outputs = [{"OutputKey": "ApiUrl", "OutputValue": API_URL}] if self.tells_url else []
        return {"Stacks": [{"StackName": StackName, "StackStatus": self.status, "Outputs": outputs}]}

    def get_template(self, StackName: str) -> dict[str, Any]:
        """One policy for each role, with every way in which serverless.yml names a resource."""
        statement = {
            "Effect": "Allow",
            "Action": ["dynamodb:Query", "sqs:SendMessage"],
            "Resource": [
                {"Fn::GetAtt": ["DueTable", "Arn"]},
                {
                    "Fn::Sub": "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:minute8-test-planning"
                },
                {"Fn::Sub": "${RunsTable.Arn}/index/failures"},
                {"Fn::Sub": "arn:${AWS::Partition}:lambda:${AWS::Region}:${AWS::AccountId}:function:*"},
            ],
        }
        split = {"Fn::Split": [",", {"Fn::Sub": "a,arn:${AWS::Partition}:b"}]}
        documents = {"Statement": [statement, {"Effect": "Allow", "Action": "x", "Resource": split}]}
        roles = {
            f"{name.title()}Role": {
                "Type": "AWS::IAM::Role",
                "Properties": {
                    "AssumeRolePolicyDocument": TRUST,
                    "Policies": [{"PolicyName": name, "PolicyDocument": documents}],
                },
            }
            for name in FUNCTIONS
        }
        report = {
            "PolicyName": "daily-report",
            "Roles": [{"Ref": "NotifierRole"}],
            "PolicyDocument": {
                "Statement": [{"Effect": "Allow", "Action": "sns:Publish", "Resource": "arn:aws:b"}]
            },
        }
        roles["DailyReportPolicy"] = {"Type": "AWS::IAM::Policy", "Properties": report}
        unread = {"KeySchema": {"Fn::Unheard": []}, "TimeToLiveSpecification": {"Fn::Unheard": []}}
        table = {"Type": "AWS::DynamoDB::Table", "Properties": unread}
        tables = {"DueTable": table, "RunsTable": table}
        resources = roles | tables | self.alarms | self.resources
        return {"TemplateBody": {"Resources": resources, "Conditions": self.conditions}}

    def get_paginator(self, operation: str) -> Any:
        assert operation == "list_stack_resources"
        return self

    def paginate(self, StackName: str) -> list[dict[str, Any]]:
        """Two pages."""
        summaries = [
            {"LogicalResourceId": name, "PhysicalResourceId": physical_id}
            for name, physical_id in self.physical_ids.items()
        ]
        return [{"StackResourceSummaries": summaries[:2]}, {"StackResourceSummaries": summaries[2:]}]


@cache
def _client(service: str) -> Any:
    """Building a client takes longer than a test. moto also serves clients of earlier tests."""
    return boto3.client(service, region_name=REGION)  # type: ignore[call-overload]


@dataclass
class Altered:
    """A client of which some operations answer as a test wants."""

    client: Any
    operations: dict[str, Callable[..., Any]]

    def __getattr__(self, name: str) -> Any:
        return self.operations.get(name) or getattr(self.client, name)


class Patient:
    """The stage that the tests break: clients, names, and the deployment that the checks are given."""

    def __init__(self, stage: str = "test") -> None:
        self.clients: dict[str, Any] = {service: _client(service) for service in SERVICES}
        self.simulator, self.stacks = Roles(), Stacks()
        self.roles = self.clients["iam"]
        self.clients |= {"iam": self.simulator, "cloudformation": self.stacks}
        self.loops("Allow")
        self.at_once(1_000)
        self.clock = ManualClock(at(NOW))
        self.api_answers: int | httpx.HTTPError = 200
        self.masters_answer = 403
        self.deployment = Deployment(
            stage, "aws", REGION, ACCOUNT, self.clients.__getitem__, self.clock, get=self._get
        )
        self.name = self.deployment.named
        self._make()

    def __getitem__(self, service: str) -> Any:
        return self.clients[service]

    def _get(self, url: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        if url == f"{API_URL}/eventbridge/schedules":
            assert headers and "Credential=M8AK001" in headers["authorization"]
            return httpx.Response(self.masters_answer)
        assert url == f"{API_URL}/v1/openapi.json"
        if isinstance(self.api_answers, httpx.HTTPError):
            raise self.api_answers
        return httpx.Response(self.api_answers)

    @property
    def index(self) -> DueIndex:
        return DueIndex(Table(self["dynamodb"], self.name("due")))

    def queue_url(self, queue: str) -> str:
        return str(self["sqs"].get_queue_url(QueueName=self.name(queue))["QueueUrl"])

    def alter(self, service: str, **operations: Callable[..., Any]) -> None:
        self.clients[service] = Altered(self.clients[service], operations)

    def loops(self, setting: str) -> None:
        """The executor's RecursiveLoop, which moto lacks."""
        self.alter(
            "lambda",
            get_function_recursion_config=lambda FunctionName: {"RecursiveLoop": setting},
            put_function_recursion_config=lambda FunctionName, RecursiveLoop: self.loops(RecursiveLoop),
        )

    def at_once(self, of_account: int) -> None:
        """The account's concurrency, with none reserved; moto lacks it."""
        limits = {"ConcurrentExecutions": of_account, "UnreservedConcurrentExecutions": of_account}
        self.alter("lambda", get_account_settings=lambda: {"AccountLimit": limits})

    def mapping(self, function: str) -> Any:
        (only,) = self["lambda"].list_event_source_mappings(FunctionName=self.name(function))[
            "EventSourceMappings"
        ]
        return only

    def planned(self, start: str, end: str, decided: str, *, finished: bool = True) -> PlanningProgress:
        """Have a tick announce, and end, a window."""
        progress = self.index.ensure_progress(at(start) - 900)
        assert progress.planned_until == at(start), "planned_until begins where the window does"
        progress = self.index.begin_planning(progress, at(end), at(decided))
        return self.index.finish_planning(at(end)) if finished else progress

    def _make(self) -> None:
        make_tables(self["dynamodb"], self.name())
        for table in TABLES:
            self.expire(table)
        for feed in FEEDS:
            self._make_queue(feed.queue, dead=True)
        for function in FUNCTIONS:
            self._make_function(function)
        for feed in FEEDS:
            self["lambda"].create_event_source_mapping(
                FunctionName=self.name(feed.function),
                EventSourceArn=self.deployment.queue_arn(feed.queue),
                BatchSize=feed.batch_size,
                FunctionResponseTypes=["ReportBatchItemFailures"] if feed.reports_failures else [],
            )
            self.stacks.physical_ids[f"{feed.queue.title()}Mapping"] = self.mapping(feed.function)["UUID"]
        for function in FUNCTIONS:
            self.stacks.physical_ids[f"{function.title()}Role"] = self.name(function)
        self.stacks.physical_ids["DailyReportPolicy"] = "daily"
        self.stacks.physical_ids |= {"DueTable": self.name("due"), "RunsTable": self.name("runs")}
        self.stacks.physical_ids |= {"TickRule": self.name("tick"), "NotifyRule": self.name("notify")}
        self._make_rule("tick", TICK_EXPRESSION, "scheduler")
        self._make_rule("notify", ROUND_EXPRESSION, "notifier")
        self["events"].create_event_bus(Name=self.name())
        self["ssm"].put_parameter(
            Name=parameter_name(self.deployment.stage), Type="SecureString", Value="{}", Overwrite=True
        )
        for alarm in ALARMS:
            self.deploy_alarm(alarm)
            self.alarm(alarm)
        due = Table(self["dynamodb"], self.name("due"))
        put_position(due, SEALING, asdict(SealRound(at(NOW) - 600, at(NOW) - 599)))
        self.planned("2026-11-21T03:20:00Z", "2026-11-21T03:30:00Z", "2026-11-21T03:18:02Z")
        for function in FUNCTIONS:
            restoring(self.deployment, self.name(function)).do()
        self.simulator.put.clear()

    def expire(self, table: str) -> None:
        self["dynamodb"].update_time_to_live(
            TableName=self.name(table),
            TimeToLiveSpecification={"Enabled": True, "AttributeName": TTL_ATTRIBUTE},
        )

    def _make_queue(self, name: str, *, dead: bool) -> None:
        attributes = {"VisibilityTimeout": "60"}
        if dead:
            self._make_queue(f"{name}-dead", dead=False)
            redrive = {"deadLetterTargetArn": self.deployment.queue_arn(f"{name}-dead"), "maxReceiveCount": 5}
            attributes["RedrivePolicy"] = json.dumps(redrive)
        self["sqs"].create_queue(QueueName=self.name(name), Attributes=attributes)

    def _make_function(self, name: str) -> None:
        code = io.BytesIO()
        with zipfile.ZipFile(code, "w") as archive:
            archive.writestr("handler.py", "")
        role = self.roles.create_role(
            RoleName=self.name(name),
            AssumeRolePolicyDocument=json.dumps(TRUST),
        )["Role"]["Arn"]
        self["lambda"].create_function(
            FunctionName=self.name(name),
            Runtime=RUNTIME,
            Handler="handler.handle",
            Role=role,
            Code={"ZipFile": code.getvalue()},
            Timeout=EXECUTOR_TIMEOUT_S,
            Environment={"Variables": VARIABLES},
        )

    def _make_rule(self, rule_name: str, expression: str, function: str) -> None:
        rule = self["events"].put_rule(Name=self.name(rule_name), ScheduleExpression=expression)["RuleArn"]
        self["events"].put_targets(
            Rule=self.name(rule_name),
            Targets=[{"Id": function, "Arn": self.deployment.function_arn(function)}],
        )
        self["lambda"].add_permission(
            FunctionName=self.name(function),
            StatementId="rule",
            Action="lambda:InvokeFunction",
            Principal="events.amazonaws.com",
            SourceArn=rule,
        )

    def add_export(self) -> None:
        """As a stage with `runsExport` has it."""
        self._make_function("exporter")
        self._make_rule("export", EXPORT_EXPRESSION, "exporter")

    def deploy_alarm(self, name: str, **changes: Any) -> None:
        """The stack's template has this alarm from now on."""
        properties = {**ALARM, **self._texts(name), **changes}
        self.stacks.alarms[name] = {"Type": "AWS::CloudWatch::Alarm", "Properties": properties}
        self.stacks.physical_ids[name] = self.name(name)

    def alarm(self, name: str, **changes: Any) -> None:
        self["cloudwatch"].put_metric_alarm(**{**ALARM, **self._texts(name), **changes})

    def _texts(self, name: str) -> dict[str, str]:
        page = re.sub(r"(burn-\w+)-\w+", r"\1", name)
        return {"AlarmName": self.name(name), "AlarmDescription": f"What it means. docs/runbook/{page}.md"}
