"""Puts the job store together, for all stages and the tests."""

from __future__ import annotations

import random

from common.clock import Clock
from common.jobs.ledger import TenantLedger
from common.jobs.store import JobStore
from common.planning.due_index import DueIndex
from common.planning.executions_queue import ExecutionsQueue
from common.storage.table import Tables
from common.tenants.audit import ITSELF
from common.tenants.rules_cache import KnownTenants


def job_store(
    tables: Tables,
    queue: ExecutionsQueue,
    clock: Clock,
    known: KnownTenants,
    rng: random.Random | None = None,
    by: str = ITSELF,
) -> JobStore:
    """The job store whose audit names `by` as the author of changes."""
    return JobStore(
        jobs=tables.jobs,
        index=DueIndex(tables.due),
        queue=queue,
        clock=clock,
        rng=rng or random.Random(),
        ledger=TenantLedger(tables.tenants, known),
        by=by,
    )
