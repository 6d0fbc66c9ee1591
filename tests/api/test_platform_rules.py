"""The API enforces the rules that the platform sets for a tenant."""

from __future__ import annotations

import pytest

from common.platform.tenants import Tenants
from common.tenants.audit import Audit
from tests.api.calls import Caller, Office
from tests.api.walk import WHILE_SUSPENDED, Call, calls_of_document
from tests.worlds import ARN, job

CALLS = [call for call in calls_of_document() if call.role != "operator"]
FORGOTTEN_AFTER_S = 60


@pytest.fixture
def tenants(office: Office) -> Tenants:
    return Tenants(office.world.table("tenants"))


def soon(office: Office) -> float:
    """The time at which every process knows the platform's change."""
    office.world.clock.sleep(FORGOTTEN_AFTER_S)
    return office.world.clock.now()


def test_a_tenant_sees_what_it_may_and_what_it_uses(office: Office, tenants: Tenants) -> None:
    tenants.edit("alice", {"quotas": {"jobs": 3}, "allowed_targets": [ARN]}, office.world.clock.now())
    office.alice("PUT", "/v1/jobs/report", job(every=3600))
    shown = office.alice_reads("GET", "/v1/tenant").json
    assert shown["usage"] == {"jobs": 1, "executions_per_day": 24}
    assert shown["quotas"]["jobs"] == 3
    assert (shown["allowed_targets"], shown["retention_days"], shown["state"]) == ([ARN], 30, "active")


def test_an_exceeded_quota_is_refused_with_the_figures(office: Office, tenants: Tenants) -> None:
    tenants.edit("alice", {"quotas": {"jobs": 1}}, office.world.clock.now())
    assert office.alice("POST", "/v1/jobs", {"job_id": "one", **job(every=60)}).status == 201
    before = office.stored()
    refused = office.alice("POST", "/v1/jobs", {"job_id": "two", **job(every=60)})
    assert (refused.status, refused.problem) == (403, "quota-exceeded")
    assert refused.json["quota"] == {"name": "jobs", "most": 1, "used": 1, "wanted": 1}
    assert office.stored() == before
    assert office.alice("PUT", "/v1/jobs/one", job(every=120)).status == 200


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"schedule": {"every": 59}}, "schedule"),
        ({"schedule": {"cron": "*/30 * * * * *"}}, "schedule"),
        ({"payload": "x" * 101}, "payload"),
        ({"target": {"kind": "lambda", "arn": ARN + "-other"}}, "target.arn"),
        (
            {"target": {"kind": "lambda", "arn": ARN.replace("target", "minute8-test-scheduler")}},
            "target.arn",
        ),
    ],
)
def test_jobs_beyond_the_platforms_rules_are_refused(
    office: Office, tenants: Tenants, changes: dict[str, object], field: str
) -> None:
    limits = {"shortest_interval_s": 60, "payload_bytes": 100}
    patterns = [ARN, ARN.replace("target", "minute8-*")]
    tenants.edit("alice", {"quotas": limits, "allowed_targets": patterns}, office.world.clock.now())
    before = office.stored()
    refused = office.alice("PUT", "/v1/jobs/report", job(every=60) | changes)
    assert (refused.status, refused.problem) == (400, "invalid-input")
    assert refused.json["errors"][0]["field"].startswith(field)
    assert office.stored() == before


def test_nothing_is_allowed_before_the_platform_allows_it(office: Office, tenants: Tenants) -> None:
    now = office.world.clock.now()
    tenants.create("carol", "", now)
    carol = Caller(tenants.api_keys.create_key("carol", "write", now)[0])
    refused = carol("PUT", "/v1/jobs/report", job(every=60))
    assert refused.status == 400
    assert refused.json["errors"][0]["accepted"] == "what these patterns cover: none"


def test_a_suspended_tenant_looks_and_changes_nothing(office: Office, tenants: Tenants) -> None:
    office.alice("PUT", "/v1/jobs/report", job(cron="* * * * *"))
    tenants.suspend("alice", "not paid", office.world.clock.now())
    soon(office)
    # The first search makes the directory of jobs, and the first overview counts what is ahead.
    for first_look in ("/v1/jobs?q=report", "/v1/overview"):
        assert office.alice("GET", first_look).status == 200
    before = office.stored()
    for call in (call for call in CALLS if str(call) not in WHILE_SUSPENDED):
        answer = office.alice_admin(call.method, call.url, call.body)
        if call.role == "read":
            assert answer.status in (200, 404), (call, answer)
        else:
            assert (answer.status, answer.problem) == (403, "tenant-suspended"), call
    assert office.alice("GET", "/v1/tenant").json["note"] == "not paid"
    assert office.stored() == before
    for call in (call for call in CALLS if str(call) in WHILE_SUSPENDED):
        assert office.alice_admin(call.method, call.url).status == 200, call
    tenants.resume("alice", office.world.clock.now())
    soon(office)
    assert office.alice("POST", "/v1/jobs/report/pause").status == 200


def test_a_suspension_is_seen_at_once_where_a_job_is_registered(office: Office, tenants: Tenants) -> None:
    assert office.alice("GET", "/v1/tenant").status == 200
    tenants.suspend("alice", "", office.world.clock.now())
    refused = office.alice("PUT", "/v1/jobs/report", job(every=60))
    assert (refused.status, refused.problem) == (403, "tenant-suspended")


@pytest.mark.parametrize("call", CALLS, ids=str)
def test_the_rate_is_a_tenant_s_over_all_its_keys(office: Office, tenants: Tenants, call: Call) -> None:
    tenants.edit("alice", {"quotas": {"requests_per_minute": 2}}, office.world.clock.now())
    soon(office)
    for caller in (office.alice, office.alice_reads):
        assert caller("GET", "/v1/tenant").status == 200
    before = office.stored()
    refused = office.alice_admin(call.method, call.url, call.body)
    assert (refused.status, refused.problem) == (429, "rate-exceeded")
    assert refused.headers["retry-after"] in ("30", "60")  # one request of two a minute, or both
    assert office.stored() == before
    assert office.bob("GET", "/v1/tenant").status == 200
    office.world.clock.sleep(int(refused.headers["retry-after"]))
    assert office.alice_admin(call.method, call.url, call.body).status != 429


def test_a_change_is_written_down_with_its_key(office: Office) -> None:
    office.alice("PUT", "/v1/jobs/report", job(every=60))
    office.world.clock.sleep(1)
    office.alice_admin("POST", "/v1/jobs/report/pause", {"note": "holiday"})
    table = office.world.table("tenants")
    entries = [entry for entry in Audit(table).newest("alice", 100) if entry.subject == "report"]
    assert [(entry.action, entry.by) for entry in entries] == [
        ("job.paused", office.alice_admin("GET", "/v1/tenant").json["key"]["key_id"]),
        ("job.created", office.alice("GET", "/v1/tenant").json["key"]["key_id"]),
    ]
    assert entries[0].after["note"] == "holiday"


@pytest.mark.parametrize(
    ("quota", "lines", "remaining"),
    [(22, 1, 2), (22, 1_000, 2), (104, 300, 74), (104, 1_000, 52), (220, 1_000, 120)],
)
def test_a_bulk_request_counts_as_twenty_or_a_tenth_of_its_lines(
    office: Office, tenants: Tenants, quota: int, lines: int, remaining: int
) -> None:
    """At most half of the quota: a tenant with a small quota can send it, too."""
    tenants.edit("alice", {"quotas": {"requests_per_minute": quota}}, office.world.clock.now())
    body = b"{}\n" * lines
    assert office.alice("POST", "/v1/jobs/_bulk", body, content_type="application/x-ndjson").status == 200
    statuses = [office.alice("GET", "/v1/tenant").status for _ in range(remaining + 1)]
    assert statuses == [200] * remaining + [429]


def test_executions_that_a_change_enqueues_count_as_requests(office: Office, tenants: Tenants) -> None:
    """Otherwise a tenant could enqueue a thousand messages with each request. Each change takes effect at once."""
    tenants.edit("alice", {"quotas": {"requests_per_minute": 100}}, office.world.clock.now())
    changes = [job(every=1, jitter_s=jitter_s) for jitter_s in range(5)]
    statuses = [office.alice("PUT", "/v1/jobs/report", change).status for change in changes]
    assert statuses == [201, 200, 200, 429, 429]
    planned_s = 479  # from 3:12:01 to 3:20; each change counts as 1 + 47 requests
    assert len(office.world.sqs.bodies) == 3 * planned_s
    office.world.clock.sleep(60)
    answers = [office.alice("POST", f"/v1/jobs/report/{action}").status for action in ("pause", "resume") * 2]
    assert answers == [200] * 4
    assert (
        office.alice("POST", "/v1/jobs/_bulk", (job(every=60),)).status == 429
    )  # 14 are left, 20 are needed


def test_a_job_that_fires_seldom_costs_one_request(office: Office, tenants: Tenants) -> None:
    tenants.edit("alice", {"quotas": {"requests_per_minute": 3}}, office.world.clock.now())
    changes = [job(every=60, jitter_s=jitter_s) for jitter_s in range(4)]
    statuses = [office.alice("PUT", "/v1/jobs/report", change).status for change in changes]
    assert statuses == [201, 200, 200, 429]
