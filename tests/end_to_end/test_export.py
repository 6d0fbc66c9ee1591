"""The deployed exporter writes the runs of a past day to a bucket, which DuckDB or Athena can read."""

from __future__ import annotations

import gzip
import json
import time
from typing import Any

import pytest

from common.planning.execution import SCHEDULE
from common.platform.tenants import Tenants
from common.projection.entry import RunEntry
from common.projection.state import PROJECTION, ProjectionStates
from common.projection.windows import ProjectedRuns
from common.runs.run import Run
from common.storage import keys
from common.storage.table import Table, Tables
from common.tenants.audit import Audit
from common.tenants.audit_chain import SEALING
from common.timing.instants import DAY_S, compact_time, rfc3339
from common.timing.windows import window_start
from minute8.cli.audit_comparison import verified
from minute8.cli.commands.audit_verify import AnchorBucket
from scripts.embedded import Embedded
from scripts.embedded.deployment import client
from tests.scheduler_handler import put_position

pytestmark = pytest.mark.embedded


def test_the_audit_is_sealed_and_its_hashes_are_in_a_locked_bucket(embedded: Embedded, aws: Any) -> None:
    """An entry of an hour ago, a tick, and `minute8 audit verify` over the bucket; IAM is enforced."""
    s3, dynamodb = client(embedded, "s3"), client(embedded, "dynamodb")
    s3.create_bucket(Bucket="minute8-test-audit", ObjectLockEnabledForBucket=True)
    tenants, due = Table(dynamodb, "minute8-test-tenants"), Table(dynamodb, "minute8-test-due")
    Tenants(tenants).create("sealed", "", time.time() - 3_600)
    due.delete(keys.chore(SEALING))
    answer = client(embedded, "lambda").invoke(FunctionName="minute8-test-scheduler", Payload=b"{}")
    assert "FunctionError" not in answer, answer["Payload"].read()
    state = verified(Audit(tenants), "sealed", time.time())
    assert (state.entries, state.seals, state.tamperings) == (1, 1, [])
    exported = AnchorBucket(s3, "minute8-test-audit", "minute8-test/audit").anchors()
    [anchor] = [anchor for anchor in exported if anchor.owner == "sealed"]
    assert (anchor.chain, anchor.hash) == (state.chain, state.hashes[1])


def test_a_day_is_in_the_bucket(embedded: Embedded, aws: Any) -> None:
    s3, dynamodb = client(embedded, "s3"), client(embedded, "dynamodb")
    s3.create_bucket(Bucket="minute8-test-history")
    tables = Tables(lambda name: Table(dynamodb, f"minute8-test-{name}"))
    day = int(time.time()) // DAY_S * DAY_S - 3 * DAY_S
    fire_at, name = day + 3_600, f"{compact_time(day + 3_600)}#1"
    record = {
        **keys.run("historic", "report", name),
        "tenant": "historic",
        "job_id": "report",
        "status": "succeeded",
        "fire_at": fire_at,
        "due_at": fire_at,
        "schedule_revision": 1,
        "trigger": SCHEDULE,
        "lateness_s": 0.012,
        "attempt": 1,
    }
    tables.runs.put(record)
    Tenants(tables.tenants).create("historic", "", day)
    ProjectedRuns(tables.runs).merge(
        "historic",
        window_start(fire_at),
        {(name, "report"): RunEntry.of_run(Run.from_item(record))},
        int(time.time()) + DAY_S,
    )
    states = ProjectionStates(tables.due)
    if states.read() is None:
        put_position(tables.due, PROJECTION, {"since": day, "until": []})
    put_position(tables.due, "export", {"look_0": [day, ""]})
    answer = client(embedded, "lambda").invoke(FunctionName="minute8-test-exporter", Payload=b"{}")
    done = json.loads(answer["Payload"].read())
    assert "FunctionError" not in answer, done
    assert done["runs"] >= 1
    name = f"minute8-test/runs/tenant=historic/day={rfc3339(day)[:10]}/part-0000.json.gz"
    stored = s3.get_object(Bucket="minute8-test-history", Key=name)["Body"].read()
    (line,) = [json.loads(text) for text in gzip.decompress(stored).splitlines()]
    assert (line["job_id"], line["fire_at"], line["status"]) == ("report", rfc3339(fire_at), "succeeded")
