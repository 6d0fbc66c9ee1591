"""The platform's view of its tenants: who fails, who is late, what a change would break; nothing that jobs contain."""

from __future__ import annotations

from typing import Any

import pytest

from common.history import health
from common.platform import rule_effects
from common.runs.outcome import Outcome
from tests.api.calls import Office
from tests.cli.conftest import Desk
from tests.cli.conftest import desk as desk
from tests.worlds import ARN, at, job

OTHER = "arn:aws:lambda:us-east-1:123456789012:function:other"


def busy(office: Office) -> None:
    world = office.world
    world.target.answer = lambda event: Outcome(
        ok=event["minute8"]["job_id"] != "fails", permanent=True, error_type="Boom", error="secret"
    )
    office.alice("PUT", "/v1/jobs/works", job(cron="* * * * *"))
    office.alice("PUT", "/v1/jobs/fails", job(cron="* * * * *"))
    office.alice("PUT", "/v1/jobs/paused", job(cron="* * * * *"))
    office.alice("POST", "/v1/jobs/paused/pause")
    office.bob("PUT", "/v1/jobs/works", job(cron="* * * * *"))
    world.run_until("2026-11-21T03:16:30Z")


def lines(office: Office, query: str = "") -> dict[str, dict[str, Any]]:
    answered, cursor = {}, ""
    while True:
        answer = office.operator("GET", f"/v1/operator-overview?limit=1{query}{cursor}").json
        answered |= {tenant["tenant_id"]: tenant for tenant in answer["tenants"]}
        if not answer["next_cursor"]:
            return answered
        cursor = f"&cursor={answer['next_cursor']}"


def test_all_tenants_with_their_failures(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    busy(office)
    answered = lines(office)
    assert answered.keys() == {"alice", "bob"}
    assert answered["alice"]["failures"] == {
        "count": 4,
        "jobs": 1,
        "last_at": "2026-11-21T03:16:00Z",
        "complete": True,
    }
    assert (answered["alice"]["usage"]["jobs"], answered["bob"]["failures"]["count"]) == (3, 0)
    assert lines(office, "&problems=true").keys() == {"alice"}
    office.operator("POST", "/v1/tenants/bob/suspend", {"note": "unpaid"})
    assert lines(office, "&problems=true")["bob"]["note"] == "unpaid"
    early = lines(office, "&from_at=2026-11-21T03:00:00Z&until_at=2026-11-21T03:15:00Z")["alice"]["failures"]
    assert early["count"] == 2
    monkeypatch.setattr(health, "MAX_FAILURES", 3)
    assert lines(office)["alice"]["failures"] == {
        "count": 3,
        "jobs": 1,
        "last_at": "2026-11-21T03:16:00Z",
        "complete": False,
    }


def test_counts_lateness_failing_and_overdue_of_one_tenant(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy(office)
    office.world.clock.move_to(at("2026-11-21T03:19:00Z"))
    answer = office.operator("GET", "/v1/tenants/alice/health")
    answered = answer.json
    assert answered["run_totals"]["statuses"] == {"failed": 4, "skipped": 4, "succeeded": 4}
    assert answered["run_totals"]["lateness_s"]["count"] == 8
    assert answered["job_counts"] == {
        "read": 3,
        "active": 2,
        "paused": 1,
        "failing": 1,
        "overdue": 2,
        "most_late_s": 120.0,
        "complete": True,
    }
    assert "secret" not in answer.text and ARN not in answer.text
    monkeypatch.setattr(health, "MAX_JOBS", 2)
    counts = office.operator("GET", "/v1/tenants/alice/health").json["job_counts"]
    assert (counts["read"], counts["complete"]) == (2, False)
    assert office.operator("GET", "/v1/tenants/nobody/health").problem == "not-found"


def test_a_check_counts_the_jobs_that_a_change_would_break(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    office.alice("PUT", "/v1/jobs/a", job(cron="* * * * *", payload="x" * 500))
    office.alice("PUT", "/v1/jobs/b", job(every="1h"))
    office.alice("PUT", "/v1/jobs/c", job(every="1h") | {"target": {"kind": "lambda", "arn": OTHER}})
    before = office.stored()
    change = {
        "allowed_targets": [OTHER],
        "quotas": {"jobs": 2, "shortest_interval_s": 300, "payload_bytes": 400},
    }
    answered = office.operator("POST", "/v1/tenants/alice/check", change).json
    assert (answered["jobs_read"], answered["complete"], answered["not_allowed"]) == (3, True, 2)
    assert answered["targets"] == [{"target": ARN, "jobs": 2}]
    assert (answered["interval_too_short"], answered["payload_too_large"]) == (1, 1)
    assert answered["overused"] == [{"quota": "jobs", "used": 3, "allowed": 2}]
    assert answered["tenant"]["allowed_targets"] == [OTHER]
    assert office.stored() == before
    harmless = office.operator("POST", "/v1/tenants/alice/check", {"quotas": {"jobs": 3}}).json
    assert (harmless["not_allowed"], harmless["overused"]) == (0, [])
    monkeypatch.setattr(rule_effects, "MAX_JOBS", 2)
    monkeypatch.setattr("api.routes.platform.MAX_JOBS", 2)
    assert office.operator("POST", "/v1/tenants/alice/check", change).json["complete"] is False
    refused = office.operator("POST", "/v1/tenants/alice/check", {"allowed_targets": ["not a pattern"]})
    assert refused.problem == "invalid-input"


def test_single_patterns_are_added_and_removed(office: Office) -> None:
    def patterns(**changes: Any) -> Any:
        answer = office.operator("PATCH", "/v1/tenants/alice", changes)
        return answer.json["allowed_targets"] if answer.status == 200 else answer.problem

    assert patterns(add_targets=["hooks.example.com", "*"]) == ["*", "hooks.example.com"]
    assert patterns(remove_targets=["*"], add_targets=[ARN]) == ["hooks.example.com", ARN]
    assert patterns(remove_targets=["*"]) == "invalid-input"
    assert patterns(add_targets=["a b"]) == "invalid-input"
    assert patterns(allowed_targets=[], add_targets=["*"]) == "invalid-input"
    assert patterns(add_targets=[f"h{n}.example.com" for n in range(98)])[-1] == "h97.example.com"
    assert patterns(add_targets=["one-more.example.com"]) == "invalid-input"
    new = {"tenant_id": "carol", "add_targets": ["*"]}
    assert office.operator("POST", "/v1/tenants", new).problem == "invalid-input"


def test_at_a_terminal(desk: Desk) -> None:
    busy(desk.office)
    desk.environment["MINUTE8_OPERATOR_KEY"] = desk.office.operator.key or ""
    rows = desk("tenants", "overview", "--problems").out.splitlines()
    assert len(rows) == 2 and rows[1].startswith("alice")
    assert "2 active, 1 paused, 1 failing" in desk("tenants", "health", "alice").out
    tried = desk("tenants", "edit", "alice", "--remove-target", "*", "--add-target", OTHER, "--dry-run")
    assert f"3 call {ARN}" in tried.out
    assert desk("tenants", "edit", "alice", "--add-target", OTHER).code == 0
    assert desk.office.operator("GET", "/v1/tenants/alice").json["allowed_targets"] == ["*", OTHER]
    assert "nothing would break" in desk("tenants", "edit", "alice", "--quota", "jobs=3", "--dry-run").out
