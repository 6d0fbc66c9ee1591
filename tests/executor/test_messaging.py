"""SQS, SNS, EventBridge and Step Functions against moto: what arrives, under which ids."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from common.jobs.spec import returns_result
from common.runs.outcome import STOPPED
from executor.targets import aws_services, clients, kinds
from executor.targets.events import event_body, execution_hash, execution_name, group_of
from executor.targets.http_endpoint import HttpEndpoints
from tests.executor.contexts import ACCOUNT, US, event, parsed

LONG = {"tenant": "t" * 64, "job_id": "j." * 64}


@pytest.fixture(autouse=True)
def aws() -> Iterator[None]:
    with mock_aws():
        clients._clients.clear()  # made before moto started
        yield
    clients._clients.clear()


def boto(service: str, region: str = "us-east-1") -> Any:
    return boto3.client(service, region_name=region)


def queue(name: str, region: str = "us-east-1", **attributes: str) -> tuple[str, str]:
    url = boto("sqs", region).create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return url, f"arn:aws:sqs:{region}:{ACCOUNT}:{name}"


def received(url: str, region: str = "us-east-1") -> list[dict[str, Any]]:
    answer = boto("sqs", region).receive_message(
        QueueUrl=url, MaxNumberOfMessages=10, AttributeNames=["All"], MessageAttributeNames=["All"]
    )
    return list(answer.get("Messages", []))


def test_a_queue_gets_the_event_and_its_attributes() -> None:
    url, arn = queue("jobs", "eu-west-1")  # in the ARN's region, not the executor's
    outcome = aws_services.send_message({"kind": "sqs", "arn": arn}, event(payload={"a": "ü"}), 5)
    (message,) = received(url, "eu-west-1")
    assert outcome.ok
    assert outcome.request_id
    assert json.loads(message["Body"]) == parsed(event(payload={"a": "ü"}))
    attributes = {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}
    assert attributes == {
        "minute8_tenant": "alice",
        "minute8_job_id": "report",
        "minute8_execution_id": "alice:report:20261121T030000Z",
        "traceparent": "00-be7b85098c8dcdf7b5b14b026a1c66af-4143fb807c5702e1-01",
    }
    assert "MessageGroupId" not in message["Attributes"]


def test_a_fifo_queue_takes_an_execution_once_whatever_its_attempts() -> None:
    url, arn = queue("jobs.fifo", FifoQueue="true")
    for attempt in (1, 2):
        assert aws_services.send_message({"arn": arn}, event(attempt=attempt), 5).ok
    assert aws_services.send_message({"arn": arn}, event(job_id="another"), 5).ok
    first, second = received(url)
    assert first["Attributes"]["MessageGroupId"] == "alice:report"
    assert second["Attributes"]["MessageGroupId"] == "alice:another"
    assert first["Attributes"]["MessageDeduplicationId"] == execution_hash(event())


def test_a_fifo_queue_is_given_the_ids_that_the_job_names() -> None:
    url, arn = queue("jobs.fifo", FifoQueue="true")
    target = {"arn": arn, "message_group_id": "group", "deduplication_id": "once"}
    assert aws_services.send_message(target, event(), 5).ok
    (message,) = received(url)
    assert message["Attributes"]["MessageGroupId"] == "group"
    assert message["Attributes"]["MessageDeduplicationId"] == "once"


def test_ids_stay_within_their_limits_for_the_longest_names() -> None:
    assert len(execution_hash(event(**LONG))) <= 128
    assert len(group_of(event(**LONG))) <= 128
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,80}", execution_name(event(**LONG)))
    assert group_of(event(**LONG)) != group_of(event(tenant="t" * 64, job_id="j." * 63 + "jj"))


def test_long_names_with_the_same_beginning_stay_different() -> None:
    names = {execution_name(event(job_id=job_id)) for job_id in ("a.b", "a-b", "x" * 41, "x" * 42)}
    assert len(names) == 4
    assert execution_name(event(tenant="alice")) != execution_name(event(tenant="bob"))


def test_characters_that_sqs_refuses_arrive_escaped() -> None:
    url, arn = queue("jobs")
    payload = {"a": "\ufffe\uffff\x00\x1f\u2028😀"}
    assert aws_services.send_message({"arn": arn}, event(payload=payload), 5).ok
    (message,) = received(url)
    assert json.loads(message["Body"])["payload"] == payload
    assert not set(message["Body"]) & {"\ufffe", "\uffff", "\x00", "\x1f"}


def test_no_such_queue_is_permanent() -> None:
    outcome = aws_services.send_message({"arn": f"arn:aws:sqs:{US}:gone"}, event(), 5)
    assert not outcome.ok
    assert outcome.permanent
    assert "NonExistentQueue" in outcome.error_type or "QueueDoesNotExist" in outcome.error_type


@pytest.mark.parametrize(
    ("arn", "url"),
    [
        (f"arn:aws:sqs:{US}:a", f"https://sqs.us-east-1.amazonaws.com/{ACCOUNT}/a"),
        (f"arn:aws-cn:sqs:cn-north-1:{ACCOUNT}:a", f"https://sqs.cn-north-1.amazonaws.com.cn/{ACCOUNT}/a"),
        (
            f"arn:aws-eusc:sqs:eusc-de-east-1:{ACCOUNT}:a",
            f"https://sqs.eusc-de-east-1.amazonaws.eu/{ACCOUNT}/a",
        ),
    ],
)
def test_queue_url(arn: str, url: str) -> None:
    assert aws_services.queue_url(arn) == url


def test_a_topic_publishes_to_its_subscribers() -> None:
    url, queue_arn = queue("subscriber")
    topic = boto("sns").create_topic(Name="news")["TopicArn"]
    boto("sns").subscribe(TopicArn=topic, Protocol="sqs", Endpoint=queue_arn)
    outcome = aws_services.publish({"arn": topic, "subject": "Nightly"}, event(payload=7), 5)
    (message,) = received(url)
    notification = json.loads(message["Body"])
    assert outcome.ok
    assert notification["Subject"] == "Nightly"
    assert json.loads(notification["Message"]) == parsed(event(payload=7))
    assert notification["MessageAttributes"]["minute8_tenant"]["Value"] == "alice"


def test_a_fifo_topic_is_given_group_and_deduplication_id() -> None:
    topic = boto("sns").create_topic(Name="news.fifo", Attributes={"FifoTopic": "true"})["TopicArn"]
    assert aws_services.publish({"arn": topic}, event(), 5).ok


def test_no_such_topic_is_permanent() -> None:
    outcome = aws_services.publish({"arn": f"arn:aws:sns:{US}:gone"}, event(), 5)
    assert (outcome.ok, outcome.permanent) == (False, True)


def test_a_bus_takes_the_event() -> None:
    bus = boto("events").create_event_bus(Name="tenants")["EventBusArn"]
    outcome = aws_services.put_events(
        {"arn": bus, "source": "minute8.job", "detail_type": "Scheduled Job"}, event(), 5
    )
    assert outcome.ok
    assert outcome.request_id


def test_the_detail_of_an_event_is_payload_and_context(monkeypatch: pytest.MonkeyPatch) -> None:
    entries: list[dict[str, Any]] = []

    class Bus:
        def put_events(self, Entries: Any) -> Any:
            entries.extend(Entries)
            return {"FailedEntryCount": 0, "Entries": [{"EventId": "e-1"}]}

    monkeypatch.setattr(aws_services, "client", lambda *args: Bus())
    assert aws_services.put_events(
        {"arn": "bus", "source": "a", "detail_type": "b"}, event(payload={"a": 1}), 5
    ).ok
    (entry,) = entries
    assert json.loads(entry.pop("Detail")) == parsed(event(payload={"a": 1}))
    assert entry == {"EventBusName": "bus", "Source": "a", "DetailType": "b"}


@pytest.mark.parametrize(
    ("code", "permanent", "throttled"),
    [
        ("ThrottlingException", False, True),
        ("InternalFailure", False, True),
        ("InternalException", False, True),
        ("MalformedDetail", True, False),
        ("NotAuthorizedForSourceException", True, False),
        ("ResourceNotFoundException", True, False),
    ],
)
def test_an_event_that_the_bus_did_not_take_failed(
    monkeypatch: pytest.MonkeyPatch, code: str, permanent: bool, throttled: bool
) -> None:
    class Bus:
        def put_events(self, Entries: Any) -> Any:
            entry = {"ErrorCode": code, "ErrorMessage": "not taken"}
            return {"FailedEntryCount": 1, "Entries": [entry], "ResponseMetadata": {"RequestId": "r-2"}}

    monkeypatch.setattr(aws_services, "client", lambda *args: Bus())
    outcome = aws_services.put_events({"arn": "x", "source": "a", "detail_type": "b"}, event(), 5)
    assert (outcome.ok, outcome.error_type, outcome.error) == (False, code, "not taken")
    assert (outcome.permanent, outcome.throttled, outcome.request_id) == (permanent, throttled, "r-2")


def state_machine() -> str:
    definition = {"StartAt": "a", "States": {"a": {"Type": "Pass", "End": True}}}
    role = boto("iam", "us-east-1").create_role(RoleName="states", AssumeRolePolicyDocument="{}")["Role"][
        "Arn"
    ]
    machine = boto("stepfunctions").create_state_machine(
        name="nightly", definition=json.dumps(definition), roleArn=role
    )
    return str(machine["stateMachineArn"])


def test_a_state_machine_is_started_once_for_all_attempts() -> None:
    arn = state_machine()
    outcomes = [aws_services.start_execution({"arn": arn}, event(attempt=attempt), 5) for attempt in (1, 2)]
    assert [outcome.ok for outcome in outcomes] == [True, True]
    (execution,) = boto("stepfunctions").list_executions(stateMachineArn=arn)["executions"]
    assert execution["name"] == execution_name(event())
    described = boto("stepfunctions").describe_execution(executionArn=execution["executionArn"])
    assert json.loads(described["input"]) == parsed(event())


@pytest.mark.parametrize("qualifier", ["", ":live"])
def test_an_execution_that_was_started_is_stopped(qualifier: str) -> None:
    arn = state_machine()
    aws_services.start_execution({"arn": arn}, event(), 5)
    target = {"kind": "step_functions", "arn": f"{arn}{qualifier}"}
    assert [aws_services.stop(target, event(attempt=n), (), 5).ok for n in (1, 2)] == [True, True]
    (execution,) = boto("stepfunctions").list_executions(stateMachineArn=arn)["executions"]
    assert execution["status"] == "ABORTED"


def test_tasks_of_ecs_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[dict[str, str]] = []

    class Ecs:
        def stop_task(self, **request: str) -> None:
            stopped.append(request)

    monkeypatch.setattr(aws_services, "client", lambda service, target, *rest: {"ecs": Ecs()}[service])
    tasks = [f"arn:aws:ecs:{US}:task/jobs/{'a' * 32}", f"arn:aws:ecs:{US}:task/{'b' * 32}"]
    assert aws_services.stop(
        {"kind": "aws_operation", "arn": "arn:aws:scheduler:::aws-sdk:ecs:runTask"}, event(), tasks, 5
    ).ok
    assert stopped == [
        {"task": tasks[0], "cluster": "jobs", "reason": STOPPED},
        {"task": tasks[1], "reason": STOPPED},
    ]


def test_no_such_state_machine_is_permanent() -> None:
    outcome = aws_services.start_execution({"arn": f"arn:aws:states:{US}:stateMachine:gone"}, event(), 5)
    assert (outcome.ok, outcome.permanent, outcome.error_type) == (False, True, "StateMachineDoesNotExist")


@pytest.mark.parametrize(
    ("kind", "arn"),
    [
        ("sqs", f"arn:aws:sqs:{US}:minute8-prod-executions"),
        ("lambda", f"arn:aws:lambda:{US}:function:minute8-prod-executor"),
        ("lambda", f"arn:aws:lambda:{US}:function:minute8-prod-api:live"),
        ("sns", f"arn:aws:sns:{US}:minute8-prod-alarms"),
        ("event_bus", f"arn:aws:events:{US}:event-bus/minute8-prod"),
        ("lambda", f"arn:aws:lambda:{US}:function:minute8-dev-executor"),
        ("step_functions", f"arn:aws:states:{US}:stateMachine:minute8-prod-x"),
    ],
)
def test_no_job_calls_what_is_minute8s_own(kind: str, arn: str) -> None:
    target = {"arn": arn, "invocation": "Event", "source": "a", "detail_type": "b"}
    outcome = _kinds()[kind].call(target, event(), 5)
    assert (outcome.ok, outcome.permanent, outcome.error_type) == (False, True, "NotAllowed")


def test_a_queue_whose_name_contains_minute8_is_not_minute8s_own() -> None:
    url, arn = queue("fans-of-minute8-prod")
    assert _kinds()["sqs"].call({"arn": arn}, event(), 5).ok
    assert len(received(url)) == 1


def test_which_calls_return_the_result_of_the_work() -> None:
    awaited = {kind for kind in _kinds() if returns_result({"kind": kind, "invocation": "RequestResponse"})}
    assert awaited == {"lambda", "http"}
    assert not returns_result({"kind": "lambda", "invocation": "Event"})
    assert returns_result({"kind": "lambda", "invocation": "Event", "durable": True})


def _kinds() -> Any:
    return kinds(HttpEndpoints(lambda tenant, now: (), None).call)  # type: ignore[arg-type]


def test_without_envelope_queues_get_the_payload_as_it_is() -> None:
    url, arn = queue("jobs")
    bare = {"kind": "sqs", "arn": arn, "envelope": False}
    for payload in ("just text", {"a": 1}):
        assert aws_services.send_message(bare, event(payload=payload), 5).ok
    messages = received(url)
    assert sorted(message["Body"] for message in messages) == ["just text", '{"a":1}']
    assert all("minute8_execution_id" in message["MessageAttributes"] for message in messages)


def test_without_envelope_buses_and_state_machines_get_the_payload_as_json() -> None:
    bodies = [event_body({"envelope": False}, event(payload=payload)) for payload in ({"a": "ü"}, "x", None)]
    assert bodies == ['{"a":"ü"}', '"x"', "null"]
    assert json.loads(event_body({}, event(payload=1))) == parsed(event(payload=1))
