"""Stops what a call has started, as a person wants it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from common.clock import Clock
from common.jobs.job import Job
from common.planning.execution import Execution
from common.runs.run import Run
from common.tenants.allowed_targets import may_call
from common.tenants.rules_cache import KnownTenants
from common.timing.instants import rfc3339
from executor.durable import NOT_ALLOWED, DurableExecutions
from executor.targets import aws_services

_TIMEOUT_S: Final = 10


@dataclass(frozen=True, slots=True)
class Stops:
    """Stops what a call started in AWS. `rules` returns each tenant's rules: the target must still be allowed."""

    rules: KnownTenants
    clock: Clock

    def stop(self, job: Job | None, execution: Execution, record: Run) -> str | None:
        """Stop it. Returns why it could not be stopped, empty if it was, or None if there is nothing to stop so."""
        if durable := record.durable_execution:
            return DurableExecutions(self.rules, self.clock).stop(durable, execution, record)
        if job is None:
            return "the job was deleted, and with it what to call"
        started = record.started_arns
        if not aws_services.can_stop(job.spec.target) or (
            job.spec.target["kind"] != "step_functions" and not started
        ):
            return None
        if not may_call(job.spec.target, self.rules.rules(job.tenant, self.clock.now())):
            return NOT_ALLOWED
        event = {"minute8": _context(execution)}
        outcome = aws_services.stop(job.spec.target, event, started, _TIMEOUT_S)
        return "" if outcome.ok else f"{outcome.error_type}: {outcome.error}"


def _context(execution: Execution) -> Mapping[str, Any]:
    return {
        "tenant": execution.tenant,
        "job_id": execution.job_id,
        "execution_id": execution.execution_id,
        "fire_at": rfc3339(execution.fire_at),
    }
