"""Runs that failed for good are sent to the job's dead-letter queue, and the run's end never depends on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from msgspec import structs

from common.errors import InvalidInput
from common.platform.tenants import Tenants
from common.runs.outcome import Outcome
from common.tenants.rules_cache import KnownTenants
from executor import handler, run_end
from minute8.eventbridge.group_metrics import counted, named_groups
from minute8.eventbridge.imported_from import imported_from_of
from tests.worlds import Killed, World, job

DUE = "2026-11-21T03:15:00Z"
LATER = "2026-11-21T12:00:00Z"
QUEUE = "arn:aws:sqs:us-east-1:123456789012:dead"
SCHEDULE = "arn:aws:scheduler:us-east-1:123456789012:schedule/default/once"
FAILED = Outcome(ok=False, error_type="Boom", error="it\x00 broke")


@dataclass
class Queue:
    """The tenant's queue: what it got, and how often it is to refuse."""

    sent: list[dict[str, Any]] = field(default_factory=list)
    calls: int = 0
    refuses: int = 0
    dies: int = 0

    def send_message(self, **message: Any) -> None:
        self.calls += 1
        if self.dies:
            self.dies -= 1
            raise Killed
        if self.refuses:
            self.refuses -= 1
            raise RuntimeError("the queue does not exist")
        self.sent.append(message)

    def attributes(self) -> dict[str, str]:
        (message,) = self.sent
        return {name: value["StringValue"] for name, value in message["MessageAttributes"].items()}


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    queue = Queue()
    monkeypatch.setattr(run_end, "client", lambda *args: queue)
    return queue


def fails(world: World, outcome: Outcome = FAILED, **fields: Any) -> dict[str, Any]:
    """A job whose run fails; the run's record."""
    world.target.answer = lambda event: outcome
    world.registry.create(
        "alice", "once", job(**{"at": DUE, "dead_letter": QUEUE, "payload": {"n": 1}, **fields})
    )
    world.run_until("2026-11-21T05:15:00Z", ticks=True)
    (run,) = world.run_items("alice", "once")
    assert run["status"] == "failed"
    return run


def test_one_message_after_the_last_attempt(world: World, queue: Queue) -> None:
    run = fails(world, retry={"max_attempts": 3, "base_s": 1})
    assert queue.attributes() == {
        "ERROR_CODE": "Boom",
        "ERROR_MESSAGE": "it\ufffd broke",
        "EXECUTION_ID": "alice:once:20261121T031500Z",
        "EXHAUSTED_RETRY_CONDITION": "MaximumRetryAttempts",
        "IS_PAYLOAD_TRUNCATED": "false",
        "RETRY_ATTEMPTS": "2",
        "SCHEDULED_TIME": DUE,
        "SCHEDULE_ARN": "alice/once",
        "TARGET_ARN": job()["target"]["arn"],
    }
    (message,) = queue.sent
    assert message["QueueUrl"] == "https://sqs.us-east-1.amazonaws.com/123456789012/dead"
    assert json.loads(message["MessageBody"])["payload"] == {"n": 1}
    assert "outcome_token" not in message["MessageBody"]
    assert "dead_letter_error" not in run


def test_the_age_and_a_permanent_error_are_told_apart(world: World, queue: Queue) -> None:
    fails(world, retry={"max_attempts": 50, "base_s": 30, "max_age_s": 60})
    assert queue.attributes()["EXHAUSTED_RETRY_CONDITION"] == "MaximumEventAgeInSeconds"


def test_a_permanent_error_names_no_condition(world: World, queue: Queue) -> None:
    fails(world, Outcome(ok=False, permanent=True, error_type="NoSuchFunction"))
    attributes = queue.attributes()
    assert not {"EXHAUSTED_RETRY_CONDITION", "ERROR_MESSAGE"} & set(attributes)
    assert attributes["RETRY_ATTEMPTS"] == "0"


def test_a_retry_that_may_not_be_made_is_a_failure_as_well(world: World, queue: Queue) -> None:
    world.target.answer = lambda event: FAILED
    retry = {"max_attempts": 3, "base_s": 60}
    world.registry.create("alice", "once", job(at=DUE, dead_letter=QUEUE, retry=retry))
    world.run_until("2026-11-21T03:15:05Z")
    world.registry.put("alice", "once", job(at=LATER, dead_letter=QUEUE, retry=retry))
    world.run_until("2026-11-21T03:20:00Z")
    assert world.statuses("alice", "once") == ["failed"]
    assert (queue.attributes()["ERROR_CODE"], queue.attributes()["RETRY_ATTEMPTS"]) == ("rescheduled", "0")


def test_neither_a_success_nor_a_skipped_run_sends_any(world: World, queue: Queue) -> None:
    world.registry.create("alice", "once", job(at=DUE, dead_letter=QUEUE))
    world.registry.create("alice", "paused", job(at=DUE, dead_letter=QUEUE))
    world.run_until("2026-11-21T03:14:00Z")
    world.store.pause("alice", "paused", "")
    world.run_until("2026-11-21T03:20:00Z")
    assert (world.statuses("alice", "once"), world.statuses("alice", "paused")) == (
        ["succeeded"],
        ["skipped(paused)"],
    )
    assert queue.calls == 0


def test_an_event_that_lambda_took_is_delivered(world: World, queue: Queue) -> None:
    """As with EventBridge Scheduler: dead letters are what could not be delivered."""
    world.target.answer = lambda event: (
        FAILED if event["minute8"]["job_id"] == "refused" else Outcome(ok=True)
    )
    for name in ("taken", "refused"):
        fields = job(at=DUE, dead_letter=QUEUE, invocation="Event", retry={"max_attempts": 2, "base_s": 1})
        world.registry.create("alice", name, fields)
    world.run_until("2026-11-21T03:20:00Z")
    assert (world.statuses("alice", "taken"), world.statuses("alice", "refused")) == (
        ["dispatched"],
        ["failed"],
    )
    assert queue.attributes()["EXECUTION_ID"].startswith("alice:refused:")


def test_a_job_without_it_costs_no_request(world: World, queue: Queue) -> None:
    fails(world, dead_letter=None, retry={"max_attempts": 1})
    assert queue.calls == 0


def test_the_input_of_a_schedule_is_the_body(world: World, queue: Queue) -> None:
    target = {**job()["target"], "schedule_arn": SCHEDULE}
    fails(world, target=target, payload='{"at": "<aws.scheduler.scheduled-time>"}', retry={"max_attempts": 1})
    assert queue.sent[0]["MessageBody"] == f'{{"at": "{DUE}"}}'
    attributes = queue.attributes()
    assert (attributes["SCHEDULE_ARN"], attributes["TARGET_ARN"]) == (SCHEDULE, target["arn"])


@pytest.mark.parametrize("size", [1, 3_000])  # a large request has an item of its own
def test_a_universal_target_sends_the_letter_of_the_guide(world: World, queue: Queue, size: int) -> None:
    """https://docs.aws.amazon.com/scheduler/latest/UserGuide/configuring-schedule-dlq.html, its example"""
    operation = "arn:aws:scheduler:::aws-sdk:sqs:sendMessage"
    url = f"https://sqs.us-west-2.amazonaws.com/123456789012/{'q' * size}"
    text = f'{{"MessageBody":"<aws.scheduler.execution-id>","QueueUrl":"{url}"}}'
    body = "<aws.scheduler.execution-id>"
    target = {**job()["target"], "schedule_arn": SCHEDULE}
    created = world.registry.create(
        "alice",
        "once",
        job(at=DUE, dead_letter=QUEUE, target=target, payload='"<aws.scheduler.execution-id>"'),
    )
    request = {"Target": {"Arn": operation, "Input": text}}
    imported_from = imported_from_of("default", "once", request, body, None)
    seen: list[str] = []

    def answers(event: Mapping[str, Any]) -> Outcome:
        seen.append(event["payload"].strip('"'))
        return Outcome(
            ok=False, permanent=True, error_type="AWS.SimpleQueueService.NonExistentQueue", error="none"
        )

    world.target.answer = answers
    world.store.change(
        "alice",
        "once",
        lambda old, now: structs.replace(created, imported_from=imported_from, revision=created.revision + 1),
    )
    world.run_until("2026-11-21T03:16:00Z")
    attributes = queue.attributes()
    assert attributes["EXECUTION_ID"] == seen[-1] and len(seen[-1]) == 16
    assert queue.sent[0]["MessageBody"] == text.replace("<aws.scheduler.execution-id>", seen[-1])
    assert {
        name: attributes[name] for name in ("TARGET_ARN", "EXHAUSTED_RETRY_CONDITION", "RETRY_ATTEMPTS")
    } == {
        "TARGET_ARN": operation,
        "EXHAUSTED_RETRY_CONDITION": "MaximumEventAgeInSeconds",
        "RETRY_ATTEMPTS": "0",
    }


def test_a_refused_dead_letter_is_sent_a_second_time(world: World, queue: Queue) -> None:
    queue.refuses = 1
    run = fails(world, retry={"max_attempts": 1})
    assert (queue.calls, len(queue.sent), "dead_letter_error" in run) == (2, 1, False)


def test_a_dead_letter_that_cannot_be_sent_is_noted_in_the_run(world: World, queue: Queue) -> None:
    queue.refuses = 9
    run = fails(world, retry={"max_attempts": 1})
    assert run["dead_letter_error"] == "RuntimeError: 'the queue does not exist'"
    assert (queue.calls, len(world.target.calls), len(world.sqs)) == (2, 1, 0)


@pytest.mark.parametrize(
    ("refuses", "dead_letters"),
    [
        (0, {"InvocationsSentToDeadLetterCount": 1}),
        (
            9,
            {
                "InvocationsFailedToBeSentToDeadLetterCount": 1,
                "InvocationsFailedToBeSentToDeadLetterCount_RuntimeError": 1,
            },
        ),
    ],
)
def test_the_metrics_of_a_group_count_dead_letters_and_throttled_calls(
    world: World, queue: Queue, refuses: int, dead_letters: dict[str, int]
) -> None:
    queue.refuses = refuses
    world.target.answer = lambda event: replace(FAILED, throttled=event["minute8"]["attempt"] == 1)
    world.registry.create("alice", "once", job(at=DUE, dead_letter=QUEUE, retry={"max_attempts": 1}))
    world.run_until("2026-11-21T03:30:00Z", ticks=True)
    assert counted(named_groups("alice/default"), handler.group_attempts(world.reports)) == {
        ("alice", "default"): {
            "InvocationAttemptCount": 2,
            "TargetErrorCount": 2,
            "TargetErrorThrottledCount": 1,
            "InvocationDroppedCount": 1,
            **dead_letters,
        }
    }


def test_a_run_that_is_given_up_is_dropped_without_another_call(world: World, queue: Queue) -> None:
    world.target.answer = lambda event: FAILED
    retry = {"max_attempts": 3, "base_s": 60}
    world.registry.create("alice", "once", job(at=DUE, dead_letter=QUEUE, retry=retry))
    world.run_until("2026-11-21T03:15:05Z")
    world.registry.put("alice", "once", job(at=LATER, dead_letter=QUEUE, retry=retry))
    world.run_until("2026-11-21T03:20:00Z")
    (counts,) = counted(named_groups("alice/default"), handler.group_attempts(world.reports)).values()
    assert counts == {
        "InvocationAttemptCount": 1,
        "TargetErrorCount": 1,
        "InvocationDroppedCount": 1,
        "InvocationsSentToDeadLetterCount": 1,
    }


def test_a_queue_that_is_allowed_no_more_gets_nothing(world: World, queue: Queue) -> None:
    world.target.answer = lambda event: FAILED
    tenants = Tenants(world.table("tenants"))
    tenants.create("alice", "", world.clock.now(), {"allowed_targets": ["*"]})
    recorder = world.executor.recorder
    checked = replace(recorder.run_end.dead_letters, rules=KnownTenants(world.table("tenants")))
    run_end = replace(recorder.run_end, dead_letters=checked)
    world.executor = replace(world.executor, recorder=replace(recorder, run_end=run_end))
    world.registry.create("alice", "once", job(at=DUE, dead_letter=QUEUE, retry={"max_attempts": 1}))
    world.run_until("2026-11-21T03:10:00Z")
    tenants.edit("alice", {"allowed_targets": ["arn:aws:lambda:*:*:*"]}, world.clock.now())
    world.run_until("2026-11-21T03:20:00Z")
    (run,) = world.run_items("alice", "once")
    assert (run["status"], queue.calls) == ("failed", 0)
    assert QUEUE in run["dead_letter_error"]


@pytest.mark.parametrize(
    "arn",
    [
        f"{QUEUE}.fifo",
        "arn:aws:sns:us-east-1:123456789012:t",
        "x",
        "",
        5,
        "arn:aws:sqs:us-east-1:123456789012:minute8-x",
    ],
)
def test_other_queues_are_refused(world: World, arn: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        world.registry.create("alice", "once", job(at=DUE, dead_letter=arn))
    assert caught.value.field == "dead_letter"
    assert caught.value.accepted


def test_the_dead_letter_of_a_dead_executor_is_sent_when_the_message_comes_again(
    world: World, queue: Queue
) -> None:
    """The run has ended by then, and its target is not called again."""
    queue.dies = 1
    fails(world, retry={"max_attempts": 1})
    assert (len(queue.sent), len(world.target.calls)) == (1, 1)
