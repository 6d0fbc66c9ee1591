"""Fifty damages to the tables of a deployed stage, one after the other: nothing stops, each is named and repaired.

After each a tick plans, the API answers, and `minute8 check` names it, or SILENT says why not. `check --fix` repairs
it, or a person puts back what was there. At the end each run of a tenant of whom nothing was damaged has its record and
its call. `python -m pytest -m release tests/end_to_end/test_live_damages.py -s`, with MINUTE8_SEED for other damages.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from common.clock import SystemClock
from common.jobs.job import Job
from common.platform.findings import Level
from common.platform.planning_checks import PlanningState, findings
from common.platform.tenants import Tenants
from common.storage import keys
from common.storage.table import Table
from common.tenants.audit import Audit
from common.timing.instants import rfc3339
from minute8.cli.audit_comparison import verified
from minute8.cli.main import app
from scripts.demo.stage import Stage
from scripts.demo.witness import ENDED, calls_in, expected, problems
from scripts.demo.workload import Registration
from scripts.embedded import Embedded
from tests.api.test_any_damage import GETS, OPERATOR, TABLES, Damage, damages_of
from tests.waiting import wait_until

pytestmark = [pytest.mark.embedded, pytest.mark.release]

COUNT = 50
SEED = int(os.environ.get("MINUTE8_SEED", "46"))
TENANTS = ("alice", "bob")


@dataclass
class Site:
    """A deployed stage with two tenants, and those who look at it."""

    embedded: Embedded
    stage: Stage
    jobs: Sequence[Job]
    began_at: int
    callers: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.dynamodb = self.stage.client("dynamodb")
        self.tenants = Table(self.dynamodb, f"{self.stage.name}-tenants")

    def scan(self) -> dict[str, list[dict[str, Any]]]:
        """All items of all tables, as DynamoDB has them."""
        return {
            table: [
                item
                for page in self.dynamodb.get_paginator("scan").paginate(TableName=self._table(table))
                for item in page["Items"]
            ]
            for table in TABLES
        }

    def _table(self, name: str) -> str:
        return f"{self.stage.name}-{name}"

    def choose(self, rng: random.Random) -> Damage:
        """Each kind of item is as likely as another, and so is each of its damages."""
        by_form: dict[tuple[str, str, str], list[Damage]] = {}
        for damage in damages_of(self.scan()):
            pk, sk = damage.item["pk"]["S"], damage.item["sk"]["S"]
            by_form.setdefault((damage.table, pk.partition("#")[0], sk.partition("#")[0]), []).append(damage)
        return rng.choice(by_form[rng.choice(sorted(by_form))])

    def apply(self, damage: Damage) -> None:
        if damage.name:
            changed = {**damage.item, damage.name: damage.value}
            self._put(damage.table, {name: value for name, value in changed.items() if value is not None})
        elif damage.value is None:
            self._delete(damage.table, damage.item)
        else:
            self._put(damage.table, damage.value)

    def undo(self, damage: Damage) -> None:
        """What a person does with a backup."""
        if not damage.name and damage.value:
            self._delete(damage.table, damage.value)
        self._put(damage.table, damage.item)

    def _put(self, table: str, item: dict[str, Any]) -> None:
        self.dynamodb.put_item(TableName=self._table(table), Item=item)

    def _delete(self, table: str, item: dict[str, Any]) -> None:
        key = {"pk": item["pk"], "sk": item["sk"]}
        self.dynamodb.delete_item(TableName=self._table(table), Key=key)

    def check(self, *words: str) -> list[dict[str, Any]]:
        """What `minute8 check` finds."""
        line = ["check", "--stage", "test", "--json", *words]
        done = CliRunner().invoke(app, line, env=self.embedded.env())
        assert done.exit_code in (0, 1) and done.stdout.startswith("{"), (
            f"{line}: {done.exit_code} {done.output} {done.exception!r}"
        )
        contradictions: list[dict[str, Any]] = json.loads(done.stdout)["contradictions"]
        return contradictions

    def told_besides(self) -> list[str]:
        """What the doctor says of planning and of the audit."""
        clock, audit = SystemClock(), Audit(self.tenants)
        planning = findings(PlanningState(self.stage.index._table, clock, "test"))
        words = [finding.message for finding in planning if finding.level != Level.OK]
        for owner in (*TENANTS, keys.OPERATORS):
            words += [tampering.name for tampering in verified(audit, owner, clock.now()).tamperings]
        return words

    def failed_requests(self) -> list[str]:
        """What the API answers with an error of ours, and what it refuses bob."""
        wrong = []
        with httpx.Client(base_url=self.embedded.api_url or "", timeout=60) as client:
            for who, key in self.callers.items():
                for path in OPERATOR if who == "operator" else GETS:
                    status = client.get(path, headers={"authorization": f"Bearer {key}"}).status_code
                    if status >= 500 or (who == "bob" and status not in (200, 403)):
                        wrong.append(f"{who} {path}: {status}")
        return wrong

    def play(self, damage: Damage) -> list[str]:
        """Make one damage, look, repair. Returns what is wrong."""
        self.apply(damage)
        wrong = []
        try:
            named = [item["name"] for item in self.check()] + self.told_besides()
            self.stage.tick()
            wrong += self.failed_requests()
            named += [item["name"] for item in self.check("--fix", "--yes")] + self.told_besides()
        except Exception as error:  # noqa: BLE001  all are shown
            wrong.append(repr(error)[:500])
            named = ["?"]
        self.counts["named" if named else "silent"] += 1
        if not named and not damage.silence:
            wrong.append("nobody names it")
        if self.check() or not named:
            self.counts["put back by a person"] += 1
            self.undo(damage)
            wrong += [
                f"is left: {item['name']} {item['of']}"
                for item in self.check("--fix", "--yes")
                if not item["has_repair"]
            ]
        elif named:
            self.counts["repaired"] += 1
        return wrong

    def lost_runs(self, until: int) -> list[str]:
        """What is wrong with bob's runs."""
        due = [execution for job in self.jobs if job.tenant == "bob" for execution in expected(job, 0, until)]
        due = [execution for execution in due if execution.fire_at >= self.began_at]
        wait_until(
            lambda: (
                len(runs := self.stage.runs(due)) == len(due)
                and all(run["status"] in ENDED for run in runs.values())
            ),
            "bob's runs have not ended",
            every_s=2,
        )
        calls = calls_in(self.stage.target_log(self.began_at))
        ids = {execution.execution_id for execution in due}
        self.counts["runs of bob's"] = len(due)
        return problems(due, self.stage.runs(due), [call for call in calls if call.execution_id in ids])


@pytest.fixture
def site(embedded: Embedded, aws: Any) -> Site:
    """Two tenants with jobs of all kinds, some minutes later."""
    stage = Stage(embedded.env(), "test")
    arn = stage.deploy_target()
    stage.allow(TENANTS, arn)
    target = {"kind": "lambda", "arn": arn, "invocation": "RequestResponse"}
    often: dict[str, Any] = {"schedule": {"every": "20s"}, "target": target, "timeout_s": 10}
    hourly: dict[str, Any] = {"schedule": {"cron": "30 * * * *"}, "target": target}
    began_at = int(time.time())
    definitions = {
        "report": {**often, "overlap": "skip"},
        "keyed": {**often, "concurrency": {"key": "k", "limit": 1}},
        "large": {**hourly, "payload": "x" * 3_000},
        "daily": {"schedule": {"cron": "0 4 * * *", "timezone": "Europe/Berlin"}, "target": target},
        "once": {"schedule": {"at": rfc3339(began_at + 7_200)}, "target": target},
        "paused": hourly,
        "gone": hourly,
        "fails": {
            **often,
            "payload": {"fail_first_attempts": 9},
            "retry": {"max_attempts": 3, "base_s": 300},
        },
    }
    jobs = stage.register(
        [Registration("alice", name, definition) for name, definition in definitions.items()]
    )
    jobs += stage.register([Registration("bob", name, often) for name in ("report", "other")])
    stored = Tenants(Table(stage.client("dynamodb"), f"{stage.name}-tenants")).api_keys
    now = SystemClock().now()
    callers = {tenant: stored.create_key(tenant, "admin", now)[0] for tenant in TENANTS}
    with httpx.Client(base_url=embedded.api_url or "", timeout=60) as client:
        headers = {"authorization": f"Bearer {callers['alice']}"}
        for method, path, body in (
            ("PUT", "/v1/calendars/holidays", {"dates": ["2026-12-25"]}),
            ("PUT", "/v1/secrets/token", {"value": "a value of token"}),
            ("POST", "/v1/jobs/paused/pause", {}),
            ("DELETE", "/v1/jobs/gone", None),
        ):
            answer = client.request(method, path, headers=headers, json=body)
            assert answer.status_code < 300, (path, answer.text)
    callers["operator"] = stored.create_operator_key(now)[0]
    stage.tick()
    time.sleep(60)  # so that there are runs
    stage.tick()
    return Site(embedded, stage, jobs, began_at + 1, callers)


def test_fifty_live_damages(site: Site) -> None:
    rng, wrong = random.Random(SEED), []
    assert site.check() == [], "before anything is damaged"
    for number in range(1, COUNT + 1):
        damage, began = site.choose(rng), time.monotonic()
        problems = site.play(damage)
        wrong += [f"{damage}: {problem}" for problem in problems]
        print(f"{number} {time.monotonic() - began:.0f} s {damage}: {problems or 'well'}", flush=True)
    wrong += site.lost_runs(int(time.time()) - 60)
    print(dict(site.counts))
    assert not wrong, "\n".join(wrong)
