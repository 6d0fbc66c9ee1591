"""Puts the job store together, for all stages and the tests."""

from __future__ import annotations

import random
from collections.abc import Sequence

from common.clock import Clock
from common.jobs.calendars import Calendars
from common.jobs.guards import Guard, NamedCalendars
from common.jobs.ledger import TenantLedger
from common.jobs.store import JobStore
from common.planning.due_index import DueIndex
from common.planning.queue import ExecutionsQueue
from common.storage.table import Tables
from common.tenants.audit import ITSELF
from common.tenants.rules_cache import KnownTenants


def job_store(
    tables: Tables,
    queue: ExecutionsQueue,
    clock: Clock,
    known: KnownTenants,
    guards: Sequence[Guard],
    rng: random.Random | None = None,
    by: str = ITSELF,
) -> JobStore:
    """The job store whose audit names `by` as the author of changes. It has `guards` besides that of calendars."""
    return JobStore(
        jobs=tables.jobs,
        index=DueIndex(tables.due),
        queue=queue,
        clock=clock,
        rng=rng or random.Random(),
        ledger=TenantLedger(tables.tenants, known),
        guards=(NamedCalendars(Calendars(tables.jobs)), *guards),
        by=by,
    )
