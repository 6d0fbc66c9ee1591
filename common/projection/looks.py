"""Runs that the projection reads again later: they are not over, have no record yet, or there was no time for them.

Each item has some runs of one tenant. A tick reads those whose time has come, and writes new ones before it forgets
these.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from common.planning.execution import Execution, UnreadableMessage
from common.runs.run import STUCK_AFTER_S
from common.storage import keys
from common.storage.table import Query, Table
from common.storage.wire import Item
from common.texts import UNREADABLE, packed, unpacked
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S, window_start

# At most 260 KB, whatever the ids are.
_RUNS_IN_ITEM: Final = 1_000
_RETENTION_S: Final = 8 * DAY_S
# After this time without a record a run will not have one, unless it is noted as changed then.
NO_RECORD_AFTER_S: Final = DAY_S


class Again(NamedTuple):
    """When to read an execution's run again. `is_planned`: it must have a record, since it was enqueued."""

    at: int
    execution: Execution
    is_planned: bool


class Look(NamedTuple):
    """Runs of a tenant to read again, and their item's key."""

    key: keys.Key
    executions: list[Execution]
    is_planned: bool


class Looks:
    """The list, in the due table."""

    def __init__(self, due: Table) -> None:
        self._table = due

    def due(self, bucket: int, now: float, problems: list[str]) -> Iterator[Look]:
        """What is to be read again until now, of the tenants of a bucket. `problems` gets what cannot be read."""
        partition = keys.log_partition(keys.AGAIN, bucket)
        attributes = ("pk", "sk", "runs", "is_planned")
        for item in self._table.query(Query(partition, attributes=attributes, consistent=False)):
            try:
                if keys.look_time(item["sk"]) > now:
                    continue
                look = Look(keys.key_of(item), _executions(item), item.get("is_planned") is True)
            except UNREADABLE as error:
                problems.append(f"{item['sk']}: {error!r}"[:500])
                continue
            yield look

    def of_tenant(self, tenant: str) -> Iterator[Execution]:
        """Runs of a tenant that are to be read again, read while the caller consumes them."""
        partition = keys.log_partition(keys.AGAIN, keys.log_bucket(tenant))
        for item in self._table.query(
            Query(partition, sk_prefix=keys.looks_of_tenant(tenant), consistent=False)
        ):
            with suppress(*UNREADABLE):  # a tick reports it
                yield from _executions(item)

    def add(self, looks: Iterable[Again]) -> None:
        """Note when to read each execution's run again. Raises Busy."""
        by_time: defaultdict[tuple[str, int, bool], list[Execution]] = defaultdict(list)
        for at, execution, is_planned in looks:
            by_time[execution.tenant, at, is_planned].append(execution)
        self._table.put_many(
            [
                _item(tenant, at, is_planned, executions[first : first + _RUNS_IN_ITEM])
                for (tenant, at, is_planned), executions in by_time.items()
                for first in range(0, len(executions), _RUNS_IN_ITEM)
            ]
        )

    def forget(self, looks: Sequence[Look]) -> None:
        """Remove looks that are done."""
        self._table.delete_many([look.key for look in looks])


def next_look(execution: Execution, goes_on_at: float, now: float) -> int:
    """When to read a run again that is not over. Pure.

    `goes_on_at`: when its lease ends, or its next attempt is due; 0: it waits for neither. If it has not gone on soon
    after, it is stuck, and that tick finds it. Else in a quarter of its age.
    """
    if goes_on_at + STUCK_AFTER_S >= now:
        at = max(now + WINDOW_S, goes_on_at + STUCK_AFTER_S)
    else:
        at = now + max(WINDOW_S, (now - execution.visible_at) / 4)
    return window_start(int(at))


def _item(tenant: str, at: int, is_planned: bool, executions: Sequence[Execution]) -> Item:
    runs = packed("\n".join(execution.encode() for execution in executions))
    name = hashlib.sha256(f"{is_planned}{runs}".encode()).hexdigest()[:16]
    item = {**keys.look_again(tenant, at, name), "runs": runs, "expires_at": at + _RETENTION_S}
    return {**item, "is_planned": True} if is_planned else item


def _executions(item: Item) -> list[Execution]:
    executions = []
    for body in unpacked(item["runs"]).split("\n"):
        with suppress(UnreadableMessage):  # of a later version, which looks itself
            executions.append(Execution.decode(body))
    return executions
