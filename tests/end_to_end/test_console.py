"""The console in a real browser: journeys through the deployed one, for several tenants and an operator."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from common.platform.tenants import Tenants
from common.storage.table import Table
from minute8.client import Client, InvalidInput
from scripts import newcomer
from scripts.embedded import Embedded
from tests.executor.servers import serving
from tests.waiting import PATIENCE_S, wait_until

RUNBOOK_CHARS = 500

pytestmark = [pytest.mark.embedded, pytest.mark.release]

ROOT = Path(__file__).resolve().parents[2]
ATTACK = "<img src=x onerror=\"pwned('name')\"><script>pwned('script')</script>\u202egnp.exe"
# As long as a name may be, and without a place to break.
LONG_ATTACK = (ATTACK + "\u202eW" * 100)[:200]
LONG_NAME = "W" * 64
_RUNBOOK = f"https://example.com/{'W' * 100}\"><svg/onload=pwned('runbook')>javascript:pwned(1)"


@pytest.fixture
def console(embedded: Embedded, aws: Any) -> Iterator[dict[str, Any]]:
    """Where the console is, and keys: of eight tenants, of whom mallory has attacks as texts, and of an operator."""
    target = newcomer.environment_of(embedded, "test")["TARGET"]
    tenants, now = Tenants(Table(aws("dynamodb"), "minute8-test-tenants")), time.time()
    make = tenants.api_keys.create_key
    with serving(tls=False) as server:
        server.reply = lambda handler: _reply(aws, handler)
        hooks = f"http://127.0.0.1:{server.port}"
        allowed = {"allowed_targets": [target, hooks.removeprefix("http://")]}
        called = {
            "ada": "Ada",
            "bob": "Bob",
            "cleo": "Cleo",
            "dana": "Dana",
            "finn": "Finn",
            "sue": "Sue",
            "wanda": "Wanda",
            "mallory": LONG_ATTACK,
        }
        for name, people_say in called.items():
            tenants.create(name, people_say, now, allowed)
        keys = {name: make(name, "admin", now)[0] for name in called}
        keys |= {f"{role}s": make("mallory", role, now, name=LONG_ATTACK)[0] for role in ("read", "write")}
        keys["operator"] = tenants.api_keys.create_operator_key(now)[0]
        _attack(embedded, keys["mallory"], target, hooks)
        with Client(str(embedded.api_url), keys["cleo"]) as cleo:
            cleo.put_job("plain", {"schedule": {"every": "1h"}, "target": {"kind": "lambda", "arn": target}})
        _round(aws)
        letters = aws("sqs").get_queue_url(QueueName="minute8-test-executions-dead")["QueueUrl"]
        aws("sqs").send_message(QueueUrl=letters, MessageBody=ATTACK)
        # So that a window is planned.
        aws("lambda").invoke(FunctionName="minute8-test-scheduler", Qualifier="live", Payload=b"{}")
        yield {"url": f"{embedded.api_url}/console", "target": target, "hooks": hooks, "keys": keys}


def _reply(aws: Any, handler: BaseHTTPRequestHandler) -> tuple[int, dict[str, str], bytes]:
    """What the hooks answer. The notifier's own round comes each minute; `/round` does not wait for it."""
    if handler.path == "/round":
        _round(aws)
    return (200 if handler.path in ("/round", "/taken") else 503, {}, ATTACK.encode())


def _round(aws: Any) -> None:
    aws("lambda").invoke(FunctionName="minute8-test-notifier", Qualifier="live", Payload=b"{}")


def _attack(embedded: Embedded, key: str, target: str, hooks: str) -> None:
    assert embedded.api_url
    with Client(embedded.api_url, key) as mallory:
        mallory.put_calendar(LONG_NAME, {"dates": ["2036-12-24"]})
        evil = {
            "name": LONG_ATTACK,
            "tags": [ATTACK[:60], "</bdi></td><svg onload=pwned(1)>", "\u202e" * 64],
            "owner": LONG_ATTACK,
            "schedule": {"every": "1h", "exclude": {"calendars": [LONG_NAME]}},
            "target": {"kind": "lambda", "arn": target},
            "payload": {"fail_rate": 1, "x": ATTACK * 200},
            "retry": {"max_attempts": 1},
        }
        address = {"kind": "http", "url": f"{hooks}/{'W' * 400}/javascript:pwned(1)"}
        with pytest.raises(InvalidInput, match="runbook: has the wrong form"):
            mallory.put_job("evil", evil | {"runbook": "javascript:pwned('runbook')"})
        mallory.put_job("evil", evil | {"runbook": _RUNBOOK.ljust(RUNBOOK_CHARS, "W")})
        mallory.put_job("hooked", evil | {"target": address})
        mallory.put_subscription(LONG_NAME, {"target": address, "tag": LONG_ATTACK, "name_prefix": ATTACK})
        mallory.test_subscription(LONG_NAME)
        mallory.put_secret(LONG_NAME, "nobody sees it")
        for job_id in ("evil", "hooked"):
            run = mallory.run_job(job_id)["execution_id"]
            mallory.pause_job(job_id, ATTACK)
            wait_until(partial(_has_ended, mallory, run), f"{run} has not ended")


def _has_ended(client: Client, run: str) -> bool:
    return client.get_run(run)["status"] not in ("queued", "running")


def test_journeys_through_the_console(console: dict[str, Any]) -> None:
    done = subprocess.run(
        [str(ROOT / "node_modules" / ".bin" / "vitest"), "run", "--config", "console/journeys.config.mts"],
        cwd=ROOT,
        env=os.environ | {"MINUTE8_CONSOLE_STAGE": json.dumps(console), "CI": "1"},
        capture_output=True,
        text=True,
        timeout=3 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
