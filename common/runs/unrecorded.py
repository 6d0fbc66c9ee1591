"""Executions that were enqueued and have no record, in the due table: found by the ticks, run again by an operator.

Each is kept as its message. Running it again sends that message: it is the same execution, and runs once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from common.planning.execution import Execution, UnreadableMessage
from common.planning.executions_queue import ExecutionsQueue
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Query, Table
from common.storage.wire import Expression, Item
from common.timing.instants import DAY_S

# How many are listed. Ticks look for no others before these are run or dismissed.
MAX_LISTED: Final = 10_000
_KEPT_S: Final = 30 * DAY_S


@dataclass(frozen=True, slots=True)
class WithoutRecord:
    """One of them: when a tick found it, and when it was last sent again (None: never)."""

    execution: Execution
    found_at: int
    sent_at: int | None = None


class Unrecorded:
    """The list, and the runs table to compare it with."""

    def __init__(self, due: Table, runs: Table) -> None:
        self._due = due
        self._runs = runs

    def missing(self, executions: Sequence[Execution], *, consistent: bool = True) -> list[Execution]:
        """Those of these executions that have no record, each once."""
        wanted = {
            (key["pk"], key["sk"]): one
            for one in executions
            for key in (keys.run(one.tenant, one.job_id, one.run_name),)
        }
        asked: list[keys.Key] = [{"pk": pk, "sk": sk} for pk, sk in wanted]
        for record in self._runs.get_many(asked, consistent=consistent):
            wanted.pop((record["pk"], record["sk"]), None)
        return list(wanted.values())

    def add(self, executions: Iterable[Execution], now: float) -> None:
        """List them; those that are listed keep when they were found, and when they were sent."""
        known = {one.execution.execution_id for one in self.all()}
        items = [
            {
                **keys.unrecorded(one.execution_id),
                "body": one.encode(),
                "due_at": one.due_at,
                "found_at": int(now),
                "expires_at": int(now) + _KEPT_S,
            }
            for one in executions
            if one.execution_id not in known
        ]
        self._due.put_many(items)

    def remove(self, executions: Sequence[Execution]) -> None:
        """Take these from the list: they have a record now, or nobody waits for one."""
        self._due.delete_many([keys.unrecorded(one.execution_id) for one in executions])

    def all(self) -> Iterator[WithoutRecord]:
        """The whole list, by execution ids."""
        return _read(self._due.query(Query(keys.UNRECORDED)))

    def page(
        self, after_id: str = "", from_at: int = 0, limit: int = MAX_LISTED
    ) -> tuple[list[WithoutRecord], str]:
        """Those due from `from_at` on that have no record now, by their ids, and where the list continues."""
        after = keys.unrecorded(after_id) if after_id else None
        items = list(self._due.query(Query(keys.UNRECORDED, after=after, limit=limit + 1)))
        found = [one for one in _read(items[:limit]) if one.execution.due_at >= from_at]
        left = {one.execution_id for one in self.missing([one.execution for one in found])}
        next_id = items[limit - 1]["sk"] if len(items) > limit else ""
        return [one for one in found if one.execution.execution_id in left], next_id

    def named(self, execution_ids: Sequence[str]) -> dict[str, WithoutRecord]:
        """Those of these ids that are listed."""
        items = self._due.get_many([keys.unrecorded(one) for one in dict.fromkeys(execution_ids)])
        return {one.execution.execution_id: one for one in _read(items)}

    def send(self, executions: Sequence[Execution], queue: ExecutionsQueue, now: float) -> None:
        """Enqueue them again; the age of their retries counts from now. Raises HandOverFailed."""
        queue.send([replace(one, first_due_at=one.first_due_at or int(now)) for one in executions])
        for one in executions:
            with suppress(ConditionFailed):  # a tick has found its record
                self._due.update(
                    keys.unrecorded(one.execution_id),
                    Expression("SET #sent_at = :now", {":now": int(now)}),
                    Expression("attribute_exists(pk)", {}),
                )


def _read(items: Iterable[Mapping[str, Any] | Item]) -> Iterator[WithoutRecord]:
    for item in items:
        with suppress(UnreadableMessage):  # of a later version, which lists it again
            yield WithoutRecord(Execution.decode(item["body"]), item["found_at"], item.get("sent_at"))
