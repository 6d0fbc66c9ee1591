"""Take the docs' pictures of the console: `python -m scripts.screenshots`, while `make demo` runs.

Each view is shown in a real browser with the demo's jobs. The pictures go to docs/images.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from common.clock import SystemClock
from common.platform.tenants import Tenants
from common.storage.table import Table
from minute8.client import Client
from scripts.demo.stage import Stage
from scripts.demo.workload import LIVELY_TENANT
from scripts.embedded import DEFAULT_STATE_DIR, Embedded, find
from scripts.embedded.deployment import client
from scripts.embedded.process import ROOT

_BIG_TENANT: Final = "kubernetes-sigs-kueue"
_FREQUENT: Final = "every-minute-in-kathmandu"
_FAILING: Final = "nightly-report"
_HOST: Final = "hooks.example.com"
_ENDED: Final = ("succeeded", "failed")


def main() -> int:
    """Take all pictures; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m scripts.screenshots", description=__doc__)
    parser.add_argument("--state-dir", type=Path, default=DEFAULT_STATE_DIR)
    parser.add_argument("--console", help="another address of the console")
    options = parser.parse_args()
    embedded = find(options.state_dir)
    if embedded is None or not embedded.api_url:
        print("the embedded AWS is not running: `make demo` starts it", file=sys.stderr)
        return 2
    stage = {
        "url": options.console or f"{embedded.api_url}/console",
        "directory": str(ROOT / "docs" / "images"),
        "shots": _shots(embedded),
    }
    return in_browser("tests/screenshots.ts", stage)


def in_browser(script: str, stage: Mapping[str, object]) -> int:
    """Run a script of the console's tests with what it needs; return its exit status."""
    command = [
        str(ROOT / "node_modules" / ".bin" / "vitest"),
        "run",
        "--bail=0",
        "--config",
        "console/journeys.config.mts",
    ]
    environment = {"MINUTE8_CONSOLE_STAGE": json.dumps(stage), "MINUTE8_CONSOLE_RUN": script}
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, check=False).returncode


@dataclass(frozen=True)
class Keys:
    """Keys of the demo's lively tenant, of its big one, and of an operator."""

    lively: str
    big: str
    operator: str
    lively_tenant: str = LIVELY_TENANT

    @classmethod
    def create(cls, embedded: Embedded) -> Keys:
        """Make them, and let the lively tenant call what the pictures' subscription names."""
        tenants = Tenants(Table(client(embedded, "dynamodb"), "minute8-local-tenants"))
        keys, now = tenants.api_keys, SystemClock().now()
        allowed = tenants.get(LIVELY_TENANT).allowed_targets
        tenants.edit(LIVELY_TENANT, {"allowed_targets": sorted({*allowed, _HOST})}, now)
        lively, big = (
            keys.create_key(tenant, "admin", now, name="console")[0]
            for tenant in (LIVELY_TENANT, _BIG_TENANT)
        )
        return cls(lively, big, keys.create_operator_key(now, name="on call")[0])


def _shots(embedded: Embedded) -> list[dict[str, Any]]:
    """What is shown, with whose key."""
    keys = Keys.create(embedded)
    lively, big, operator = keys.lively, keys.big, keys.operator
    _, run = prepared(embedded, lively)
    phone = {"width": 360, "height": 720}
    return [
        {"name": "overview", "key": big, "view": ""},
        {"name": "jobs", "key": lively, "view": "jobs", "theme": "dark", "width": 1400},
        {"name": "job", "key": lively, "view": f"jobs/{_FREQUENT}", "height": 1100},
        # So high that no path in a log is seen.
        {"name": "run", "key": lively, "view": f"runs/{run}", "height": 548},
        {"name": "editor", "key": lively, "view": f"jobs/{_FAILING}/edit"},
        {"name": "failures", "key": lively, "view": "failures", "height": 500},
        {"name": "runs", "key": lively, "view": "runs", "height": 600},
        {"name": "upcoming", "key": big, "view": "upcoming", "height": 700},
        {"name": "phone", "key": lively, "view": f"runs/{run}", **phone},
        *(
            {"name": name, "key": lively, "view": name, "height": 400}
            for name in ("subscriptions", "keys", "quota")
        ),
        {"name": "calendars", "key": lively, "view": "calendars", "height": 620},
        {"name": "audit", "key": lively, "view": "audit", "height": 600},
        {"name": "platform", "key": operator, "view": "", "height": 1100},
        {"name": "tenant", "key": operator, "view": f"tenants/{LIVELY_TENANT}", "height": 700},
    ]


def prepared(embedded: Embedded, key: str) -> tuple[str, str]:
    """Store what the pictures show beside the demo's jobs; return a job's id and a run of it that failed just now."""
    assert embedded.api_url
    with Client(embedded.api_url, key) as demo:
        demo.put_calendar("holidays", {"dates": ["2026-12-25", "2027-01-01", "2027-04-02"]})
        demo.put_subscription("on-call", {"target": {"kind": "http", "url": f"https://{_HOST}/minute8"}})
        target = {"kind": "lambda", "arn": Stage(embedded.env()).deploy_target()}
        definition = {
            "name": "Nightly report",
            "tags": ["reports"],
            "owner": "team-reports",
            "runbook": "https://wiki.example.com/nightly-report",
            "schedule": {
                "cron": "30 2 * * *",
                "timezone": "Europe/Paris",
                "exclude": {"calendars": ["holidays"]},
            },
            "target": target,
            "payload": {"fail_rate": 1, "duration_s": 0.4},
            "retry": {"max_attempts": 3, "base_s": 2},
        }
        demo.put_job(_FAILING, definition)
        run = demo.run_job(_FAILING)["execution_id"]
        while demo.get_run(run)["status"] not in _ENDED:
            time.sleep(0.5)
        return _FAILING, run


if __name__ == "__main__":
    sys.exit(main())
