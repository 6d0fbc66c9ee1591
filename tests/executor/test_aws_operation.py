"""Operations of any service of AWS, against botocore's stubber: it checks each request by the service's model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from common.errors import InvalidInput
from common.planning.execution import Execution
from common.storage import aws_operations
from common.storage.aws_operations import check_parameters, names_in, operation_of, service_name
from executor.started import name_of
from executor.targets import aws_services
from minute8.eventbridge.mapping import definition_of

ROLE = "arn:aws:iam::123456789012:role/scheduler"
SCHEDULE = "arn:aws:scheduler:eu-west-1:123456789012:schedule/default/nightly"
SDK = "arn:aws:scheduler:::aws-sdk"
CLUSTER = "arn:aws:ecs:eu-west-1:123456789012:cluster/c"
TASK = "arn:aws:ecs:eu-west-1:123456789012:task-definition/t:1"


@pytest.fixture
def stubs(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Stubber]]:
    """A stubbed client of each service that is called."""
    stubs: dict[str, Stubber] = {}
    monkeypatch.setattr(aws_services, "client", lambda service, *_: stub(stubs, service).client)
    yield stubs
    for stubber in stubs.values():
        stubber.assert_no_pending_responses()


def stub(stubs: dict[str, Stubber], service: str) -> Stubber:
    if service not in stubs:
        client = aws_operations.session_of_all_services().create_client(
            service, region_name="eu-west-1", aws_access_key_id="a", aws_secret_access_key="b"
        )
        stubs[service] = Stubber(client)
        stubs[service].activate()
    return stubs[service]


def target(operation: str, **more: Any) -> dict[str, Any]:
    return {
        "kind": "aws_operation",
        "arn": f"{SDK}:{operation}",
        "role_arn": ROLE,
        "schedule_arn": SCHEDULE,
    } | more


def event(parameters: Any) -> dict[str, Any]:
    payload = parameters if isinstance(parameters, str) else json.dumps(parameters)
    return {"payload": payload, "minute8": {"tenant": "alice", "job_id": "nightly", "execution_id": "e"}}


def tokens_of(arn: str) -> dict[str, str]:
    """The tokens by which a service knows a repeated call: the same for each attempt."""
    return dict.fromkeys(operation_of(arn).idempotent_members, hashlib.sha256(b"e").hexdigest())


VPC = {"awsvpcConfiguration": {"Subnets": ["s"], "SecurityGroups": ["g"], "AssignPublicIp": "ENABLED"}}
STREAM = "arn:aws:kinesis:eu-west-1:123456789012:stream/s"
INSPECTOR = "arn:aws:inspector:eu-west-1:123456789012:target/0-a/template/0-b"
# The target of the schedule, the service and operation, what it is called with, and its answer.
TEMPLATED: dict[str, tuple[dict[str, Any], str, str, dict[str, Any], dict[str, Any]]] = {
    "ECS": (
        {
            "Arn": CLUSTER,
            "Input": '{"containerOverrides": [{"name": "a", "command": ["<aws.scheduler.schedule-arn>"]}]}',
            "EcsParameters": {
                "TaskDefinitionArn": TASK,
                "TaskCount": 2,
                "LaunchType": "FARGATE",
                "NetworkConfiguration": VPC,
                "Tags": [{"key": "team", "value": "a"}],
                "EnableECSManagedTags": True,
            },
        },
        "ecs",
        "run_task",
        {
            "cluster": CLUSTER,
            "taskDefinition": TASK,
            "count": 2,
            "launchType": "FARGATE",
            "networkConfiguration": {
                "awsvpcConfiguration": {
                    "subnets": ["s"],
                    "securityGroups": ["g"],
                    "assignPublicIp": "ENABLED",
                }
            },
            "tags": [{"key": "team", "value": "a"}],
            "enableECSManagedTags": True,
            "overrides": {"containerOverrides": [{"name": "a", "command": ["<aws.scheduler.schedule-arn>"]}]},
        },
        {"tasks": [{}], "failures": []},
    ),
    "Kinesis": (
        {"Arn": STREAM, "Input": "a text", "KinesisParameters": {"PartitionKey": "p"}},
        "kinesis",
        "put_record",
        {"StreamARN": STREAM, "PartitionKey": "p", "Data": "a text"},
        {"ShardId": "0", "SequenceNumber": "1"},
    ),
    "Firehose": (
        {"Arn": "arn:aws:firehose:eu-west-1:123456789012:deliverystream/d", "Input": "a text"},
        "firehose",
        "put_record",
        {"DeliveryStreamName": "d", "Record": {"Data": "a text"}},
        {"RecordId": "1"},
    ),
    "CodeBuild": (
        {"Arn": "arn:aws:codebuild:eu-west-1:123456789012:project/p", "Input": '{"sourceVersion": "v"}'},
        "codebuild",
        "start_build",
        {"projectName": "p", "sourceVersion": "v"},
        {},
    ),
    "CodePipeline": (
        {"Arn": "arn:aws:codepipeline:eu-west-1:123456789012:p"},
        "codepipeline",
        "start_pipeline_execution",
        {"name": "p"},
        {"pipelineExecutionId": "1"},
    ),
    "SageMaker": (
        {
            "Arn": "arn:aws:sagemaker:eu-west-1:123456789012:pipeline/p",
            "SageMakerPipelineParameters": {"PipelineParameterList": [{"Name": "a", "Value": "b"}]},
        },
        "sagemaker",
        "start_pipeline_execution",
        {
            "PipelineName": "p",
            "PipelineParameters": [{"Name": "a", "Value": "b"}],
        },
        {"PipelineExecutionArn": "arn:aws:sagemaker:eu-west-1:123456789012:pipeline/p/execution/1"},
    ),
    "Inspector": (
        {"Arn": INSPECTOR},
        "inspector",
        "start_assessment_run",
        {"assessmentTemplateArn": INSPECTOR},
        {"assessmentRunArn": INSPECTOR},
    ),
}


@pytest.mark.parametrize("name", TEMPLATED)
def test_a_templated_target_is_called(stubs: dict[str, Stubber], name: str) -> None:
    aws_target, service, operation, parameters, answer = TEMPLATED[name]
    definition = definition_of(
        {"ScheduleExpression": "rate(1 day)", "Target": {**aws_target, "RoleArn": ROLE}}, SCHEDULE
    )
    assert (definition["target"]["kind"], definition["target"]["role_arn"]) == ("aws_operation", ROLE)
    tokens = tokens_of(definition["target"]["arn"])
    stub(stubs, service).add_response(operation, answer, {**tokens, **parameters})
    outcome = aws_services.call_operation(definition["target"], event(definition["payload"]), 5)
    assert outcome.ok, outcome


def test_a_stream_without_an_input_gets_the_notification() -> None:
    aws_target = {"Arn": STREAM, "RoleArn": ROLE, "KinesisParameters": {"PartitionKey": "p"}}
    definition = definition_of({"ScheduleExpression": "rate(1 day)", "Target": aws_target}, SCHEDULE)
    data = json.loads(json.loads(definition["payload"])["Data"])
    assert (data["detail-type"], data["resources"]) == ("Scheduled Event", ["<aws.scheduler.schedule-arn>"])


@pytest.mark.parametrize(
    ("operation", "service", "method", "parameters", "answer"),
    [
        ("ec2:stopInstances", "ec2", "stop_instances", {"InstanceIds": ["i-1"]}, {}),
        ("dynamodb:deleteItem", "dynamodb", "delete_item", {"TableName": "t", "Key": {"a": {"S": "b"}}}, {}),
        (
            "sqs:sendMessage",
            "sqs",
            "send_message",
            {"QueueUrl": "https://sqs.eu-west-1.amazonaws.com/1/q", "MessageBody": "a", "DelaySeconds": 5},
            {"MessageId": "1"},
        ),
        (
            "lambda:invoke",
            "lambda",
            "invoke",
            {"FunctionName": "f", "ClientContext": "e30="},
            {"StatusCode": 200},
        ),
        (
            "eventbridge:putEvents",
            "events",
            "put_events",
            {"Entries": [{"Source": "a", "DetailType": "b", "Detail": "{}"}] * 2},
            {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}, {"EventId": "2"}]},
        ),
    ],
)
def test_any_operation_is_called(
    stubs: dict[str, Stubber], operation: str, service: str, method: str, parameters: Any, answer: Any
) -> None:
    stub(stubs, service).add_response(method, answer, parameters)
    assert aws_services.call_operation(target(operation), event(parameters), 5).ok


@pytest.mark.parametrize(
    ("operation", "method", "parameters", "answer", "words"),
    [
        (
            "ecs:runTask",
            "run_task",
            {"taskDefinition": "t"},
            {"tasks": [], "failures": [{"reason": "RESOURCE:MEMORY"}]},
            "RESOURCE:MEMORY",
        ),
        (
            "eventbridge:putEvents",
            "put_events",
            {"Entries": [{"Source": "a", "DetailType": "b", "Detail": "{}"}] * 2},
            {"FailedEntryCount": 1, "Entries": [{"EventId": "1"}, {"ErrorCode": "InternalFailure"}]},
            "FailedEntryCount is 1",
        ),
        (
            "lambda:invoke",
            "invoke",
            {"FunctionName": "f"},
            {"StatusCode": 200, "FunctionError": "Unhandled"},
            "Unhandled",
        ),
    ],
)
def test_what_a_service_refuses_with_200_has_failed(
    stubs: dict[str, Stubber], operation: str, method: str, parameters: Any, answer: Any, words: str
) -> None:
    service = service_name(operation.split(":")[0])
    tokens = tokens_of(f"{SDK}:{operation}")
    stub(stubs, service).add_response(method, answer, {**tokens, **parameters})
    outcome = aws_services.call_operation(target(operation), event(parameters), 5)
    assert not outcome.ok and words in outcome.error


def test_an_error_of_aws_keeps_its_code(stubs: dict[str, Stubber]) -> None:
    stub(stubs, "ec2").add_client_error("stop_instances", "UnauthorizedOperation", "not you", 403)
    outcome = aws_services.call_operation(target("ec2:stopInstances"), event({"InstanceIds": ["i"]}), 5)
    assert (outcome.ok, outcome.error_type, outcome.error) == (False, "UnauthorizedOperation", "not you")


def test_it_is_never_called_with_the_executors_own_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    """They reach Minute8's own tables."""

    def never(*_: Any) -> None:
        raise AssertionError("a client was asked for")

    monkeypatch.setattr(aws_services, "client", never)
    without = {name: value for name, value in target("ec2:stopInstances").items() if name != "role_arn"}
    outcome = aws_services.call_operation(without, event({"InstanceIds": ["i"]}), 5)
    assert (outcome.ok, outcome.permanent, outcome.error_type) == (False, True, "NotAllowed")


@pytest.mark.parametrize("parameters", ["{", "[]", '{"InstanceIds": 5}', '{"Other": 1}', "null"])
def test_parameters_that_the_model_refuses_fail_for_good(
    monkeypatch: pytest.MonkeyPatch, parameters: str
) -> None:
    """No request is sent."""
    stubs: dict[str, Stubber] = {}
    ec2 = stub(stubs, "ec2")
    ec2.deactivate()
    monkeypatch.setattr(aws_services, "client", lambda *_: ec2.client)
    outcome = aws_services.call_operation(target("ec2:stopInstances"), event(parameters), 5)
    assert (outcome.ok, outcome.permanent) == (False, True)


def test_a_role_that_cannot_be_assumed_is_an_outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "not trusted"}}, "AssumeRole")

    monkeypatch.setattr(aws_services, "client", denied)
    outcome = aws_services.call_operation(target("ec2:stopInstances"), event({"InstanceIds": ["i"]}), 5)
    assert (outcome.ok, outcome.error_type) == (False, "AccessDenied")


def test_universal_targets_write_names_with_a_capital(stubs: dict[str, Stubber]) -> None:
    """ECS's own names begin with a small letter."""
    parameters = {"Cluster": "c", "TaskDefinition": "t", "Tags": [{"Key": "a", "Value": "b"}]}
    expected = {"cluster": "c", "taskDefinition": "t", "tags": [{"key": "a", "value": "b"}]}
    check_parameters(f"{SDK}:ecs:runTask", parameters)
    task = "arn:aws:ecs:us-east-1:123456789012:task/c/1"
    request = {**tokens_of(f"{SDK}:ecs:runTask"), **expected}
    stub(stubs, "ecs").add_response("run_task", {"tasks": [{"taskArn": task}]}, request)
    outcome = aws_services.call_operation(target("ecs:runTask"), event(parameters), 5)
    assert (outcome.ok, outcome.started) == (True, (task,))


@pytest.mark.parametrize(
    ("arn", "words"),
    [
        (f"{SDK}:ec2:describeInstances", "only reads"),
        (f"{SDK}:dynamodb:getItem", "only reads"),
        (f"{SDK}:nothing:stopInstances", "unknown service"),
        (f"{SDK}:ec2:stopTheWorld", "unknown operation"),
        (f"{SDK}:ec2:stopInstances:x", "names no operation"),
        (f"{SDK}:../ec2:stopInstances", "names no operation"),
    ],
)
def test_what_is_no_operation_is_refused(arn: str, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        check_parameters(arn, {})


def test_each_service_is_known_by_the_name_of_its_sdk() -> None:
    """AWS's name in the ARN is the service id, in small letters and without spaces."""
    session = aws_operations.session_of_all_services()
    for name in (
        "ecs",
        "stepfunctions",
        "events",
        "logs",
        "rds-data",
        "elbv2",
        "cognito-idp",
        "config",
        "ssm-sap",
    ):
        service_id = session.get_service_model(name).metadata["serviceId"]
        assert service_name(service_id.lower().replace(" ", "").replace("-", "")) == name
    # As public schedules write them: by the modules of AWS's SDK for Java.
    written = ("databasemigration", "directory", "elasticsearch")
    assert [service_name(service) for service in written] == ["dms", "ds", "es"]
    assert names_in(f"{SDK}:sfn:startExecution") == ("sfn", "startExecution")
    assert operation_of(f"{SDK}:sfn:startExecution").name == "StartExecution"


@pytest.mark.parametrize("name", ["TenantId", "tenantId"])
def test_no_tenant_invokes_a_function_under_another_tenants_id(stubs: dict[str, Stubber], name: str) -> None:
    stub(stubs, "lambda").add_response(
        "invoke", {"StatusCode": 200}, {"FunctionName": "f", "TenantId": "alice"}
    )
    own = aws_services.call_operation(target("lambda:invoke"), event({"FunctionName": "f", name: "alice"}), 5)
    assert own.ok
    for_bob = {"FunctionName": "f", name: "bob"}
    outcome = aws_services.call_operation(target("lambda:invoke"), event(for_bob), 5)
    assert (outcome.ok, outcome.permanent, outcome.error_type) == (False, True, "NotAllowed")
    assert "alice" in outcome.error
    assert "bob" in outcome.error


def test_no_tenant_takes_the_name_of_a_runs_durable_execution(stubs: dict[str, Stubber]) -> None:
    """The run of another tenant that may call the same function would take this execution for its own."""
    own = {"FunctionName": "f", "DurableExecutionName": "report-7"}
    stub(stubs, "lambda").add_response("invoke", {"StatusCode": 200}, own)
    assert aws_services.call_operation(target("lambda:invoke"), event(own), 5).ok
    for name in ("DurableExecutionName", "durableExecutionName"):
        for_bobs_run = event(
            {"FunctionName": "f", name: name_of("prod", Execution("bob", "report", 0, 0, 1))}
        )
        outcome = aws_services.call_operation(target("lambda:invoke"), for_bobs_run, 5)
        assert (outcome.ok, outcome.permanent, outcome.error_type) == (False, True, "NotAllowed")


def test_names_of_what_was_started_are_bounded(stubs: dict[str, Stubber]) -> None:
    """Whatever a service answers: the record has room for ten names of 512 bytes."""
    tasks = [{"taskArn": "x" * 2_000}] * 12
    request = {"taskDefinition": TASK, **tokens_of(f"{SDK}:ecs:runTask")}
    stub(stubs, "ecs").add_response("run_task", {"tasks": tasks, "failures": []}, request)
    outcome = aws_services.call_operation(target("ecs:runTask"), event({"taskDefinition": TASK}), 5)
    assert [len(name) for name in outcome.started] == [512] * 10
