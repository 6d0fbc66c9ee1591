"""The platform's view of its tenants: who fails, who is late, what a change would break; nothing that jobs contain."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from common.history import listed_health
from common.jobs.not_running import NotRunning
from common.platform import tenants as platform_tenants
from common.projection.entry import RunEntry
from common.projection.tenants import ProjectedTenants
from common.projection.windows import ProjectedWindow
from common.runs.outcome import Outcome
from common.storage import keys
from common.timing.instants import DAY_S
from common.timing.windows import WINDOW_S
from tests.api.calls import Office
from tests.api.shapes import check_shape
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


def platform(office: Office) -> None:
    """Three tenants for some hours: alice fails each minute, bob runs three times as much, carol is suspended."""
    world = office.world
    busy(office)
    for name in ("a", "b", "c"):
        office.bob("PUT", f"/v1/jobs/{name}", job(cron="*/5 * * * *"))
    office.operator("POST", "/v1/tenants", {"tenant_id": "carol"})
    office.operator("POST", "/v1/tenants/carol/suspend", {"note": "unpaid"})
    world.project()
    world.run_until("2026-11-21T06:20:00Z", ticks=True)
    world.project()


def test_all_tenants_with_their_runs(office: Office) -> None:
    platform(office)
    answer = office.operator("GET", "/v1/operator-overview").json
    check_shape("Overview", answer)
    assert (answer["from_at"], answer["fresh_at"]) == ("2026-11-21T03:00:00Z", "2026-11-21T06:10:00Z")
    tenants = {tenant["tenant_id"]: tenant for tenant in answer["tenants"]}
    assert tenants["alice"]["past"] == {"runs": 361, "failed": 177, "late": 0, "max_lateness_s": 0.0}
    assert tenants["alice"]["failing"] == {
        "count": 1,
        "jobs": [{"job_id": "fails", "failures_in_row": 188}],
        "complete": True,
    }
    assert tenants["bob"]["past"]["runs"] == 177 + 3 * 34
    assert (tenants["bob"]["failing"], tenants["carol"]["past"]["runs"]) == (None, 0)
    assert tenants["alice"]["quota_share"] == pytest.approx(3 * 1440 / 1_000_000, abs=0.001)
    totals = answer["totals"]
    assert (totals["tenants"], totals["suspended"], totals["failing"], totals["jobs"]) == (3, 1, 1, 7)
    assert (totals["runs"], totals["failed"], totals["complete"]) == (640, 177, True)
    assert sum(hour["runs"] for hour in answer["hours"]) == totals["runs"]
    assert [hour["at"][11:13] for hour in answer["hours"]] == ["03", "04", "05", "06"]
    assert "secret" not in str(answer) and ARN not in str(answer)
    assert lines(office, "&problems=true").keys() == {"alice", "carol"}
    office.operator("POST", "/v1/blocks", {"pattern": "*", "note": "an incident"})
    blocked = office.operator("GET", "/v1/operator-overview?from_at=2026-11-21T05:00:00Z").json
    assert [block["note"] for block in blocked["blocks"]] == ["an incident"]
    assert blocked["totals"]["failed"] == 70


def test_the_platform_sees_whose_jobs_do_not_run(desk: Desk) -> None:
    office = desk.office
    desk.environment["MINUTE8_OPERATOR_KEY"] = office.operator.key or ""
    office.bob("PUT", "/v1/jobs/report", job(cron="* * * * *"))
    assert lines(office, "&problems=true") == {}
    notes, now = office.world.store.not_running, office.world.clock.now()
    notes.begin("bob", "report", NotRunning("target_not_allowed", now, "3 runs in a row were skipped"))
    stopped = lines(office, "&problems=true")["bob"]["not_running"]
    named = {"job_id": "report", "subscription": None, "reason": "target_not_allowed"}
    named["since_at"] = "2026-11-21T03:12:00Z"
    assert stopped == {
        "count": 1,
        "reasons": {"target_not_allowed": 1},
        "first": [named],
        "complete": True,
    }
    check_shape("Overview", answer := office.operator("GET", "/v1/operator-overview").json)
    assert answer["totals"]["not_running"] == 1
    health = office.operator("GET", "/v1/tenants/bob/health").json["job_counts"]
    assert (health["not_running"], health["stopped_by"]) == (1, {"target_not_allowed": 1})
    assert "report: target_not_allowed" in desk("tenants", "overview", "--problems").out
    assert "1 not running (target_not_allowed 1)" in desk("tenants", "health", "bob").out
    notes.end(office.world.store.get("bob", "report"), "runs_again")
    assert lines(office, "&problems=true") == {}
    assert office.operator("GET", "/v1/operator-overview").json["totals"]["not_running"] == 0


@pytest.mark.parametrize(
    ("sort", "first"),
    [
        ("id", ["alice", "bob", "carol"]),
        ("failing", ["alice", "bob", "carol"]),
        ("load", ["alice", "bob", "carol"]),
        ("quota", ["bob", "alice", "carol"]),
    ],
)
def test_tenants_in_order_page_by_page(office: Office, sort: str, first: list[str]) -> None:
    platform(office)
    office.operator("PATCH", "/v1/tenants/bob", {"quotas": {"jobs": 5}})
    assert list(lines(office, f"&sort={sort}")) == first
    assert office.operator("GET", "/v1/operator-overview?sort=worst").problem == "invalid-input"
    assert (
        office.operator("GET", "/v1/operator-overview?from_at=2026-11-01T00:00:00Z").problem
        == "invalid-input"
    )


def test_a_thousand_tenants_cost_some_thirty_requests(office: Office) -> None:
    world = office.world
    totals = ProjectedTenants(world.table("runs"))
    world.project()
    state = world.projector.states.read()
    assert state
    world.clock.move_to(state.since + DAY_S)
    names = [f"t{n:04}" for n in range(1_000)]
    for name in names:
        office.operator("POST", "/v1/tenants", {"tenant_id": name})
    runs = [RunEntry("20261122T030000Z", "a", "failed", lateness_s=2.0)]
    for start in range(state.since, state.since + DAY_S - 3_600, WINDOW_S):
        window = ProjectedWindow("", start, 0, runs=runs)
        for bucket in range(keys.LOG_BUCKETS):
            of_bucket = [name for name in names if keys.log_bucket(name) == bucket]
            totals.set(bucket, {(name, start): window for name in of_bucket})
    requests: Counter[str] = Counter()
    world.dynamodb.before = lambda name: requests.update([name])
    answer = office.operator("GET", "/v1/operator-overview?sort=late&limit=50").json
    assert answer["tenants"][0]["past"] == {"runs": 138, "failed": 138, "late": 138, "max_lateness_s": 2.0}
    assert requests.total() <= 40, requests


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
        "not_running": 0,
        "stopped_by": {},
        "overdue": 2,
        "most_late_s": 120.0,
        "complete": True,
    }
    assert "secret" not in answer.text and ARN not in answer.text
    monkeypatch.setattr(listed_health, "MAX_JOBS", 2)
    counts = office.operator("GET", "/v1/tenants/alice/health").json["job_counts"]
    # Only whether they are overdue is read job by job.
    names = ("read", "complete", "active", "paused", "failing")
    assert [counts[name] for name in names] == [2, False, 2, 1, 1]
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
    monkeypatch.setattr(platform_tenants, "MAX_JOBS_READ", 2)
    monkeypatch.setattr("minute8.api.routes.platform.MAX_JOBS_READ", 2)
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
    platform(desk.office)
    desk.environment["MINUTE8_OPERATOR_KEY"] = desk.office.operator.key or ""
    desk.office.operator("POST", "/v1/blocks", {"pattern": "*", "note": "an incident"})
    rows = desk("tenants", "overview", "--problems").out.splitlines()
    counted = "3 tenants, 1 suspended, 7 jobs; runs counted up to 2026-11-21T06:10:00Z: 640, 177 failed"
    assert rows[0].startswith(counted)
    assert rows[1] == "blocked * an incident"
    assert [row.split()[0] for row in rows[3:]] == ["alice", "carol"] and "fails" in rows[3]
    desk.office.operator("POST", "/v1/blocks/release", {"pattern": "*"})
    few = desk("tenants", "overview", "--sort", "load", "-n", "1")
    assert "1 of 3 tenants: minute8 tenants overview --sort load --limit 10" in few.err
    assert "2 active, 1 paused" in desk("tenants", "health", "alice").out
    tried = desk("tenants", "edit", "alice", "--remove-target", "*", "--add-target", OTHER, "--dry-run")
    assert f"3 call {ARN}" in tried.out
    assert desk("tenants", "edit", "alice", "--add-target", OTHER).code == 0
    assert desk.office.operator("GET", "/v1/tenants/alice").json["allowed_targets"] == ["*", OTHER]
    assert "nothing would break" in desk("tenants", "edit", "alice", "--quota", "jobs=3", "--dry-run").out
