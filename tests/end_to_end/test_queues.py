"""The queues on the embedded AWS: poison ends in the dead letters and delays no run; an outcome completes its run."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import Any

import pytest

from common.planning.execution import Execution
from common.timing.instants import rfc3339
from scripts.demo.stage import Stage
from scripts.demo.witness import calls_in, expected, problems
from scripts.demo.workload import Registration
from scripts.embedded import Embedded
from scripts.embedded.deployment import client
from tests.waiting import wait_until

pytestmark = pytest.mark.embedded

GARBAGE = ["not json", "{}", "[" * 5_000, json.dumps({"v": 99}), json.dumps({"v": 1, "tenant": "a#b"})]


@pytest.fixture(scope="module")
def stage(embedded: Embedded) -> Stage:
    """The deployed stage; its tenant `alice` may call the sample target."""
    stage = Stage(embedded.env(), "test")
    stage.allow(["alice"], stage.deploy_target())
    return stage


@pytest.fixture
def sqs(embedded: Embedded) -> Any:
    return client(embedded, "sqs")


def url(sqs: Any, name: str) -> str:
    return str(sqs.get_queue_url(QueueName=f"minute8-test-{name}")["QueueUrl"])


def registered(stage: Stage, job_id: str, schedule: dict[str, Any], invocation: str) -> Any:
    target = {"kind": "lambda", "arn": stage.deploy_target(), "invocation": invocation}
    definition = {"schedule": schedule, "target": target, "payload": {"duration_s": 0}}
    (job,) = stage.register([Registration("alice", job_id, definition)])
    return job


def due_of(job: Any, until: int) -> list[Execution]:
    return list(expected(job, 0, until))


def test_poison_ends_in_the_dead_letters_and_holds_nobody_up(stage: Stage, sqs: Any) -> None:
    started_at, queue = time.time(), url(sqs, "executions")
    # It ends by itself, so that no execution is left for the other tests.
    schedule = {"cron": "* * * * * *", "end_at": rfc3339(int(started_at) + 40)}
    job = registered(stage, "beside-poison", schedule, "RequestResponse")
    for n, body in enumerate(GARBAGE):
        sqs.send_message(QueueUrl=queue, MessageBody=body, MessageGroupId=f"tenant-{n % 2}")
    dead: dict[str, str] = {}

    def all_dead() -> bool:
        dead_letters = sqs.receive_message(QueueUrl=url(sqs, "executions-dead"), MaxNumberOfMessages=10)
        # By id: a dead letter that is not deleted is received again.
        dead.update(
            {
                dead_letter["MessageId"]: dead_letter["Body"]
                for dead_letter in dead_letters.get("Messages", [])
            }
        )
        return len(dead) >= len(GARBAGE)

    wait_until(all_dead, lambda: f"not all dead letters are dead: {sorted(dead.values())}", every_s=1)
    assert sorted(dead.values()) == sorted(GARBAGE)
    due = due_of(job, int(started_at) + 40)
    assert len(due) > 3

    def statuses() -> Counter[str]:
        return Counter(run["status"] for run in stage.runs(due).values())

    all_succeeded = Counter({"succeeded": len(due)})
    wait_until(lambda: statuses() == all_succeeded, lambda: f"of {len(due)} due: {statuses()}")
    stage.store.delete("alice", "beside-poison")
    assert problems(due, stage.runs(due), calls_in(stage.target_log(started_at))) == []
    # A second copy of a dead letter is received apart from the first, and would die in the middle of another test.
    # A purge would also lose the executions of other tests.
    for _ in range(5):
        received = sqs.receive_message(QueueUrl=queue, MaxNumberOfMessages=10, VisibilityTimeout=1)
        for message in received.get("Messages", []):
            if message["Body"] in GARBAGE:
                sqs.delete_message(QueueUrl=queue, ReceiptHandle=message["ReceiptHandle"])


def test_an_outcome_completes_its_run_through_the_queue(stage: Stage, sqs: Any) -> None:
    """The record as Lambda's destination would send it; the embedded AWS has none."""
    job = registered(stage, "told-later", {"at": rfc3339(int(time.time()) + 5)}, "Event")
    (execution,) = due_of(job, int(time.time()) + 60)

    def run() -> dict[str, Any]:
        return stage.runs([execution]).get(execution.execution_id, {})

    wait_until(lambda: run().get("status") == "dispatched", "dispatched")
    context = {
        "tenant": "alice",
        "execution_id": execution.execution_id,
        "attempt": 1,
        "outcome_token": run()["claim_token"],
    }
    record = {
        "version": "1.0",
        "timestamp": rfc3339(int(time.time())),
        "requestContext": {"requestId": "r", "condition": "Success", "approximateInvokeCount": 1},
        "requestPayload": {"payload": None, "minute8": context},
        "responseContext": {"statusCode": 200},
        "responsePayload": {"items": 3},
    }
    forged = record | {"requestPayload": {"minute8": context | {"outcome_token": "0" * 32}}}
    for body in ("garbage", json.dumps(forged), json.dumps(record)):
        sqs.send_message(QueueUrl=url(sqs, "outcomes"), MessageBody=body)
    wait_until(lambda: run()["status"] == "succeeded", "succeeded")
    assert run()["attempts"][0]["request_id"] == "r"
    # Else garbage arrives among the dead letters minutes later, in the middle of another test.
    sqs.purge_queue(QueueUrl=url(sqs, "outcomes"))
