"""The daily report in a deployed stage, with IAM enforced: the notifier sends it to a topic of SNS."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.platform.daily_report import HOUR_S
from scripts import newcomer
from scripts.embedded import Embedded
from tests.waiting import wait_until

SENT_AFTER_S = 2_400

pytestmark = pytest.mark.embedded

ROOT = Path(__file__).resolve().parents[2]
FUNCTION = "minute8-test-notifier"
COUNTED = re.compile(r"^Dead letters: [\d,]+$", re.M)


@pytest.fixture
def reader(aws: Any) -> Iterator[str]:
    """The address of a queue that gets what is published to the topic of `dailyReportTopicArn`."""
    sns, sqs = aws("sns"), aws("sqs")
    topic = sns.create_topic(Name="minute8-test-report")["TopicArn"]
    url = sqs.create_queue(QueueName="readers-of-reports")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    allowed = {
        "Effect": "Allow",
        "Principal": {"Service": "sns.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": arn,
        "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [allowed]})
    sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": policy})
    sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
    yield url
    sns.delete_topic(TopicArn=topic)
    sqs.delete_queue(QueueUrl=url)


@pytest.fixture
def notifier_at(aws: Any) -> Iterator[Any]:
    """Sets the hour of the report in the notifier's unpublished version, which nothing else calls."""
    functions = aws("lambda")
    before = functions.get_function_configuration(FunctionName=FUNCTION)["Environment"]["Variables"]

    def set_variables(variables: dict[str, str]) -> None:
        functions.update_function_configuration(
            FunctionName=FUNCTION, Environment={"Variables": before | variables}
        )
        functions.get_waiter("function_updated_v2").wait(FunctionName=FUNCTION)

    yield lambda hour: set_variables({"DAILY_REPORT_HOUR": str(hour)})
    set_variables({})


def test_the_report_of_the_day_arrives(embedded: Embedded, aws: Any, reader: str, notifier_at: Any) -> None:
    sqs, functions = aws("sqs"), aws("lambda")

    def received() -> dict[str, str] | None:
        """The report; the hour is such that it is time now."""
        notifier_at(int(time.time() - SENT_AFTER_S) // HOUR_S % 24)
        answer = functions.invoke(FunctionName=FUNCTION, Payload=b"{}")
        assert "FunctionError" not in answer, answer["Payload"].read()
        messages = sqs.receive_message(QueueUrl=reader, WaitTimeSeconds=3).get("Messages", [])
        return json.loads(messages[0]["Body"]) if messages else None

    report = wait_until(received, "no report")
    assert report["Subject"].startswith("Minute8 test: ")
    assert report["Message"].startswith("Minute8 test\n")
    assert COUNTED.search(report["Message"]), report["Message"]


def test_the_command_shows_it(embedded: Embedded) -> None:
    printed = subprocess.run(
        [sys.executable, "-m", "minute8", "report", "--stage", "test"],
        cwd=ROOT,
        env=os.environ | newcomer.environment_of(embedded, "test"),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    assert printed.startswith("Minute8 test\n") and COUNTED.search(printed), printed
