"""An execution whose record cannot be written counts against the service level; one that still runs does not."""

from __future__ import annotations

from executor.batch import execute_batch
from executor.recorder import service_level
from tests.worlds import World, job


def test_an_execution_that_cannot_be_recorded_counts_and_is_not_good(world: World) -> None:
    world.registry.create("alice", "soon", job(every="1m"))
    world.run_until("2026-11-21T03:12:59Z")
    world.clock.move_to(world.sqs.next_at() or 0)
    message = world.sqs.receive()
    assert message

    def refuses(*_: object, **__: object) -> object:
        raise OSError("the runs table is gone")

    world.dynamodb.update_item = refuses
    reports, failed = execute_batch(world.executor, [message])
    assert failed == [message.message_id]
    assert [report.result for report in reports] == ["unrecorded"]
    assert service_level(reports, 1.0) == (0, 1)
