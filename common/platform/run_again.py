"""Run executions again that have no record, on behalf of the platform, with an entry in its audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from common.clock import Clock
from common.errors import InvalidInput, NotFound, shown
from common.planning.execution import Execution, parse_execution_id, split_execution_id
from common.planning.queue import ExecutionsQueue
from common.runs.unrecorded import Unrecorded, UnrecordedExecution
from common.storage import keys
from common.storage.table import Table
from common.storage.transactions import Transaction
from common.tenants.audit import AWS, Audit, AuditedCommit

MAX_RUN: Final = 100


class OfJob(NamedTuple):
    """Executions of a job that have no record. Of those that were `sent_before` nobody knows whether they ran."""

    tenant: str
    job_id: str
    executions: int
    first_due_at: int
    last_due_at: int
    sent_before: int


class Plan(NamedTuple):
    """What is sent, by its ids and by job, and the ids of those that have a record meanwhile."""

    ids: list[str]
    jobs: list[OfJob]
    recorded: list[str]


@dataclass(frozen=True, slots=True)
class RunAgain:
    """Sends executions of the list once more."""

    unrecorded: Unrecorded
    queue: ExecutionsQueue
    tenants: Table
    clock: Clock

    def run(self, execution_ids: Sequence[str], by: str = AWS, *, dry_run: bool = True) -> Plan:
        """Say which of these have no record, at most MAX_RUN; without `dry_run` send them again.

        Raises InvalidInput; NotFound if one is not listed, and then sends none; HandOverFailed.
        """
        if not 1 <= len(execution_ids) <= MAX_RUN:
            raise InvalidInput(
                "execution_ids",
                "must be a list of execution ids",
                value=execution_ids,
                accepted=f"1 to {MAX_RUN} ids of the list",
            )
        listed, recorded = self._named(execution_ids)
        missing = self.unrecorded.missing([item.execution for item in listed.values()])
        sent_ids = sorted(execution.execution_id for execution in missing)
        plan = Plan(
            sent_ids,
            by_job([listed[execution_id] for execution_id in sent_ids]),
            sorted({*listed, *recorded} - set(sent_ids)),
        )
        if sent_ids and not dry_run:
            self._send(missing, sent_ids, by)
        return plan

    def _named(self, execution_ids: Sequence[str]) -> tuple[dict[str, UnrecordedExecution], set[str]]:
        """The listed ones of these, and the ids of those that have a record. Raises NotFound for any other."""
        # Other texts are not looked up.
        ids = [text for text in execution_ids if isinstance(text, str) and split_execution_id(text)]
        listed = self.unrecorded.named(ids)
        unlisted = [execution_id for execution_id in ids if execution_id not in listed]
        # A tick may have found the records of some.
        still_missing = self.unrecorded.missing(_executions(unlisted))
        recorded = set(unlisted) - {execution.execution_id for execution in still_missing}
        for text in execution_ids:
            if not isinstance(text, str) or text not in {*listed, *recorded}:
                raise NotFound("execution without a record", shown(text))
        return listed, recorded

    def _send(self, missing: Sequence[Execution], sent_ids: Sequence[str], by: str) -> None:
        now = self.clock.now()
        tx = Transaction(self.tenants.client)
        AuditedCommit(Audit(self.tenants), by, self.clock).commit(
            tx,
            keys.OPERATORS,
            "executions.run",
            sent_ids[0],
            now,
            after={"count": len(sent_ids), "ids": sent_ids},
        )
        self.unrecorded.send(missing, self.queue, now)


def by_job(unrecorded: Sequence[UnrecordedExecution]) -> list[OfJob]:
    """Executions of the list, counted by job. Pure."""

    def job(listed: UnrecordedExecution) -> tuple[str, str]:
        return listed.execution.tenant, listed.execution.job_id

    counted = []
    for (tenant, job_id), group in groupby(sorted(unrecorded, key=job), key=job):
        of_job = list(group)
        due = [listed.execution.due_at for listed in of_job]
        sent = sum(listed.sent_at is not None for listed in of_job)
        counted.append(OfJob(tenant, job_id, len(of_job), min(due), max(due), sent))
    return counted


def _executions(ids: Sequence[str]) -> list[Execution]:
    return [parse_execution_id(execution_id.partition(":")[0], execution_id) for execution_id in ids]
