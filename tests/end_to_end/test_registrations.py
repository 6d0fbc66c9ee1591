"""Registration by event on the deployed stage: a rule of the platform's, its input transformer, and the answers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from common.platform.tenants import Tenants
from common.storage.table import Table
from minute8 import direct
from minute8.client import NotFound
from tests.waiting import wait_until

pytestmark = pytest.mark.embedded

DEFINITION = {
    "schedule": {"cron": "30 2 * * *"},
    "target": {"kind": "lambda", "arn": "arn:aws:lambda:us-east-1:000000000000:function:nothing"},
}
# As docs/deploying.md has it.
TEMPLATE = '{"tenant": "freya", "event": <aws.events.event.json>}'


@pytest.fixture
def bus(aws: Any) -> Iterator[str]:
    """The platform's bus, with a rule that registers jobs of freya."""
    events, queue = (
        aws("events"),
        aws("sqs").get_queue_url(QueueName="minute8-test-registrations")["QueueUrl"],
    )
    arn = arn_of(aws, queue)
    events.create_event_bus(Name="platform")
    events.put_rule(
        Name="minute8-freya",
        EventBusName="platform",
        EventPattern=json.dumps({"source": ["shop.freya"], "detail-type": [{"prefix": "Minute8 "}]}),
    )
    target = {"Id": "minute8", "Arn": arn, "InputTransformer": {"InputTemplate": TEMPLATE}}
    events.put_targets(Rule="minute8-freya", EventBusName="platform", Targets=[target])
    yield "platform"
    events.remove_targets(Rule="minute8-freya", EventBusName="platform", Ids=["minute8"])
    events.delete_rule(Name="minute8-freya", EventBusName="platform")
    events.delete_event_bus(Name="platform")


@pytest.fixture
def answers(aws: Any) -> Iterator[Any]:
    """Receives what the stage's bus says about registrations."""
    sqs, events = aws("sqs"), aws("events")
    queue = sqs.create_queue(QueueName="answers")["QueueUrl"]
    events.put_rule(
        Name="answers",
        EventBusName="minute8-test",
        EventPattern=json.dumps({"detail-type": [{"prefix": "Registration "}]}),
    )
    events.put_targets(
        Rule="answers", EventBusName="minute8-test", Targets=[{"Id": "answers", "Arn": arn_of(aws, queue)}]
    )
    yield lambda: received(sqs, queue)
    events.remove_targets(Rule="answers", EventBusName="minute8-test", Ids=["answers"])
    events.delete_rule(Name="answers", EventBusName="minute8-test")
    sqs.delete_queue(QueueUrl=queue)


def arn_of(aws: Any, queue: str) -> str:
    attributes = aws("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])
    return str(attributes["Attributes"]["QueueArn"])


def received(sqs: Any, queue: str) -> list[Any]:
    batch = sqs.receive_message(
        QueueUrl=queue, MaxNumberOfMessages=10, WaitTimeSeconds=1, MessageAttributeNames=["All"]
    )
    for message in batch.get("Messages", ()):
        sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])
    return list(batch.get("Messages", ()))


def test_jobs_are_registered_by_the_platforms_events(aws: Any, bus: str, answers: Any) -> None:
    tenants = Tenants(Table(aws("dynamodb"), "minute8-test-tenants"))
    tenants.create("freya", "", time.time(), {"allowed_targets": ["*"]})

    def publish(kind: str, **detail: Any) -> None:
        entry = {
            "EventBusName": bus,
            "Source": "shop.freya",
            "DetailType": kind,
            "Detail": json.dumps(detail),
        }
        assert aws("events").put_events(Entries=[entry])["FailedEntryCount"] == 0

    heard_events: list[Any] = []

    def heard(detail_type: str) -> bool:
        heard_events.extend(json.loads(message["Body"]) for message in answers())
        return any(event["detail-type"] == detail_type for event in heard_events)

    with direct.Client(boto3.Session(region_name="us-east-1"), "freya", stage="test") as minute8:
        publish("Minute8 Job Put", job_id="report", job=DEFINITION)
        wait_until(lambda: [job["job_id"] for job in minute8.list_jobs()] == ["report"], lambda: heard_events)
        publish("Minute8 Run Now", job_id="report")
        wait_until(lambda: len(list(minute8.list_runs_of_job("report"))) == 1, lambda: heard_events)
        time.sleep(1.1)  # times of events are whole seconds
        publish("Minute8 Job Delete", job_id="report")
        wait_until(lambda: not list(minute8.list_jobs()), lambda: heard_events)
        with pytest.raises(NotFound):
            minute8.get_job("report")
    wait_until(lambda: heard("Registration Applied"), lambda: heard_events)

    publish("Minute8 Job Put", job_id="report", job={**DEFINITION, "schedule": {"cron": "30 25 * * *"}})
    wait_until(lambda: heard("Registration Refused"), lambda: heard_events)
    sqs = aws("sqs")
    dead = sqs.get_queue_url(QueueName="minute8-test-registrations-dead")["QueueUrl"]
    [letter] = received(sqs, dead)
    assert "schedule.cron" in letter["MessageAttributes"]["reason"]["StringValue"]
    assert json.loads(letter["Body"])["tenant"] == "freya"
