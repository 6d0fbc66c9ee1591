"""`minute8.direct` with the published policy and no other right: IAM is enforced."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest

from common.platform.tenants import Tenants
from common.storage.table import Table
from minute8 import direct
from minute8.client import NotFound, Unreachable
from scripts.embedded import Embedded
from scripts.embedded.as_account import credentials
from scripts.precheck import DEPLOY_POLICY
from tests.waiting import wait_until

pytestmark = pytest.mark.embedded

# Its runs fail, and are written down all the same.
TARGET = {"kind": "lambda", "arn": "arn:aws:lambda:us-east-1:000000000000:function:nothing"}


@pytest.fixture
def session(embedded: Embedded, aws: Any) -> boto3.Session:
    """The credentials of a service of the platform's, who may do what direct.json says."""
    return session_of(embedded, "billing", "direct")


def session_of(embedded: Embedded, user: str, *policies: str) -> boto3.Session:
    files = [DEPLOY_POLICY.with_name(f"{policy}.json") for policy in policies]
    environment = credentials(embedded, user, files)
    return boto3.Session(
        environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"], region_name="us-east-1"
    )


@pytest.fixture
def minute8(aws: Any, session: boto3.Session) -> Iterator[direct.Client]:
    tenants = Tenants(Table(aws("dynamodb"), "minute8-test-tenants"))
    tenants.create("erin", "", time.time(), {"allowed_targets": ["*"]})
    with direct.Client(session, "erin", stage="test") as opened:
        yield opened


def test_its_policy_allows_all_that_it_does(minute8: direct.Client, aws: Any) -> None:
    assert list(minute8.list_jobs()) == []  # the first call makes the clients
    soon = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3)
    created = minute8.create_job(
        {"schedule": {"at": soon.isoformat()}, "target": TARGET, "payload": "x" * 2_000}, "once"
    )
    assert created["revision"] == 1
    minute8.put_job("report", {"schedule": {"cron": "30 2 * * *"}, "target": TARGET})
    minute8.pause_job("report", "holiday")
    assert minute8.resume_job("report")["state"] == "active"
    minute8.put_calendar("closed", {"dates": ["2030-12-25"]})
    assert [listed["job_id"] for listed in minute8.list_jobs(q="rep")] == ["report"]
    assert minute8.next_fires("report")["fires"]
    minute8.run_job("report")
    wait_until(
        lambda: len(list(minute8.list_runs_of_job("report"))) == 1,
        lambda: list(minute8.list_runs_of_job("report")),
    )
    wait_until(
        lambda: len(list(minute8.list_runs_of_job("once"))) == 1,
        lambda: list(minute8.list_runs_of_job("once")),
    )
    assert list(minute8.list_failures())
    assert minute8.explain_job("once", soon.isoformat())
    minute8.list_expected(from_at=(soon - timedelta(hours=1)).isoformat(), until_at=soon.isoformat())
    list(minute8.list_upcoming())
    minute8.delete_job("report")
    minute8.delete_calendar("closed")
    with pytest.raises(NotFound):
        minute8.get_job("report")
    audit = Table(aws("dynamodb"), "minute8-test-tenants").beside("audit")
    assert "direct:user/billing" in str(audit.client.scan(TableName=audit.name)["Items"])


def test_without_the_policy_it_says_what_aws_refused(embedded: Embedded, aws: Any) -> None:
    stranger = direct.Client(session_of(embedded, "stranger"), "erin", stage="test")
    with stranger, pytest.raises(Unreachable, match="GetFunctionConfiguration"):
        stranger.get_job("once")
