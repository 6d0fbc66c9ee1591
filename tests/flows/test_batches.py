"""A batch of messages: one request reads all their jobs, and a message's failure harms no other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from common.planning.execution import Execution
from executor.batch import execute_batch
from executor.pipeline import Message
from executor.recorder import Report
from tests.worlds import World, at, job

DUE = at("2026-11-21T03:15:00Z")


class Reads:
    """A DynamoDB client that records how jobs are read, and that can be throttled."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.requests: list[str] = []
        self.consistent: list[bool] = []
        self.unprocessed = False
        self.broken = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def get_item(self, **request: Any) -> Any:
        self.requests.append("get")
        self.consistent.append(request["ConsistentRead"])
        return self.client.get_item(**request)

    def batch_get_item(self, RequestItems: dict[str, Any]) -> Any:
        ((table, request),) = RequestItems.items()
        self.requests.append(f"get {len(request['Keys'])}")
        self.consistent.append(request["ConsistentRead"])
        if self.broken:
            raise OSError("no way to DynamoDB")
        count = 1 if self.unprocessed else len(request["Keys"])
        keys, unprocessed = request["Keys"][:count], request["Keys"][count:]
        answer = self.client.batch_get_item(RequestItems={table: {**request, "Keys": keys}})
        return {
            **answer,
            "UnprocessedKeys": {table: {**request, "Keys": unprocessed}} if unprocessed else {},
        }


@pytest.fixture
def reads(world: World) -> Reads:
    seen = Reads(world.dynamodb)
    due_jobs = replace(world.executor.due_jobs, jobs=replace_client(world, seen))
    world.executor = replace(world.executor, due_jobs=due_jobs)
    return seen


def replace_client(world: World, seen: Reads) -> Any:
    table = world.table("jobs")
    table.client = seen  # type: ignore[assignment]
    return table


def messages(world: World, *due_at: int) -> list[Message]:
    """One message for each of these seconds, each for another job."""
    batch = []
    for n, second in enumerate(due_at):
        world.registry.create("alice", f"job-{n}", job(cron="0 9 * * *"))
        batch.append(Message(f"m-{n}", Execution("alice", f"job-{n}", second, second, 1).encode()))
    return batch


def run(world: World, batch: list[Message]) -> tuple[list[Report], list[str]]:
    reports, failed = execute_batch(world.executor, batch)
    return sorted(reports, key=lambda report: report.execution.job_id), failed


def test_the_jobs_of_one_second_are_read_by_one_consistent_request(world: World, reads: Reads) -> None:
    batch = messages(world, *[DUE] * 10)
    world.clock.move_to(DUE - 0.7)
    reports, failed = run(world, batch)
    assert (len(reports), failed) == (10, [])
    assert {report.result for report in reports} == {"succeeded"}
    assert (reads.requests, reads.consistent) == (["get 10"], [True])
    assert min(called_at for called_at, _ in world.target.calls) >= DUE


def test_each_second_is_waited_for_and_read_on_its_own(world: World, reads: Reads) -> None:
    batch = messages(world, DUE + 1, DUE, DUE + 1, DUE)
    world.clock.move_to(DUE - 0.7)
    run(world, batch)
    assert reads.requests == ["get 2", "get 2"]
    for called_at, context in world.target.calls:
        assert called_at >= at(context["due_at"])


def test_a_job_that_changes_while_its_batch_is_held_is_read_after_the_change(
    world: World, reads: Reads
) -> None:
    batch = messages(world, DUE, DUE, DUE)
    world.clock.move_to(DUE - 0.7)
    sleep = world.clock.sleep

    def pausing(seconds: float) -> None:
        sleep(seconds)
        if world.clock.now() >= DUE and world.store.get("alice", "job-1").state == "active":
            world.store.pause("alice", "job-1")
            world.store.delete("alice", "job-2")

    world.clock.sleep = pausing  # type: ignore[method-assign]
    reports, _ = run(world, batch)
    assert [report.detail or report.result for report in reports] == [
        "succeeded",
        "the job is paused",
        "deleted",
    ]


def test_two_messages_of_the_same_job_and_one_of_a_missing_job(world: World, reads: Reads) -> None:
    first, second = messages(world, DUE, DUE)
    missing = Message("gone", Execution("alice", "gone", DUE, DUE, 1).encode())
    world.clock.move_to(DUE)
    reports, failed = execute_batch(
        world.executor, [first, replace(first, message_id="again"), second, missing]
    )
    assert sorted(report.result for report in reports) == ["duplicate", "skipped", "succeeded", "succeeded"]
    assert failed == []
    # The missing job is read alone, and then whether it was deleted.
    assert reads.requests == ["get 3", "get", "get"]


def test_jobs_that_cannot_be_read_together_are_read_one_by_one(world: World, reads: Reads) -> None:
    batch = messages(world, *[DUE] * 4)
    reads.broken = True
    world.clock.move_to(DUE)
    assert [report.result for report in run(world, batch)[0]] == ["succeeded"] * 4
    assert reads.requests == ["get 4", *["get"] * 4]
    assert all(reads.consistent)


def test_unprocessed_jobs_are_read_one_by_one(world: World, reads: Reads) -> None:
    batch = messages(world, *[DUE] * 4)
    reads.unprocessed = True
    world.clock.move_to(DUE)
    assert [report.result for report in run(world, batch)[0]] == ["succeeded"] * 4
    assert reads.requests == ["get 4", "get", "get", "get"]
    assert all(reads.consistent)


def test_early_executions_go_back_to_the_queue_and_delay_no_other(world: World, reads: Reads) -> None:
    batch = messages(world, DUE + 100, DUE + 100, DUE, DUE)
    world.clock.move_to(DUE - 0.5)
    reports, _ = run(world, batch)
    assert [report.result for report in reports] == ["sent_on", "sent_on", "succeeded", "succeeded"]
    assert len(world.sqs) == 2
    assert world.clock.now() < DUE + 1


def test_the_waits_of_a_batch_do_not_add_up(world: World, reads: Reads) -> None:
    batch = messages(world, *[DUE + 2 * (n // 2) for n in range(10)])
    world.clock.move_to(DUE - 1.5)
    reports, failed = run(world, batch)
    assert failed == []
    assert [report.result for report in reports] == ["succeeded"] * 2 + ["sent_on"] * 8
    assert world.clock.now() <= DUE + 0.1


def test_first_attempts_are_claimed_by_one_request_and_others_by_their_own(
    world: World, reads: Reads
) -> None:
    batch = messages(world, *[DUE] * 5)
    world.registry.create("alice", "turns", job(cron="0 9 * * *", overlap="skip"))
    batch.append(Message("m-turns", Execution("alice", "turns", DUE, DUE, 1).encode()))
    manual = Execution("alice", "job-0", DUE - 60, DUE, 1, trigger="manual", trigger_id="x")
    batch.append(Message("m-manual", manual.encode()))
    operations: list[str] = []
    world.dynamodb.before = operations.append
    world.clock.move_to(DUE)
    assert {report.result for report in run(world, batch)[0]} == {"succeeded"}
    assert operations.count("batch_execute_statement") == 1
    # Each end, and two claims; the permit of the job with turns is taken and freed.
    assert operations.count("update_item") == len(batch) + 2
    assert operations.count("put_item") == operations.count("delete_item") == 1
    assert len(world.target.calls) == len(batch)
