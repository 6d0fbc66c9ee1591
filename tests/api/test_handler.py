"""The Lambda's entry, wired from its environment as in a deployment."""

from __future__ import annotations

from collections.abc import Iterator

import boto3
import pytest

from common.config import config
from common.platform.tenants import Tenants
from common.storage import aws
from common.storage.table import Table
from minute8.api import handler
from tests.api.calls import Caller
from tests.worlds import World, job


@pytest.fixture
def deployed(moto_world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """The tables of the world, and nothing else of it."""
    for name in ("jobs", "due", "tenants", "runs"):
        monkeypatch.setenv(f"{name.upper()}_TABLE", f"test-{name}")
    monkeypatch.setenv("EXECUTOR_TIMEOUT_S", "60")
    queue = boto3.client("sqs", region_name="us-east-1").create_queue(QueueName="executions")["QueueUrl"]
    monkeypatch.setenv("EXECUTIONS_QUEUE_URL", queue)
    caches = (handler._services, config, aws.dynamodb, aws.sqs)
    for cached in caches:
        cached.cache_clear()
    yield moto_world
    for cached in caches:
        cached.cache_clear()


def test_the_handler_works_from_its_environment_alone(deployed: World) -> None:
    tenants = Tenants(Table(deployed.dynamodb, "test-tenants"))
    tenants.create("alice", "", 0, {"allowed_targets": ["*"]})
    alice = Caller(tenants.api_keys.create_key("alice", "write", 0)[0])
    created = alice("PUT", "/v1/jobs/report", job(every=10))
    assert created.status == 201, created
    assert alice("GET", "/v1/jobs/report").json["revision"] == 1
    assert alice("GET", "/v1/jobs/report/runs").json["runs"] == []
    refused = alice("PUT", "/v1/jobs/report", job(every=10, timeout_s=60))
    assert refused.json["errors"][0]["field"] == "timeout_s"  # the executor's own time limit is 60 s
