"""Lists of runs: a job's by time and outcome, and all failures of a tenant through the sparse index `failures`.

Each call reads a bounded number of records and says where the list goes on, also when it found nothing yet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from common.storage import keys
from common.storage.tables import Item, Table
from common.storage.wire_format import from_wire, to_wire

FAILURES_INDEX: Final = "failures"
# How many records one call looks at.
MOST_SEEN: Final = 2_000
_PAGE: Final = 200


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which of a job's runs are wanted: fire times in [from_at, until_at), a status, a trigger; None: any."""

    from_at: int | None = None
    until_at: int | None = None
    status: str = ""
    trigger: str = ""

    def takes(self, item: Mapping[str, Any]) -> bool:
        return self.status in ("", item["status"]) and self.trigger in ("", item.get("trigger"))


class RunLists:
    """Reads of the runs table that go over many records."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def of_job(
        self, tenant: str, job_id: str, wanted: RunFilter, *, limit: int, before: str = ""
    ) -> tuple[list[Item], str]:
        """A job's runs, newest fire time first, and the run name behind which the list goes on; empty at its end."""
        partition = keys.runs_of_job(tenant, job_id)
        words, values = "pk = :pk", {":pk": partition}
        if wanted.from_at is not None or wanted.until_at is not None:
            first, last = keys.runs_between(wanted.from_at, wanted.until_at)
            if first >= last:
                return [], ""
            words += " AND sk BETWEEN :first AND :last"
            values |= {":first": first, ":last": last}
        request = {"KeyConditionExpression": words, "ConsistentRead": True}
        after = keys.run(tenant, job_id, before) if before else None
        found: list[Item] = []
        last_seen = before
        for seen, item in enumerate(self._items(request, values, after)):
            if seen == MOST_SEEN or (len(found) == limit and wanted.takes(item)):
                return found, last_seen
            if wanted.takes(item):
                found.append(item)
            last_seen = item["sk"]
        return found, ""

    def failures(
        self, tenant: str, *, limit: int, before: tuple[float, str, str] | None = None
    ) -> tuple[list[Item], tuple[float, str, str] | None]:
        """All failed runs of a tenant, latest failure first, and where the list goes on."""
        request = {"IndexName": FAILURES_INDEX, "KeyConditionExpression": "failed_tenant = :tenant"}
        after = None
        if before:
            failed_at, job_id, run_name = before
            after = {**keys.run(tenant, job_id, run_name), "failed_tenant": tenant, "failed_at": failed_at}
        found: list[Item] = []
        for item in self._items(request, {":tenant": tenant}, after):
            if len(found) == limit:
                last = found[-1]
                return found, (last["failed_at"], last["job_id"], last["sk"])
            found.append(item)
        return found, None

    def _items(
        self, request: Mapping[str, Any], values: Mapping[str, Any], after: Mapping[str, Any] | None
    ) -> Iterator[Item]:
        arguments = {
            **request,
            "TableName": self._table.name,
            "ExpressionAttributeValues": to_wire(values),
            "ScanIndexForward": False,
            "Limit": _PAGE,
        }
        if after:
            arguments["ExclusiveStartKey"] = to_wire(after)
        while True:
            answer = self._table.client.query(**arguments)
            for wire in answer["Items"]:
                yield from_wire(wire)
            if "LastEvaluatedKey" not in answer:
                return
            arguments["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
