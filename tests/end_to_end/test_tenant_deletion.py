"""On the embedded AWS, by the roles of serverless.yml: Minute8 pauses a job and says so; a tenant is removed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from common.clock import SystemClock
from common.platform.tenants import Tenants
from common.storage.tables import Table
from minute8_client import Client, Operator
from scripts import newcomer
from scripts.demo.stage import Stage
from scripts.embedded import Embedded

pytestmark = pytest.mark.embedded
TENANT = "removed-soon"


def until(found: Callable[[], Any], within_s: float) -> Any:
    give_up_at = time.time() + within_s
    while not (answer := found()):
        assert time.time() < give_up_at
        time.sleep(0.5)
    return answer


def test_a_job_is_paused_and_its_tenant_removed(embedded: Embedded, aws: Any) -> None:
    environment = newcomer.environment_of(embedded, "test")
    tenants = Tenants(Table(aws("dynamodb"), "minute8-test-tenants"))
    now = SystemClock().now()
    tenants.create(TENANT, "", now, {"allowed_targets": [environment["TARGET"]]})
    key, operator_key = (
        tenants.api_keys.create_key(TENANT, "admin", now)[0],
        tenants.api_keys.create_operator_key(now)[0],
    )
    failing = {
        "schedule": {"every": 10},
        "target": {"kind": "lambda", "arn": environment["TARGET"]},
        "payload": {"fail_rate": 1},
        "retry": {"max_attempts": 1},
        "pause_after_failures": 1,
    }
    with Client(environment["MINUTE8_URL"], key) as client:
        client.create_job(failing, "failing")
        (entry,) = until(lambda: list(client.audit(action="job.paused")), 60)
        assert (entry["by"], entry["subject"]) == ("minute8", "failing")
        client.put_job("other", failing | {"schedule": {"cron": "* * * * *"}})
    stage = Stage(embedded.env(), "test")
    with Operator(environment["MINUTE8_URL"], operator_key) as operator:
        begun = operator.delete_tenant(TENANT)
        assert (begun["state"], begun["jobs_registered"]) == ("waiting", 2)
        until(lambda: operator.deletion_of(TENANT)["state"] == "removing", 90)
        stage.tick()
        removed = operator.deletion_of(TENANT)
        assert (removed["state"], removed["removed"]["jobs"]) == ("finished", 2)
        assert removed["removed"]["runs"] >= 1
    left = {
        (table, item["pk"]["S"], item["sk"]["S"].partition("#")[0])
        for table in ("jobs", "due", "tenants", "audit", "runs")
        for page in aws("dynamodb").get_paginator("scan").paginate(TableName=f"minute8-test-{table}")
        for item in page["Items"]
        if TENANT in str(item)
    }
    # The tombstone, the platform's own entry, the log of changed tenants; and what was queued, for a day.
    in_tenants = {(pk, sk) for table, pk, sk in left if table == "tenants"}
    assert ("audit", "OPERATORS#", "AUDIT") in left
    assert TENANT in {pk for pk, _ in in_tenants}
    assert {sk for pk, sk in in_tenants if pk == TENANT} == {"TENANT"}
    assert {table for table, _, _ in left} <= {"tenants", "audit", "runs"}
