"""What a person asked for beside the job: a payload for one run, and that a backfill ends."""

from __future__ import annotations

import json
from dataclasses import replace

from common.jobs.job import Job
from common.planning.execution import BACKFILL_PREFIX, OWN_PAYLOAD_PREFIX, Execution
from common.runs import states
from common.storage import keys
from common.storage.table import Table
from executor.admission import Skip


def as_asked(jobs: Table, execution: Execution, job: Job) -> Job | Skip:
    """The job as this run is to call it, or why the run does not start. Scheduled runs cost no read."""
    tenant, job_id, trigger_id = execution.tenant, execution.job_id, execution.trigger_id
    if trigger_id.startswith(OWN_PAYLOAD_PREFIX):
        item = jobs.get(keys.asked_by_hand(tenant, job_id, trigger_id.removeprefix(OWN_PAYLOAD_PREFIX)))
        if item is None or "payload" not in item:
            return Skip(states.INVALID, "the payload of this run was kept for 30 days, and has expired")
        return replace(job, payload=json.loads(item["payload"]))
    if trigger_id.startswith(BACKFILL_PREFIX):
        item = jobs.get(keys.backfill(tenant, job_id, trigger_id.removeprefix(BACKFILL_PREFIX)))
        if item and item.get("cancelled_at"):
            return Skip(states.CANCELLED, "its backfill was cancelled")
    return job
