"""On the embedded AWS, with the roles of serverless.yml: Minute8 pauses a job and records it; a tenant is removed."""

from __future__ import annotations

from typing import Any

import pytest

from minute8.client import Client, Operator
from scripts.demo.stage import Stage
from scripts.embedded import Embedded
from tests.end_to_end.leaving import LEAVING, failing_job, open_tenant
from tests.waiting import wait_until

pytestmark = pytest.mark.embedded


def test_a_job_that_fails_is_paused_by_minute8(embedded: Embedded) -> None:
    key, url, target = open_tenant(embedded, "failing")
    with Client(url, key) as client:
        client.create_job(failing_job(target, pause_after_failures=1), "failing")
        (entry,) = wait_until(lambda: list(client.list_audit(action="job.paused")), "the job is not paused")
        assert (entry["by"], entry["subject"]) == ("minute8", "failing")
        client.delete_job("failing")


def test_a_tenant_is_removed(embedded: Embedded, leaving: Operator, aws: Any) -> None:
    """Its deletion began before the first test of this folder; the caches of all functions must have expired since."""
    stage = Stage(embedded.env(), "test")

    def state() -> str:
        return str(leaving.get_tenant_deletion(LEAVING)["state"])

    wait_until(lambda: state() != "waiting", state)
    while state() != "finished":
        stage.tick()
    removed = leaving.get_tenant_deletion(LEAVING)["removed"]
    assert removed["jobs"] == 2
    assert removed["runs"] >= 1
    remaining = {
        (table, item["pk"]["S"], item["sk"]["S"].partition("#")[0])
        for table in ("jobs", "due", "tenants", "audit", "runs")
        for page in aws("dynamodb").get_paginator("scan").paginate(TableName=f"minute8-test-{table}")
        for item in page["Items"]
        if LEAVING in str(item)
    }
    # The tombstone, the platform's own entry, the log of changed tenants; and what was queued, for a day.
    in_tenants = {(pk, sk) for table, pk, sk in remaining if table == "tenants"}
    assert ("audit", "OPERATORS#", "AUDIT") in remaining
    assert LEAVING in {pk for pk, _ in in_tenants}
    assert {sk for pk, sk in in_tenants if pk == LEAVING} == {"TENANT"}
    assert {table for table, _, _ in remaining} <= {"tenants", "audit", "runs"}
