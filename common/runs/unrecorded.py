"""Executions that were enqueued and have no record. Ticks list them in the due table, an operator runs them again.

Each is kept as its message. Running one again sends that message: it is the same execution, and runs once. If only its
record was lost, it would be called again; so what is known to have had a record is only recorded anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from common.planning.execution import Execution
from common.planning.log import ExecutionLog
from common.planning.queue import ExecutionsQueue
from common.runs.records import Runs
from common.storage import keys
from common.storage.expressions import PRESENT, change
from common.storage.table import Query, Table
from common.storage.wire import DAMAGE, Item
from common.timing.instants import DAY_S

# At this number ticks look for no others until these are run or dismissed.
MAX_LISTED: Final = 10_000
_RETENTION_S: Final = 30 * DAY_S


@dataclass(frozen=True, slots=True)
class UnrecordedExecution:
    """An execution without a record: when a tick found it, and when it was last sent again (None: never).

    `known_by`: what knows that it had a record, or was called; empty: nothing does.
    """

    execution: Execution
    found_at: int
    sent_at: int | None = None
    known_by: str = ""


class Unrecorded:
    """The list, and the runs table to compare it with."""

    def __init__(self, due: Table, runs: Table) -> None:
        self._due = due
        self._runs = runs

    def missing(self, executions: Sequence[Execution]) -> list[Execution]:
        """The executions without a record, each once."""
        recorded = self.records(executions)
        unseen = {execution.execution_id: execution for execution in executions}
        return [execution for name, execution in unseen.items() if name not in recorded]

    def records(self, executions: Sequence[Execution], *, consistent: bool = True) -> dict[str, Item]:
        """The records of executions by their ids, of those that have one."""
        ids = {
            (key["pk"], key["sk"]): execution.execution_id
            for execution in executions
            for key in (keys.run(execution.tenant, execution.job_id, execution.run_name),)
        }
        run_keys: list[keys.Key] = [{"pk": pk, "sk": sk} for pk, sk in ids]
        records = self._runs.get_many(run_keys, consistent=consistent)
        return {ids[record["pk"], record["sk"]]: record for record in records}

    def add(
        self, executions: Iterable[Execution], now: float, known_by: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Add executions to the list, with what knows of them, by their ids.

        One that is listed already keeps what is said of it.
        """
        listed = {each.execution.execution_id for each in self.all()}
        items: list[Item] = [
            {
                **keys.unrecorded(execution.execution_id),
                "body": execution.encode(),
                "due_at": execution.due_at,
                "found_at": int(now),
                "known_by": known_by.get(execution.execution_id, ""),
                "expires_at": int(now) + _RETENTION_S,
            }
            for execution in executions
            if execution.execution_id not in listed
        ]
        self._due.put_many(items)

    def learn(self, known_by: Mapping[str, str]) -> None:
        """Say of listed executions what knows of them, by their ids."""
        for execution_id, source in known_by.items():
            self._due.update_if(keys.unrecorded(execution_id), change({"known_by": source}), PRESENT)

    def remove(self, executions: Sequence[Execution]) -> None:
        """Take executions from the list: they have a record now, or an operator dismissed them."""
        self._due.delete_many([keys.unrecorded(execution.execution_id) for execution in executions])

    def all(self) -> Iterator[UnrecordedExecution]:
        """The whole list, by execution ids."""
        return _read(self._due.query(Query(keys.UNRECORDED)))

    def page(
        self, after_id: str = "", from_at: int = 0, limit: int = MAX_LISTED
    ) -> tuple[list[UnrecordedExecution], str]:
        """The executions that are due from `from_at` on and have no record now, and the id of the next page."""
        after = keys.unrecorded(after_id) if after_id else None
        items = list(self._due.query(Query(keys.UNRECORDED, after=after, limit=limit + 1)))
        page = [listed for listed in _read(items[:limit]) if listed.execution.due_at >= from_at]
        missing = {
            execution.execution_id for execution in self.missing([listed.execution for listed in page])
        }
        next_id = items[limit - 1]["sk"] if len(items) > limit else ""
        return [listed for listed in page if listed.execution.execution_id in missing], next_id

    def named(self, execution_ids: Sequence[str]) -> dict[str, UnrecordedExecution]:
        """The listed executions with these ids."""
        items = self._due.get_many(
            [keys.unrecorded(execution_id) for execution_id in dict.fromkeys(execution_ids)]
        )
        return {listed.execution.execution_id: listed for listed in _read(items)}

    def record(self, executions: Sequence[Execution], known_by: Mapping[str, str], now: float) -> None:
        """Record anew what is known to have had a record."""
        ExecutionLog(self._due).note(executions, now)
        for execution in executions:
            Runs(self._runs).record_anew(execution, known_by[execution.execution_id], now)

    def send(self, executions: Sequence[Execution], queue: ExecutionsQueue, now: float) -> None:
        """Enqueue executions again; the age of their retries counts from now. Raises HandOverFailed, Busy."""
        ExecutionLog(self._due).note(executions, now)
        queue.send(
            [replace(execution, first_due_at=execution.first_due_at or int(now)) for execution in executions]
        )
        for execution in executions:
            # Refused: a tick has found its record.
            self._due.update_if(
                keys.unrecorded(execution.execution_id), change({"sent_at": int(now)}), PRESENT
            )


def _read(items: Iterable[Mapping[str, Any] | Item]) -> Iterator[UnrecordedExecution]:
    for item in items:
        with suppress(*DAMAGE):  # of a later version, or damaged: a tick lists it again
            execution, known_by = Execution.decode(item["body"]), str(item.get("known_by", ""))
            yield UnrecordedExecution(execution, item["found_at"], item.get("sent_at"), known_by)
