"""The console in a real browser: journeys through the deployed one, for several tenants and an operator."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from common.platform.tenants import Tenants
from common.storage.tables import Table
from minute8_client import Client
from scripts import newcomer
from scripts.embedded import Embedded

pytestmark = pytest.mark.embedded

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE_S = 300
ATTACK = "<img src=x onerror=\"pwned('name')\"><script>pwned('script')</script>\u202egnp.exe"


@pytest.fixture
def console(embedded: Embedded, aws: Any) -> dict[str, Any]:
    """Where the console is, and keys: of `ada` and `bob`, of `mallory`, whose texts are attacks, of an operator."""
    target = newcomer.environment_of(embedded, "test")["TARGET"]
    tenants, now = Tenants(Table(aws("dynamodb"), "minute8-test-tenants")), time.time()
    for name, called in (("ada", "Ada"), ("bob", "Bob"), ("mallory", ATTACK)):
        tenants.create(name, called, now, {"allowed_targets": [target]})
    make = tenants.api_keys.create_key
    keys = {name: make(name, "admin", now)[0] for name in ("ada", "bob", "mallory")}
    keys |= {"reader": make("ada", "read", now)[0], "operator": tenants.api_keys.create_operator_key(now)[0]}
    _register_attacks(embedded, keys["mallory"], target)
    aws("lambda").invoke(FunctionName="minute8-test-scheduler", Payload=b"{}")  # so that a window is planned
    return {"url": f"{embedded.api_url}/console", "target": target, "tenant": "ada", "keys": keys}


def _register_attacks(embedded: Embedded, key: str, target: str) -> None:
    assert embedded.api_url
    with Client(embedded.api_url, key) as mallory:
        mallory.put_job(
            "evil",
            {
                "name": ATTACK,
                "tags": [ATTACK[:60], "</bdi></td><svg onload=pwned(1)>", "\u202e" * 64],
                "schedule": {"every": "1h"},
                "target": {"kind": "lambda", "arn": target},
                "payload": {"fail_rate": 1, "x": ATTACK * 200},
                "retry": {"max_attempts": 1},
            },
        )
        run = mallory.run_job("evil")
        mallory.pause_job("evil", ATTACK)
        give_up_at = time.monotonic() + 60
        while mallory.get_run(run["execution_id"])["status"] in ("queued", "running"):
            assert time.monotonic() < give_up_at
            time.sleep(0.2)


def test_journeys_through_the_console(console: dict[str, Any]) -> None:
    done = subprocess.run(
        [str(ROOT / "node_modules" / ".bin" / "vitest"), "run", "--config", "console/journeys.config.mts"],
        cwd=ROOT,
        env=os.environ | {"MINUTE8_CONSOLE_STAGE": json.dumps(console), "CI": "1"},
        capture_output=True,
        text=True,
        timeout=_PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-6000:]}\n{done.stderr[-6000:]}"
