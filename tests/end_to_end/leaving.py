"""A tenant whose deletion begins with the session: it takes over a minute, in which the other tests run.

And the dead letters that other tests leave.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from common.clock import SystemClock
from common.platform.dead_letters import DeadLetters
from common.platform.tenants import Tenants
from common.storage.table import Table
from minute8.cli.doctor.inventory import FEEDS
from minute8.client import Client, Operator
from scripts import newcomer
from scripts.embedded import Embedded
from scripts.embedded.deployment import client
from tests.waiting import wait_until

LEAVING = "removed-soon"


def open_tenant(embedded: Embedded, tenant: str) -> tuple[str, str, str]:
    """A new tenant that may call the sample target: its admin key, the API's address, the target."""
    environment = newcomer.environment_of(embedded, "test")
    tenants, now = _tenants(embedded), SystemClock().now()
    tenants.create(tenant, "", now, {"allowed_targets": [environment["TARGET"]]})
    key = tenants.api_keys.create_key(tenant, "admin", now)[0]
    return key, environment["MINUTE8_URL"], environment["TARGET"]


def _tenants(embedded: Embedded) -> Tenants:
    return Tenants(Table(client(embedded, "dynamodb"), "minute8-test-tenants"))


def failing_job(target: str, **fields: Any) -> dict[str, Any]:
    """A job whose runs, one every ten seconds, all fail."""
    return {
        "schedule": {"every": 10},
        "target": {"kind": "lambda", "arn": target},
        "payload": {"fail_rate": 1},
        "retry": {"max_attempts": 1},
        **fields,
    }


@contextmanager
def deletion_begun(embedded: Embedded) -> Iterator[Operator]:
    """Begin the deletion of the tenant, which has two jobs and a run; who began it."""
    key, url, target = open_tenant(embedded, LEAVING)
    with Client(url, key) as tenant:
        tenant.create_job(failing_job(target), "failing")
        tenant.create_job(failing_job(target, schedule={"cron": "* * * * *"}), "other")
        run = tenant.run_job("failing")["execution_id"]
        wait_until(lambda: tenant.get_run(run)["status"] == "failed", lambda: tenant.get_run(run))
    operator_key = _tenants(embedded).api_keys.create_operator_key(SystemClock().now())[0]
    with Operator(url, operator_key) as operator:
        deletion = operator.delete_tenant(LEAVING)
        assert (deletion["state"], deletion["jobs_registered"]) == ("waiting", 2)
        yield operator


def remove_dead_letters(embedded: Embedded) -> None:
    """What other tests left as dead letters runs after all: a tick would report it. What nobody can read is purged."""
    sqs = client(embedded, "sqs")
    url = {
        name: sqs.get_queue_url(QueueName=f"minute8-test-{name}")["QueueUrl"]
        for feed in FEEDS
        for name in (feed.queue, f"{feed.queue}-dead")
    }
    dead_letters = DeadLetters(sqs, url["executions"])
    for feed in FEEDS:
        dead_letters.redrive(feed.queue, limit=1_000, discard_garbage=True)
        sqs.purge_queue(QueueUrl=url[f"{feed.queue}-dead"])
