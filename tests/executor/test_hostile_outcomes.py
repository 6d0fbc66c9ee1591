"""A batch of ten destination records of a hostile tenant, each as large as SQS takes, in the function's memory.

The records hold valid tokens, which the tenant's own function has seen.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from common.runs.outcome import Outcome
from scripts.parameters import DEFAULTS
from tests.worlds import TABLES, World, job

ROOT = Path(__file__).resolve().parents[2]
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
MAX_BODY = 1024 * 1024
CPU_S = 10
EMPTY_LISTS = "[" + ",".join(["[]"] * 340_000) + "]"
# The text of each record's responsePayload; FILL is filled up to the longest body.
PAYLOADS: dict[str, str] = {
    "long-text": '"FILL"',
    "empty-lists": EMPTY_LISTS,
    "empty-objects": EMPTY_LISTS.replace("[]", "{}"),
    "nested": "[" * 500_000 + "]" * 500_000,
    "nested-less": "[" * 900 + "]" * 900 + " " * 1_000_000,
    "many-names": "{" + ",".join(f'"{n}":0' for n in range(100_000)) + "}",
    "surrogates": '"' + "\\ud800" * 170_000 + '"',
    "digits": "9" * 1_000_000,
    "wish": '{"minute8": {"retry_after_s": 1e400, "error": "FILL"}}',
    "error": '{"errorType": ["FILL"], "errorMessage": {"a": "\\ud800"}}',
}
# Records that cannot be parsed go to the dead letters; the run stays as it was.
UNREADABLE = {"nested", "digits"}


def record(event: Mapping[str, Any], payload: str) -> str:
    """A destination's record as JSON text, which may be too deep for the parser of this test."""
    shape = {
        "version": "1.0",
        "timestamp": "2026-11-21T03:15:01.000Z",
        "requestContext": {"requestId": "r", "condition": "RetriesExhausted"},
        "requestPayload": event,
    }
    text = json.dumps(shape)[:-1] + f', "responsePayload": {payload}}}'
    return text.replace("FILL", "\\u0001" * ((MAX_BODY - len(text)) // 6))


def test_a_hostile_batch_stays_within_the_functions_memory_and_time(world: World, tmp_path: Path) -> None:
    service = yaml.safe_load((ROOT / "serverless.yml").read_text())
    (own,) = (part for part in service["resources"] if "extensions" in part)
    outcomes = own["extensions"]["OutcomesLambdaFunction"]["Properties"]
    assert outcomes["MemorySize"] == {"Ref": "executorMemoryMb"}
    memory_mb = DEFAULTS["executorMemoryMb"]
    events: dict[str, Mapping[str, Any]] = {}

    def take(event: Mapping[str, Any]) -> Outcome:
        events[event["minute8"]["job_id"]] = event
        return Outcome(ok=True)

    world.target.answer = take
    for name in PAYLOADS:
        world.registry.create("alice", name, job(at="2026-11-21T03:15:00Z", invocation="Event"))
    world.run_until("2026-11-21T03:15:00Z")
    messages = {name: record(events[name], payload) for name, payload in PAYLOADS.items()}
    assert all(MAX_BODY * 0.7 < len(body) <= MAX_BODY for body in messages.values())
    tables = {f"test-{name}": world.dynamodb.scan(TableName=f"test-{name}")["Items"] for name in TABLES}
    scenario = tmp_path / "scenario.json"
    scenario.write_text(json.dumps({"tables": tables, "messages": messages}))
    command = [sys.executable, "-m", "tests.executor.hostile_outcomes", str(scenario)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    results = json.loads(done.stdout.splitlines()[-1])
    print(results)
    assert set(results["failed"]) == UNREADABLE
    expected = {name: "dispatched" if name in UNREADABLE else "failed" for name in PAYLOADS}
    assert results["runs"] == expected
    assert results["peak_mb"] <= 0.8 * memory_mb, results
    assert results["cpu_s"] < CPU_S, results
