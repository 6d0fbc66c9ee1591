"""Executions that are due later than SQS can delay a message: the tick of their window enqueues them.

A retry in six hours would otherwise go through the queue and the executor every 900 s. Lambda's recursive loop
detection refuses such a chain at about 16 hops:
https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from common.clock import Clock
from common.planning.due_index import DueIndex
from common.planning.execution import Execution, UnreadableMessage
from common.planning.queue import ExecutionsQueue
from common.storage import keys
from common.storage.table import Query, Table
from common.storage.unreadable import Unreadable
from common.storage.wire import Item
from common.timing.instants import DAY_S
from common.timing.windows import MAX_DELAY_S

# Longer than any outage of the ticks without an alarm.
_TTL_S: Final = 15 * DAY_S
_PAGE_SIZE: Final = 500


class Postponed:
    """Enqueues executions, or stores them in the due table if they must wait longer than a message can."""

    def __init__(self, table: Table, queue: ExecutionsQueue, clock: Clock) -> None:
        self._table = table
        self._index = DueIndex(table)
        self._queue = queue
        self._clock = clock

    def send(self, execution: Execution) -> None:
        """Enqueue it, or store it for the tick of its window. Storing it twice stores it once.

        Raises:
            HandOverFailed: SQS did not accept it; no other process will send it.
        """
        if execution.visible_at - self._clock.now() <= MAX_DELAY_S:
            self._queue.send([execution])
            return
        self._table.put(_item(execution))
        # Read after the write: a tick that announced this window before may have read it without the item.
        if execution.visible_at < self._index.ensure_progress(self._clock.now()).planning_until:
            self._queue.send([execution])

    def postpone_distant(self, executions: Iterable[Execution]) -> Iterator[Execution]:
        """Store executions that SQS cannot delay until they are due. Yields the others, which the caller enqueues.

        The stored executions are durable when the iterator ends. Raises Busy.
        """
        furthest = self._clock.now() + MAX_DELAY_S
        far: list[Execution] = []
        for execution in executions:
            if execution.visible_at <= furthest:
                yield execution
                continue
            far.append(execution)
            if len(far) == _PAGE_SIZE:
                yield from self._store(far)
                far = []
        yield from self._store(far)

    def _store(self, executions: Sequence[Execution]) -> Iterator[Execution]:
        """Store executions. Yields those whose window a tick announced before, which may not have read them."""
        if not executions:
            return
        # Two registrations of a job that were cut off have the same executions.
        items = {item["sk"]: item for item in map(_item, executions)}
        self._table.put_many(list(items.values()))
        announced = self._index.ensure_progress(self._clock.now()).planning_until
        yield from (execution for execution in executions if execution.visible_at < announced)

    def enqueue_due(self, until: int, stop_at: float) -> Iterator[Unreadable | int]:
        """Enqueue the executions that are due before `until`, and delete them. Yields counts and unreadable items.

        Reads a page of each partition in turn, so that earlier executions come first; after `stop_at` no more pages.

        Raises:
            HandOverFailed: the next call enqueues again what is not deleted.
        """
        between = ("0", keys.postponed_before(until))
        queries = [Query(partition, sk_between=between) for partition in keys.partitions("POSTPONED")]
        waiting = deque(map(self._table.query, queries))
        while waiting and self._clock.now() < stop_at:
            items = waiting.popleft()
            if page := list(islice(items, _PAGE_SIZE)):
                waiting.append(items)
                yield from self._send_page(page)

    def _send_page(self, page: list[Item]) -> Iterator[Unreadable | int]:
        postponed = [(keys.key_of(item), _read(item)) for item in page]
        readable = {key["sk"]: execution for key, execution in postponed if isinstance(execution, Execution)}
        yield from (entry for _, entry in postponed if isinstance(entry, Unreadable))
        accepted, refused = self._queue.send(readable.values())
        for refusal in refused:
            yield Unreadable("due", _key(refusal.execution), f"refused by SQS: {refusal.reason}")
        self._table.delete_many([key for key, _ in postponed if key["sk"] in readable])
        yield accepted


def _key(execution: Execution) -> keys.Key:
    return keys.postponed(execution.visible_at, f"{execution.execution_id}#{execution.attempt}")


def _item(execution: Execution) -> Item:
    return {**_key(execution), "body": execution.encode(), "expires_at": execution.visible_at + _TTL_S}


def _read(item: Item) -> Execution | Unreadable:
    """The execution that the item's key names."""
    try:
        execution = Execution.decode(item.get("body"))
        if _key(execution)["sk"] != item["sk"]:
            raise UnreadableMessage(f"its key does not name its execution {execution.execution_id}")
        return execution
    except UnreadableMessage as error:
        return Unreadable("due", keys.key_of(item), f"unreadable postponed execution: {error}", item)
