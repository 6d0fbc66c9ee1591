"""The doctor finds what differs from the deployed template, and what the stack does not have."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError

from common.platform.findings import Finding, Level
from minute8.cli.doctor.examine import CHECKS, examine
from minute8.cli.doctor.fix import fix
from minute8.cli.doctor.inventory import RUNTIME, TICK_EXPRESSION
from minute8.cli.doctor.settings import KINDS
from minute8.cli.doctor.template import DeployedTemplate
from tests.doctor.described import DESCRIBING, NAMES, compared, excepted
from tests.doctor.stage import ACCOUNT, EXECUTOR_TIMEOUT_S, REGION, VARIABLES, Patient

OWN = [check for check in CHECKS if check.name in ("settings", "strangers")]
WITHOUT_RECORDS = [
    check for check in CHECKS if check.name in ("settings", "strangers", "dead letters executions")
]


@pytest.fixture
def deployed(patient: Patient) -> Patient:
    """The stage, with a template that has what `Patient` makes."""
    name, arn, target = (
        patient.name,
        patient.deployment.queue_arn,
        {"Fn::Sub": patient.deployment.function_arn("scheduler")},
    )
    patient["logs"].create_log_group(logGroupName="/aws/lambda/executor")
    patient["logs"].put_retention_policy(logGroupName="/aws/lambda/executor", retentionInDays=30)
    redrive = {
        "deadLetterTargetArn": {"Fn::GetAtt": ["ExecutionsDeadLetterQueue", "Arn"]},
        "maxReceiveCount": 5,
    }
    planning_redrive = {**redrive, "deadLetterTargetArn": arn("planning-dead")}
    function = {
        "Runtime": RUNTIME,
        "Timeout": EXECUTOR_TIMEOUT_S,
        "Handler": "handler.handle",
        "Environment": {
            "Variables": {**VARIABLES, "NEVER": {"Fn::If": ["Off", "on", {"Ref": "AWS::NoValue"}]}}
        },
    }
    patient.stacks.conditions = {"Off": {"Fn::Not": [{"Fn::Equals": ["off", "off"]}]}}
    patient.stacks.resources = {
        "ExecutionsQueue": resource("SQS::Queue", VisibilityTimeout=60, RedrivePolicy=redrive),
        "ExecutionsDeadLetterQueue": resource("SQS::Queue", VisibilityTimeout="60"),
        "PlanningQueue": resource("SQS::Queue", VisibilityTimeout=60, RedrivePolicy=planning_redrive),
        "ExecutionsMapping": resource(
            "Lambda::EventSourceMapping",
            BatchSize=10,
            FunctionResponseTypes=["ReportBatchItemFailures"],
            EventSourceArn={"Fn::GetAtt": ["ExecutionsQueue", "Arn"]},
            ScalingConfig={"Fn::If": ["Off", {"MaximumConcurrency": 9}, {"Ref": "AWS::NoValue"}]},
        ),
        "PlanningMapping": resource(
            "Lambda::EventSourceMapping", BatchSize=1, EventSourceArn=arn("planning")
        ),
        "OutcomesMapping": resource(
            "Lambda::EventSourceMapping",
            FunctionResponseTypes=["ReportBatchItemFailures"],
            EventSourceArn=arn("outcomes"),
        ),
        "ExecutorFunction": resource(
            "Lambda::Function",
            **function,
            Role={"Fn::Sub": f"arn:${{AWS::Partition}}:iam::{ACCOUNT}:role/{name('executor')}"},
        ),
        "SchedulerFunction": {"Type": "AWS::Lambda::Function", "Properties": {"Code": {"Fn::Unheard": []}}},
        "TickRule": resource(
            "Events::Rule", ScheduleExpression=TICK_EXPRESSION, Targets=[{"Id": "scheduler", "Arn": target}]
        ),
        "NotifyRule": resource(
            "Events::Rule", Targets={"Fn::Unheard": []}, ScheduleExpression="cron(* * * * ? *)"
        ),
        "ExecutorLogs": resource("Logs::LogGroup", RetentionInDays=30),
        "NeverQueue": {**resource("SQS::Queue", DelaySeconds=9), "Condition": "Off"},
    }
    patient.stacks.physical_ids |= {
        "ExecutionsQueue": patient.queue_url("executions"),
        "ExecutionsDeadLetterQueue": patient.queue_url("executions-dead"),
        "NeverQueue": patient.queue_url("executions"),
        "PlanningQueue": patient.queue_url("planning"),
        "ExecutorFunction": name("executor"),
        "ExecutorLogs": "/aws/lambda/executor",
    }
    return patient


def resource(kind: str, **properties: Any) -> dict[str, Any]:
    return {"Type": f"AWS::{kind}", "Properties": properties}


def problems(patient: Patient) -> list[Finding]:
    return [finding for finding in examine(patient.deployment, 30, OWN) if finding.level != Level.OK]


def attribute(queue: str, **attributes: str) -> Callable[[Patient], Any]:
    return lambda patient: patient["sqs"].set_queue_attributes(
        QueueUrl=patient.queue_url(queue), Attributes=attributes
    )


def receives_once(patient: Patient) -> None:
    policy = {"deadLetterTargetArn": patient.deployment.queue_arn("executions-dead"), "maxReceiveCount": 1}
    attribute("executions", RedrivePolicy=json.dumps(policy))(patient)


def mapping(**changes: Any) -> Callable[[Patient], Any]:
    return lambda patient: patient["lambda"].update_event_source_mapping(
        UUID=patient.mapping("executor")["UUID"], **changes
    )


def function(**changes: Any) -> Callable[[Patient], Any]:
    return lambda patient: patient["lambda"].update_function_configuration(
        FunctionName=patient.name("executor"), **changes
    )


def test_a_stage_as_it_was_deployed_has_no_difference(deployed: Patient) -> None:
    assert problems(deployed) == []


@pytest.mark.parametrize(
    ("change", "message", "level", "is_repairable"),
    [
        (
            attribute("executions", MessageRetentionPeriod="60"),
            'MessageRetentionPeriod "60" instead of 345600',
            "failed",
            True,
        ),
        (
            attribute("executions", VisibilityTimeout="43200"),
            'VisibilityTimeout "43200" instead of 60',
            "failed",
            True,
        ),
        (attribute("executions-dead", DelaySeconds="300"), 'DelaySeconds "300" instead of 0', "failed", True),
        (
            attribute("executions", RedrivePolicy="{}"),
            "RedrivePolicy no value instead of {",
            "failed",
            True,
        ),
        (attribute("planning", DelaySeconds="900"), 'DelaySeconds "900" instead of 0', "failed", True),
        (
            receives_once,
            "RedrivePolicy.maxReceiveCount 1 instead of 5",
            "failed",
            True,
        ),
        (
            mapping(ScalingConfig={"MaximumConcurrency": 2}),
            'ScalingConfig {"MaximumConcurrency": 2} instead of no value',
            "warning",
            True,
        ),
        (mapping(BatchSize=1), "BatchSize 1 instead of 10", "failed", True),
        (function(MemorySize=3008), "MemorySize 3008 instead of 128", "warning", False),
        (
            function(Environment={"Variables": VARIABLES | {"STAGE": "x"}}),
            'Variables.STAGE "x" instead of no value',
            "failed",
            False,
        ),
        (
            lambda patient: patient["logs"].put_retention_policy(
                logGroupName="/aws/lambda/executor", retentionInDays=1
            ),
            "RetentionInDays 1 instead of 30",
            "warning",
            True,
        ),
        (
            lambda patient: patient["logs"].delete_log_group(logGroupName="/aws/lambda/executor"),
            'RetentionInDays "no group" instead of 30',
            "warning",
            True,
        ),
        (
            lambda patient: patient["events"].disable_rule(Name=patient.name("tick")),
            'State "DISABLED" instead of "ENABLED"',
            "failed",
            True,
        ),
        (
            lambda patient: patient["events"].put_rule(
                Name=patient.name("tick"), ScheduleExpression="rate(1 minute)"
            ),
            'ScheduleExpression "rate(1 minute)" instead of "cron(8/10 * * * ? *)"',
            "failed",
            True,
        ),
        (
            lambda patient: patient["events"].remove_targets(Rule=patient.name("tick"), Ids=["scheduler"]),
            'Targets no value instead of [{"Arn"',
            "failed",
            True,
        ),
        (
            lambda patient: patient["lambda"].delete_event_source_mapping(
                UUID=patient.mapping("executor")["UUID"]
            ),
            "ExecutionsMapping is gone",
            "failed",
            False,
        ),
    ],
)
def test_a_difference_is_found_and_repaired(
    deployed: Patient, change: Callable[[Patient], Any], message: str, level: str, is_repairable: bool
) -> None:
    change(deployed)
    (finding,) = problems(deployed)
    assert message in finding.message
    assert finding.level == level
    assert (finding.repair is not None) == is_repairable
    if finding.repair and "no group" not in message:
        finding.repair.do()
        assert problems(deployed) == []


def test_what_is_not_in_the_template_is_found_too(deployed: Patient) -> None:
    """A function in a VPC, an alarm on another metric, a composite rule that is never true, a route that is gone."""
    deployed.alarm("late", Dimensions=[{"Name": "QueueName", "Value": "other"}])
    name = deployed.name("never")
    alarms = deployed["cloudwatch"].describe_alarms  # moto has no composite ones
    never = {"CompositeAlarms": [{"AlarmName": name, "AlarmRule": "FALSE", "ActionsEnabled": True}]}
    deployed.alter(
        "cloudwatch",
        describe_alarms=lambda **request: never if request["AlarmNames"] == [name] else alarms(**request),
    )
    metric = {
        "Namespace": "AWS/SQS",
        "MetricName": "ApproximateNumberOfMessagesVisible",
        "Statistic": "Maximum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 0,
        "ComparisonOperator": "GreaterThanThreshold",
    }
    deployed.stacks.resources |= {
        "LateAlarm": resource("CloudWatch::Alarm", **metric),
        "NeverAlarm": resource("CloudWatch::CompositeAlarm", AlarmRule="ALARM(late)"),
        "Route": resource("ApiGatewayV2::Route", ApiId="a1", RouteKey="ANY /v1"),
    }
    deployed.stacks.physical_ids |= {"LateAlarm": deployed.name("late"), "NeverAlarm": name, "Route": "r1"}
    stock = deployed["lambda"].get_function_configuration
    vpc = {"VpcConfig": {"SubnetIds": ["subnet-1"], "SecurityGroupIds": [], "VpcId": "vpc-1"}}
    deployed.alter("lambda", get_function_configuration=lambda **request: {**stock(**request), **vpc})

    def no_route(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "NotFoundException", "Message": ""}}, "GetRoute")

    deployed.alter("apigatewayv2", get_route=no_route)
    deployed["sqs"].set_queue_attributes(
        QueueUrl=deployed.queue_url("executions"), Attributes={"MaximumMessageSize": "1024"}
    )
    messages = {finding.message.partition(" ")[0]: finding.message for finding in problems(deployed)}
    assert 'Dimensions [{"Name": "QueueName", "Value": "other"}] instead of no value' in messages["LateAlarm"]
    assert 'AlarmRule "FALSE" instead of "ALARM(late)"' in messages["NeverAlarm"]
    assert '"SubnetIds": ["subnet-1"]} instead of no value' in messages["ExecutorFunction"]
    assert messages["Route"] == "Route is gone: r1"
    assert 'MaximumMessageSize "1024" instead of 262144' in messages["ExecutionsQueue"]


def test_a_queue_attribute_that_the_template_lacks_is_put_back(deployed: Patient) -> None:
    """A dead-letter queue that takes no dead letters; moto does not keep the attribute."""
    denial = {"RedriveAllowPolicy": json.dumps({"redrivePermission": "denyAll"})}
    kept = {deployed.queue_url("executions-dead"): denial, deployed.queue_url("executions"): {}}
    stock = deployed["sqs"].get_queue_attributes

    def describe(**request: Any) -> Any:
        return {"Attributes": stock(**request)["Attributes"] | kept.get(request["QueueUrl"], {})}

    def put(QueueUrl: str, Attributes: dict[str, str]) -> None:
        for name, value in Attributes.items():
            if value:
                kept[QueueUrl][name] = value
            else:  # as SQS takes a policy away
                del kept[QueueUrl][name]

    deployed.alter("sqs", get_queue_attributes=describe, set_queue_attributes=put)
    (finding,) = problems(deployed)
    assert (finding.level, finding.loses) == (Level.FAILED, True)
    assert 'RedriveAllowPolicy {"redrivePermission": "denyAll"} instead of no value' in finding.message
    (repair,) = fix(deployed.deployment, [finding], lambda *_: True, lambda _: None)
    assert repair.succeeded
    assert problems(deployed) == []


@pytest.mark.parametrize(("by_hand", "restored"), [(2, 3), (0, 3), (3, None), (4, None)])
def test_what_a_template_reserves_for_a_function_is_put_back(
    deployed: Patient, by_hand: int, restored: int | None
) -> None:
    """A person may reserve more than the template, and the template less than the API is asked for."""
    deployed.stacks.resources["ApiFunction"] = resource("Lambda::Function", ReservedConcurrentExecutions=3)
    deployed.stacks.physical_ids["ApiFunction"] = name = deployed.name("api")
    deployed["lambda"].put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=by_hand)
    own = [check for check in CHECKS if check.name == "function api"]
    findings = [
        finding
        for finding in examine(deployed.deployment, 30, own)
        if "reserved concurrency" in finding.message
    ]
    for finding in findings:
        assert finding.repair
        finding.repair.do()
    current = deployed["lambda"].get_function_concurrency(FunctionName=name)["ReservedConcurrentExecutions"]
    assert (len(findings), current) == (restored is not None, restored or by_hand)


def test_a_table_with_few_units_is_found_and_one_on_demand_is_not(deployed: Patient) -> None:
    """On demand is what the runbook makes of a table that throttles."""
    deployed.stacks.resources["JobsTable"] = resource(
        "DynamoDB::Table",
        BillingMode="PAY_PER_REQUEST",
        KeySchema={"Fn::Unheard": []},
        TimeToLiveSpecification={"Fn::Unheard": []},
    )
    deployed.stacks.physical_ids["JobsTable"] = deployed.name("jobs")
    assert problems(deployed) == []
    units = {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1}
    deployed["dynamodb"].update_table(
        TableName=deployed.name("jobs"), BillingMode="PROVISIONED", ProvisionedThroughput=units
    )
    (finding,) = problems(deployed)
    assert 'has BillingMode "PROVISIONED" instead of "PAY_PER_REQUEST"' in finding.message
    deployed.stacks.resources["JobsTable"]["Properties"]["BillingMode"] = "PROVISIONED"
    assert problems(deployed) == []


def test_policies_of_queues_tables_and_keys_are_found_and_put_back(deployed: Patient) -> None:
    """Each denies what the roles' policies allow: IAM's simulator is not told of it."""
    own = [check for check in CHECKS if check.name == "policies"]

    def policy_findings() -> list[Finding]:
        return [finding for finding in examine(deployed.deployment, 30, own) if finding.level != Level.OK]

    account = {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}
    allowed = {"Effect": "Allow", "Principal": account, "Action": "kms:*", "Resource": "*"}
    policy = {"Version": "2012-10-17", "Statement": [allowed]}
    key = deployed["kms"].create_key(Policy=json.dumps(policy))["KeyMetadata"]["KeyId"]
    deployed.stacks.resources["SecretsKey"] = resource("KMS::Key", KeyPolicy=policy)
    deployed.stacks.physical_ids["SecretsKey"] = key
    assert policy_findings() == []
    denied = {"Effect": "Deny", "Principal": "*", "Action": "kms:Decrypt", "Resource": "*"}
    changed = {**policy, "Statement": [allowed, denied]}
    deployed["kms"].put_key_policy(KeyId=key, PolicyName="default", Policy=json.dumps(changed))
    arn = deployed["dynamodb"].describe_table(TableName=deployed.name("due"))["Table"]["TableArn"]
    denied = {"Effect": "Deny", "Principal": "*", "Action": "dynamodb:PutItem", "Resource": arn}
    deployed["dynamodb"].put_resource_policy(ResourceArn=arn, Policy=json.dumps({"Statement": [denied]}))
    url = deployed.queue_url("planning")
    denied = {"Effect": "Deny", "Principal": "*", "Action": "sqs:SendMessage", "Resource": "*"}
    attribute("planning", Policy=json.dumps({"Statement": [denied]}))(deployed)
    attribute("executions", Policy=json.dumps({"Statement": [denied]}))(deployed)
    deployed.stacks.resources["ExecutionsPolicy"] = resource(
        "SQS::QueuePolicy",
        PolicyDocument={"Statement": [denied]},
        Queues=[deployed.queue_url("executions")],
    )
    deployed.stacks.physical_ids["ExecutionsPolicy"] = "executions"
    of_key, of_queue, of_table = sorted(policy_findings(), key=lambda finding: finding.message)
    assert (
        f"queue policy of {url.rpartition('/')[2]} does more than the template says: deny" in of_queue.message
    )
    assert "resource policy of minute8-test-due does more than the template says: deny" in of_table.message
    assert "does more than the template says: deny kms:Decrypt on *" in of_key.message
    for finding in (of_table, of_key, of_queue):
        assert finding.repair
        finding.repair.do()
    assert policy_findings() == []
    deployed.stacks.resources["SecretsKey"]["Properties"]["KeyPolicy"] = {"Fn::Unheard": []}
    assert [finding.message for finding in policy_findings()] == [
        "SecretsKey: the doctor cannot read its KeyPolicy"
    ]


def test_a_filter_is_found_and_taken_off(deployed: Patient) -> None:
    """moto keeps no filter."""
    filters = {"Filters": [{"Pattern": "{}"}]}
    uuid, stock = deployed.mapping("executor")["UUID"], deployed["lambda"].get_event_source_mapping
    puts: list[dict[str, Any]] = []
    deployed.alter(
        "lambda",
        get_event_source_mapping=lambda UUID: {
            **stock(UUID=UUID),
            **({"FilterCriteria": filters} if uuid == UUID else {}),
        },
        update_event_source_mapping=lambda **request: puts.append(request),
    )
    (finding,) = problems(deployed)
    assert "FilterCriteria" in finding.message
    assert finding.repair
    finding.repair.do()
    assert puts == [{"UUID": uuid, "FilterCriteria": {}}]


def test_a_second_consumer_and_another_rule_are_named(deployed: Patient) -> None:
    arn = deployed.deployment.queue_arn("executions")
    second = deployed["lambda"].create_event_source_mapping(
        FunctionName=deployed.name("notifier"), EventSourceArn=arn
    )["UUID"]
    deployed["events"].put_rule(Name="mine", ScheduleExpression="rate(1 minute)")
    deployed["events"].put_targets(
        Rule="mine", Targets=[{"Id": "x", "Arn": deployed.deployment.function_arn("executor")}]
    )
    consumer, rule = problems(deployed)
    assert f"{deployed.name('notifier')} reads {deployed.name('executions')} too" in consumer.message
    assert "the rule mine starts" in rule.message
    assert consumer.repair
    consumer.repair.do()
    assert deployed["lambda"].get_event_source_mapping(UUID=second)["State"] == "Disabled"
    assert problems(deployed) == [rule]


@pytest.mark.parametrize("principal", ["*", "210987654321"])
def test_who_else_may_invoke_a_function_is_named(deployed: Patient, principal: str) -> None:
    """It could send the executor messages of its own, as if they were the queue's."""
    deployed["lambda"].add_permission(
        FunctionName=deployed.name("executor"),
        StatementId="mine",
        Action="lambda:InvokeFunction",
        Principal=principal,
    )
    (finding,) = problems(deployed)
    assert principal in finding.message.partition(" may invoke ")[0]
    assert f"may invoke {deployed.name('executor')}, and no template says so" in finding.message
    assert "--statement-id mine" in finding.remedy


@pytest.mark.parametrize("is_closed", [False, True])
def test_nothing_is_sent_again_into_an_open_hole(deployed: Patient, is_closed: bool) -> None:
    deployed["sqs"].send_message(QueueUrl=deployed.queue_url("executions-dead"), MessageBody="garbage")
    (attribute("executions", DelaySeconds="300") if is_closed else function(Handler="gone.handle"))(deployed)
    findings = examine(deployed.deployment, 30, WITHOUT_RECORDS)
    results = fix(deployed.deployment, findings, lambda *_: True, lambda _: None)
    dead_letters = next(result for result in results if result.check == "dead letters executions")
    assert dead_letters.succeeded == is_closed
    assert is_closed or dead_letters.result.startswith(
        "left: what is sent could be lost while settings fails"
    )


def test_a_stage_without_a_stack_is_not_checked(deployed: Patient) -> None:
    deployed.stacks.status = ""
    assert {finding.level for finding in problems(deployed)} == {Level.NOT_CHECKED}


@pytest.mark.parametrize(
    ("value", "resolved"),
    [
        ({"Fn::Join": ["-", ["a", {"Ref": "AWS::Region"}, {"Ref": "AWS::NoValue"}]]}, f"a-{REGION}"),
        ({"Fn::Split": [",", {"Fn::Sub": "a,${AWS::AccountId}"}]}, ["a", ACCOUNT]),
        (
            {"Fn::Sub": "${ExecutionsQueue.Arn}/x"},
            f"arn:aws:sqs:{REGION}:{ACCOUNT}:minute8-test-executions/x",
        ),
        ({"a": {"Fn::If": ["Off", 1, 2]}, "b": {"Ref": "AWS::NoValue"}}, {"a": 2}),
        ({"Fn::GetAtt": ["ExecutionsQueue", "QueueName"]}, "minute8-test-executions"),
    ],
)
def test_references_are_replaced(deployed: Patient, value: Any, resolved: Any) -> None:
    assert DeployedTemplate(deployed.deployment).resolved(value) == resolved


@pytest.mark.parametrize("kind", KINDS)
def test_all_that_aws_describes_is_compared_or_excepted_with_a_reason(kind: str) -> None:
    service, operation, member = DESCRIBING[kind]
    model = botocore.session.get_session().get_service_model(service)
    if service == "sqs":
        described = {*model.shape_for(operation).enum}
    else:
        shape = model.operation_model(operation).output_shape
        shape = shape.members[member] if member else shape
        described = {*(shape.member if shape.type_name == "list" else shape).members}
    unexplained = {name for name in described - excepted(kind) if NAMES.get(name, name) not in compared(kind)}
    assert unexplained == set()
    assert excepted(kind) <= described
    assert not {NAMES.get(name, name) for name in excepted(kind)} & compared(kind)
