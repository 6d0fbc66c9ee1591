"""The code of docs/targets.md for receivers verifies what Minute8 signs; the event that it shows is the real one."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from common.planning.execution import Execution
from common.tenants.webhook_secrets import new_secret, signature
from common.timing.schedule import CronTiming, Schedule
from executor.calling import event
from executor.targets.events import event_body
from minute8.eventbridge.schedule_input import PAYLOAD_FORMATS
from tests.worlds import at, plain_job

TEXT = (Path(__file__).resolve().parents[2] / "docs" / "targets.md").read_text()
SECRETS = (new_secret(), new_secret())
BODY = '{"payload":{"customer":7,"day":"ü"}}'


def block(language: str, progress: str) -> str:
    """The code block of a language that contains planned_until."""
    (example,) = [
        code for code in re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL) if progress in code
    ]
    return str(example)


def requests() -> list[tuple[dict[str, str], str, bool]]:
    """Headers and bodies, and whether a receiver must accept them."""
    now = int(time.time())

    def headers(timestamp: int, signing: tuple[str, ...] = SECRETS[:1]) -> dict[str, str]:
        return {
            "webhook-id": "exec_1",
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(signing, "exec_1", timestamp, BODY.encode()),
        }

    return [
        (headers(now), BODY, True),
        (headers(now, SECRETS[::-1]), BODY, True),
        (headers(now, SECRETS[1:]), BODY, False),
        (headers(now), BODY + " ", False),
        (headers(now) | {"webhook-id": "exec_2"}, BODY, False),
        (headers(now - 301), BODY, False),
        (headers(now) | {"webhook-timestamp": str(now - 1)}, BODY, False),
        (headers(now) | {"webhook-timestamp": "soon"}, BODY, False),
        (headers(now) | {"webhook-signature": "v1,"}, BODY, False),
    ]


def test_the_python_code_verifies() -> None:
    names: dict[str, Any] = {}
    exec(block("python", "def verify"), names)
    for headers, body, accepted in requests():
        assert names["verify"](SECRETS[0], headers, body.encode()) is accepted, headers


def test_the_javascript_code_verifies() -> None:
    calls = [(headers, body) for headers, body, _ in requests()]
    program = (
        block("js", "function verify")
        + f"""
const calls = {json.dumps(calls)};
console.log(JSON.stringify(calls.map(([headers, body]) => verify({json.dumps(SECRETS[0])}, headers, body))));
"""
    )
    done = subprocess.run(
        ["node", "--input-type=module", "-"], input=program, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [accepted for *_, accepted in requests()]


@pytest.mark.parametrize("attempt", [1])
def test_the_event_is_the_one_that_targets_get(attempt: int) -> None:
    schedule = Schedule.of(CronTiming("30 2 * * *", "Europe/Paris"))
    payload = {"customer": 7, "day": "{{fire_date}}"}
    job = plain_job("acme", "nightly-report", schedule, target={"kind": "lambda"})
    fire_at = at("2026-11-21T01:30:00Z")
    execution = Execution("acme", "nightly-report", fire_at, fire_at, 4, attempt)
    body = event_body(job.spec.target, event(job, json.dumps(payload), execution, None, PAYLOAD_FORMATS))
    assert json.loads(block("json", '"minute8": {')) == json.loads(body)
