"""Run executions again that have no record, on behalf of the platform, with an entry in its audit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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
    """Executions of a job that have no record. Of those that were `sent_before` nobody knows whether they ran.

    `known_by`: how many of them had a record or were called, by what knows of it. These are not sent again.
    """

    tenant: str
    job_id: str
    executions: int
    first_due_at: int
    last_due_at: int
    sent_before: int
    known_by: dict[str, int]


class Plan(NamedTuple):
    """The ids of what is sent; all by job; the ids of what is recorded anew, and of what has a record meanwhile."""

    ids: list[str]
    jobs: list[OfJob]
    known: list[str]
    recorded: list[str]


@dataclass(frozen=True, slots=True)
class RunAgain:
    """Sends executions of the list once more."""

    unrecorded: Unrecorded
    queue: ExecutionsQueue
    tenants: Table
    clock: Clock

    def run(self, execution_ids: Sequence[str], by: str = AWS, *, dry_run: bool = True) -> Plan:
        """Say which of these have no record, at most MAX_RUN; without `dry_run` send them again, or record them anew.

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
        missing_ids = sorted(execution.execution_id for execution in missing)
        known = {name: listed[name].known_by for name in missing_ids if listed[name].known_by}
        plan = Plan(
            [name for name in missing_ids if name not in known],
            by_job([listed[name] for name in missing_ids]),
            list(known),
            sorted({*listed, *recorded} - set(missing_ids)),
        )
        if missing and not dry_run:
            self._act(missing, plan, known, by)
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

    def _act(self, missing: Sequence[Execution], plan: Plan, known: Mapping[str, str], by: str) -> None:
        now = self.clock.now()
        tx = Transaction(self.tenants.client)
        AuditedCommit(Audit(self.tenants), by, self.clock).commit(
            tx,
            keys.OPERATORS,
            "executions.run",
            (plan.ids or plan.known)[0],
            now,
            after={"count": len(plan.ids), "ids": plan.ids, "recorded": plan.known or None},
        )
        self.unrecorded.record([run for run in missing if run.execution_id in known], known, now)
        if plan.ids:
            self.unrecorded.send([run for run in missing if run.execution_id not in known], self.queue, now)


def by_job(unrecorded: Sequence[UnrecordedExecution]) -> list[OfJob]:
    """Executions of the list, counted by job. Pure."""

    def job(listed: UnrecordedExecution) -> tuple[str, str]:
        return listed.execution.tenant, listed.execution.job_id

    counted = []
    for (tenant, job_id), group in groupby(sorted(unrecorded, key=job), key=job):
        of_job = list(group)
        due = [listed.execution.due_at for listed in of_job]
        sent = sum(listed.sent_at is not None for listed in of_job)
        known_by = Counter(listed.known_by for listed in of_job if listed.known_by)
        counted.append(OfJob(tenant, job_id, len(of_job), min(due), max(due), sent, dict(known_by)))
    return counted


def _executions(ids: Sequence[str]) -> list[Execution]:
    return [parse_execution_id(execution_id.partition(":")[0], execution_id) for execution_id in ids]
