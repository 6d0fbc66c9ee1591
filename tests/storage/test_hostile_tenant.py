"""A tenant that sends the worst allowed requests: the API's function stays within its memory and time.

What one tenant could do to others, or to itself only by chance, and the tests that block its bound:

| what a tenant does | tests |
| --- | --- |
| lists of jobs with full calendars | tests/storage/test_hostile_tenant.py, tests/api/test_budgets.py |
| jobs of a throttled partition in a batch | tests/flows/test_neighbours.py |
| jobs of a throttled partition, read by the API | tests/api/test_costs_of_requests.py |
| payloads of nothing but values | tests/executor/test_hostile_batch.py, tests/storage/test_hostile_tenant.py |
| searches in many or large jobs | tests/api/test_costs_of_requests.py, tests/platform/test_request_rate.py |
| failures of a job with a large payload | tests/flows/test_failure_streaks.py, tests/flows/test_large_payloads.py |
| thousands of deleted jobs | tests/api/test_deleted_jobs.py, tests/storage/test_hostile_tenant.py |
| removals of large groups | tests/platform/test_removal.py |
| a window of jobs with long ids | tests/flows/test_comparison.py |
| a million runs in ten minutes | tests/flows/test_many_runs.py |
| names that hang | tests/executor/test_resolver.py |
| subscriptions to slow addresses | tests/notices/test_hostile.py |
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from common.platform.tenants import Tenants
from common.storage.table import Table
from tests.storage.api_process import BODIES, LISTS
from tests.worlds import TABLES, make_tables

ROOT = Path(__file__).parents[2]
# A quarter of apiMemoryMb in serverless.yml. The measurement includes the interpreter and Lambda's runtime.
MEMORY_MB = 256
# Of a whole processor. The deployed function has a seventh of one for 29 s; a bulk request stops writing at 18 s.
CPU_S = dict.fromkeys(("a list of jobs with full calendars", *LISTS), 3.0)
STATUS = dict.fromkeys(LISTS, 200) | {
    "nothing": 200,
    "two million lines": 413,
    "a job": 201,
    "a calendar": 201,
    "one line of 4 MiB": 200,
}


@pytest.fixture(scope="module")
def environment(dynamodb_local: Any) -> Iterator[dict[str, str]]:
    make_tables(dynamodb_local, "hostile")
    tenants = Tenants(Table(dynamodb_local, "hostile-tenants"))
    tenants.create("alice", "", 0, {"allowed_targets": ["*"], "quotas": {"requests_per_minute": 10_000}})
    key, _ = tenants.api_keys.create_key("alice", "write", 0)
    environment = {f"{name.upper()}_TABLE": f"hostile-{name}" for name in TABLES} | {
        "API_KEY": key,
        "AWS_ENDPOINT_URL": dynamodb_local.meta.endpoint_url,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "EXECUTIONS_QUEUE_URL": f"{dynamodb_local.meta.endpoint_url}/queue",
        "EXECUTOR_TIMEOUT_S": "60",
        "PATH": os.environ["PATH"],
    }
    yield environment
    for name in TABLES:
        dynamodb_local.delete_table(TableName=f"hostile-{name}")


def test_the_tests_of_each_row_exist() -> None:
    for path in re.findall(r"tests/[a-z_/]+\.py", __doc__):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("name", BODIES)
def test_the_api_stays_within_its_memory_and_time(environment: dict[str, str], name: str) -> None:
    command = [sys.executable, "-m", "tests.storage.api_process", name]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2_000:]
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["status"] == STATUS.get(name, figures["status"]) < 500, figures
    assert figures["mb"] < MEMORY_MB, figures
    assert figures["cpu_s"] < CPU_S.get(name, 6), figures
