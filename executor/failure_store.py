"""The job store for jobs that fail. A file of its own, so that the completion does not load the executor's pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from common.clock import Clock
from common.planning.queue import ExecutionsQueue
from common.storage import aws
from common.storage.table import Tables
from common.tenants.rules_cache import KnownTenants

if TYPE_CHECKING:
    from common.jobs.store import JobStore


def store_of_failures(tables: Tables, queue: ExecutionsQueue, clock: Clock, known: KnownTenants) -> JobStore:
    """The job store, imported on first use. Most batches have no run that fails for good or ends a failure streak."""

    def build() -> JobStore:
        from common.jobs.store import job_store
        from eventbridge.guard import schedule_guard

        return job_store(tables, queue, clock, known, guards=[schedule_guard(tables.jobs)])

    return aws.on_first_use(build)
