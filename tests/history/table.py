"""Jobs and runs of a tenant, written straight into the tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from msgspec import json

from common.jobs.spec import JobSpec
from common.storage import keys
from common.storage.table import Table
from common.storage.wire import Item, from_wire
from common.timing.instants import compact_time
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import make_tables

DAY = 86_400
# 2026-11-21T00:00:00Z
MIDNIGHT = 1_795_219_200
NOW = MIDNIGHT + 12 * 3_600

SPEC = json.encode(JobSpec(schedule={}, target={})).decode()


@dataclass
class Tenancy:
    """alice's jobs and runs, and another tenant's of the same names."""

    client: Any = field(default_factory=MemoryDynamoDB)

    def __post_init__(self) -> None:
        make_tables(self.client)
        self.jobs = Table(self.client, "test-jobs")
        self.runs = Table(self.client, "test-runs")

    def add_job(self, job_id: str, *, created_at: int = 0, former: bool = False) -> None:
        for tenant in ("alice", "alice-2"):
            if former:
                self.jobs.put(keys.former_job(tenant, job_id))
            else:
                item = {"created_at": created_at, "state": "active", "payload": "x" * 100, "spec": SPEC}
                self.jobs.put({**keys.job(tenant, job_id), "job_id": job_id, **item})

    def add_run(
        self, job_id: str, fire_at: int, *, name: str = "1", tenant: str = "alice", **more: Any
    ) -> Item:
        item = {
            **keys.run(tenant, job_id, f"{compact_time(fire_at)}:{name}"),
            "tenant": tenant,
            "job_id": job_id,
            "fire_at": fire_at,
            "due_at": fire_at,
            "status": "succeeded",
            "trigger": "schedule",
            "schedule_revision": 1,
            **more,
        }
        self.runs.put(item)
        return item

    def stored(self) -> list[Item]:
        """All of alice's runs."""
        items = (from_wire(wire) for wire in self.client.scan(TableName="test-runs")["Items"])
        return [item for item in items if item["tenant"] == "alice"]
